"""Layer L5: does the machine code hold what the schedule asks for?

ptxas may drop or replace an instruction without a word. For every primitive that a program uses and
that has an instruction of its own, the disassembled cubin must hold that instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from cake.codegen.build import BuildError
from cake.codegen.build_findings import (
    INSTRUCTION_MISSING,
    MACHINE_CODE_UNREAD,
    SETMAXNREG_IGNORED,
)
from cake.codegen.compile import Compiled
from cake.codegen.sass import disassemble, opcode_counts
from cake.diag import Diagnostic
from cake.ir.nodes import Call, walk_calls
from cake.ir.program import Program, Role

_TENSOR = ("HMMA", "IMMA", "QMMA", "OMMA", "DMMA")

INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "bulk_load": ("UBLKCP",),
    "bulk_reduce_add": ("UBLKRED",),
    "bulk_store": ("UBLKCP",),
    "cluster_arrive": ("UCGABAR_ARV",),
    "cluster_sync": ("UCGABAR_ARV",),
    "cluster_wait": ("UCGABAR_WAIT",),
    "cp_async": ("LDGSTS",),
    "ldmatrix": ("LDSM",),
    "mma": _TENSOR,
    "nanosleep": ("NANOSLEEP",),
    "pdl_launch": ("PREEXIT",),
    "pdl_wait": ("ACQBULK",),
    "setmaxnreg": ("USETMAXREG",),
    "stmatrix": ("STSM",),
    "tcgen05_commit": ("UTCBAR",),
    "tcgen05_ld": ("LDTM",),
    "tcgen05_mma": tuple(f"UTC{name}" for name in _TENSOR),
    "tma_load": ("UTMALDG",),
    "tma_reduce_add": ("UTMAREDG",),
    "tma_store": ("UTMASTG",),
    "tmem_alloc": ("UTCATOMSWS",),
    "wgmma": ("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
}
"""The opcodes of which a primitive becomes at least one, whatever the operands are. Primitives that
become ordinary loads, stores, arithmetic or barriers are not listed. (Names as nvdisasm prints
them; CUDA Binary Utilities, instruction set reference.)"""


def machine_findings(compiled: Compiled) -> list[Diagnostic]:
    """What the machine code of a kernel lacks; a note if it cannot be read.

    Takes half a second for nvdisasm, so it is for `cake build` and not for every candidate.
    """
    program = compiled.program
    try:
        counts = opcode_counts(disassemble(compiled.build.cubin))
    except BuildError as error:
        return [_unread(program, error)]
    known = {d.code for d in compiled.diagnostics}
    missing = list(_missing(program, counts))
    if SETMAXNREG_IGNORED.code not in known:
        missing += _budgets(program, counts)
    return missing


def _missing(program: Program, counts: Counter[str]) -> Iterator[Diagnostic]:
    calls: dict[str, list[Call]] = {}
    for role in program.roles:
        for call in walk_calls(role.body):
            calls.setdefault(call.op, []).append(call)
    for op, found in calls.items():
        opcodes = INSTRUCTIONS.get(op, ())
        if opcodes and not any(counts[opcode] for opcode in opcodes):
            expected = " or ".join(opcodes)
            yield Diagnostic.of(
                INSTRUCTION_MISSING,
                f"{op} is used here, but the machine code of `{program.name}` has no {expected}",
                found[0].loc,
                facts={"primitive": op, "calls": len(found), "opcodes": opcodes},
                helps=("use its result, or look at `cake show sass`",),
            )


def _budgets(program: Program, counts: Counter[str]) -> Iterator[Diagnostic]:
    """Every different register budget of a role is set by an instruction of its own."""
    roles = [r for r in program.role_decls() if r.regs is not None]
    budgets = {r.regs for r in roles}
    if counts["USETMAXREG"] < len(budgets):
        yield Diagnostic.of(
            SETMAXNREG_IGNORED,
            f"the roles of `{program.name}` have {len(budgets)} register budgets, the machine code"
            f" sets registers {counts['USETMAXREG']} times",
            roles[0].loc,
            facts={"budgets": len(budgets), "instructions": counts["USETMAXREG"]},
            helps=("bound the kernel with both threads and minimum blocks per SM",),
        )


def _unread(program: Program, error: BuildError) -> Diagnostic:
    used = {call.op for role in program.roles for call in walk_calls(role.body)} & set(INSTRUCTIONS)
    if any(isinstance(r, Role) and r.regs is not None for r in program.resources):
        used.add("setmaxnreg")
    reason = error.diagnostics[0]
    return Diagnostic.of(
        MACHINE_CODE_UNREAD,
        f"the machine code of `{program.name}` was not looked at: {reason.message}",
        program.loc,
        facts={"unchecked": sorted(used)},
        helps=reason.helps,
    )
