"""ptxas facts and notices, each provoked on purpose in the real compiler."""

import pytest

from cake.codegen.build import BuildError, compile_cubin
from cake.codegen.build_findings import ptxas_findings
from cake.codegen.ptxas import PtxasFacts, parse_log
from cake.codegen.sass import disassemble, opcode_counts, spill_places
from cake.diag import Diagnostic, Severity, Span
from tests.codegen_build.samples import (
    ADD_ONE,
    AUTHOR,
    COMMIT,
    FENCE,
    SPILLING,
    UNBOUNDED_SETMAXNREG,
    WAIT,
    wgmma_kernel,
)

KERNEL_SPAN = Span(file="schedule.py", line=30, col=1, end_line=30, end_col=9)


def findings(source: str, target: str = "sm_90a") -> list[Diagnostic]:
    built = compile_cubin(source, name="sample", target=target)
    return ptxas_findings(built.facts, KERNEL_SPAN)


def lines(*statements: str) -> str:
    return "\n".join(statements)


def test_a_clean_kernel_has_no_findings() -> None:
    assert findings(ADD_ONE) == []
    assert findings(wgmma_kernel(lines(FENCE, "WGMMA", COMMIT, WAIT))) == []


def test_shared_memory_barriers_and_constant_banks_are_read() -> None:
    source = """
extern "C" __global__ void k(float* x, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = x[n];
    __syncthreads();
    x[threadIdx.x] = s[255 - threadIdx.x];
}
"""
    facts = compile_cubin(source, name="k", target="sm_80").facts.entry("k")
    assert facts is not None
    assert facts.smem_bytes == 1024
    assert facts.barriers == 1
    assert dict(facts.cmem_bytes) == {0: 0x160 + 12}  # parameters follow 0x160 bytes of launch data
    assert facts.registers > 0


def test_a_spill_is_a_finding_with_its_figures_and_its_line() -> None:
    built = compile_cubin(SPILLING, name="spilling", target="sm_90a")
    facts = built.facts.entry("spilling")
    assert facts is not None
    assert facts.registers == 32
    assert facts.spill_store_bytes > 0
    counts = opcode_counts(disassemble(built.cubin))
    assert counts["STL"] > 0
    assert counts["LDL"] > 0

    places = spill_places(built.cubin, SPILLING)
    assert sum(places.values()) > 0
    (finding,) = ptxas_findings(built.facts, KERNEL_SPAN, places)
    assert (finding.code, finding.severity) == ("CK604", Severity.WARNING)
    assert finding.facts["spill_store_bytes"] == facts.spill_store_bytes
    assert finding.facts["spill_load_bytes"] == facts.spill_load_bytes
    assert finding.span is not None
    assert finding.span.file == "schedule.py"
    assert 40 <= finding.span.line <= 44

    (without_places,) = ptxas_findings(built.facts, KERNEL_SPAN)
    assert without_places.span == KERNEL_SPAN


def test_a_stack_frame_without_spills_has_a_code_of_its_own() -> None:
    source = """
extern "C" __global__ void indexed(float* x, int n) {
    float v[64];
#line 7 "schedule.py"
    for (int i = 0; i < n; i++) v[i] = x[i];
#line 8 "schedule.py"
    x[0] = v[(n * 7) % 64];
}
"""
    built = compile_cubin(source, name="indexed", target="sm_80")
    places = spill_places(built.cubin, source)
    (finding,) = ptxas_findings(built.facts, KERNEL_SPAN, places)
    assert finding.code == "CK607"
    assert finding.facts["stack_bytes"] == 256
    assert finding.span is not None
    assert (finding.span.file, finding.span.line) == ("schedule.py", 7)

    (without_places,) = ptxas_findings(built.facts, KERNEL_SPAN)
    assert without_places.span == KERNEL_SPAN


def test_functions_that_are_no_entries_are_told_apart() -> None:
    source = """
__device__ __noinline__ float twice(float x) { return x + x; }
extern "C" __global__ void caller(float* x) { x[0] = twice(x[1]); }
"""
    facts = compile_cubin(source, name="k", target="sm_80").facts
    entries = {function.name: function.entry for function in facts.functions}
    assert entries == {"caller": True, "_Z5twicef": False}
    assert facts.entry("_Z5twicef") is None


