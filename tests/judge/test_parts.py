import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.judge import BuildError, Candidate, Summary, register
from cake.judge.arguments import GUARD_BYTES, POISONS, Arguments
from cake.judge.devices import ALIGNMENT, HostDevice
from cake.judge.passes import compare_passes
from cake.judge.protocol import (
    Open,
    ProtocolError,
    Run,
    Timed,
    from_line,
    load_array,
    save_arrays,
    to_line,
)
from cake.judge.records import RecordError, decode, encode
from cake.judge.runners import UnknownRunnerError, find
from cake.judge.timing import ROTATIONS, Contender, Stopwatch
from cake.judge.verdict import SEVERITY, worst
from cake.workloads import generate, get, problem

SHAPE = {"M": 3, "N": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    colour: Literal["red", "green"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    count: int
    share: float
    label: str | None
    inner: tuple[Inner, ...]
    values: Mapping[str, bool | int | float | str]


OUTER = Outer(
    count=1, share=0.5, label=None, inner=(Inner(colour="red"),), values={"a": True, "b": 2}
)


class TestRecords:
    def test_round_trip(self):
        assert decode(Outer, json.loads(json.dumps(encode(OUTER)))) == OUTER

    @given(share=st.floats(allow_nan=False), label=st.none() | st.text())
    def test_round_trip_of_any_number_and_text(self, share, label):
        outer = dataclasses.replace(OUTER, share=share, label=label)
        assert decode(Outer, json.loads(json.dumps(encode(outer), allow_nan=False))) == outer

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"count": "1"}, r"Outer.count: '1' is not int"),
            ({"count": True}, r"Outer.count: True is not int"),
            ({"share": "much"}, r"Outer.share: 'much' is not float"),
            ({"label": 3}, r"Outer.label: 3 is not str \| None"),
            ({"inner": [{"colour": "blue"}]}, r"Outer.inner\[0\].colour: 'blue' is not"),
            ({"inner": {}}, r"Outer.inner: {} is not"),
            ({"values": {"a": []}}, r"Outer.values.a: \[\] is not"),
            ({"more": 1}, r"Outer: missing or unknown entries: more"),
        ],
    )
    def test_an_entry_of_another_type_is_named(self, change, message):
        with pytest.raises(RecordError, match=message):
            decode(Outer, {**encode(OUTER), **change})


class TestProtocol:
    def test_round_trip(self):
        message = Timed(
            clock="host clock",
            candidate_ms=(1.0, float("inf")),
            baseline_ms=(),
            baseline_problem="",
            kept={"3": 1},
        )
        line = to_line(message)
        assert line.count(b"\n") == 1
        assert from_line(line) == message

    @given(st.binary(max_size=60))
    def test_arbitrary_bytes_are_refused_not_obeyed(self, line):
        with pytest.raises(ProtocolError):
            from_line(line)

    @pytest.mark.parametrize(
        "line",
        [
            b"[" * 100_000,
            b'{"kind": "Run"}',
            b'{"kind": ["Run"], "body": {}}',
            b'{"kind": "Run", "body": {"inputs": 1, "outputs": ""}}',
            to_line(Run(inputs="", outputs=""))[:-3],
            to_line(Open(device="cpu", plugins=(), runner="x")).replace(b"Open", b"Exec"),
        ],
    )
    def test_near_misses_are_refused(self, line):
        with pytest.raises(ProtocolError):
            from_line(line)

    def test_arrays_of_every_type_keep_their_bits(self, tmp_path):
        arrays = {
            "a": np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16),
            "b": np.array([np.nan, -0.0], np.float16),
            "c": np.zeros((0, 4), np.int32),
        }
        save_arrays(tmp_path / "x", arrays)
        for name, array in arrays.items():
            loaded = load_array(tmp_path / "x", name, array.shape, array.dtype)
            assert loaded.tobytes() == array.tobytes()
            assert (loaded.shape, loaded.dtype) == (array.shape, array.dtype)

    def test_files_that_are_no_such_array_are_refused(self, tmp_path):
        dtype = np.dtype(np.float32)
        with pytest.raises(ProtocolError, match=r"y\.bin: No such file"):
            load_array(tmp_path, "y", (2,), dtype)
        (tmp_path / "y.bin").write_bytes(bytes(7))
        with pytest.raises(ProtocolError, match=r"y\.bin is 7 bytes, not 8 bytes"):
            load_array(tmp_path, "y", (2,), dtype)

    @pytest.mark.parametrize("trick", ["pipe", "link", "folder", "linked folder"])
    def test_what_a_child_may_put_in_the_place_of_a_file_is_not_opened(self, tmp_path, trick):
        (tmp_path / "secret").write_bytes(bytes(8))
        out = tmp_path / "out"
        out.mkdir()
        if trick == "pipe":
            os.mkfifo(out / "y.bin")
        elif trick == "link":
            (out / "y.bin").symlink_to(tmp_path / "secret")
        elif trick == "folder":
            (out / "y.bin").mkdir()
        else:
            (tmp_path / "y.bin").write_bytes(bytes(8))
            out.rmdir()
            out.symlink_to(tmp_path)
        with pytest.raises(ProtocolError, match="no array"):
            load_array(out, "y", (2,), np.dtype(np.float32))

    def test_a_file_is_never_written_through_a_link_or_over_another(self, tmp_path):
        kept = tmp_path / "kept"
        kept.write_bytes(b"mine")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "y.bin").symlink_to(kept)
        (tmp_path / "away").symlink_to(tmp_path)
        for folder in (tmp_path / "out", tmp_path / "away"):
            with pytest.raises(OSError, match=r"exists|symbolic|Not a directory"):
                save_arrays(folder, {"y": np.zeros(2)})
        assert kept.read_bytes() == b"mine"


