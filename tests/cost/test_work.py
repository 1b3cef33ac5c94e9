"""Counting the work of small kernels, against counts made by hand."""

from cake.cost import Work, work_of
from cake.lang.elaborate import parse

HEAD = (
    '@cake.schedule(target="sm_90a")\ndef k(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", "N"]):\n'
)


def work(body: str, *, resident: int = 132, **dims: int) -> Work:
    text = HEAD + "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return work_of(parse(text).program(), {"M": 64, "N": 64, **dims}, resident)


def total(found: Work, op: str, part: str = "times") -> float:
    return sum(getattr(s, part) for s in found.sites if s.op == op)


def test_loops_multiply_and_end_at_their_trip_count() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=2)
with r as u:
    for i in range(0, N, 16):
        for j in range(3):
            store(y[m, i + j], 1.0)
""")
    assert found.ctas == 64
    assert total(found, "store") == 2 * 4 * 3


def test_a_long_loop_is_sampled_without_losing_iterations() -> None:
    found = work(
        """
(m,) = grid(M)
r = role(warps=1)
with r as u:
    for i in range(N):
        if i < 1000:
            store(y[m, i], 1.0)
        if i + 1 == N:
            store(x[m, i], 1.0)
""",
        N=4000,
    )
    by_tensor = {s.tensor: s.times for s in found.sites if s.op == "store"}
    assert abs(by_tensor["y"] - 1000) < 300
    assert by_tensor["x"] == 1


def test_a_strided_loop_over_lanes_moves_the_bytes_of_active_threads() -> None:
    found = work(
        """
(m,) = grid(M)
r = role(warps=1)
with r as u:
    for i in range(lane(), N, 32):
        store(y[m, i], 1.0)
""",
        N=40,
    )
    assert total(found, "store") == 2
    assert total(found, "store", "active") == 1 + 8 / 32


def test_a_condition_on_the_unit_is_weighed() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=4)
with r as u:
    if u < 1:
        store(y[m, 0], 1.0)
    else:
        store(x[m, 0], 1.0)
""")
    assert {s.tensor: s.times for s in found.sites if s.op == "store"} == {"y": 1, "x": 3}


def test_a_condition_on_the_grid_is_weighed_over_all_ctas() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=1)
with r as u:
    if m + 1 < M:
        store(y[m, 0], 1.0)
""")
    assert abs(total(found, "store") - 63 / 64) < 1e-9


def test_a_persistent_loop_shares_its_tiles() -> None:
    body = """
tiles = persistent(M)
r = role(warps=1)
with r as u:
    for (m,) in tiles:
        store(y[m, 0], 1.0)
"""
    found = work(body, resident=16)
    assert (found.ctas, found.tiles, total(found, "store")) == (16, 64, 4)
    few = work(body, resident=132)
    assert (few.ctas, total(few, "store")) == (64, 1)


def test_what_depends_on_data_counts_in_full_and_is_named() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=1)
with r as u:
    e = load(x[m, 0])
    if e > 0.0:
        store(y[m, 0], e)
""")
    assert total(found, "store") == 1
    assert found.assumptions == (
        "<text>:7: the condition depends on data: both branches count in full",
    )


def test_a_loop_of_unknown_length_reads_its_tensor_once() -> None:
    found = work(
        """
(m,) = grid(M)
r = role(warps=1)
with r as u:
    n = cast(load(y[m, 0]), i32)
    for i in range(0, n, 32):
        store(y[m, 0], load(x[m, i + lane()]))
""",
        N=320,
    )
    read = sum(s.cost.gmem_read * s.active for s in found.sites if s.tensor == "x")
    assert read * found.ctas == 64 * 320 * 4
    assert "so that x is read once" in found.assumptions[0]


def test_a_variable_that_a_loop_changes_is_not_taken_for_its_first_value() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=1)
with r as u:
    n = 0
    for i in range(8):
        if n < 1:
            store(y[m, i], 1.0)
        n = n + 1
""")
    assert total(found, "store") == 8
    assert len(found.assumptions) == 1


def test_branches_that_agree_leave_a_known_value() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=2)
with r as u:
    n = 2
    if u == 1:
        n = 6
    for i in range(n):
        store(y[m, i], 1.0)
""")
    assert total(found, "store") == 2 + 6
    assert not found.assumptions


def test_loads_of_one_block_wait_together() -> None:
    found = work("""
(m,) = grid(M)
r = role(warps=1)
with r as u:
    for i in range(10):
        a = load(x[m, i])
        b = load(y[m, i])
        store(y[m, i], a + b)
""")
    assert found.exposed == {"r": 10}


def test_ring_fills_are_counted() -> None:
    found = work(
        """
tiles = persistent(cdiv(M, 32))
S = smem(f32, (32, 32), stages=3)
p = role(warps=1)
c = role(warps=1)
ring = pipeline(S, producer=p, consumer=c)
with p:
    for (m,) in tiles:
        for k in range(N // 32):
            with ring.fill() as s:
                tma_load(S[s], x[m * 32, k * 32])
with c:
    for (m,) in tiles:
        for k in range(N // 32):
            with ring.use() as s:
                store(y[m * 32 + lane(), k], load(S[s][lane(), 0]))
""",
        resident=1,
        N=128,
    )
    assert found.fills == {"ring": 2 * 4}
    assert {"acquire", "commit", "wait", "release"} <= {s.op for s in found.sites}
