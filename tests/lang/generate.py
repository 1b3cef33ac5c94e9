"""Random schedules: well-typed source text, from a seed.

The text uses sugar on purpose (augmented assignment, compile-time loops, inline helpers, constants,
conditional expressions), so that printing normalises something.
"""

from __future__ import annotations

from random import Random

HEADER = """
@cake.inline
def blend(x, y, *, k=3):
    t = x * k
    return t + y


@cake.schedule(target="sm_90a")
def generated(
    x: Tensor[bf16, "M", "K"],
    w: Tensor[f32, 4, "K"],
    s0: i32,
    *,
    WIDTH: meta(16, 32) = 32,
    STAGES: meta(2, 3) = {stages},
):
    require(K % 8 == 0)
    KT = cdiv(K, WIDTH)
    tiles = persistent(cdiv(M, 64), KT, raster={raster})
    X = smem(bf16, (64, 64), stages=STAGES, swizzle=128)
    V = smem(f32, (64,))
    load_ = role(warps=1, regs=40)
    math = role(warpgroups=2)
    ring = pipeline(X, producer=load_, consumer=math)
    bar = named_barrier(threads=256)

    with load_:
        for m, k in tiles:
            with ring.fill() as s:
                tma_load(X[s], x[m * 64, k * 64])
    with math as unit:
        for m, k in tiles:
            with ring.use() as s:
                pass
"""


INTEGER_FORMS = (
    "{a} + {b}",
    "{a} - {b}",
    "({a}) * ({b})",
    "({a}) // 4",
    "({a}) % 8",
    "min({a}, {b})",
    "-({a})",
    "blend({a}, {b})",
    "blend({a}, {b}, k=2)",
    "({a} if WIDTH > 16 else {b})",
    "cdiv({a}, 3)",
    "select({a} < {b}, {a}, {b})",
    "lane() + ({a})",
    "({a}) ^ 3",
)
FLOAT_FORMS = (
    "({a}) + ({b})",
    "({a}) - ({b})",
    "({a}) * ({b})",
    "({a}) / 3.0",
    "max({a}, {b})",
    "fma({a}, 2.0, {b})",
    "exp2({a})",
    "cast({i}, f32)",
    "abs({a})",
)


