"""A candidate that is judged already, under another name."""

from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial
from cake.lang.elaborate import parse
from cake.lang.printer import digest

_SCALE = """\
@cake.schedule(target="sm_80")
def scale(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    (block,) = grid(cdiv(N, 32))
    work = role(warps=1)
    with work:
        i = block * 32 + lane()
        store(y[i], load(x[i], mask=i < N, fill=0.0) * 2.0, mask=i < N)
"""


def _beside(text: str) -> Trial:
    """Caught: both have one identity."""

    def trial() -> Outcome:
        (first,), (second,) = (parse(t, "twin.py").programs for t in (_SCALE, text))
        same = digest(first) == digest(second)
        return Outcome(caught=same, evidence="the same program" if same else "another program")

    return trial


CLASS = IntegrityClass(
    name="renamed-candidate",
    description="the same candidate again, with other names of files, comments and blanks",
    caught_by="the identity of a schedule is its canonical text",
    because="the same program",
    cheats={"comments": _beside("# my own idea\n" + _SCALE.replace("    work =", "\n    work ="))},
    honest=_beside(_SCALE.replace("* 2.0", "* 3.0")),
)
