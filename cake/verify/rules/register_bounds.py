"""An element is named that a register array does not have.

**Rule.** The index of an element of a register array, or of a fragment opened by `lanes`, is at
least 0 and below the array's length, for all values of the variables in it.

**If broken.** Registers have no addresses: the compiler takes any value for the element, or spills
the array to memory and reads beside it.

**Instead.** Loop to the array's length.

**Source.** C++ standard, out-of-bounds subscripts; CUDA C++ Programming Guide, local memory.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.types import RegArray
from cake.verify.context import Context
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import conditions, elements_of

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = registers(f32, 8, fill=1.0)
        total = load(x[m, lane()])
        for i in range(9, unroll=True):
            total = total + v[i]  # CK363
        store(y[m, lane()], total)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = registers(f32, 8, fill=1.0)
        total = load(x[m, lane()])
        for i in range(8, unroll=True):
            total = total + v[i]
        store(y[m, lane()], total)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for role in ctx.program.roles:
        for e in elements_of(role):
            array, p = e.array.type, ctx.integers.poly(e.index)
            if not isinstance(array, RegArray) or p is None:
                continue
            known = conditions(e.around)
            given, last = ctx.facts(known), array.length - 1
            if ctx.integers.proved(p, given) and ctx.integers.proved(last - p, given):
                continue
            reach = None if known else ctx.reach(p)
            if reach is None or (reach[0] >= 0 and reach[1] <= last):
                line = e.index.loc.line
                yield Uncovered(f"whether the register index in line {line} stays inside")
                continue
            yield RULE.at(
                e.index.loc,
                f"the index runs from {reach[0]} to {reach[1]}, the array has elements 0 to {last}",
                facts={"last": reach[1], "limit": last},
                helps=("loop to the array's length",),
            )


RULE = rule(
    code="CK363",
    name="register-bounds",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
