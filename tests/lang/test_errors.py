"""Bad source gets a diagnostic at its place, and nothing of the file is ever executed."""

from textwrap import indent

import pytest

from cake.diag import render_all
from cake.lang.elaborate import parse

FRAME = """
@cake.schedule(target="{target}")
def f(x: Tensor[f32, "N"], y: Tensor[bf16, "N", 64], *, W: meta(1, 2) = 1):
    S = smem(bf16, (64, 64), stages=2, swizzle=128)
    r = role({role})
    p = role(warps=1)
    ring = pipeline(S, producer=p, consumer=r)
    with p:
        with ring.fill() as s:
            tma_load(S[s], y[0, 0])
    with r as u:
        with ring.use() as s:
            pass
        {body}
"""


def errors(body: str, *, target: str = "sm_90a", role: str = "warps=2") -> list[tuple[str, int]]:
    text = FRAME.format(body=body.replace("\n", "\n        "), target=target, role=role)
    result = parse(text, "f.py")
    assert not result.programs or result.ok
    render_all(result.diagnostics, {"f.py": text}, color=False)
    return [(d.code, d.span.line if d.span else 0) for d in result.diagnostics]


BODY_LINE = 14


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("a = undefined_name", "CK101"),
        ("x = 3", "CK102"),
        ("a = lane()\na = 2.0 * cast(a, f32)", "CK103"),
        ("a = x[0, 1]", "CK104"),
        ("a = fragment(f32, (N, 16))", "CK105"),
        ("a = fma(1.0, 2.0)", "CK106"),
        ("a = fma(1.0, 2.0, 3.0, 4.0)", "CK106"),
        ("a = registers(f32, 4, fil=0.0)", "CK106"),
        ("a = 1 + cast(lane(), f32)\nb = a + lane()", "CK110"),
        ("a = S[0]", "CK110"),
        ("return 3", "CK002"),
        ("a = [i for i in y]", "CK002"),
        ("import os", "CK002"),
        ("a = os.system('true')", "CK002"),
        ("a = __import__('os')", "CK101"),
        ("a = lambda q: q", "CK002"),
        ("for i in y: pass", "CK002"),
        ("for i in range(0, N, -1): pass", "CK106"),
        ("while True: pass", "CK002"),
        ("x[0] = 3.0", "CK104"),
        ("a = f'{x}'", "CK002"),
        ("t = smem(f32, (4,))", "CK109"),
        ("a = registers(f32, 4, fill=0.0)\nb = a[4]", "CK104"),
        ("a = S[0][0 : 65]", "CK104"),
        ("with ring.fill() as q: undefined(q)", "CK101"),
    ],
)
def test_statement_errors_have_their_code(body: str, code: str) -> None:
    found = errors(body)
    assert found, body
    assert found[0][0] == code
    assert found[0][1] >= BODY_LINE


def test_all_errors_of_a_file_are_collected() -> None:
    found = errors("a = nope1\nb = a + 1\nc = nope2\nd = fma(1.0)")
    assert [code for code, _ in found] == ["CK101", "CK101", "CK106"]
    assert [line for _, line in found] == [BODY_LINE, BODY_LINE + 2, BODY_LINE + 3]


def test_a_target_without_the_instruction_names_those_that_have_it() -> None:
    result = parse(FRAME.format(body="pass", target="sm_80", role="warps=1"), "f.py")
    assert {d.code for d in result.diagnostics} == {"CK201"}
    assert any("sm_90a" in h for d in result.diagnostics for h in d.helps)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "CK004"),
        ("\n\n", "CK004"),
        ("x = 1\n", "CK004"),
        ("def f(:\n", "CK001"),
        ("\0", "CK001"),
        ("import os\n", "CK003"),
        ("from subprocess import run\n", "CK003"),
        ("print('hello')\n", "CK002"),
        ("@cake.schedule(target='sm_90a')\ndef f(x): pass\n", "CK005"),
        ("@cake.schedule(target='sm_42')\ndef f(x: Tensor[f32, 'N']): pass\n", "CK202"),
        ("@cake.schedule('sm_90a')\ndef f(x: Tensor[f32, 'N']): pass\n", "CK005"),
        ("@staticmethod\ndef f(x): pass\n", "CK005"),
        ("@cake.schedule(target='sm_90a')\ndef f(x: Tensor[f32, 'N']): pass\n", "CK109"),
    ],
)
def test_file_level_errors(text: str, code: str) -> None:
    result = parse(text, "f.py")
    assert not result.ok
    assert result.diagnostics[0].code == code
    assert not result.programs


