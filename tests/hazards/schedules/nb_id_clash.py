@cake.schedule(target="sm_80")
def good(x: Tensor[f32, "M", 4, 32], y: Tensor[f32, "M", 4, 32]):
    S = smem(f32, (4, 32), stages=2)
    pair = named_barrier(threads=64, slots=2)
    r = role(warps=4)
    with r as u:
        for m in range(M):
            store(S[m % 2][u, lane()], load(x[m, u, lane()]))
            named_sync(pair, u // 2)
            store(y[m, u, lane()], load(S[m % 2][bitxor(u, 1), lane()]))


@cake.schedule(target="sm_80")
def good_by_remainder(x: Tensor[f32, "M", 4, 32], y: Tensor[f32, "M", 4, 32]):
    S = smem(f32, (4, 32), stages=2)
    pair = named_barrier(threads=64, slots=2)
    r = role(warps=4)
    with r as u:
        for m in range(M):
            store(S[m % 2][u, lane()], load(x[m, u, lane()]))
            named_sync(pair, u // 2)
            store(y[m, u, lane()], load(S[m % 2][u + 1 - u % 2 * 2, lane()]))


@cake.schedule(target="sm_80")
def bad(x: Tensor[f32, "M", 4, 32], y: Tensor[f32, "M", 4, 32]):
    S = smem(f32, (4, 32), stages=2)
    pair = named_barrier(threads=64, slots=2)
    r = role(warps=4)
    with r as u:
        for m in range(M):
            store(S[m % 2][u, lane()], load(x[m, u, lane()]))
            named_sync(pair, 0)  # refused
            store(y[m, u, lane()], load(S[m % 2][bitxor(u, 1), lane()]))
