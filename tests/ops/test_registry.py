"""All primitives: every facet is there, documented, and exercised by a program that is simulated
and built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.cost import estimate
from cake.ir.nodes import walk_calls
from cake.ir.program import Program
from cake.ops.base import Primitive, all_primitives
from cake.simulate.run import simulate
from cake.targets import get, names
from cake.verify import verify
from tests.ops import test_bulk_store, test_compute_gpu, test_tcgen05_gemm
from tests.ops.examples import EXAMPLES
from tests.ops.schedules import accepted

PRIMITIVES = all_primitives()


def ids(p: Primitive) -> str:
    return p.name


@pytest.mark.parametrize("p", PRIMITIVES, ids=ids)
def test_every_facet_is_there(p: Primitive) -> None:
    absent = {f for f in ("meaning", "cost") if getattr(p, f) is None}
    assert absent == set(p.holes)
    assert p.source
    has = [n for n in names() if p.requires is None or getattr(get(n), p.requires)]
    assert has, f"no target has {p.requires}"
    for name in has:
        assert p.emission(name) is not None, f"{p.name} cannot be emitted for {name}"


@pytest.mark.parametrize("p", PRIMITIVES, ids=ids)
def test_the_documentation_mentions_every_operand(p: Primitive) -> None:
    words = set(re.findall(r"\w+", p.doc))
    missing = [q.name for q in p.params if q.name not in words]
    assert not missing, f"{p.name} does not say what {', '.join(missing)} is"


@lru_cache
def programs() -> dict[str, Program]:
    """Every program that this and the named test modules simulate and build."""
    found = {name: example.make() for name, example in EXAMPLES.items()}
    found |= {f"compute: {name}": case.program() for name, case in test_compute_gpu.CASES.items()}
    found["bulk stores"] = accepted(
        test_bulk_store.BODY, test_bulk_store.SMEM, params=test_bulk_store.PARAMS
    )
    found["tcgen05"] = test_tcgen05_gemm.gemm()
    return found


def used(program: Program) -> Iterator[str]:
    for body in (program.lets, *(r.body for r in program.roles)):
        yield from (call.op for call in walk_calls(body))


def test_every_primitive_is_exercised() -> None:
    exercised = {op for program in programs().values() for op in used(program)}
    assert sorted({p.name for p in PRIMITIVES} - exercised) == []


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("order", ["late", "random"])
def test_the_examples_compute_what_they_say(name: str, order: str) -> None:
    example = EXAMPLES[name]
    before, after = example.arrays(), example.arrays()
    result = simulate(programs()[name], after, order=order)
    assert result.ok, [d.message for d in result.findings]
    for array, expected in example.expected(before).items():
        got = after[array]
        if example.tolerance:
            np.testing.assert_allclose(got, expected, rtol=example.tolerance, atol=1e-6)
        else:
            np.testing.assert_array_equal(
                got.view(np.uint8), np.asarray(expected, got.dtype).view(np.uint8)
            )


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_build(name: str) -> None:
    assert compile_program(programs()[name]).diagnostics == ()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_verifier_and_the_estimate_follow_the_examples(name: str) -> None:
    program, arrays = programs()[name], EXAMPLES[name].arrays()
    verdict = verify(program)
    assert verdict.ok, [d.message for d in verdict.diagnostics]
    dims = {
        dim: extent
        for tensor in program.tensors
        for dim, extent in zip(tensor.shape, arrays[tensor.name].shape, strict=True)
        if isinstance(dim, str)
    }
    assert estimate(program, dims).seconds > 0