@pytest.mark.parametrize(
    "body",
    [
        "r = role(warps=1)\nwith r:\n    t = smem(f32, (4,))",
        "cta_sync()",
        "for i in range(4): pass",
        "N + 1",
        "a = thread()",
        "a = registers(f32, 4)",
        "r = role(warps=1)\nwith r, r: pass",
        "with smem(f32, (4,)): pass",
        "r = role(warps=1)",
        "a = N + 1",
    ],
)
def test_what_stands_in_the_wrong_place_is_told_where_to_go(body: str) -> None:
    head = "@cake.schedule(target='sm_90a')\ndef f(x: Tensor[f32, 'N']):\n"
    (found,) = parse(head + indent(body, "    ") + "\n", "f.py").diagnostics
    assert found.code == "CK109"
    assert found.helps


def test_nothing_is_executed(tmp_path) -> None:
    marker = tmp_path / "marker"
    text = f"import os\nos.system('touch {marker}')\nopen({str(marker)!r}, 'w').close()\n"
    parse(text, "f.py")
    assert not marker.exists()


def test_meta_values_outside_the_domain_are_refused() -> None:
    text = FRAME.format(body="pass", target="sm_90a", role="warps=1")
    assert parse(text, "f.py", meta={"W": 3}).diagnostics[0].code == "CK108"
    assert parse(text, "f.py", meta={"NOPE": 3}).diagnostics[0].code == "CK108"
    assert parse(text, "f.py", meta={"W": 2}).program().bindings == {"W": 2}


def test_a_file_of_five_thousand_lines_is_read() -> None:
    lines = "\n".join(f"a{i} = lane() + {i}" for i in range(5000))
    assert errors(lines) == []


def test_expansion_is_limited() -> None:
    body = (
        "for i in static_range(1000):\n    for j in static_range(1000):\n        v = lane() + i * j"
    )
    assert errors(body)[0][0] == "CK006"


@pytest.mark.parametrize(
    "value",
    [
        "2 ** 10 ** 10",
        "(-3) ** 10 ** 10",
        "1 << 10 ** 10",
        "2 ** 1000 * 2 ** 1000",
        "'a' * 10 ** 12",
        "(1,) * 10 ** 12",
        "'%1000000000d' % 3",
        "'a' + 'b'",
        "1 / 0",
        "1 << -1",
        "10.0 ** 400",
    ],
)
def test_compile_time_values_stay_small(value: str) -> None:
    text = f"A = {value}\n" + FRAME.format(body="pass", target="sm_90a", role="warps=1")
    assert [d.code for d in parse(text, "f.py").diagnostics] == ["CK110"]


def test_compile_time_arithmetic_goes_beyond_64_bits() -> None:
    text = FRAME.format(body="pass", target="sm_90a", role="warps=2 ** 100 >> 100 << 1")
    assert parse(text, "f.py").ok


def test_recursive_helpers_are_refused() -> None:
    text = "@cake.inline\ndef g(x):\n    return g(x)\n" + FRAME.format(
        body="a = g(1)", target="sm_90a", role="warps=1"
    )
    assert "CK006" in {d.code for d in parse(text, "f.py").diagnostics}


def test_a_variable_assigned_per_thread_becomes_per_thread() -> None:
    text = FRAME.format(
        body="a = 0\n        if lane() < 4:\n            a = 1\n        b = a + 1",
        target="sm_90a",
        role="warps=1",
    )
    program = parse(text, "f.py").program()
    last = program.body_of("r")[-1]
    assert last.value.type.varying


def test_two_schedules_of_one_name_are_refused() -> None:
    text = FRAME.format(body="pass", target="sm_90a", role="warps=1")
    found = parse(text + text, "f.py").diagnostics
    assert [d.code for d in found] == ["CK102"]
    assert found[0].related


def test_deep_expressions_are_refused() -> None:
    # Python's own parser gives up first on very deep ones, the elaborator on the others.
    for terms, codes in ((900, {"CK006"}), (100_000, {"CK001", "CK006"})):
        found = errors("a = " + "+".join(["lane()"] * terms))
        assert {code for code, _ in found} <= codes
        assert found


def test_the_name_of_a_rejected_annotation_is_no_second_error() -> None:
    assert [code for code, _ in errors("a: i32 = 0\nb = a + 1")] == ["CK002"]
