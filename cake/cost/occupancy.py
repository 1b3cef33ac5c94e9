"""How many CTAs an SM holds at once, and what limits them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake.ir.nodes import Assign, Block, Stmt, VarRef, child_blocks, walk_exprs, walk_stmts
from cake.ir.program import Program
from cake.ir.types import WARP, Tuple, Type, element_dtype, registers
from cake.lang.elaborate import launch_options
from cake.ops.layout import smem_layout
from cake.ops.warps import warp_plan
from cake.targets.model import Target

BASE_REGISTERS = 24
"""Registers of addresses, counters and temporaries, beside the values that a schedule names."""


class DoesNotFit(ValueError):
    """One CTA alone exceeds what an SM has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Residence on one SM: ``ctas`` at once, limited by ``limiter``.

    ``smem_bytes`` is for one CTA; ``registers`` for one thread at launch, and ``guessed`` says that
    no compiler has confirmed them.
    """

    ctas: int
    limiter: str
    threads: int
    smem_bytes: int
    registers: int
    guessed: bool

    @property
    def warps(self) -> int:
        """Resident warps of an SM."""
        return self.ctas * self.threads // WARP


def occupancy(program: Program, target: Target, built_registers: int | None = None) -> Occupancy:
    """Residence of a program's CTAs (CUDA C++ Programming Guide, "Occupancy").

    ``built_registers`` are those that ptxas reports for the entry; without them they follow from
    the register budgets, or are guessed from the values that a role holds. Raises
    :class:`DoesNotFit`.
    """
    plan, layout = warp_plan(program), smem_layout(program)
    budgets = any(r.regs is not None for r in program.role_decls())
    guess = min(max(register_demand(program).values()), plan.entry_regs)
    used = built_registers or (plan.entry_regs if budgets else guess)
    limits = {
        "threads": target.warps_per_sm * WARP // plan.threads,
        "CTAs": target.ctas_per_sm,
        "shared memory": target.smem_per_sm // _smem(layout.bytes, target),
        "registers": target.registers_per_sm // (_per_warp(used, target) * plan.threads // WARP),
    }
    limiter = min(limits, key=lambda name: limits[name])
    if layout.bytes > target.smem_per_cta:
        raise DoesNotFit(
            f"a CTA needs {layout.bytes} bytes of shared memory, {target.name} has "
            f"{target.smem_per_cta}"
        )
    if not limits[limiter]:
        raise DoesNotFit(f"a CTA of {plan.threads} threads exceeds the {limiter} of an SM")
    return Occupancy(
        ctas=max(limits[limiter], 1),
        limiter=limiter,
        threads=plan.threads,
        smem_bytes=layout.bytes,
        registers=used,
        guessed=built_registers is None and not budgets,
    )


def resident_blocks(program: Program) -> int:
    """CTAs per SM that a persistent kernel is launched with: those it was bounded for."""
    return launch_options(program)[0]


def register_demand(program: Program) -> dict[str, int]:
    """Registers that a thread of each role holds at the deepest place, by role, at least.

    Counts the values that the schedule names, each until its last use, and ``BASE_REGISTERS``.
    """
    return {r.role: BASE_REGISTERS + _deepest(r.body) for r in program.roles}


def _deepest(block: Block) -> int:
    """Registers at the deepest place of a block, of the values that the block declares."""
    last: dict[str, int] = {}
    for i, s in enumerate(block):
        for name in _mentions(s):
            last[name] = i
    live: dict[str, int] = {}
    deepest = 0
    for i, s in enumerate(block):
        inner = max((_deepest(b) for b in child_blocks(s)), default=0)
        deepest = max(deepest, sum(live.values()) + inner)
        live = {name: n for name, n in live.items() if last[name] > i}
        # A result may take the registers of operands that end here.
        if isinstance(s, Assign):
            types = s.value.type.items if isinstance(s.value.type, Tuple) else (s.value.type,)
            for name, declares, t in zip(s.targets, s.declares, types, strict=False):
                if declares:
                    live[name] = _registers(t)
        deepest = max(deepest, sum(live.values()))
    return deepest


def _mentions(s: Stmt) -> Iterator[str]:
    """Variables that a statement reads or assigns, nested blocks included."""
    for inner in walk_stmts((s,)):
        if isinstance(inner, Assign):
            yield from inner.targets
        yield from (e.name for e in walk_exprs(inner) if isinstance(e, VarRef))


def _registers(t: Type) -> int:
    """32-bit registers of a value: narrow elements are packed."""
    dtype = element_dtype(t)
    bits = 32 if dtype is None else max(dtype.bits, 8)
    return -(-registers(t) * bits // 32)


def _smem(used: int, target: Target) -> int:
    return -(-used // target.smem_unit) * target.smem_unit + target.smem_reserved_per_cta


def _per_warp(registers_per_thread: int, target: Target) -> int:
    return -(-registers_per_thread * WARP // target.register_unit) * target.register_unit