class TestCandidate:
    def test_the_hash_is_that_of_the_content(self, tmp_path):
        paths = [tmp_path / "a.py", tmp_path / "b.py"]
        for path in paths:
            path.write_text("def f(): ...")
        first, second = (
            Candidate.from_file(path, runner=runner, entry="f", meta=meta)
            for path, runner, meta in zip(
                paths, ("gpu", "simulate"), ({"S": 2, "W": 1}, {"W": 1, "S": 2}), strict=True
            )
        )
        assert first.digest() == second.digest()
        changes = ({"meta": {"S": 3, "W": 1}}, {"entry": "g"}, {"text": "def f(): pass"})
        others = [dataclasses.replace(first, **change).digest() for change in changes]
        assert len({first.digest(), *others}) == 4

    def test_a_runner_is_registered_once_and_found_by_name(self):
        @register("test-parts")
        def factory(candidate, instance):
            raise BuildError("never built")

        assert find("test-parts") is factory
        with pytest.raises(ValueError, match="`test-parts` is registered already"):
            register("test-parts")(factory)
        with pytest.raises(UnknownRunnerError, match="no runner is called `nvcc`; registered are"):
            find("nvcc")


class TestHostDevice:
    def test_buffers_are_aligned_and_arrays_share_their_memory(self):
        device = HostDevice()
        for size in (1, 1000, 4096):
            buffer = device.allocate(size)
            assert buffer.size == size
            assert buffer.ctypes.data % ALIGNMENT == 0
        array = device.array(buffer, 256, (2, 4), np.dtype(ml_dtypes.bfloat16))
        array[...] = 1
        assert set(device.download(buffer, 256, 272).view(np.uint16)) == {0x3F80}
        device.fill(buffer, 0, 4096, 0xFF)
        assert np.isnan(array.astype(np.float32)).all()


class TestArguments:
    def make(self, poison=POISONS[0]):
        instance = problem(get("softmax"), SHAPE, "bf16")
        inputs = generate(get("softmax"), SHAPE, "bf16", "normal", 0)
        arguments = Arguments(HostDevice(), instance, poison)
        arguments.load(inputs)
        return arguments, inputs

    @pytest.mark.parametrize("poison", POISONS)
    def test_outputs_start_out_as_poison_and_inputs_as_given(self, poison):
        arguments, inputs = self.make(poison)
        assert arguments.arrays()["x"].tobytes() == inputs["x"].tobytes()
        assert set(arguments.outputs()["y"].tobytes()) == {poison}
        assert arguments.findings(inputs) == []

    def test_every_guard_byte_counts(self):
        arguments, inputs = self.make()
        tensor = arguments.tensors["y"]
        buffer, size = tensor._buffer, 3 * 8 * 2
        for at in (0, GUARD_BYTES - 1, GUARD_BYTES + size, 2 * GUARD_BYTES + size - 1):
            buffer[at] = 0
            (finding,) = arguments.findings(inputs)
            assert (finding.kind, finding.tensor) == ("guard-overwritten", "y")
            buffer[at] = POISONS[0]
        buffer[GUARD_BYTES : GUARD_BYTES + size] = 0
        assert arguments.findings(inputs) == []

    def test_nan_inputs_count_as_unchanged(self):
        arguments, inputs = self.make()
        inputs["x"][0, 0] = np.nan
        arguments.load(inputs)
        assert arguments.findings(inputs) == []


