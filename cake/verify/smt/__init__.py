"""Layer L4: questions that interval analysis leaves open, put to the solver z3.

z3 is an extra (``pip install 'cake-ir[smt]'``) and is imported when the first question comes up.
What it refutes is executed on numbers before it counts; what takes too long stays open.
"""

from __future__ import annotations

import threading
from importlib.util import find_spec

from cake.verify.context import Context
from cake.verify.questions import Answer, Fits, Inside, Question

HINT = "(the smt extra could decide it: pip install 'cake-ir[smt]')"
"""Added to what stays open where z3 is not installed."""

ONE_AT_A_TIME = threading.Lock()
"""Held while terms are made and searched: z3 keeps them in one place for all threads."""


def available() -> bool:
    """Whether z3 is installed."""
    return find_spec("z3") is not None


EFFORT = 2_000_000
"""Units of z3's work for one search; they do not depend on the machine's speed."""
LESS_EFFORT = 100_000
"""For what follows in a program in which some searches have come to no end."""
MAX_GIVEN_UP = 2
MAX_QUESTIONS = 150
"""Questions of one program that are asked; the others stay open."""


def answer(ctx: Context, question: Question) -> Answer:
    """The answer to a question; each is computed once."""
    from cake.verify.smt import apart, decide
    from cake.verify.smt.search import Open

    if question in ctx.answers:
        return ctx.answers[question]
    if len(ctx.answers) == MAX_QUESTIONS:
        return False
    effort = EFFORT if ctx.given_up < MAX_GIVEN_UP else LESS_EFFORT
    found: Answer = False
    with ONE_AT_A_TIME:
        try:
            if isinstance(question, Inside):
                found = decide.inside(ctx, question, effort)
            elif isinstance(question, Fits):
                found = decide.fits(ctx, question, effort)
            else:
                found = apart.apart(ctx, question, effort)
        except Open:
            ctx.given_up += 1
    ctx.answers[question] = found
    return found