def test_dropped_setmaxnreg_is_an_error_and_the_code_lacks_it() -> None:
    (finding,) = findings(UNBOUNDED_SETMAXNREG)
    assert (finding.code, finding.severity) == ("CK603", Severity.ERROR)
    assert finding.facts["ptxas_code"] == "C7508"
    assert finding.span == KERNEL_SPAN
    bounded = UNBOUNDED_SETMAXNREG.replace("(384)", "(384, 1)")
    assert findings(bounded) == []
    for source, kept in ((UNBOUNDED_SETMAXNREG, 0), (bounded, 1)):
        cubin = compile_cubin(source, name="k", target="sm_90a").cubin
        assert opcode_counts(disassemble(cubin))["USETMAXREG"] == kept


def test_serialised_wgmma_is_a_warning() -> None:
    source = wgmma_kernel(lines(FENCE, "WGMMA", COMMIT, 'printf("call while in flight");', WAIT))
    (finding,) = findings(source)
    assert (finding.code, finding.severity) == ("CK602", Severity.WARNING)
    assert finding.facts["ptxas_code"] == "C7510"
    assert finding.facts["function"] == "multiply"
    assert finding.span == KERNEL_SPAN


def test_reading_an_accumulator_in_flight_is_serialised_or_repaired() -> None:
    body = lines(FENCE, "WGMMA", COMMIT, "if (n == 7) { x[0] = d[3]; return; }", WAIT)
    found = findings(wgmma_kernel(body))
    assert {finding.code for finding in found} == {"CK602", "CK606"}
    assert {finding.facts["ptxas_code"] for finding in found} == {"C7514", "C7517"}


@pytest.mark.parametrize(
    ("statements", "code", "line"),
    [
        (("d[0] = x[0];", "WGMMA", COMMIT, WAIT), "C7519", 41),
        ((FENCE, "WGMMA", COMMIT, "x[3] = d[1];", WAIT), "C7517", 43),
    ],
)
def test_a_repair_stands_at_the_authors_line(
    statements: tuple[str, ...], code: str, line: int
) -> None:
    (finding,) = findings(wgmma_kernel(lines(*statements)))
    assert finding.code == "CK606"
    assert finding.facts["ptxas_code"] == code
    assert finding.span is not None
    assert finding.span.file == "schedule.py"
    assert abs(finding.span.line - line) <= 1  # ptxas says "around"


def test_code_of_an_inlined_helper_belongs_to_the_line_that_calls_it() -> None:
    source = f"""
__device__ __forceinline__ void helper() {{
#line 7 "prelude.h"
    asm volatile("frobnicate.sync;");
}}
extern "C" __global__ void k(float* x) {{{AUTHOR}
    x[0] = 1;
    helper();
}}
"""
    with pytest.raises(BuildError) as caught:
        compile_cubin(source, name="k", target="sm_90a")
    (finding,) = caught.value.diagnostics
    assert finding.span is not None
    assert (finding.span.file, finding.span.line) == ("schedule.py", 42)


def test_too_few_registers_for_a_wgmma_is_an_error_at_its_line() -> None:
    source = wgmma_kernel(lines(FENCE, "WGMMA", COMMIT, WAIT), threads=640, n=256)
    with pytest.raises(BuildError) as caught:
        compile_cubin(source, name="k", target="sm_90a")
    (finding,) = caught.value.diagnostics
    assert finding.facts["ptxas_code"] == "C7602"
    assert finding.facts["function"] == "multiply"
    assert "register target of 154" in finding.message
    assert finding.span is not None
    assert finding.span.line == 41


def test_a_notice_without_a_rule_keeps_its_text() -> None:
    name = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
    multicast = f"""
extern "C" __global__ void k(unsigned long long map, int s, short mask) {{{AUTHOR}
    asm volatile("{name}.multicast::cluster [%0], [%1, {{%0}}], [%0], %2;"
                 ::"r"(s), "l"(map), "h"(mask));
}}
"""
    (finding,) = findings(multicast, "sm_90")
    assert finding.code == "CK605"
    assert "substantially reduced performance" in finding.message
    assert finding.span is not None
    # NVRTC places an asm statement of several lines at its last one.
    assert (finding.span.file, finding.span.line) == ("schedule.py", 42)


def test_facts_round_trip_through_json() -> None:
    source = wgmma_kernel(lines("d[0] = x[0];", "WGMMA", COMMIT, WAIT))
    for text in (SPILLING, ADD_ONE, source):
        facts = compile_cubin(text, name="k", target="sm_90a").facts
        assert PtxasFacts.from_json(facts.to_json()) == facts
    with pytest.raises(ValueError, match="not ptxas facts"):
        PtxasFacts.from_json("{}")


def test_foreign_text_in_the_log_is_passed_over() -> None:
    log = "hello\nptxas info    : 0 bytes gmem\nUsed 12 registers\n\nptxas nonsense\n"
    assert parse_log(log) == PtxasFacts(functions=(), notices=())
