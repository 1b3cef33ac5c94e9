"""A role keeps more values than it has registers.

**Rule.** The fragments, vectors and arrays that a role needs at one time fit into its registers:
its budget `regs=`, or what each thread starts with. Addresses need some twenty more.

**If broken.** The compiler moves values to local memory and back, without a word: spills of 508
bytes were seen in a role of 24 registers.

**Instead.** A larger budget, smaller tiles, or fewer values alive at a time.

**Source.** PTX ISA, setmaxnreg; nvcc, `-warn-spills`.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.verify.context import Context
from cake.verify.liveness import Liveness, product_registers
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 4096], y: Tensor[f32, "M", 4096]):
    m = grid(M)
    slim = role(warpgroups=1, regs=24)
    wide = role(warpgroups=1, regs=232)
    with slim:
        v = registers(f32, 32)
        for i in static_range(32):
            v[i] = load(x[m, i * 128 + thread()])
        for i in static_range(32):
            store(y[m, i * 128 + thread()], v[i] + v[31 - i])  # CK303
    with wide:
        pass
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 4096], y: Tensor[f32, "M", 4096]):
    m = grid(M)
    slim = role(warpgroups=1, regs=24)
    wide = role(warpgroups=1, regs=232)
    with slim:
        pass
    with wide:
        v = registers(f32, 32)
        for i in static_range(32):
            v[i] = load(x[m, i * 128 + thread()])
        for i in static_range(32):
            store(y[m, i * 128 + thread()], v[i] + v[31 - i])
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for role in ctx.program.roles:
        budget = ctx.roles[role.role].regs
        limit = min(ctx.target.registers_per_thread_max, budget or ctx.plan.entry_regs)
        sites = ctx.sites_of(role)
        products = (product_registers(s) for s in sites if s.call.op == "wgmma")
        if any(n > ctx.plan.entry_regs for n in products):
            continue  # that product cannot be compiled at all
        peak = Liveness(role, sites).peak
        if peak.registers > limit:
            yield RULE.at(
                peak.at.loc,
                f"role {role.role} holds {peak.registers} registers of values here"
                f" ({', '.join(peak.names)}), a thread has {limit}",
                facts={"role": role.role, "registers": peak.registers, "limit": limit},
                helps=("raise regs=, or use smaller tiles",),
            )


RULE = rule(
    code="CK303",
    name="register-demand",
    gate="hardware conformance",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
