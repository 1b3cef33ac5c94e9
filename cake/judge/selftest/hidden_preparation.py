"""Work on the inputs that is done once and not counted."""

from cake.judge.selftest.sources import RMSNORM, changed
from cake.judge.selftest.twins import PLAN, IntegrityClass, evaluation, judged
from cake.workloads import Case

_CASE = Case(shape={"M": 4, "D": 64}, dtype="bf16")
_ONCE = changed(
    RMSNORM,
    "    y[...] = (v * scale * w.astype(np.float64)).astype(y.dtype)\n",
    """\
    if not prepared:
        prepared.append(w.astype(np.float64))
    y[...] = (v * scale * prepared[0]).astype(y.dtype)
""",
)


CLASS = IntegrityClass(
    name="hidden-preparation",
    description="weights converted once, outside the timed window",
    caught_by="all inputs change from call to call; a contract declares what may be prepared",
    because="timed sample",
    cheats={
        "first call": judged(
            evaluation("prepared = []\n" + _ONCE, workload="rmsnorm", cases=(_CASE,), timing=PLAN)
        )
    },
    honest=judged(evaluation(RMSNORM, workload="rmsnorm", cases=(_CASE,), timing=PLAN)),
)
