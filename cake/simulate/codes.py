"""Findings of the simulator (CK501 to CK521)."""

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
    "that brings them has not completed. The finding refers to the release, to the copy in\n"
    "flight, or to the statements that should have written. Wait for the copy; release a slot\n"
    "after its last read.",
)
SMEM_BOUNDS = _code(
    "CK502",
    "smem-out-of-bounds",
    "an access outside a shared-memory tile",
    "The view's offset plus the index lies outside the declared extents, or the buffer itself\n"
    "does not fit its place: a pool that is too small, rows that are no whole swizzle blocks.",
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
    "them need `fence_async()` by every writing thread, then a barrier.",
)
DEADLOCK = _code(
    "CK505",
    "deadlock",
    "no unit can proceed",
    "Every unit waits, or looks again and again at memory that nobody changes. The message lists\n"
    "who waits for which barrier in which phase, and how many arrivals and bytes are due; the\n"
    "facts have the same in figures. The finding refers to each wait, and to the arrivals made.",
)
IN_FLIGHT = _code(
    "CK506",
    "register-in-flight",
    "a register is touched while an asynchronous instruction uses it",
    "After wgmma the accumulator belongs to the tensor core until wgmma_wait has covered it, and\n"
    "registers that hold operands must not change before.",
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
    "a role ends while asynchronous work of it is in flight",
    "Shared memory goes to another CTA when this one ends. Before the end of the role, wait for\n"
    "TMA stores to have read their tiles (`tma_store_wait(0)`), for cp.async\n"
    "(`cp_async_wait(0)`), for wgmma (`wgmma_wait(0)`), and for every copy's barrier.",
)
UNINITIALISED = _code(
    "CK509",
    "uninitialised-global",
    "a global tensor is read where nothing was written",
    "Outputs and workspaces hold garbage until they are written.",
)
BAD_REGISTER = _code(
    "CK512",
    "register-out-of-bounds",
    "an index outside a register array",
    "Registers cannot be addressed beyond their array. Threads that are masked off may hold any\n"
    "index.",
)
UNWRITTEN_REGISTER = _code(
    "CK513",
    "register-uninitialised",
    "a register is read that holds nothing yet",
    "`fragment`, `registers` and vectors without `fill=` hold nothing until they are written.\n"
    "Give a fill, or start a product with `init=True`.",
)
RACE = _code(
    "CK514",
    "missing-barrier",
    "a thread reads what another one stored, or the reverse, with no barrier in between",
    "A store to shared memory is visible to other threads, and what they read may be overwritten,\n"
    "after they have met at a barrier:\n"
    "`unit_sync()`, `role_sync()`, `cta_sync()`, a named or cluster barrier, an mbarrier or the\n"
    "hand-over of a ring's stage. Threads of a unit are other threads too.",
)
PROXY_BARRIER = _code(
    "CK515",
    "fence-without-barrier",
    "the async proxy reads fenced stores, with no barrier after the fence",
    "One thread issues the copy or product. The others' proxy fences reach it through a barrier:\n"
    "`fence_async()`, then `unit_sync()` (or another barrier), then the copy.",
)
BARRIER_PAIRING = _code(
    "CK516",
    "barrier-pairing",
    "an arrival without its wait, or a wait without an arrival",
    "`cluster_arrive()` and `cluster_wait()` alternate in every thread (PTX ISA, barrier.cluster).",
)
DIVERGED = _code(
    "CK517",
    "diverged",
    "a primitive that all threads of a unit execute together is reached by some of them",
    "Move it out of the branch that depends on the thread.",
)
NOT_SIMULATED = _code(
    "CK518",
    "not-simulated",
    "a construct that the simulator cannot run",
    "The message says which. Such a program can still be built and judged on a GPU.",
)
INCOMPLETE_OUTPUT = _code(
    "CK519",
    "incomplete-output",
    "an output or workspace is not left as promised",
    "Every element of an output is written by some launch, and a zeroed workspace is zero again\n"
    "when the kernel ends, because the next launch relies on it.",
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
TMEM_BOUNDS = _code(
    "CK520",
    "tmem-out-of-bounds",
    "an access to tensor memory that is not allocated",
    "Tensor memory is used between `tmem_alloc` and `tmem_free`, within the columns of one\n"
    "allocation. A CTA barrier orders the allocation before the uses, and the uses before the\n"
    "end of it.",
)
TMEM_HELD = _code(
    "CK521",
    "tmem-not-freed",
    "a CTA ends while it holds tensor memory",
    "Columns that are not freed stay taken: the next CTA on the multiprocessor waits for ever.\n"
    "The warp that allocated frees with `tmem_free`, after a CTA barrier.",
)
