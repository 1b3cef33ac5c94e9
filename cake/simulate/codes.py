"""Findings of the simulator (CK50x)."""

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


POISON_READ = _code(
    "CK501",
    "poison-read",
    "shared memory is read that holds no valid data",
    "The bytes were never written, or their ring slot was released to the producer, or the copy\n"
    "that brings them has not completed. Wait for the copy; release a slot after its last read.",
)
SMEM_BOUNDS = _code(
    "CK502",
    "smem-out-of-bounds",
    "an access outside a shared-memory tile",
    "The view's offset plus the index lies outside the declared extents.",
)
GLOBAL_BOUNDS = _code(
    "CK503",
    "global-out-of-bounds",
    "an access outside a global tensor",
    "Mask the access (mask=...), clip it (clip=True), or give a fill value.",
)
PROXY = _code(
    "CK504",
    "missing-proxy-fence",
    "the async proxy reads what plain stores wrote, without a proxy fence",
    "TMA and the tensor core read shared memory through the async proxy. Ordinary stores before\n"
    "them need `fence_async()` by the writing threads, then a barrier.",
)
DEADLOCK = _code(
    "CK505",
    "deadlock",
    "no unit can proceed",
    "Every unit waits. The message lists who waits for which barrier in which phase.",
)
IN_FLIGHT = _code(
    "CK506",
    "register-in-flight",
    "an accumulator is touched while an asynchronous instruction owns it",
    "After wgmma the accumulator belongs to the tensor core until wgmma_wait(0).",
)
BARRIER_OVERRUN = _code(
    "CK507",
    "barrier-overrun",
    "more arrivals or bytes than a barrier's phase expects",
    "The count of arrivals in one phase must equal the count the barrier was initialised with.",
)
EXIT_IN_FLIGHT = _code(
    "CK508",
    "exit-in-flight",
    "a role ends while its stores from shared memory are still being read",
    "Call tma_store_wait(0) before the role ends.",
)
UNINITIALISED = _code(
    "CK509",
    "uninitialised-global",
    "a global tensor is read where nothing was written",
    "Outputs and workspaces hold garbage until they are written.",
)
TOO_LONG = _code(
    "CK510",
    "too-many-steps",
    "the simulation exceeded its step limit",
    "Simulate a smaller shape, or raise the limit.",
)
BAD_ARGUMENT = _code(
    "CK511",
    "bad-simulation-argument",
    "an array that does not fit the program's parameters",
    "Arrays must have the element type, the rank and the dimensions that the schedule declares.",
)
