"""What reaches the driver: CUDA candidates and the spin before timed calls, without a GPU."""

import sys
import types

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cake.judge import Candidate
from cake.judge.cuda_runner import RUNNER, CudaRunner
from cake.judge.cupti import BUFFER_BYTES
from cake.judge.device_cuda import CudaArray, CudaBuffer, CudaDevice
from cake.judge.gpu_clock import EVENTS, SPIN_MOST_SECONDS, Spinner
from cake.judge.selftest.sources import CUDA_SOFTMAX
from cake.runtime import driver
from cake.workloads import get, problem
from tests.runtime.fakes import H200, FakeDriver

F32 = np.dtype(np.float32)


class Recorder(FakeDriver):
    """Also takes the clearing of any byte, and events that lie 250 us apart."""

    def cuMemsetD8Async(self, pointer, value, size, stream):
        self.calls.append(f"set {value} {size}")
        return (self.OK,)

    def cuEventElapsedTime(self, start, end):
        self.calls.append("cuEventElapsedTime")
        return self.OK, 0.25

    def cuEventRecord(self, event, stream):
        self.calls.append("cuEventRecord")
        return (self.OK,)

    def cuMemcpyDtoDAsync(self, to, source, size, stream):
        self.calls.append("copy")
        return (self.OK,)

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        self.calls.append("launch")
        return super().cuLaunchKernelEx(config, function, parameters, extra)

    def __getattr__(self, name):
        if name in ("cuMemFree", "cuCtxSetCurrent", "cuEventSynchronize"):
            return lambda *_: (self.OK,)
        if name == "cuCtxResetPersistingL2Cache":
            self.calls.append("reset")
            return lambda: (self.OK,)
        return super().__getattr__(name)


@pytest.fixture
def recorded(monkeypatch):
    def record(parameters):
        fake = Recorder(parameter_count=parameters)
        monkeypatch.setattr(driver, "driver", lambda: fake)
        monkeypatch.setattr(driver, "device", lambda ordinal: H200)
        monkeypatch.setattr(driver, "primary_context", lambda ordinal: 1000 + ordinal)
        return fake

    return record


def test_the_spin_lasts_longer_than_the_host_needs(recorded):
    fake = recorded(1)
    spinner = Spinner()
    for seconds in (20e-6, 20e-6, 1.0):
        spinner.enqueue(seconds, 5)
    hertz = H200.sm_clock_khz * 1e3
    cycles = [launch.parameters[0] for launch in fake.launches]
    assert cycles == [int(100e-6 * hertz)] * 2 + [int(SPIN_MOST_SECONDS * hertz)]
    assert {(launch.grid, launch.block, launch.stream) for launch in fake.launches} == {
        ((1, 1, 1), 1, 5)
    }


def steps(fake):
    """What was enqueued, without the bookkeeping of a first launch."""
    known = ("reset", "set", "copy", "launch", "call", "cuEvent")
    return [name for name in fake.calls if name.startswith(known)]


def test_a_cold_call_is_timed_behind_a_reset_a_flush_and_a_spin(recorded):
    fake = recorded(1)
    device = CudaDevice()
    assert device.clock == EVENTS
    assert "cupti" in device.environment()["no_cupti"]
    fake.calls.clear()
    found = device.measure(lambda: fake.calls.append("call"), 20e-6)
    assert found == 0.25
    flushed = [f"set 0 {4 * H200.l2_bytes}", "copy"]
    timed = ["launch", "cuEventRecord", "call", "cuEventRecord", "cuEventElapsedTime"]
    assert steps(fake) == ["reset", *flushed, *timed]


def test_a_warm_call_follows_another_and_nothing_is_flushed(recorded):
    fake = recorded(1)
    device = CudaDevice()
    fake.calls.clear()
    device.measure(lambda: fake.calls.append("call"), 20e-6, cold=False)
    assert steps(fake)[:4] == ["call", "launch", "cuEventRecord", "call"]


