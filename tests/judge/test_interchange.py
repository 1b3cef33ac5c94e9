"""flashinfer-bench's records: round trips, what its validator refuses, and our side of them.

Where that package is installed, every record that we write is read by it.
"""

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.judge import Candidate, Evaluation, TimingPlan, judge
from cake.judge.interchange import (
    Definition,
    InterchangeError,
    Solution,
    Trace,
    Workload,
    candidate_of,
    definition_of,
    dumps,
    loads,
    read_traces,
    solution_of,
    trace_of,
    workload_of,
    write_traces,
)
from cake.judge.interchange.schema import (
    AxisConst,
    AxisVar,
    BuildSpec,
    Correctness,
    Environment,
    Performance,
    RandomInput,
    SafetensorsInput,
    ScalarInput,
    SourceFile,
    TensorSpec,
    TraceEvaluation,
)
from cake.judge.python_runner import PLUGIN, RUNNER
from cake.judge.selftest.sources import SOFTMAX
from cake.workloads import Case, get, names

CASE = Case(shape={"M": 4, "N": 64}, dtype="f32")
WHEN = datetime(2026, 1, 2, tzinfo=UTC)

TEXT = st.text(min_size=1, max_size=8)
NUMBER = st.floats(0, 1e6)
WORKLOADS = st.builds(
    Workload,
    axes=st.dictionaries(TEXT, st.integers(0, 2**40), max_size=3),
    inputs=st.dictionaries(
        TEXT,
        st.builds(RandomInput)
        | st.builds(ScalarInput, value=st.integers() | NUMBER | st.booleans())
        | st.builds(SafetensorsInput, path=TEXT, tensor_key=TEXT),
        max_size=3,
    ),
    uuid=TEXT,
)
CORRECTNESS = st.builds(Correctness, max_relative_error=NUMBER, max_absolute_error=NUMBER)
EVALUATIONS = st.builds(
    TraceEvaluation,
    status=st.just("PASSED"),
    environment=st.builds(Environment, hardware=TEXT, libs=st.dictionaries(TEXT, TEXT)),
    timestamp=TEXT,
    log=TEXT,
    correctness=CORRECTNESS,
    performance=st.builds(Performance, latency_ms=NUMBER, speedup_factor=NUMBER),
)
TRACES = st.builds(
    Trace,
    definition=TEXT,
    workload=WORKLOADS,
    solution=st.none() | TEXT,
    evaluation=st.none() | EVALUATIONS,
)


def definition(**changes) -> Definition:
    settings = {
        "name": "sum",
        "op_type": "reduction",
        "axes": {"n": AxisVar(), "m": AxisConst(value=4)},
        "inputs": {"x": TensorSpec(shape=("n", "m"), dtype="float32"), "s": scalar()},
        "outputs": {"y": TensorSpec(shape=("n",), dtype="float32", description="sums")},
        "reference": "def run(x, s):\n    return x.sum(1) * s\n",
        "tags": ("status:verified",),
        "constraints": ("n % m == 0", "x[-1].item() == n"),
        **changes,
    }
    return Definition(**settings)


def scalar():
    return TensorSpec(shape=None, dtype="float32")


def solution(**changes) -> Solution:
    settings = {
        "name": "mine",
        "definition": "sum",
        "author": "me",
        "spec": BuildSpec(
            language="python", target_hardware=("cuda",), entry_point="main.py::kernel"
        ),
        "sources": (SourceFile(path="main.py", content="def kernel(x, s, y): ...\n"),),
        **changes,
    }
    return Solution(**settings)


