"""A tensor parameter is never accessed.

**Rule.** Every tensor parameter is read or written.

**If broken.** An output stays as it was; or the caller prepares an input for nothing.

**Instead.** Write the output; or remove the parameter.

**Source.** siboehm/SGEMM_CUDA#20: a kernel that computes nothing passes a weak comparison.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.verify.context import Context
from cake.verify.footprints import footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"], z: Tensor[f32, "N"]):  # CK324
    n = grid(cdiv(N, 32))
    i = n * 32
    r = role(warps=1)
    with r:
        if i + lane() < N:
            store(y[i + lane()], load(x[i + lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 32))
    i = n * 32
    r = role(warps=1)
    with r:
        if i + lane() < N:
            store(y[i + lane()], load(x[i + lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    used = {f.place.tensor for f in footprints(ctx)}
    for t in ctx.program.tensors:
        if t.name not in used:
            yield RULE.at(
                t.loc,
                f"tensor {t.name} is neither read nor written",
                facts={"tensor": t.name},
                helps=("read or write it, or remove the parameter",),
            )


RULE = rule(
    code="CK324",
    name="tensor-unused",
    gate="data consistency",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
