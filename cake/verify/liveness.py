"""How many registers of a thread hold arrays that are still needed, at the fullest point of a role.

Fragments, vectors, register arrays and scalars in variables count; addresses and intermediate
values do not, so the real demand is higher.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake.ir.nodes import (
    Assign,
    Block,
    Expr,
    For,
    If,
    RoleBody,
    Stmt,
    TileLoop,
    VarRef,
    While,
    child_blocks,
    walk_exprs,
)
from cake.ir.types import Fragment, Tuple, Type, element_dtype, registers
from cake.verify.register_flow import aliases
from cake.verify.sites import Site

Live = frozenset[str]

ADDRESSES = 8
"""Registers that the addresses of a product take at the very least."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest statement, the registers that are held there, and what holds them."""

    registers: int
    at: Stmt
    names: tuple[str, ...]


class Liveness:
    """Backward analysis of one role."""

    def __init__(self, role: RoleBody, sites: tuple[Site, ...]) -> None:
        self.role = role
        self._alias = aliases(sites)
        self._words: dict[str, int] = {}
        self._uses: dict[int, Live] = {}
        self._sizes(role.body)
        self.peak = Peak(0, role, ())
        self._block(role.body, frozenset())

    def _sizes(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Assign):
                types = s.value.type.items if isinstance(s.value.type, Tuple) else (s.value.type,)
                for name, t in zip(s.targets, types, strict=True):
                    self._words[name] = 0 if name in self._alias else words(t)
            for inner in child_blocks(s):
                self._sizes(inner)

    def _block(self, block: Block, live: Live) -> Live:
        for s in reversed(block):
            live = self._statement(s, live)
        return live

    def _statement(self, s: Stmt, live: Live) -> Live:
        if isinstance(s, If):
            live = self._block(s.then, live) | self._block(s.orelse, live)
        elif isinstance(s, For | TileLoop | While):
            around = self._block(s.body, live) | live
            live = self._block(s.body, around) | around
        else:
            for inner in child_blocks(s):
                live = self._block(inner, live)
        if isinstance(s, Assign):
            live -= frozenset(s.targets)
        live |= self._used(s)
        self._look(s, live)
        return live

    def _used(self, s: Stmt) -> Live:
        """Variables that a statement's own expressions read; loops ask more than once."""
        if id(s) not in self._uses:
            names = (self._name(e) for e in walk_exprs(s))
            self._uses[id(s)] = frozenset(n for n in names if n is not None)
        return self._uses[id(s)]

    def _name(self, e: Expr) -> str | None:
        if not isinstance(e, VarRef):
            return None
        name = self._alias.get(e.name, e.name)
        return name if name in self._words else None

    def _look(self, s: Stmt, live: Live) -> None:
        total = sum(self._words[n] for n in live)
        if total > self.peak.registers:
            largest = sorted(live, key=lambda n: (-self._words[n], n))
            self.peak = Peak(total, s, tuple(largest[:4]))


def words(t: Type) -> int:
    """32-bit registers that a thread needs for a value."""
    dtype = element_dtype(t)
    return 0 if dtype is None else -(-registers(t) * max(dtype.bits, 8) // 32)


def product_registers(site: Site) -> int:
    """Registers that a wgmma takes at least: accumulator, register operand and addresses."""
    held = [a.type for a in site.call.args[:2] if a is not None]
    return sum(words(t) for t in held if isinstance(t, Fragment)) + ADDRESSES
