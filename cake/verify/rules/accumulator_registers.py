"""A wgmma needs more registers than a thread has when the kernel starts.

**Rule.** Accumulator and register operand of each `wgmma` fit into the registers at entry, which
follow from the number of threads. What setmaxnreg promises later does not count: the compiler
allocates for the start.

**If broken.** ptxas stops (C7602): m64n256 needs about 154 registers, 512 threads have 128.

**Instead.** A smaller N, or fewer threads.

**Source.** NVIDIA/cutlass#2904; PTX ISA, setmaxnreg.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.liveness import product_registers
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 256, 256]):
    C = smem(bf16, (256, 64), swizzle=128)
    math = role(warpgroups=4)
    with math as wg:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C[wg * 64 : wg * 64 + 64], a)
        fence_async()
        role_sync()
        acc = fragment(f32, (64, 256))
        wgmma(acc, a, C.T, init=True)  # CK304
        wgmma_wait(0)
        store(y[wg * 64, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 128, 128]):
    C = smem(bf16, (128, 64), swizzle=128)
    math = role(warpgroups=2)
    with math as wg:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C[wg * 64 : wg * 64 + 64], a)
        fence_async()
        role_sync()
        acc = fragment(f32, (64, 128))
        wgmma(acc, a, C.T, init=True)
        wgmma_wait(0)
        store(y[wg * 64, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    entry = ctx.plan.entry_regs
    for site in ctx.sites:
        needed = product_registers(site) if site.call.op == "wgmma" else 0
        if needed > entry:
            yield RULE.at(
                site.call.loc,
                f"this product needs {needed} registers, each of {ctx.plan.threads} threads starts"
                f" with {entry}",
                facts={"registers": needed, "limit": entry, "threads": ctx.plan.threads},
                helps=("use a smaller N, or fewer warpgroups",),
            )


RULE = rule(
    code="CK304",
    name="accumulator-registers",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
