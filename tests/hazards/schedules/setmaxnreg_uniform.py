@cake.schedule(target="sm_90a")
def good(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warpgroups=1)
    math = role(warpgroups=1)
    with idle:
        setmaxnreg("dec", 24)
    with math:
        setmaxnreg("inc", 256)
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)


@cake.schedule(target="sm_90a")
def bad_one_warp(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warpgroups=1)
    math = role(warpgroups=1)
    with idle:
        if warp() == 0:
            setmaxnreg("dec", 24)  # refused
    with math:
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)


@cake.schedule(target="sm_90a")
def bad_inc_below(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warpgroups=1)
    math = role(warpgroups=1)
    with idle:
        pass
    with math:
        setmaxnreg("inc", 64)  # refused
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)
