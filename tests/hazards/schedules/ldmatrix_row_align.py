@cake.schedule(target="sm_80")
def good(x: Tensor[f16, 16, 16], y: Tensor[f32, 16, 8]):
    X = smem(f16, (16, 24))
    r = role(warps=1)
    with r:
        for i in static_range(8):
            store(X[i * 2 + lane() // 16, lane() % 16], load(x[i * 2 + lane() // 16, lane() % 16]))
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        mma(acc, ldmatrix(X[0:16, 0:16]), ldmatrix(X[0:8, 0:16].T, operand="b"))
        store(y[0, 0], acc)


@cake.schedule(target="sm_80")
def bad(x: Tensor[f16, 16, 16], y: Tensor[f32, 16, 8]):
    X = smem(f16, (16, 20))
    r = role(warps=1)
    with r:
        for i in static_range(8):
            store(X[i * 2 + lane() // 16, lane() % 16], load(x[i * 2 + lane() // 16, lane() % 16]))
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        mma(acc, ldmatrix(X[0:16, 0:16]), ldmatrix(X[0:8, 0:16].T, operand="b"))  # refused
        store(y[0, 0], acc)
