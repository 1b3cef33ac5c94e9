"""What lowering derives for a ring: bytes of a fill, arrival counts, fences.

Verifier, simulator and emitter all take these numbers from :func:`ring_facts`, so they agree by
construction.

* A fill is *early* if only TMA and bulk copies write the stage. Its producer arrives on the full
  barrier as soon as the slot is free, and the bytes of the copies keep the phase open. Any other
  fill is *late*: the producer arrives at the commit, and bytes of copies among the stores are
  announced without an arrival when the slot is acquired.
* Each producer warp arrives once a fill, so the full barrier counts producer warps: no warp can
  still be spinning on an older phase when the barrier moves on twice (parity has one bit). A ring
  that only cp.async writes counts threads instead: each thread's arrival is triggered by its own
  copies (cp.async.mbarrier.arrive.noinc), and the producer does not wait for them.
* Generic writes (st, stmatrix, cp.async) that consumers read through the async proxy are fenced by
  the producer before it arrives. A fence covers finished writes only, so cp.async is then waited
  for first.
* Each consumer warp arrives once on the empty barrier, of every CTA of the cluster if the ring is
  multicast.
* In a paired ring the producers of both CTAs announce their bytes to the full barrier of the CTA
  that leads, and arrive there. Only its consumer waits; it releases the slot in both CTAs.

PTX ISA, "Parallel Synchronization: mbarrier" and "Memory Consistency Model: proxies".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from cake.ir.nodes import Block, Call, walk_calls
from cake.ir.program import PAIR, Cluster, Pipeline, Program, Role
from cake.ir.types import Resource
from cake.ops.ring_fills import Fill, FillKind, Site, accesses, fills_of

Side = Literal["fill", "use"]
RingStep = Literal["acquire", "commit", "wait", "release"]
_STEPS: dict[str, RingStep] = {
    "acquire": "acquire",
    "commit": "commit",
    "wait": "wait",
    "release": "release",
    "tcgen05_commit": "release",
}


def ring_step(call: Call) -> RingStep | None:
    """What a call does with a slot of a ring, None if nothing.

    A ``tcgen05_commit`` that names a ring releases the slot once the products are complete.
    """
    ref = call.args[0] if call.args else None
    ring = ref is not None and ref.type == Resource("pipeline")
    return _STEPS.get(call.op) if ring else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RingFacts:
    """Derived figures of one ring.

    ``full_count`` and ``empty_count`` are arrivals a phase. ``arrival`` says who arrives on full.
    ``fence``: a late fill ends with a proxy fence; ``drain``: it waits for cp.async before.
    ``consumer_proxies``: through which proxies the consumer reads the buffers. ``stray``: writes of
    the producer to a buffer of the ring outside any fill of it.
    """

    pipeline: str
    stages: int
    fills: tuple[Fill, ...]
    arrival: Literal["warps", "threads"]
    full_count: int
    empty_count: int
    consumer_proxies: frozenset[str]
    fence: bool
    drain: bool
    stray: tuple[Call, ...]

    @property
    def bytes(self) -> int | None:
        """Bytes of one unit's fill if all fills agree, else None."""
        found = {f.bytes for f in self.fills}
        return found.pop() if len(found) == 1 else None

    @property
    def fill_kinds(self) -> frozenset[FillKind]:
        return frozenset(k for f in self.fills for k in f.kinds)

    def fill(self, site: Site) -> Fill:
        """The fill that begins at ``site`` (KeyError if there is none)."""
        for f in self.fills:
            if f.site is site:
                return f
        raise KeyError(f"no fill of {self.pipeline} begins at {site.loc}")

    def fill_ended_by(self, commit: Call) -> Fill:
        """The fill that a ``commit`` ends (KeyError if it ends none)."""
        for f in self.fills:
            if any(c is commit for c in f.commits):
                return f
        raise KeyError(f"the commit at {commit.loc} ends no fill of {self.pipeline}")


@lru_cache(maxsize=256)
def ring_facts(program: Program, pipeline: str) -> RingFacts:
    """Derive the figures of a ring from the program's statements and its primitives' effects."""
    ring = program.resource(pipeline)
    assert isinstance(ring, Pipeline)
    producer, consumer = _role(program, ring.producer), _role(program, ring.consumer)
    fills, stray = fills_of(ring, program.body_of(ring.producer))
    proxies = frozenset(_read_proxies(program.body_of(ring.consumer), ring))
    kinds = {k for f in fills for k in f.kinds}
    alone = "cp_async" in kinds and "store" not in kinds and "async" not in proxies
    threads = alone and not ring.pair
    peers = _cluster_size(program) if ring.multicast else 1
    return RingFacts(
        pipeline=pipeline,
        stages=ring.stages,
        fills=tuple(
            replace(f, early=not threads and f.kinds == frozenset({"copy"})) for f in fills
        ),
        arrival="threads" if threads else "warps",
        full_count=producer.warps * (32 if threads else 1) * (PAIR if ring.pair else 1),
        empty_count=consumer.warps * peers,
        consumer_proxies=proxies,
        fence="async" in proxies and bool(kinds - {"copy"}),
        drain="cp_async" in kinds and not threads,
        stray=stray,
    )


def _role(program: Program, name: str) -> Role:
    role = program.resource(name)
    assert isinstance(role, Role)
    return role


def _cluster_size(program: Program) -> int:
    return next((c.size for c in program.find(Cluster)), 1)


def _read_proxies(body: Block, ring: Pipeline) -> Iterator[str]:
    for call in walk_calls(body):
        for access, view in accesses(call, "read"):
            if view.base in ring.buffers:
                yield access.proxy