class TestPasses:
    INSTANCE = problem(get("kmeans_update"), {"B": 1, "N": 4, "K": 2, "D": 2}, "f32")

    def outputs(self, poison):
        return {
            spec.name: np.full(self.INSTANCE.bytes_of(spec.name), poison, np.uint8)
            .view(self.INSTANCE.dtype_of(spec.name))
            .reshape(self.INSTANCE.shape_of(spec.name))
            for spec in self.INSTANCE.contract.outputs
        }

    def test_untouched_outputs_are_found_tensor_by_tensor(self):
        first, second = (self.outputs(poison) for poison in POISONS)
        first["sums"][...] = second["sums"][...] = 1
        first["counts"][0, 0] = second["counts"][0, 0] = 1
        found = {f.tensor: f.message for f in compare_passes(self.INSTANCE, first, second)}
        assert found == {
            "c_new": "4 of 4 elements, the first at [0, 0, 0], were never written",
            "counts": "1 of 2 elements, the first at [0, 1], were never written",
        }

    def test_a_result_that_happens_to_be_poison_once_is_no_finding(self):
        first = self.outputs(0)
        first["counts"].view(np.uint8)[0, :4] = POISONS[0]
        assert compare_passes(self.INSTANCE, first, first) == []

    def test_where_any_order_is_admitted_passes_may_differ(self):
        assert compare_passes(self.INSTANCE, self.outputs(0), self.outputs(1)) == []


class TestStopwatch:
    def test_sides_alternate_and_contents_and_pointers_change(self):
        contract = get("softmax")
        instance = problem(contract, SHAPE, "f32")
        contents = [generate(contract, SHAPE, "f32", "normal", seed) for seed in (1, 2)]
        log = []

        def bind_to(name):
            def bind(tensors):
                def call():
                    assert set(tensors["y"].tobytes()) == {POISONS[0]}
                    log.append((name, tensors["x"].ctypes.data, tensors["x"].tobytes()))
                    tensors["y"][...] = 0

                return call

            return bind

        kept = []
        watch = Stopwatch(HostDevice(), instance, contents)
        sides = [Contender(bind=bind_to(name)) for name in ("ours", "theirs")]
        samples = watch.measure(
            sides, warmup=2, samples=12, keep=lambda number, content, _: kept.append(content)
        )
        timed = log[4:]
        assert [len(side) for side in samples] == [12, 12]
        names = [name for name, _, _ in timed]
        assert names[:8] == ["ours", "theirs", "theirs", "ours"] * 2
        ours = [entry for entry in timed if entry[0] == "ours"]
        assert len({pointer for _, pointer, _ in ours}) == ROTATIONS
        assert [data for _, _, data in ours] == [contents[c]["x"].tobytes() for c in kept]
        # Buffers that come round again hold something else than the last time.
        for before, after in zip(ours, ours[ROTATIONS:], strict=False):
            assert before[1] == after[1]
            assert before[2] != after[2]


def test_summaries():
    assert Summary.of([3.0]) == Summary(median=3.0, q1=3.0, q3=3.0, count=1)
    summary = Summary.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (summary.q1, summary.median, summary.q3) == (2.0, 3.0, 4.0)
    with pytest.raises(ValueError, match="no samples"):
        Summary.of([])


def test_a_verdict_is_as_bad_as_its_worst_part():
    assert worst(["passed", "refused"]) == "refused"
    assert worst(["incorrect", "hang", "passed"]) == "hang"
    assert worst(SEVERITY[:3]) == "build_failed"
