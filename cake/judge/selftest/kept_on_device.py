"""Kernels that keep something on the device from one call to the next."""

from cake.judge import BuildError, Candidate
from cake.judge.cuda_runner import build
from cake.judge.manifest import read_manifest
from cake.judge.selftest.sources import CUDA_SOFTMAX, changed
from cake.judge.selftest.twins import CASE, IntegrityClass, Outcome, Trial
from cake.workloads import get, problem

_BODY = "    float* out = y + (long long)blockIdx.x * N;\n"
_FLAG = changed(CUDA_SOFTMAX, _BODY, _BODY + "    if (atomicAdd(&calls, 1) > 99) return;\n")
_DECLARED = changed(_FLAG, 'extern "C"', '__device__ int calls;\nextern "C"')
_TABLE = changed(CUDA_SOFTMAX, 'extern "C"', '__constant__ float one[2] = {1, 1};\nextern "C"')


def _built(text: str) -> Trial:
    """Built for sm_90a, which needs no GPU."""

    def trial() -> Outcome:
        instance = problem(get("softmax"), CASE.shape, CASE.dtype)
        manifest = read_manifest(text, instance, target="sm_90a", sms=132)
        try:
            built = build(Candidate(runner="cuda", entry="twin", text=text), manifest, "sm_90a")
        except BuildError as error:
            return Outcome(caught=True, evidence=str(error))
        return Outcome(caught=False, evidence=f"a cubin of {len(built.cubin)} bytes")

    return trial


CLASS = IntegrityClass(
    name="kept-on-device",
    description="results or counters in globals of the device",
    caught_by="globals that a kernel can write are refused; workspaces are cleared",
    because="globals outlive a call",
    cheats={"counter": _built(_DECLARED)},
    honest=_built(changed(_TABLE, "/ part[0]", "/ part[0] * one[threadIdx.x & 1]")),
)
