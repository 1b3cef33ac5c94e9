@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    X = smem(f32, (64,), stages=1)
    copier = role(warps=1)
    mover = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=mover)
    with copier:
        with xs.fill() as s:
            bulk_load(X[s], x[0])
    with mover:
        with xs.use() as s:
            store(y[lane()], load(X[s][lane()]))
            store(y[32 + lane()], load(X[s][32 + lane()]))
            fence_async()


@cake.schedule(target="sm_90a")
def bad_size(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    X = smem(f32, (64,), stages=1)
    copier = role(warps=1)
    mover = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=mover)
    with copier:
        with xs.fill() as s:
            bulk_load(X[s][0:63], x[0])  # refused
    with mover:
        with xs.use() as s:
            store(y[lane()], load(X[s][lane()]))


@cake.schedule(target="sm_90a")
def bad_start(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    X = smem(f32, (32,), stages=1)
    copier = role(warps=1)
    mover = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=mover)
    with copier:
        with xs.fill() as s:
            bulk_load(X[s], x[2])  # refused
    with mover:
        with xs.use() as s:
            store(y[lane()], load(X[s][lane()]))
