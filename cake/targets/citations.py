"""Sources that several target files cite."""

from __future__ import annotations

from cake.targets.cited import Source

CC_TABLE = Source(
    "manual", "CUDA Programming Guide 13, Compute Capabilities: technical specifications"
)
THROUGHPUT = Source(
    "manual",
    "CUDA C++ Best Practices Guide 13, Throughput of Native Arithmetic Instructions",
)
BANKS = Source(
    "derived", "CUDA Programming Guide 13, Compute Capabilities: 32 banks of 32 bits per clock"
)
SCHEDULERS = Source(
    "manual", "CUDA C++ Programming Guide, Compute Capabilities: 4 warp schedulers per SM"
)
CLUSTERS = Source(
    "manual", "CUDA Programming Guide 13, Thread Block Clusters: 8 is the portable size"
)
NO_CLUSTERS = Source("manual", "CUDA Programming Guide 13, Compute Capabilities: no clusters")
OCCUPANCY = Source("manual", "CUDA 13.0 cuda_occupancy.h, allocation granularities")
TENSOR_MAP = Source("manual", "CUDA 13.0 driver API, cuTensorMapEncodeTiled")
PTXAS = Source("probe", "ptxas 13.0.88 through NVRTC (tests/targets)")

A100_PAPER = Source("datasheet", "NVIDIA A100 Tensor Core GPU Architecture, v1.0")
GA102_PAPER = Source("datasheet", "NVIDIA Ampere GA102 GPU Architecture, v2.1: GeForce RTX 3090")
AD102_PAPER = Source("datasheet", "NVIDIA Ada GPU Architecture, v2.1: GeForce RTX 4090")
H100_PAPER = Source("datasheet", "NVIDIA H100 Tensor Core GPU Architecture, v1.04: H100 SXM5")
H200_SHEET = Source("datasheet", "NVIDIA H200 Tensor Core GPU datasheet: H200 SXM")
HGX_BRIEF = Source(
    "datasheet", "NVIDIA Blackwell Architecture Technical Brief v2.1, HGX B300 and HGX B200"
)
GB202_PAPER = Source("datasheet", "NVIDIA RTX Blackwell GPU Architecture, v1.1: GeForce RTX 5090")

H200_RUN = Source("measured", "one H200 SXM, CUDA 13.0, 2026-12-01")
HOPPER_BENCH = Source(
    "measured",
    "arXiv 2402.13499, table V: 3942 bytes per clock over the 114 SMs of an H800 PCIe",
)
ADA_BENCH = Source(
    "measured", "arXiv 2402.13499, table V: 1708 bytes per clock over the 128 SMs of an RTX 4090"
)


def ptx(section: str) -> Source:
    """A section of the PTX ISA manual, with its target note where one matters."""
    return Source("manual", f"PTX ISA 9.0, {section}")


def from_tflops(paper: Source, clock: str) -> Source:
    """Products per clock and SM, from a sheet's dense TFLOP/s, the SM count and the boost clock."""
    return Source("derived", f"{paper.text}: dense TFLOP/s / (2 x SMs x {clock})")


def device(name: str) -> Source:
    """What the driver says of a device."""
    return Source("measured", f"cudaDeviceProp, as publicly reported for {name}")
