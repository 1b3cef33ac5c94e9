"""The codes of everything that can go wrong between a call and the kernel on the device."""

from __future__ import annotations

from cake.diag import Code, Severity, define


def _launch(code: str, name: str, summary: str, page: str) -> Code:
    return define(
        code=code, name=name, severity=Severity.ERROR, stage="launch", summary=summary, page=page
    )


ARGUMENT_SET = _launch(
    "CK701",
    "launch-argument-set",
    "A launch lacks an argument of the kernel, or has one that the kernel does not know.",
    "Arguments are passed by the names that the schedule's signature gives them.",
)

NOT_AN_ARRAY = _launch(
    "CK702",
    "launch-not-an-array",
    "An argument is no array that a kernel can read.",
    """
Accepted are torch tensors (and anything with `data_ptr()`, `shape`, `stride()` and `dtype`),
objects with `__cuda_array_interface__`, and objects with `__dlpack__`. Conversions are never made
silently.
""",
)

WRONG_DTYPE = _launch(
    "CK703",
    "launch-dtype",
    "An array has another element type than the kernel was built for.",
    "Convert the array before the call, or build the kernel for its element type.",
)

WRONG_SHAPE = _launch(
    "CK704",
    "launch-shape",
    "An array has another rank or extent than the kernel's signature says.",
    """
A number in the signature is a fixed extent. A name stands for one extent wherever it occurs: the
first array that has it binds it, the others must agree.
""",
)

WRONG_DEVICE = _launch(
    "CK705",
    "launch-device",
    "An array is in host memory, or on another device than the others.",
    "All arrays of a launch live on one GPU. Move them before the call.",
)

READ_ONLY = _launch(
    "CK706",
    "launch-read-only",
    "The kernel writes to an array that is read-only.",
    "Pass a writable array. Immutable arrays (JAX) cannot be outputs of a kernel.",
)

MISALIGNED = _launch(
    "CK707",
    "launch-alignment",
    "The first element of an array is not aligned as the kernel's accesses need.",
    """
Vector loads and bulk copies need an aligned start. A fresh allocation is aligned to 256 bytes; a
view that starts inside one may not be: copy it.
""",
)

WRONG_STRIDES = _launch(
    "CK708",
    "launch-strides",
    "An array's strides are not those that the kernel's addressing assumes.",
    """
Strides that the kernel does not take as parameters must be those of a row-major array. Make a
contiguous copy, or build the kernel with strides as parameters.
""",
)

WRONG_SCALAR = _launch(
    "CK709",
    "launch-scalar",
    "A scalar argument, or an extent passed as one, does not fit its type.",
    "Integer parameters take integers within their range; 32-bit extents are below 2^31.",
)

GUARD_FAILED = _launch(
    "CK710",
    "launch-guard",
    "The arguments do not meet a `require(...)` of the schedule.",
    """
The kernel is only right for arguments that meet its guards. Use another kernel of the family for
this shape, or pad the arguments.
""",
)

GRID_LIMIT = _launch(
    "CK711",
    "launch-grid",
    "The grid is outside the limits of the device or does not divide into clusters.",
    """
A grid has at most 2^31-1 blocks along x and 65535 along y and z, and whole clusters along each
axis (CUDA C++ Programming Guide, technical specifications). A grid with a zero extent launches
nothing and is no error.
""",
)

TENSOR_MAP = _launch(
    "CK712",
    "launch-tensor-map",
    "An array cannot be described by the tensor map that the kernel reads it through.",
    """
A tensor map needs: a base address that is a multiple of 16 bytes, an innermost stride of one
element, other strides that are multiples of 16 bytes and below 2^40, extents from 1 to 2^32, a box
of 1 to 256 elements an axis whose innermost extent is a multiple of 16 bytes and, with a swizzle,
not wider than it. (CUDA driver API, cuTensorMapEncodeTiled.)
""",
)

DRIVER_ERROR = _launch(
    "CK713",
    "cuda-driver-error",
    "The CUDA driver refused a call.",
    """
`facts.cuda_error` is the driver's error. Errors of earlier, asynchronous work (illegal address,
misaligned address, launch failure) can surface at any later call and end the CUDA context of the
process: start a new process, and look for the kernel launched before.
""",
)

WRONG_TARGET = _launch(
    "CK714",
    "launch-target",
    "The kernel was built for another device: its architecture or shared memory does not fit.",
    """
A cubin for `sm_90a` runs on compute capability 9.0 only; one for `sm_100f` within its family; one
without a suffix on the same major and an equal or higher minor capability. Build for the device's
own target.
""",
)

BAD_STREAM = _launch(
    "CK715",
    "launch-stream",
    "The stream argument is no CUDA stream.",
    """
Accepted are an integer handle, an object with `__cuda_stream__`, a torch stream and a CuPy stream.
""",
)

NO_DRIVER = define(
    code="CK716",
    name="no-cuda-driver",
    severity=Severity.ERROR,
    stage="environment",
    summary="This machine has no usable NVIDIA driver or GPU.",
    page="""
Checking, simulating, estimating and building need no GPU; running does. Install the NVIDIA driver
(it brings `libcuda.so.1`), and start containers with access to the GPU
(`docker run --gpus all`).
""",
)