def test_a_cuda_candidate_is_launched_with_the_arguments_of_its_manifest(recorded):
    fake = recorded(4)
    instance = problem(get("softmax"), {"M": 5, "N": 72}, "f32")
    text = CUDA_SOFTMAX.replace('"block": 128', '"block": 128, "workspaces": {"kept": "4 * M"}')
    runner = CudaRunner(Candidate(runner=RUNNER, entry="mine", text=text), instance)
    tensors = {n: CudaArray(CudaBuffer(1440), 0, (5, 72), F32) for n in ("x", "y")}
    fake.calls.clear()
    runner.reset()
    runner.run(tensors)
    assert "set 0 20" in fake.calls
    (launch,) = fake.launches
    assert (launch.grid, launch.block, launch.stream) == ((5, 1, 1), 128, 0)
    pointers = [tensors[name].data_ptr() for name in ("x", "y")]
    assert launch.parameters[:2] == pointers
    assert [value & 0xFFFFFFFF for value in launch.parameters[2:]] == [5, 72]


def test_a_launch_that_fails_is_an_error_with_its_name(recorded):
    fake = recorded(4)
    fake.launch_status = bindings.CUresult.CUDA_ERROR_INVALID_VALUE
    instance = problem(get("softmax"), {"M": 5, "N": 72}, "f32")
    runner = CudaRunner(Candidate(runner=RUNNER, entry="mine", text=CUDA_SOFTMAX), instance)
    tensors = {n: CudaArray(CudaBuffer(1440), 0, (5, 72), F32) for n in ("x", "y")}
    with pytest.raises(driver.DriverError, match="CUDA_ERROR_INVALID_VALUE"):
        runner.run(tensors)


class FakeCupti:
    """The part of cupti-python that is used: what was enqueued comes back as activities."""

    ActivityKind = types.SimpleNamespace(MEMSET=2, CONCURRENT_KERNEL=10, MEMCPY=1)

    def __init__(self, fake):
        self.fake = fake
        self.enabled = []

    def activity_register_callbacks(self, requested, completed):
        assert requested() == (BUFFER_BYTES, 0)
        self.completed = completed

    def activity_enable(self, kind):
        self.enabled.append(kind)

    def activity_flush_all(self, flag):
        assert flag == 1
        made = []
        for number, name in enumerate(self.fake.calls):
            start = 1000 * number
            facts = {"start": start, "end": start + 900, "correlation_id": number}
            if name.startswith("set"):
                _, value, size = name.split()
                made.append(
                    types.SimpleNamespace(kind=2, value=int(value), bytes=int(size), **facts)
                )
            elif name == "call":
                made.append(types.SimpleNamespace(kind=10, **facts))
        self.completed(made)


def test_where_cupti_works_its_span_is_the_time(recorded, monkeypatch):
    fake = recorded(1)
    cupti = FakeCupti(fake)
    monkeypatch.setitem(sys.modules, "cupti", types.SimpleNamespace(cupti=cupti))
    device = CudaDevice()
    assert device.clock == "CUPTI span"
    assert "no_cupti" not in device.environment()
    assert cupti.enabled == [10, 1, 2]
    fake.calls.clear()

    def two_kernels():
        fake.calls.extend(["call", "other", "call"])

    # Three places from the start of the first to that of the last, and the length of one.
    assert device.measure(two_kernels, 20e-6) == pytest.approx((2 * 1000 + 900) * 1e-6)


def test_a_cupti_that_fails_is_named_and_replaced(recorded, monkeypatch):
    fake = recorded(1)
    cupti = FakeCupti(fake)
    cupti.activity_enable = lambda kind: 1 / 0
    monkeypatch.setitem(sys.modules, "cupti", types.SimpleNamespace(cupti=cupti))
    device = CudaDevice()
    assert device.clock == EVENTS
    assert device.environment()["no_cupti"] == "ZeroDivisionError: division by zero"
