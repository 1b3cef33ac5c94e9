@cake.schedule(target="sm_80")
def good(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    S = smem(f32, (32,))
    writer = role(warps=1)
    reader = role(warps=1)
    with writer:
        store(S[lane()], load(x[lane()]))
        cta_sync()
    with reader:
        cta_sync()
        store(y[lane()], load(S[lane()]))


@cake.schedule(target="sm_80")
def bad(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    S = smem(f32, (32,))
    writer = role(warps=1)
    reader = role(warps=1)
    with writer:
        store(S[lane()], load(x[lane()]))
    with reader:
        nanosleep(100000)
        store(y[lane()], load(S[lane()]))  # refused
