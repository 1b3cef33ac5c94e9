"""Data flow over a role's structured body: one state, pushed along all paths at once.

A state says what *may* hold where control stands: branches join their states, loops repeat until
the state at their head no longer grows. Findings of early rounds stay true, because states only
grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from cake.ir.nodes import Block, Bracket, For, If, Stmt, TileLoop, While
from cake.verify.counts import condition
from cake.verify.integers import Integers

MAX_ROUNDS = 12
"""Rounds of one loop. Heads settle when the oldest thing carried round has left the state."""

Loop = For | TileLoop | While


class State(Protocol):
    """What a flow carries along; compared with ``==``."""

    def copy(self: S) -> S: ...

    def join(self: S, other: S) -> None:
        """Take up everything that may hold in ``other``."""
        ...


S = TypeVar("S", bound=State)


class Flow(ABC, Generic[S]):
    """One analysis of one role. ``unsettled`` holds loops whose state kept growing."""

    def __init__(self, integers: Integers) -> None:
        self.integers = integers
        self.unsettled: list[Loop] = []

    @abstractmethod
    def statement(self, s: Stmt, state: S) -> None:
        """Effects of a statement's own expressions, those of a loop's or branch's head included."""

    def enter_bracket(self, s: Bracket, state: S) -> None:
        """A ring's slot is acquired."""

    def leave_bracket(self, s: Bracket, state: S) -> None:
        """A ring's slot is handed over."""

    def enter_loop(self, s: Loop, state: S) -> None:
        """Before the first round."""

    def next_round(self, s: Loop, state: S) -> None:
        """From the end of the body back to its head."""

    def leave_loop(self, s: Loop, state: S) -> None:
        """Behind the loop."""

    def join_branches(self, s: If, then: S, orelse: S) -> None:
        """Take up, behind a branch, what holds at the ends of both blocks."""
        then.join(orelse)

    def join_round(self, s: Loop, head: S, end: S) -> None:
        """Take up, at a loop's head, what holds at the end of a round."""
        head.join(end)

    def leave_block(self, block: Block, state: S) -> None:
        """Names declared in the block end."""

    def run(self, block: Block, state: S) -> S:
        """Push a state through a block; returns it, or the one that takes its place."""
        for s in block:
            self.statement(s, state)
            if isinstance(s, If):
                state = self._branch(s, state)
            elif isinstance(s, Bracket):
                self.enter_bracket(s, state)
                state = self.run(s.body, state)
                self.leave_bracket(s, state)
            elif isinstance(s, For | TileLoop | While):
                state = self._loop(s, state)
        self.leave_block(block, state)
        return state

    def _branch(self, s: If, state: S) -> S:
        truth = condition(s.cond, self.integers).constant
        if truth is not None:
            return self.run(s.then if truth else s.orelse, state)
        other = self.run(s.orelse, state.copy())
        state = self.run(s.then, state)
        self.join_branches(s, state, other)
        return state

    def _loop(self, s: Loop, head: S) -> S:
        self.enter_loop(s, head)
        last = self._most_rounds(s)
        for number in range(1, MAX_ROUNDS + 1):
            end = self.run(s.body, head.copy())
            self.next_round(s, end)
            grown = head.copy()
            self.join_round(s, grown, end)
            if grown == head:
                break
            head = grown
            if number == last:
                break
        else:
            self.unsettled.append(s)
        # Behind a loop that runs at least once, what held before it holds only if a round kept it.
        result = end if certain(self.integers, s) else head
        self.leave_loop(s, result)
        return result

    def _most_rounds(self, s: Loop) -> int | None:
        """How many rounds a loop makes, if that is a number."""
        found = self.integers.loops.get(id(s))
        return None if found is None else found[1].constant


def certain(integers: Integers, s: Loop) -> bool:
    """Whether a loop runs at least once for every admitted size."""
    found = integers.loops.get(id(s))
    return found is not None and integers.proved(found[1] - 1)