class TestRoundTrip:
    @given(trace=TRACES)
    @settings(max_examples=60, deadline=None)
    def test_traces(self, trace):
        text = dumps(trace)
        assert "\n" not in text
        assert loads(Trace, text) == trace

    def test_definitions_and_solutions(self):
        for record in (definition(), solution(description="first try")):
            assert loads(type(record), dumps(record)) == record

    def test_files_of_traces(self, tmp_path):
        traces = [
            Trace(definition="sum", workload=Workload(axes={}, inputs={}, uuid=str(i)))
            for i in (1, 2)
        ]
        write_traces(tmp_path / "t.jsonl", traces)
        assert list(read_traces(tmp_path / "t.jsonl")) == traces
        with (tmp_path / "t.jsonl").open("a") as file:
            file.write("\n{}\n")
        with pytest.raises(InterchangeError, match=r"t\.jsonl:4: .*missing"):
            list(read_traces(tmp_path / "t.jsonl"))

    def test_entries_of_later_versions_are_dropped(self):
        raw = json.loads(dumps(definition()))
        raw["new"] = 1
        raw["axes"]["n"]["parent"] = "m"
        raw["inputs"]["x"]["layout"] = "row"
        assert loads(Definition, json.dumps(raw)) == definition()

    def test_entries_may_be_left_out_where_they_have_a_default(self):
        raw = json.loads(dumps(definition()))
        for name in ("tags", "description", "constraints"):
            del raw[name]
        assert loads(Definition, json.dumps(raw)) == definition(tags=(), constraints=())


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"outputs": {"x": scalar()}}, "both input and output: x"),
            ({"inputs": {"x": TensorSpec(shape=("k",), dtype="int8")}}, r"unknown axes \['k'\]"),
            ({"reference": "def go(): ..."}, "no function `run`"),
            ({"reference": "def run(:"}, "not Python"),
            ({"constraints": ("n ==",)}, "not Python"),
        ],
    )
    def test_definitions(self, changes, message):
        with pytest.raises(InterchangeError, match=message):
            definition(**changes)

    @pytest.mark.parametrize("path", ["/etc/passwd", "../up.py", "a/../../b.py", ""])
    def test_sources_that_leave_their_folder(self, path):
        with pytest.raises(InterchangeError, match="leaves the folder"):
            SourceFile(path=path, content="")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sources": ()}, r"no source is called main\.py"),
            ({"sources": (SourceFile(path="main.py", content=""),) * 2}, "two sources have one"),
        ],
    )
    def test_solutions(self, changes, message):
        with pytest.raises(InterchangeError, match=message):
            solution(**changes)

    @pytest.mark.parametrize("entry", ["main.py", "a::b::c"])
    def test_entry_points(self, entry):
        with pytest.raises(InterchangeError, match="is not FILE::FUNCTION"):
            BuildSpec(language="python", target_hardware=("cuda",), entry_point=entry)

    @pytest.mark.parametrize(
        ("status", "correctness", "performance", "message"),
        [
            ("PASSED", True, False, "needs performance"),
            ("PASSED", False, True, "needs correctness"),
            ("INCORRECT_NUMERICAL", False, False, "needs correctness"),
            ("INCORRECT_NUMERICAL", True, True, "has no performance"),
            ("TIMEOUT", True, False, "has no correctness"),
            ("COMPILE_ERROR", False, True, "has no performance"),
        ],
    )
    def test_evidence_that_does_not_fit_the_status(self, status, correctness, performance, message):
        with pytest.raises(InterchangeError, match=message):
            TraceEvaluation(
                status=status,
                environment=Environment(hardware="H200"),
                timestamp="now",
                correctness=Correctness() if correctness else None,
                performance=Performance() if performance else None,
            )

    @pytest.mark.parametrize("text", ["[", "[]", "{}", '{"definition": 1}', "[" * 10_000])
    def test_text_that_is_no_trace(self, text):
        with pytest.raises(InterchangeError):
            loads(Trace, text)


def test_constraints_are_decided_where_arithmetic_can_and_never_executed():
    made = definition(constraints=("n % m == 0", "x[0] == n", "__import__('os').abort()"))
    assert made.violated({"n": 8}) == ()
    assert made.violated({"n": 9}) == ("n % m == 0",)
    assert made.violated({}) == ()


class TestContracts:
    @pytest.mark.parametrize("name", names())
    def test_every_contract_becomes_a_definition_and_its_cases_workloads(self, name):
        for case in (get(name).shapes["small"][0], get(name).shapes["edge"][-1]):
            made = definition_of(name, case)
            assert loads(Definition, dumps(made)) == made
            workload = workload_of(name, case)
            assert loads(Workload, dumps(workload)) == workload
            assert made.violated(workload.axes) == ()
            open_axes = {n for n, axis in made.axes.items() if isinstance(axis, AxisVar)}
            assert set(workload.axes) == open_axes
            assert set(workload.inputs) == set(made.inputs)

    def test_an_extent_that_no_input_has_is_a_constant(self):
        case = get("knn_build").shapes["small"][0]
        made = definition_of("knn_build", case)
        assert made.axes["k"] == AxisConst(
            value=case.shape["k"], description="neighbours of each row"
        )

    def test_equal_cases_have_equal_identifiers(self):
        first, second = (workload_of("softmax", CASE) for _ in range(2))
        assert first == second
        assert workload_of("softmax", dataclasses.replace(CASE, dtype="bf16")).uuid != first.uuid


