"""Verifier and simulator know nothing of each other; on the verifier's examples they agree."""

from __future__ import annotations

import pytest

from cake.cli.tensors import generated
from cake.ir.program import ScalarParam
from cake.lang.elaborate import parse
from cake.simulate import Options, simulate_chain
from cake.verify import all_rules
from cake.verify.rule import Rule
from tests.verify import test_legal

RULES = all_rules()
EXTENTS = {"K": 64, "L": 1600}
"""Of dimensions that need more than 40."""
LEGAL = {
    name: text
    for name, text in vars(test_legal).items()
    if isinstance(text, str) and "@cake.schedule" in text
}

SEEN = {
    "alias-in-ring": {"CK501", "CK514"},
    "barrier-roles-differ": {"CK505"},
    "barrier-units-differ": {"CK505"},
    "cluster-pairing": {"CK516"},
    "convergent-divergent": {"CK517"},
    "copy-fence-order": {"CK504"},
    "copy-not-committed": {"CK501", "CK508", "CK514"},
    "copy-read-in-flight": {"CK501", "CK514"},
    "global-bounds": {"CK503"},
    "handover-unfenced": {"CK504"},
    "mbarrier-count": {"CK505"},
    "multicast-rank": {"CK505"},
    "operand-in-flight": {"CK506"},
    "accumulator-in-flight": {"CK506"},
    "peer-without-barrier": {"CK501", "CK514"},
    "pool-bounds": {"CK502"},
    "product-never-waited": {"CK508"},
    "proxy-fence-late": {"CK515"},
    "proxy-fence-missing": {"CK504"},
    "read-without-barrier": {"CK501", "CK514"},
    "registers-unset": {"CK513"},
    "ring-deadlock": {"CK505"},
    "ring-early-release": {"CK501"},
    "ring-fill-bytes": {"CK592"},
    "ring-one-sided": {"CK505"},
    "ring-shared-buffer": {"CK501", "CK514"},
    "ring-slot-after-release": {"CK501", "CK514"},
    "ring-steps-differ": {"CK505"},
    "ring-stray-write": {"CK501", "CK514"},
    "ring-unbalanced": {"CK505"},
    "ring-units-differ": {"CK505"},
    "smem-bounds": {"CK502"},
    "smem-never-written": {"CK501"},
    "store-left-in-flight": {"CK508"},
    "store-not-committed": {"CK508"},
    "swizzle-width": {"CK502"},
    "vector-alignment": {"CK591"},
    "write-without-barrier": {"CK501", "CK514"},
}
"""Rules whose broken example shows in a run at these extents, and as what."""


def codes(text: str) -> dict[str, str]:
    """The finding of each order that has one."""
    programs = parse(text, "example.py").programs
    dims = {d: EXTENTS.get(d, 40) for p in programs for d in p.dims}
    made = generated(programs, dims, 0)
    numbers = {q.name: 3 for p in programs for q in p.params if isinstance(q, ScalarParam)}
    found = {}
    for order in ("late", "early", "random"):
        result = simulate_chain(
            programs,
            {name: array.copy() for name, array in made.tensors.items()},
            numbers,
            temporaries=made.garbage,
            options=Options(order=order, concurrent=True),
        )
        if not result.ok:
            found[order] = result.findings[0].code
    return found


@pytest.mark.parametrize("rule", RULES, ids=[r.name for r in RULES])
def test_accepted_examples_run_without_findings(rule: Rule) -> None:
    assert codes(rule.good) == {}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_patterns_run_without_findings(name: str) -> None:
    assert codes(LEGAL[name]) == {}


@pytest.mark.parametrize("rule", [r for r in RULES if r.name in SEEN], ids=lambda r: r.name)
def test_rejected_examples_show_in_a_run(rule: Rule) -> None:
    found = codes(rule.bad)
    assert found, "no order shows it"
    assert set(found.values()) <= SEEN[rule.name]


def test_the_table_names_rules() -> None:
    assert SEEN.keys() <= {r.name for r in RULES}
