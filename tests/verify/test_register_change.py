"""Changes of register counts along a role, and whether raises find registers."""

from __future__ import annotations

import pytest

from .examples import found, verdict

TEXT = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    copy = role(warpgroups=1, regs={copy})
    math = role(warpgroups=2, regs={math})
    with copy:
        {first}
    with math as u:
        i = n * 128 + u * 64 + thread() % 64
        {second}
        store(y[i], 1.0, mask=i < N)
"""


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        pytest.param("pass", 'setmaxnreg("inc", 240)', "", id="the same number"),
        pytest.param("pass", 'setmaxnreg("dec", 64)', "", id="lowered"),
        pytest.param("pass", 'setmaxnreg("inc", 248)', "waits for", id="more than there is"),
        pytest.param('setmaxnreg("inc", 40)', 'setmaxnreg("dec", 232)', "", id="exchanged"),
        pytest.param('setmaxnreg("inc", 40)', "i = i + 0", "waits for", id="nobody lowers"),
        pytest.param('setmaxnreg("dec", 40)', "i = i + 0", "has 24", id="lowered upwards"),
        pytest.param(
            "pass",
            'setmaxnreg("dec", 64)\n        setmaxnreg("inc", 56)',
            "has 64",
            id="raised downwards",
        ),
        pytest.param(
            "pass",
            'if N > 5:\n            setmaxnreg("dec", 64)\n        setmaxnreg("inc", 128)',
            "has 240",
            id="raised downwards on one path",
        ),
    ],
)
def test_changes_follow_one_another(first: str, second: str, wrong: str) -> None:
    v = verdict(TEXT.format(copy=24, math=240, first=first, second=second))
    said = [d.message for d in v.diagnostics if d.code == "CK306"]
    assert bool(said) is bool(wrong), found(v)
    assert all(wrong in message for message in said), found(v)