class Generator:
    """One random body of the math role."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.fresh = 0
        self.scopes: list[dict[str, str]] = [
            {"unit": "i32", "M": "i32", "K": "i32", "s0": "i32", "KT": "i32", "WIDTH": "const"}
        ]

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def of_type(self, kind: str) -> list[str]:
        return [n for scope in self.scopes for n, t in scope.items() if t == kind]

    def integer(self, depth: int = 0) -> str:
        r = self.random
        if depth > 2 or r.random() < 0.4:
            names = self.of_type("i32") + self.of_type("const")
            return r.choice(names) if r.random() < 0.7 else str(r.randint(-5, 99))
        a, b = self.integer(depth + 1), self.integer(depth + 1)
        form = r.choice(INTEGER_FORMS)
        return form.format(a=a, b=b)

    def floating(self, depth: int = 0) -> str:
        r = self.random
        if depth > 2 or r.random() < 0.4:
            names = self.of_type("f32")
            return r.choice(names) if names and r.random() < 0.7 else repr(r.uniform(-3, 3))
        a, b = self.floating(depth + 1), self.floating(depth + 1)
        form = r.choice(FLOAT_FORMS)
        return form.format(a=a, b=b, i=self.integer(2))

    def condition(self) -> str:
        a, b = self.integer(1), self.integer(1)
        return self.random.choice(
            [
                "{a} < {b}",
                "{a} == {b}",
                "{a} <= {b} and {b} != 3",
                "not ({a} > {b})",
                "0 <= {a} < {b}",
            ]
        ).format(a=a, b=b)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, size: int) -> None:
        self.scopes.append({})
        start = len(self.lines)
        for _ in range(size):
            self.statement(depth, size)
        if len(self.lines) == start:
            self.line(depth, "pass")
        self.scopes.pop()

    def statement(self, depth: int, size: int) -> None:
        kinds = ["int", "float", "change", "array", "fragment"]
        if depth < 6 and size > 1:
            kinds += ["if", "for", "unrolled", "static", "while"]
        getattr(self, "make_" + self.random.choice(kinds))(depth, size)

    def make_int(self, depth: int, size: int) -> None:
        value, name = self.integer(), self.name()
        self.line(depth, f"{name} = ({value}) + unit")
        self.scopes[-1][name] = "i32"

    def make_float(self, depth: int, size: int) -> None:
        value, name = self.floating(), self.name()
        self.line(depth, f"{name} = {value} + cast(unit, f32)")
        self.scopes[-1][name] = "f32"

    def make_change(self, depth: int, size: int) -> None:
        names = [n for n in self.of_type("i32") if n.startswith("v")]
        if names:
            name = self.random.choice(names)
            self.line(depth, f"{name} {self.random.choice(['+=', '-=', '*='])} {self.integer()}")

    def make_array(self, depth: int, size: int) -> None:
        names = self.of_type("array")
        if names and self.random.random() < 0.7:
            name = self.random.choice(names)
            self.line(depth, f"{name}[{self.random.randint(0, 3)}] = {self.floating()}")
            self.line(depth, f"{name}[1] += {name}[2] * 0.5")
        else:
            name = self.name()
            self.line(
                depth, f"{name} = registers(f32, 4, fill={self.random.choice(['0.0', 'inf'])})"
            )
            self.scopes[-1][name] = "array"

    def make_fragment(self, depth: int, size: int) -> None:
        name = self.name()
        self.line(depth, f"{name} = fragment(f32, (64, 16), fill=1.0)")
        self.line(depth, f"{name} = {name} * ({self.floating()}) - 2.0")
        self.line(depth, f"{name} = fma({name}, 2.0, cols(V[8 : 24]))")
        view = self.random.choice(["V", "V[0 : 64]"])
        self.line(depth, f"{name}_r = rows({view})")
        self.line(depth, f"{name}_q = lanes({name})[3]")
        self.scopes[-1][f"{name}_q"] = "f32"

    def make_if(self, depth: int, size: int) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, size // 2)
        if self.random.random() < 0.5:
            self.line(depth, "else:")
            self.block(depth + 1, size // 2)

    def make_for(self, depth: int, size: int) -> None:
        name = self.name()
        bounds = self.random.choice(["KT", "2, KT", "0, K, 8", "lane(), K, 32"])
        self.line(depth, f"for {name} in range({bounds}):")
        self.scopes.append({name: "i32"})
        self.block(depth + 1, size // 2)
        self.scopes.pop()

    def make_unrolled(self, depth: int, size: int) -> None:
        name = self.name()
        self.line(depth, f"for {name} in range(4, unroll=True):")
        self.scopes.append({name: "i32"})
        self.block(depth + 1, size // 2)
        self.scopes.pop()

    def make_static(self, depth: int, size: int) -> None:
        name = self.name()
        self.line(depth, f"for {name} in static_range({self.random.randint(1, 3)}):")
        self.scopes.append({name: "const"})
        self.block(depth + 1, size // 2)
        self.scopes.pop()

    def make_while(self, depth: int, size: int) -> None:
        name = self.name()
        self.line(depth, f"{name} = 0")
        self.line(depth, f"while {name} < KT:")
        self.scopes[-1][name] = "i32"
        self.block(depth + 1, size // 2)
        self.line(depth + 1, f"{name} += 1")


def schedule(seed: int) -> str:
    """Source text of a random schedule."""
    g = Generator(seed)
    g.block(4, g.random.randint(1, 7))
    r = g.random
    return (
        HEADER.format(stages=r.choice([2, 3]), raster=r.choice([1, 4])) + "\n".join(g.lines) + "\n"
    )
