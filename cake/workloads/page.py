"""docs/workloads.md: every contract, as a page.

``python -m cake.workloads.page > docs/workloads.md`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cake.workloads import get, names
from cake.workloads.contract import SHAPE_SETS, Case, Contract, TensorSpec

_INTRO = """\
# Workloads

Made by `python -m cake.workloads.page > docs/workloads.md` from the contracts; do not edit. A
contract says what a kernel has to compute, on which inputs, how exactly and how fast it can be at
best, before any search starts. `cake workload new NAME` makes the files of another one.
"""


def render() -> str:
    """The page: a table of all workloads, then a section for each."""
    lines = [_INTRO]
    rows = [(f"[{name}](#{name})", get(name).title) for name in names()]
    lines += _table(("workload", "what"), rows)
    for name in names():
        lines += _section(get(name))
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(contract: Contract) -> Iterator[str]:
    yield f'<a id="{contract.name}"></a>'
    yield f"\n## {contract.name}\n"
    yield f"{contract.title}.\n"
    yield f"{contract.mathematics}\n"
    dimensions = [
        (f"`{d.name}`", f"{d.description}{', may be left out' if d.optional else ''}", d.minimum)
        for d in contract.dimensions
    ]
    yield from _table(("extent", "what", "at least"), dimensions)
    if contract.constraints:
        yield f"Holds for every shape: {_codes(contract.constraints)}.\n"
    parameters = [
        (f"`{p.name}`", p.description, f"`{p.default}`", _codes(p.choices) or "any")
        for p in contract.parameters
    ]
    yield from _table(("parameter", "what", "default", "choices"), parameters)
    yield from _table(
        ("tensor", "role", "shape", "type", "what", "tolerance"), map(_tensor, contract.tensors)
    )
    types = [
        (f"`{name}`", ", ".join(f"{symbol} = {dtype}" for symbol, dtype in bound.items()))
        for name, bound in contract.dtypes.items()
    ]
    yield from _table(("dtype", "binds"), types)
    families = [(f"`{f.name}`", f.description) for f in contract.families]
    yield from _table(("inputs", "what"), families)
    yield from _timing(contract)


def _tensor(spec: TensorSpec) -> tuple[str, ...]:
    layouts = "".join(f"; {value}: {_shape(dims)}" for value, dims in sorted(spec.layouts.items()))
    return (
        f"`{spec.name}`",
        spec.role,
        _shape(spec.dims) + layouts,
        spec.dtype,
        spec.description,
        _tolerance(spec),
    )


def _shape(dims: Sequence[str]) -> str:
    return " x ".join(dims) or "one number"


def _tolerance(spec: TensorSpec) -> str:
    given = spec.tolerance
    if given is None:
        return "-"
    if given.kind != "float":
        return given.kind
    return f"{given.output_ulps:g} ulp and the bound of the f32 arithmetic"


def _timing(contract: Contract) -> Iterator[str]:
    """Determinism, what is timed, and the physics floor; then how many shapes there are."""
    yield f"* Runs: {contract.determinism} ({contract.determinism_note})."
    steps = "; ".join(f"{s.name}: {s.description}" for s in contract.steps)
    yield f"* Timed: {contract.timing_scope} ({steps})."
    yield f"* Baselines: {', '.join(contract.baselines) or 'none'}."
    yield f"* At least `{contract.bytes_moved}` bytes and `{contract.flops}` operations."
    counts = ", ".join(f"{name} {len(contract.shapes[name])}" for name in SHAPE_SETS)
    headline = "; ".join(_case(case) for case in contract.shapes["headline"])
    yield f"* Shapes: {counts}. Headline: {headline}.\n"


def _case(case: Case) -> str:
    shape = ", ".join(f"{name}={value}" for name, value in case.shape.items())
    return f"{shape} {case.dtype}"


def _codes(values: Sequence[object]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table; nothing without rows."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    if not cells:
        return
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in cells)
    yield ""


if __name__ == "__main__":
    print(render(), end="")
