"""CUPTI spans, the physics floor and the watch on clocks, without a GPU."""

import sys
import time
import types

import pytest

from cake.judge.clocks import Clocks, ClockWatch
from cake.judge.cupti import Activity, span_ms
from cake.judge.floor import floor_ms, impossible, part_named
from cake.workloads import get, problem

CUBE = problem(get("gemm"), {"M": 8192, "N": 8192, "K": 8192}, "bf16")
ROWS = problem(get("rmsnorm"), {"M": 65536, "D": 8192}, "bf16")


def mark(call):
    return Activity(start=0, end=0, call=call, is_mark=True)


def work(call, start, end):
    return Activity(start=start, end=end, call=call, is_mark=False)


class TestSpan:
    def test_it_reaches_from_the_first_start_to_the_last_end_of_all_streams(self):
        records = [mark(10), work(11, 5_000, 9_000), work(12, 4_000, 20_000), mark(13)]
        assert span_ms(records) == pytest.approx(0.016)

    def test_what_lies_outside_of_the_last_two_marks_does_not_count(self):
        records = [mark(1), work(2, 0, 10**9), mark(3), work(4, 0, 10**9), mark(5)]
        assert span_ms([*records, work(6, 0, 10), mark(7), work(8, 0, 10**9)]) == pytest.approx(
            1e-5
        )

    def test_lost_records_are_an_error_and_no_short_time(self):
        with pytest.raises(ValueError, match="1 of 2 marks"):
            span_ms([mark(1), work(2, 0, 10)])
        with pytest.raises(ValueError, match="no activity"):
            span_ms([mark(1), mark(2)])


class TestFloor:
    def test_operations_bound_a_large_product_and_bytes_a_norm(self):
        assert floor_ms(CUBE, "NVIDIA H200") == pytest.approx(1.027, rel=1e-3)
        moved = ROWS.bytes_moved - 60 * 2**20
        assert floor_ms(ROWS, "NVIDIA H200") == pytest.approx(1e3 * moved / 4.8e12)

    def test_measured_times_are_possible_and_a_tenth_of_them_is_not(self):
        assert impossible(CUBE, "NVIDIA H200", 1.39) == ""
        assert "below the physics floor of 1.027 ms" in impossible(CUBE, "NVIDIA H200", 0.139)

    def test_what_fits_into_the_l2_need_not_reach_memory(self):
        small = problem(get("rmsnorm"), {"M": 64, "D": 1024}, "bf16")
        assert floor_ms(small, "NVIDIA H200") < 1e-5

    def test_an_unknown_device_has_no_floor(self):
        assert part_named("x86_64") is None
        assert floor_ms(CUBE, "x86_64") is None
        assert impossible(CUBE, "x86_64", 1e-9) == ""


class TestClocks:
    def test_without_the_library_the_record_says_so(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with ClockWatch(on_gpu=True) as watch:
            time.sleep(0.05)
        assert "cake-ir[nvml]" in watch.clocks().problem

    def test_ranges_and_reasons_are_collected(self, monkeypatch):
        sm = iter([1980, 1700, *[1755] * 100])
        nvml = types.SimpleNamespace(
            NVMLError=RuntimeError,
            NVML_CLOCK_SM=1,
            NVML_CLOCK_MEM=2,
            NVML_TEMPERATURE_GPU=0,
            nvmlInit=lambda: None,
            nvmlShutdown=lambda: None,
            nvmlDeviceGetHandleByIndex=lambda index: index,
            nvmlDeviceGetClockInfo=lambda handle, kind: next(sm) if kind == 1 else 3201,
            nvmlDeviceGetTemperature=lambda handle, kind: 61,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x1 | 0x4,
        )
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr("cake.judge.clocks.POLL_SECONDS", 0.001)
        with ClockWatch(on_gpu=True) as watch:
            time.sleep(0.1)
        assert watch.clocks() == Clocks(
            sm_low=1700,
            sm_high=1980,
            memory_low=3201,
            memory_high=3201,
            temperature=61,
            throttled_by=("power cap",),
        )
