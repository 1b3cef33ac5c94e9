"""Findings that the meaning of a primitive may raise in the simulator (CK59x)."""

from __future__ import annotations

from cake.diag import Severity, define


def _code(code: str, name: str, summary: str, page: str) -> str:
    define(
        code=code,
        name=name,
        severity=Severity.ERROR,
        stage="simulate",
        summary=summary,
        page=page,
    )
    return code


UNDEFINED_ARITHMETIC = _code(
    "CK590",
    "undefined-arithmetic",
    "an integer operation without a defined result",
    "Integer division and remainder by zero have no result, and neither has a shift by a count\n"
    "outside [0, bits). The GPU does not trap: it delivers some number. Guard the operation with\n"
    "`select`, or shift by a count that the program keeps in range.",
)
MISALIGNED_VIEW = _code(
    "CK591",
    "misaligned-view",
    "a view whose offset does not meet the instruction's alignment",
    "Matrix instructions read whole swizzle atoms, and vector loads whole vectors: the offsets of\n"
    "the view must be multiples of the number in the message. Compile-time offsets are checked\n"
    "when the schedule is read, run-time offsets by the simulator. On the GPU such an offset\n"
    "reads other elements than the view names, or traps.",
)
UNKNOWN_FILL = _code(
    "CK592",
    "unknown-fill-bytes",
    "a fill of a ring whose bytes are not known when its slot is acquired",
    "The full barrier is armed with the bytes of the TMA and bulk copies of the fill before they\n"
    "start. All paths through a fill must copy equally many bytes, in loops whose trip count is\n"
    "known at compile time, and every acquire is followed by a commit of its slot.",
)
CONFLICTING_STORE = _code(
    "CK593",
    "conflicting-store",
    "threads of one unit store different values to one element",
    "Which of the values remains is undefined. Let one thread store (`if lane() == 0:`), or make\n"
    "the coordinate differ between the threads.",
)
NAN_START = _code(
    "CK596",
    "argmin-from-nan",
    "a running best that is NaN",
    "`argmin_cols` and `argmax_cols` fold into a running best, and no value beats a NaN. Start\n"
    "from `row_vector(f32, rows, fill=inf, partial=True)` (`-inf` for argmax). A row vector\n"
    "without a fill holds nothing yet, which the simulator shows as NaN.",
)
TRAPPED = _code(
    "CK597",
    "trapped",
    "a trap that was reached",
    "The program asked for this end with `trap(condition)`: what the condition excludes has\n"
    "happened. On the GPU the kernel ends with an error and its context is lost.",
)
TMEM_RACE = _code(
    "CK598",
    "tmem-race",
    "a load and a product that use the same tensor memory at the same time",
    "Products and loads of tensor memory are asynchronous. A load comes after the wait for the\n"
    "barrier that `tcgen05_commit` named, behind `tcgen05_fence_after()`; the tile is handed back\n"
    "(an arrival, a barrier) after `tcgen05_wait_ld`, behind `tcgen05_fence_before()`.",
)
