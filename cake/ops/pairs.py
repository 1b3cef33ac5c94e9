"""Pairs of CTAs: a cluster of two whose tensor cores compute one product (PTX ISA, "CTA pair").

Each CTA holds half of the rows of A and of the result, and half of the columns of B. One thread of
the pair issues for both; here it belongs to the CTA that leads. All tcgen05 instructions of a
kernel name the same group, so a kernel with paired tensor memory is paired throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cake.ir.program import PAIR, Pipeline, Program, Tmem
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

LEADER = 0
"""Rank of the CTA that issues, and on whose full barriers both CTAs' fills complete."""


def group(program: Program) -> int:
    """CTAs that compute one product together: the ``cta_group`` of all tcgen05 instructions."""
    return PAIR if any(t.pair for t in program.find(Tmem)) else 1


def ranks(program: Program) -> list[int | None]:
    """The CTAs whose memory a product reads and writes; None stands for the own one."""
    return list(range(PAIR)) if group(program) == PAIR else [None]


def acts(unit: Unit) -> bool:
    """Whether this CTA issues products: the leader of a pair does so for both."""
    return group(unit.program) == 1 or unit.block_rank == LEADER


def home(ring: Pipeline) -> int | None:
    """The rank of the CTA whose full barrier counts a fill; None for the CTA that fills."""
    return LEADER if ring.pair else None


@contextmanager
def issuing(cg: Emitter) -> Iterator[None]:
    """Code of the one thread that issues products."""
    with cg.elected(), leading(cg, group(cg.program) == PAIR):
        yield


@contextmanager
def leading(cg: Emitter, pair: bool) -> Iterator[None]:
    """Code of the CTA that leads, if it is one of a pair."""
    if not pair:
        yield
        return
    with cg.block(f"if (cta_rank == {LEADER})"):
        yield
