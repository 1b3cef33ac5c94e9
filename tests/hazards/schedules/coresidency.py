@cake.schedule(target="sm_80")
def good(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], seen: Tensor[i32, 1]):
    m = grid(M)
    r = role(warps=1)
    with r:
        if lane() == 0:
            reduce_add(seen[0], 1)
        store(y[m, lane()], load(x[m, lane()]))


@cake.schedule(target="sm_80")
def bad(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], seen: Tensor[i32, 1]):
    m = grid(M)
    r = role(warps=1)
    with r:
        if lane() == 0:
            reduce_add(seen[0], 1, order="release")
        unit_sync()
        arrived = 0
        while arrived < M:  # refused
            arrived = load(seen[0], order="acquire")
        store(y[m, lane()], load(x[m, lane()]))
