"""A product is added to tensor memory that holds nothing yet.

**Rule.** On every path, the first product into a tile starts from zero (`init=True`, or a condition
that is true then), the path round a loop that runs zero times included; and what is loaded has been
written by some product.

**If broken.** The sum contains what an earlier kernel left in the columns: NaN now and then.

**Instead.** `init=k == 0` in the loop over K; `init=True` for a single product.

**Source.** PTX ISA, tcgen05.mma, enable-input-d; Dao-AILab/flash-attention#2906.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Call, RoleBody, Stmt
from cake.ops.base import operand
from cake.verify.concrete import OPERATORS
from cake.verify.conditions import COMPARISONS
from cake.verify.context import Context
from cake.verify.flow import Flow, Loop
from cake.verify.init_flow import MAYBE, UNWRITTEN, ZERO_ROUNDS, Missing, may_start
from cake.verify.memory_items import per_call
from cake.verify.poly import ZERO
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import Site
from cake.verify.tensor_memory import Deed, all_deeds, deeds

BAD = """
@cake.schedule(target="sm_100a")
def kernel(x: Tensor[bf16, 128, 64], y: Tensor[f32, 32]):
    X = smem(bf16, (128, 64), swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    full = barrier(arrivals=1)
    done = barrier(arrivals=1)
    math = role(warps=1)
    with math:
        store(y[lane()], 1.0)
        expect_tx(full, 0, 16384)
        arrive(full, 0)
        tma_load(X, x[0, 0], barrier=full, slot=0)
        tmem_alloc(T, word[0])
        barrier_wait(full, 0, 0)
        tcgen05_mma(T[0], X, X.T)  # CK394
        tcgen05_commit(done, 0)
        barrier_wait(done, 0, 0)
        tmem_free(T)
"""

GOOD = BAD.replace("X.T)  # CK394", "X.T, init=True)")


class _Sums(Flow[Missing]):
    """Follows the role of all products into some tiles; the first counts for all stages."""

    def __init__(self, ctx: Context, role: RoleBody, tiles: frozenset[str]) -> None:
        super().__init__(ctx.integers)
        self.found: dict[Deed, int] = {}
        self._sites = ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        self.run(role.body, Missing(dict.fromkeys(tiles, UNWRITTEN)))

    def statement(self, s: Stmt, state: Missing) -> None:
        for i in self._of_stmt.get(id(s), ()):
            for deed in deeds(self._sites[i]):
                grade = state.grades.get(deed.tiles)
                if deed.action == "product" and grade is not None:
                    if not may_start(deed.site.call) or self._later(deed.site):
                        self.found[deed] = max(grade, self.found.get(deed, grade))
                    del state.grades[deed.tiles]

    def _later(self, site: Site) -> bool:
        """Whether a product certainly does not start from zero in the first round of its loops."""
        init = operand(site.call, "init")
        if site.conditions or not isinstance(init, Call) or len(init.args) != 2:
            return False
        a, b = (None if e is None else self.integers.poly(e) for e in init.args)
        if init.op not in COMPARISONS | {"ne"} or a is None or b is None:
            return False
        turns = [self.integers.loops[id(s)][0] for s in site.loops if id(s) in self.integers.loops]
        gap = (a - b).replace({str(turn): ZERO for turn in turns}).constant
        return gap is not None and not OPERATORS[init.op](gap, 0)

    def join_round(self, s: Loop, head: Missing, end: Missing) -> None:
        head.after_round(end)


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    found = all_deeds(ctx)
    writers: dict[str, set[str]] = {}
    for deed in found:
        if deed.action == "product":
            writers.setdefault(deed.tiles, set()).add(deed.site.role.role)
    for deed in found:
        if deed.action == "load" and deed.tiles not in writers:
            yield _report(deed, "is loaded, but no product writes it")
    for role in ctx.program.roles:
        mine = frozenset(t for t, roles in writers.items() if roles == {role.role})
        for deed, grade in _Sums(ctx, role, mine).found.items() if mine else ():
            if grade == MAYBE:
                line = deed.site.call.loc.line
                yield Uncovered(f"whether {deed.tiles} is written before line {line}")
                continue
            when = " if a loop before runs zero times" if grade == ZERO_ROUNDS else ""
            yield _report(deed, f"is added to, but nothing has been written to it{when}")


def _report(deed: Deed, what: str) -> Diagnostic:
    return RULE.at(
        deed.site.call.loc,
        f"{deed.tiles} {what}",
        facts={"tiles": deed.tiles},
        helps=("start the sum with init=True",),
    )


RULE = rule(
    code="CK394",
    name="tmem-unset",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