def judged(text, **changes):
    return judge(
        Evaluation(
            workload="softmax",
            candidate=Candidate(runner=RUNNER, entry="mine", text=text),
            cases=(CASE,),
            families=("normal", "constant"),
            plugins=(PLUGIN,),
            **changes,
        )
    )


class TestVerdicts:
    def test_a_solution_comes_back_as_a_candidate_that_is_judged_alike(self):
        made = definition_of("softmax", CASE)
        mine = Candidate(runner=RUNNER, entry="mine", text=SOFTMAX)
        theirs = solution_of(mine, made, author="me", hardware="cpu")
        assert loads(Solution, dumps(theirs)) == theirs
        single = dataclasses.replace(
            theirs,
            sources=(SourceFile(path="main.py", content=SOFTMAX),),
        )
        assert judged(candidate_of(single, made).text).status == "passed"
        returning = dataclasses.replace(
            single,
            spec=dataclasses.replace(
                single.spec, entry_point="main.py::compute", destination_passing_style=False
            ),
        )
        assert judged(candidate_of(returning, made).text).status == "passed"

    def test_other_candidates_and_languages_are_refused(self):
        made = definition_of("softmax", CASE)
        with pytest.raises(InterchangeError, match="runner `ir` is no solution"):
            solution_of(Candidate(runner="ir", entry="x"), made, author="me", hardware="cuda")
        spec = BuildSpec(language="cuda", target_hardware=("cuda",), entry_point="main.py::f")
        with pytest.raises(InterchangeError, match="cuda is not run here"):
            candidate_of(solution(spec=spec), made)

    def test_a_verdict_becomes_a_trace_with_its_evidence(self):
        rival = Candidate(runner=RUNNER, entry="rival", text=SOFTMAX)
        verdict = judged(SOFTMAX, timing=TimingPlan(rival=rival, warmup=1, samples=16))
        trace = trace_of(verdict, CASE, definition_of("softmax", CASE), "mine", WHEN)
        assert loads(Trace, dumps(trace)) == trace
        found = trace.evaluation
        assert found.status == "PASSED"
        assert found.timestamp == "2026-01-02T00:00:00+00:00"
        assert found.performance.latency_ms == verdict.timings[0].candidate.median
        results = found.correctness.extra["cake"]["results"]
        assert [r["family"] for r in results] == ["normal", "constant"]

    @pytest.mark.parametrize(
        ("text", "status"),
        [
            ("def run(y):\n    y[...] = 0\n", "INCORRECT_NUMERICAL"),
            ("def run(y):\n    raise ValueError\n", "RUNTIME_ERROR"),
            ("def run(\n", "COMPILE_ERROR"),
        ],
    )
    def test_failures_have_their_statuses(self, text, status):
        trace = trace_of(judged(text), CASE, definition_of("softmax", CASE), "mine", WHEN)
        assert trace.evaluation.status == status
        assert loads(Trace, dumps(trace)) == trace

    def test_what_passed_untimed_is_no_trace(self):
        with pytest.raises(InterchangeError, match="has no time beside a baseline"):
            trace_of(judged(SOFTMAX), CASE, definition_of("softmax", CASE), "mine")


class TestTheirValidator:
    """Against flashinfer-bench itself, where it is installed."""

    @pytest.fixture
    def data(self):
        return pytest.importorskip("flashinfer_bench.data")

    @pytest.mark.parametrize("name", names())
    def test_our_definitions_and_workloads_are_theirs(self, data, name):
        case = get(name).shapes["small"][0]
        made, workload = definition_of(name, case), workload_of(name, case)
        theirs = data.Definition.model_validate_json(dumps(made))
        assert loads(Definition, theirs.model_dump_json()) == made
        again = data.Workload.model_validate_json(dumps(workload))
        assert loads(Workload, again.model_dump_json()) == workload
        shapes = theirs.get_input_shapes(again.axes)
        assert theirs.get_axes_values([tuple(s) for s in shapes]) == workload.axes

    @given(trace=TRACES)
    @settings(max_examples=30, deadline=None)
    def test_our_traces_are_theirs(self, trace):
        data = pytest.importorskip("flashinfer_bench.data")
        theirs = data.Trace.model_validate_json(dumps(trace))
        assert loads(Trace, theirs.model_dump_json()) == trace

    def test_our_solutions_are_theirs(self, data):
        made = solution(description="first try")
        theirs = data.Solution.model_validate_json(dumps(made))
        assert loads(Solution, theirs.model_dump_json()) == made
