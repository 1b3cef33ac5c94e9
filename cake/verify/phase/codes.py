"""The findings of the phase simulation, with their explain pages."""

from __future__ import annotations

from inspect import cleandoc

from cake.diag import Code, Severity, define


def _code(code: str, name: str, summary: str, page: str) -> Code:
    return define(
        code=code,
        name=name,
        severity=Severity.ERROR,
        stage="verify",
        summary=summary,
        page=f"{summary}.\n\n{cleandoc(page)}",
    )


DEADLOCK = _code(
    "CK450",
    "phase-deadlock",
    "Actors wait for phases that never complete",
    """
    **Rule.** At every trip count each role comes to its end: the arrivals and bytes of every phase
    that somebody waits for are made by actors that get that far.

    **If broken.** The kernel hangs. The finding lists who waits for which phase of which barrier,
    what is missing, and who would bring it.

    **Instead.** Take slots along the flow of the data; let a fresh barrier's first producer wait
    with parity 1; make as many arrivals as the barrier counts; advance all sides of a ring equally,
    empty tiles included.

    **Source.** PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier",
    "barrier"; WEFT (PLDI 2015); marin-community/marin#8311.
    """,
)
CONFLICTING_WRITES = _code(
    "CK451",
    "phase-conflicting-writes",
    "Two actors write the same memory and nothing orders them",
    """
    **Rule.** Of two writes to the same bytes one comes after the other's completion, by a chain of
    barriers that starts after the first write is complete.

    **If broken.** Which value stays depends on timing.

    **Instead.** Give each actor bytes of its own, or put a barrier between the writes. A copy or
    a product must be waited for before the barrier.

    **Source.** PTX ISA, "Memory Consistency Model: Causality order, Data races".
    """,
)
OVERWRITTEN = _code(
    "CK452",
    "phase-overwritten-while-read",
    "Memory is overwritten while an earlier read of it may be unfinished",
    """
    **Rule.** A slot is written again only after every read of its former content is complete: the
    reader waits for its asynchronous reads (wgmma, TMA store), then signals, and the writer waits
    for that signal.

    **If broken.** The reader gets bytes of a later step. Wrong results now and then.

    **Instead.** Release after the wait that covers the read; give the ring as many stages as slots
    are in flight plus one; `tma_store_wait` before the source is written again.

    **Source.** NVIDIA/Fuser#3561; triton-lang/triton#8554, #3106; TIRx-kernels#19; PTX ISA,
    "Asynchronous operations".
    """,
)
UNFINISHED = _code(
    "CK453",
    "phase-read-before-complete",
    "Memory is read before the write that fills it is complete for the reader",
    """
    **Rule.** A read comes after the completion of the write it depends on: the wait on the phase in
    which a copy's bytes are counted, the wait for a group, or a barrier after ordinary stores.

    **If broken.** The reader gets old bytes, or half a tile.

    **Instead.** Wait for the phase that the copy belongs to; meet at a barrier after stores of
    other warps; wait for the group before that barrier.

    **Source.** PTX ISA, "Asynchronous operations", "Memory Consistency Model".
    """,
)
STALE_WAIT = _code(
    "CK454",
    "phase-stale-wait",
    "A wait passes at once on an old parity",
    """
    **Rule.** A wait's parity follows from how many phases of that barrier are complete. A wait that
    needs no new phase must be over before the next phase can complete; else it returns early in one
    order of events and late in another.

    **If broken.** The wait does not wait: data is used before it is there, or overwritten while in
    use. A fresh barrier passes parity 1 at once and blocks parity 0.

    **Instead.** Count the uses of each barrier: slot = n % S and parity = n // S % 2 for the n-th
    step, carried on over tiles. Do not take the parity from the loop counter.

    **Source.** tile-ai/tilelang#2927, #3087, #2674; PTX ISA, "mbarrier.test_wait".
    """,
)
LAPPED_WAIT = _code(
    "CK455",
    "phase-lapped-wait",
    "A waiter can miss a phase: the next one may complete before it has left",
    """
    **Rule.** Whoever waits for a phase has left the wait before the next phase of that barrier can
    complete. Parity has one bit: a waiter that misses two completions waits again.

    **If broken.** A slow warp hangs, or goes on with a phase too late.

    **Instead.** Every waiting warp arrives before the slot is handed back (one arrival a warp, or a
    group barrier before a single arrival).

    **Source.** triton-lang/triton#10035, #11573; PTX ISA, "Phase of the mbarrier object".
    """,
)
OUT_OF_PHASE = _code(
    "CK456",
    "phase-arrival-unordered",
    "An arrival may count for the phase before the one that it is meant for",
    """
    **Rule.** Whatever counts for a phase (an arrival, announced bytes, a copy) comes after the
    completion of the phase before, which its actor has waited for or learnt of.

    **If broken.** In some orders the phase completes without somebody it should wait for, or with
    somebody counted twice.

    **Instead.** Make as many arrivals in a phase as the barrier counts. Wait, for that barrier or
    for one that follows from it, before arriving again.

    **Source.** CUTLASS, pipeline arrival counts; triton-lang/triton#8969, #8285; PTX ISA,
    "mbarrier.arrive".
    """,
)
TOO_MANY = _code(
    "CK457",
    "phase-too-many-arrivals",
    "A phase gets more arrivals than its barrier counts",
    """
    **Rule.** The arrivals of a phase (each warp counts) equal the count that the barrier was
    declared with.

    **If broken.** The phase completes early, or the count underflows: undefined behaviour.

    **Instead.** `arrivals=` is the number of warps that arrive, times their counts.

    **Source.** PTX ISA, "mbarrier.init", "mbarrier.arrive"; tile-ai/tilelang#2360.
    """,
)
ANNOUNCED_LATE = _code(
    "CK458",
    "phase-bytes-announced-late",
    "Bytes are announced when their phase may be complete already",
    """
    **Rule.** `expect_tx` comes before, or with, some arrival of its phase.

    **If broken.** The phase completes with no bytes outstanding, and the consumer reads a tile that
    has not arrived; the announcement counts for the next phase.

    **Instead.** `expect_tx`, then the copies, then `arrive`, in one thread.

    **Source.** PTX ISA, "mbarrier.expect_tx", "Phase completion of the mbarrier object".
    """,
)
EXCESS_BYTES = _code(
    "CK459",
    "phase-excess-bytes",
    "Copies bring more bytes than their phase announces",
    """
    **Rule.** The announced bytes of a phase are the sum of the bytes of all copies that complete in
    it.

    **If broken.** The phase completes when part of the data is there, or never.

    **Instead.** Announce what the copies bring, boxes beyond the tensor's edge included.

    **Source.** PTX ISA, "mbarrier tx-count"; tile-ai/tilelang#2182, #2644.
    """,
)
MIXED_GENERATIONS = _code(
    "CK460",
    "phase-mixed-generations",
    "A hardware barrier is reached again before everyone of the last generation has been there",
    """
    **Rule.** Each thread of the declared count arrives once in a generation of a named barrier, and
    arrives again only after that generation is complete.

    **If broken.** Arrivals of two generations mix: the barrier opens early for some and never for
    others.

    **Instead.** Alternate two slots, or close the loop with a second barrier; `threads=` is 32 for
    each warp that arrives or syncs.

    **Source.** WEFT (PLDI 2015), barrier recycling; flashinfer-ai/flashinfer#4533;
    deepseek-ai/FlashMLA#41; PTX ISA, "barrier".
    """,
)
UNFENCED = _code(
    "CK461",
    "phase-unfenced-read",
    "The async proxy reads what ordinary stores wrote, without a proxy fence in between",
    """
    **Rule.** Ordinary writes (st, stmatrix, finished cp.async) that TMA or the tensor core read are
    fenced with `fence_async()` by every writing thread, before the barrier that leads to the read.

    **If broken.** Old bytes reach the engine.

    **Instead.** Write; `fence_async()`; barrier; TMA store or product. After cp.async: wait, fence,
    barrier.

    **Source.** PTX ISA, "Async proxy", "fence.proxy.async"; pytorch/ao#4278; FlashKDA#24.
    """,
)
UNFENCED_OVERWRITE = _code(
    "CK462",
    "phase-unfenced-overwrite",
    "The async proxy overwrites what ordinary stores wrote, without a proxy fence in between",
    """
    **Rule.** An ordinary write and a later copy to the same bytes are ordered by a proxy fence of
    the writer and a barrier.

    **If broken.** By the letter of the manual the ordinary write may appear after the copy.
    Practice disagrees, so at level `idiom` this is a note.

    **Instead.** `fence_async()` after the stores, before the barrier.

    **Source.** PTX ISA, "Memory Consistency Model: Proxies"; triton-lang/triton#10668.
    """,
)
REGISTER_OWNED = _code(
    "CK463",
    "phase-register-in-flight",
    "Registers are touched while an asynchronous instruction owns them",
    """
    **Rule.** After `wgmma` the accumulator is not read or written, and a register operand not
    written, until the `wgmma_wait` that covers it; the result of `tcgen05_ld` not until
    `tcgen05_wait_ld`.

    **If broken.** A wrong value, or ptxas serialises the products.

    **Instead.** Wait first.

    **Source.** PTX ISA, "wgmma.mma_async", "tcgen05.wait".
    """,
)
EXIT_IN_FLIGHT = _code(
    "CK464",
    "phase-exit-in-flight",
    "A CTA ends while an engine may still read or write its shared memory",
    """
    **Rule.** Before the last warp of a CTA ends, some warp of it has waited for every copy into its
    shared memory, every product that reads it, and every TMA store from it. (Accesses with `peer=`
    end before that: every kernel with a cluster ends with a barrier of the cluster.)

    **If broken.** The engine touches memory of the next CTA.

    **Instead.** Wait for the last phase of the ring, `wgmma_wait(0)`, `tma_store_wait(0)`.

    **Source.** NVIDIA/Fuser#5448; PTX ISA, "cp.async.bulk.wait_group".
    """,
)
NO_SLOT = _code(
    "CK466",
    "phase-no-slot",
    "A slot is named that a barrier does not have",
    """
    **Rule.** The slot of a barrier is at least 0 and below `slots=`, at every step.

    **If broken.** Another barrier, or memory that is none, takes part: a hang, or a phase that ends
    too early.

    **Instead.** `n % slots` with the number of slots that the barrier is declared with.

    **Source.** PTX ISA, "mbarrier", "barrier".
    """,
)
UNWRITTEN = _code(
    "CK465",
    "phase-read-unwritten",
    "Shared or tensor memory is read where nobody has written",
    """
    **Rule.** All bytes that are read have been written: in a ring's slot by this step's fill, for
    what earlier steps left there is gone when the producer acquires the slot; in tensor memory by a
    product since the allocation, of which the first starts from zero.

    **If broken.** Old bytes, or bytes of another kernel, take part in the result.

    **Instead.** Copy the whole tile that is read; fill all stages that the loop reads ahead of it.

    **Source.** PTX ISA, "State spaces: shared"; tile-ai/tilelang#2936.
    """,
)
