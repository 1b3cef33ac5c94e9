@cake.schedule(target="sm_80")
def good(
    x: Tensor[f32, "M", 64],
    y: Tensor[f32, 64],
    parts: Tensor[f32, "M", 64],
    count: Tensor[i32, 1],
):
    m = grid(M)
    r = role(warps=2)
    last = smem(i32, (1,))
    with r as u:
        store(parts[m, u * 32 + lane()], load(x[m, u * 32 + lane()]))
        fence()
        cta_sync()
        if u == 0 and lane() == 0:
            store(last[0], atomic_add(count[0], 1, order="acq_rel"))
        cta_sync()
        if load(last[0]) == M - 1:
            fence()
            total = 0.0
            for i in range(M):
                total = total + load(parts[i, u * 32 + lane()], cache="cg")
            store(y[u * 32 + lane()], total)


@cake.schedule(target="sm_80")
def bad_not_gathered(
    x: Tensor[f32, "M", 64],
    y: Tensor[f32, 64],
    parts: Tensor[f32, "M", 64],
    count: Tensor[i32, 1],
):
    m = grid(M)
    r = role(warps=2)
    last = smem(i32, (1,))
    with r as u:
        store(parts[m, u * 32 + lane()], load(x[m, u * 32 + lane()]))
        fence()
        if u == 0 and lane() == 0:
            store(last[0], atomic_add(count[0], 1, order="acq_rel"))  # refused
        cta_sync()
        if load(last[0]) == M - 1:
            fence()
            total = 0.0
            for i in range(M):
                total = total + load(parts[i, u * 32 + lane()], cache="cg")
            store(y[u * 32 + lane()], total)


@cake.schedule(target="sm_80")
def bad_relaxed(
    x: Tensor[f32, "M", 64],
    y: Tensor[f32, 64],
    parts: Tensor[f32, "M", 64],
    count: Tensor[i32, 1],
):
    m = grid(M)
    r = role(warps=2)
    last = smem(i32, (1,))
    with r as u:
        store(parts[m, u * 32 + lane()], load(x[m, u * 32 + lane()]))
        cta_sync()
        if u == 0 and lane() == 0:
            store(last[0], atomic_add(count[0], 1))  # refused
        cta_sync()
        if load(last[0]) == M - 1:
            total = 0.0
            for i in range(M):
                total = total + load(parts[i, u * 32 + lane()])
            store(y[u * 32 + lane()], total)
