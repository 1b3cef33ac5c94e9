"""The judge on a GPU: both ways to its memory, canaries there, and an A/A run."""

import numpy as np
import pytest

from cake.judge import Candidate, Evaluation, TimingPlan, judge
from cake.judge.arguments import GUARD_BYTES, POISONS, Arguments
from cake.workloads import generate, get, names, problem

pytestmark = pytest.mark.gpu
SHAPE = {"M": 5, "N": 72}


@pytest.fixture(params=["torch", "driver"])
def device(request):
    if request.param == "torch":
        pytest.importorskip("torch")
        from cake.judge.device_torch import TorchDevice

        return TorchDevice()
    from cake.judge.device_cuda import CudaDevice

    return CudaDevice()


def test_arguments_round_trip_through_device_memory(device):
    instance = problem(get("softmax"), SHAPE, "bf16")
    inputs = generate(get("softmax"), SHAPE, "bf16", "normal", 0)
    for poison in POISONS:
        arguments = Arguments(device, instance, poison)
        arguments.load(inputs)
        device.synchronize()
        assert arguments.tensors["x"].read().tobytes() == inputs["x"].tobytes()
        assert set(arguments.outputs()["y"].tobytes()) == {poison}
        assert arguments.findings(inputs) == []
        assert arguments.arrays()["x"].data_ptr() % 256 == 0
        assert tuple(arguments.arrays()["x"].stride()) == (72, 1)


def test_guards_on_the_device_are_watched(device):
    instance = problem(get("softmax"), SHAPE, "bf16")
    arguments = Arguments(device, instance, POISONS[0])
    size = instance.bytes_of("y")
    behind = GUARD_BYTES + size + 10
    device.fill(arguments.tensors["y"]._buffer, behind, behind + 4, 0)
    device.synchronize()
    (finding,) = arguments.findings({})
    assert "4 bytes behind the tensor were overwritten, the nearest 10 bytes" in finding.message


def test_device_time_grows_with_the_work(device):
    buffer = device.allocate(1 << 28)

    def milliseconds(size):
        return device.measure(lambda: device.fill(buffer, 0, size, 1), 50e-6)

    short, long = (np.median([milliseconds(size) for _ in "12345"]) for size in (1 << 20, 1 << 28))
    assert 0 < short < long / 4


def test_copies_between_buffers(device):
    source, target = device.allocate(512), device.allocate(1024)
    device.upload(source, 0, np.arange(512, dtype=np.uint8))
    device.fill(target, 0, 1024, 7)
    device.copy(source, target, 256, 512)
    device.synchronize()
    host = device.download(target, 0, 1024)
    assert (host[256:768] == np.arange(512, dtype=np.uint8)).all()
    assert set(host[:256]) == set(host[768:]) == {7}


@pytest.mark.parametrize("name", names())
def test_torch_passes_in_the_candidates_place(name):
    pytest.importorskip("torch")
    shapes = get(name).shapes["small"]
    verdict = judge(
        Evaluation(
            workload=name,
            candidate=Candidate(runner="baseline", entry="torch"),
            cases=(shapes[0],),
            families=("normal", "constant", "exact_integers"),
            device="cuda",
            timing=TimingPlan(baseline="torch", samples=20),
        )
    )
    assert verdict.status == "passed", verdict.detail
    (timing,) = verdict.timings
    assert timing.clock in ("CUDA events", "CUPTI span")
    assert timing.baseline is not None
