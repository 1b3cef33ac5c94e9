"""Whatever a primitive is called with, the answer is a finding, never an error of Python."""

import random

import pytest

from cake.diag import render_all
from cake.lang.elaborate import parse
from cake.ops.base import Primitive, all_primitives

FRAME = """
@cake.schedule(target="{target}")
def f(x: Tensor[bf16, "M", "N"], y: Tensor[f32, "M", "N"]):
    (b,) = grid(M)
    S = smem(bf16, (64, 64), stages=2, swizzle=128)
    bar = barrier(arrivals=1, slots=2)
    p = role(warps=1)
    r = role(warps=4)
    ring = pipeline(S, producer=p, consumer=r)
    with p:
        with ring.fill() as s:
            tma_load(S[s], x[b, 0])
    with r as u:
        with ring.use() as s:
            e = load(y[b, 0])
            h = load(x[b, 0])
            acc = fragment(f32, (64, 64), 0.0)
            arr = registers(f32, 4)
            {call}
"""
CALL_LINE = 19

OPERANDS = (
    *("1", "1.5", "True", "'abc'", "None", "(1, 2)", "-1", "2 ** 40", "[1, 2]", "{}", "lambda: 1"),
    *("x", "x[0]", "x[b, 0]", "x[b:4]", "x[b, 0:8]", "S", "S[0]", "S[s]", "S[0:2, 4]", "arr[0]"),
    *("r", "u", "s", "ring", "bar", "bar[0]", "e", "h", "b", "M", "f32", "bf16", "acc", "arr"),
    *("load(x[b, 0])", "lane()", "e < 1.0", "x.shape", "unknown", "*x"),
)
CALLS = 4


@pytest.mark.parametrize("primitive", all_primitives(), ids=lambda p: p.name)
def test_wrong_operands_are_findings(primitive: Primitive) -> None:
    rng = random.Random(primitive.name)
    for _ in range(CALLS):
        text = FRAME.format(
            target=rng.choice(("sm_80", "sm_90a", "sm_100a")), call=_call(primitive, rng)
        )
        render_all(parse(text, "f.py").diagnostics, {"f.py": text}, color=False)


@pytest.mark.parametrize("primitive", all_primitives(), ids=lambda p: p.name)
def test_an_unknown_argument_is_refused_at_its_call(primitive: Primitive) -> None:
    text = FRAME.format(target="sm_90a", call=f"{primitive.name}(unheard_of=1)")
    (finding,) = parse(text, "f.py").diagnostics
    assert finding.code == "CK106"
    assert finding.span is not None
    assert finding.span.line == CALL_LINE


def _call(primitive: Primitive, rng: random.Random) -> str:
    positional = [p for p in primitive.params if not p.keyword_only]
    operands = [rng.choice(OPERANDS) for _ in positional[: rng.randrange(len(positional) + 1)]]
    operands.sort(key=lambda text: text.startswith("*"))  # Python's own order, or it is no syntax
    named = [p for p in primitive.params if p.keyword_only and rng.random() < 0.4]
    operands += [f"{p.name}={rng.choice(OPERANDS)}" for p in named]
    return f"v = {primitive.name}({', '.join(operands)})"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("acquire(x)", "acquire: ring must be a declared resource, got tensor"),
        ("barrier_wait(e)", "barrier_wait: barrier must be a declared resource, got f32"),
        ("v = registers(f32, bf16)", "must be a positive multiple of 1, got bf16"),
        ("v = exp(bf16)", "exp: an operand must be a value in registers, got compile-time bf16"),
    ],
)
def test_the_operand_is_named_as_the_author_wrote_it(call: str, message: str) -> None:
    (finding,) = parse(FRAME.format(target="sm_90a", call=call), "f.py").diagnostics
    assert message in finding.message
