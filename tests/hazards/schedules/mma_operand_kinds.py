@cake.schedule(target="sm_89")
def good(x: Tensor[e4m3, 16, 32], y: Tensor[f32, 16, 8]):
    X = smem(e4m3, (16, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        mma(acc, ldmatrix(X), ldmatrix(X[0:8].T, operand="b"))
        store(y[0, 0], acc)


@cake.schedule(target="sm_80")
def bad(x: Tensor[e4m3, 16, 32], y: Tensor[f32, 16, 8]):
    X = smem(e4m3, (16, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        mma(acc, ldmatrix(X), ldmatrix(X[0:8].T, operand="b"))  # refused
        store(y[0, 0], acc)
