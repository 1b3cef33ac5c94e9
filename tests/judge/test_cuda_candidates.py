"""Direct CUDA candidates: manifests, builds, and a run on a GPU."""

import json

import pytest

from cake.judge import BuildError, Candidate, Evaluation, TimingPlan, judge
from cake.judge.cuda_runner import PLUGIN, RUNNER, build, section_names
from cake.judge.manifest import read_manifest, with_manifest
from cake.judge.selftest.sources import CUDA_SOFTMAX
from cake.workloads import Case, get, problem

CASE = Case(shape={"M": 5, "D": 72}, dtype="bf16")
RMSNORM = problem(get("rmsnorm"), CASE.shape, CASE.dtype)
PLAIN = {"entry": "k", "grid": ["cdiv(M, 4)"], "block": 128}


def read(**changes):
    text = with_manifest("", json.dumps({**PLAIN, **changes}))
    return read_manifest(text, RMSNORM, target="sm_90a", sms=132)


class TestManifest:
    def test_formulas_are_those_of_the_problem_and_the_device(self):
        found = read(
            grid=["cdiv(M, 4)", "device_sms"],
            args=["y", "x", "part", "D", "eps"],
            workspaces={"part": "8 * M * D"},
            smem=1024,
            cluster=[1, 1, 1],
        )
        (launch,) = found.launches
        assert launch.abi.grid == ("2", "132", "1")
        assert launch.abi.smem_bytes == 1024
        assert [t.name for t in launch.abi.tensors] == ["y", "x", "part"]
        assert [t.writable for t in launch.abi.tensors] == [True, False, True]
        assert launch.abi.tensor("part").shape == (8 * 5 * 72,)
        assert launch.scalars == {"D": 72, "eps": 1e-6}
        assert found.workspaces == {"part": 8 * 5 * 72}

    def test_arguments_are_the_contracts_by_default(self):
        (launch,) = read().launches
        assert [t.name for t in launch.abi.tensors] == ["x", "w", "y"]
        assert launch.scalars == {"M": 5, "D": 72}

    def test_several_kernels_run_in_their_order(self):
        launches = [{**PLAIN, "entry": name} for name in ("first", "second")]
        text = with_manifest("", json.dumps({"launches": launches, "options": ["-DWIDE=1"]}))
        found = read_manifest(text, RMSNORM, target="sm_90a", sms=132)
        assert [launch.abi.name for launch in found.launches] == ["first", "second"]
        assert found.options == ("-DWIDE=1",)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"grid": ["cdiv(Q, 4)"]}, "grid[0]"),
            ({"grid": []}, "one to three numbers"),
            ({"grid": ["M - 9"]}, "grid[0] is -4; it has to be at least 0"),
            ({"block": 2048}, "a block of 2048 threads"),
            ({"entry": "a b"}, "is not the name of a function"),
            ({"args": ["x", "z"]}, "args names 'z'; known are x, w, y"),
            ({"args": "x"}, "args has to be a list of names"),
            ({"options": ["--include-path=/"]}, "option '--include-path=/' is not one of"),
            ({"cluster": [2]}, "cluster has to be a list of three integers"),
            ({"blocks": 1}, "unknown entries blocks"),
            ({"launches": []}, "block, entry, grid belongs into `launches`"),
            ({"workspaces": {"part": "M /"}}, "workspaces.part"),
        ],
    )
    def test_what_is_wrong_is_named(self, changes, message):
        with pytest.raises(BuildError) as caught:
            read(**changes)
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("__global__ void k() {}", "does not begin with a manifest"),
            ("/* cake {entry} */", "not JSON"),
            ("/* cake [1] */", "has to be an object"),
        ],
    )
    def test_a_source_without_one_says_what_to_write(self, text, message):
        with pytest.raises(BuildError, match=message):
            read_manifest(text, RMSNORM, target="sm_90a", sms=132)

    def test_a_manifest_of_its_own_file_leaves_lines_as_they_are(self):
        text = with_manifest("first\nsecond\n", json.dumps(PLAIN, indent=1))
        assert text.splitlines()[1:] == ["#line 1", "first", "second"]
        with pytest.raises(BuildError, match="would end the comment"):
            with_manifest("", '{"entry": "*/"}')


class TestBuild:
    def made(self, text):
        instance = problem(get("softmax"), {"M": 4, "N": 64}, "f32")
        manifest = read_manifest(text, instance, target="sm_90a", sms=132)
        return build(Candidate(runner=RUNNER, entry="mine", text=text), manifest, "sm_90a")

    def test_a_right_source_becomes_a_cubin(self):
        built = self.made(CUDA_SOFTMAX)
        assert ".text.softmax" in section_names(built.cubin)

    def test_errors_are_the_compilers_at_their_line(self):
        with pytest.raises(BuildError, match=r'mine.cu\(3\).*"zz" is undefined'):
            self.made(CUDA_SOFTMAX.replace("__shared__", "zz; __shared__"))

    @pytest.mark.parametrize(
        "declared", ["__device__ int seen;", "static __device__ float seen[3] = {1, 2, 3};"]
    )
    def test_memory_that_outlives_a_call_is_refused(self, declared):
        text = CUDA_SOFTMAX.replace('extern "C"', f'{declared}\nextern "C"')
        text = text.replace("top = part[0];", "top = part[0] + atomicAdd(&seen, 1);").replace(
            "&seen, 1", "&seen[0], 1" if "[3]" in declared else "&seen, 1"
        )
        with pytest.raises(BuildError, match=r"globals outlive a call.*: seen;"):
            self.made(text)


def test_without_a_gpu_the_build_fails_and_says_so():
    from cake.runtime import driver

    try:
        driver.driver()
    except driver.NoDriver:
        pass
    else:
        pytest.skip("there is a GPU here")
    verdict = judge(asked())
    assert verdict.status == "build_failed"
    assert "CUDA driver cannot be loaded" in verdict.detail


def asked(**changes) -> Evaluation:
    settings = {
        "workload": "softmax",
        "candidate": Candidate(runner=RUNNER, entry="mine", text=CUDA_SOFTMAX),
        "cases": (Case(shape={"M": 40, "N": 300}, dtype="f32"),),
        "families": ("normal", "nan"),
        "plugins": (PLUGIN,),
        **changes,
    }
    return Evaluation(**settings)


@pytest.mark.gpu
def test_a_cuda_source_passes_and_is_timed_beside_another():
    rival = Candidate(runner=RUNNER, entry="rival", text=CUDA_SOFTMAX)
    plan = TimingPlan(rival=rival, samples=20, processes=2, noise=True, columns=True)
    verdict = judge(asked(device="cuda", timing=plan))
    assert verdict.status == "passed", verdict.detail
    (timing,) = verdict.timings
    assert timing.ratio is not None
    assert timing.columns is not None
    assert timing.columns.host_us is not None
