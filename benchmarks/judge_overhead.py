"""What a verdict costs beside the candidate: seconds of whole evaluations of next to no work.

    python -m benchmarks.judge_overhead [--rounds N]

Starting the child, its confinement, inputs, two runs and the comparison, for a candidate in Python
on the CPU. The first evaluation is left out.
"""

from __future__ import annotations

import argparse
from statistics import median, quantiles

from cake.judge import Candidate, Evaluation, judge, python_runner
from cake.workloads import Case

CASE = Case(shape={"M": 4, "N": 64}, dtype="f32")
UNIFORM = Candidate(
    runner=python_runner.RUNNER, entry="uniform", text="def run(y):\n    y[...] = 1 / 64\n"
)


def seconds(candidate: Candidate, rounds: int) -> list[float]:
    """Seconds of each round but the first."""
    request = Evaluation(
        workload="softmax",
        candidate=candidate,
        cases=(CASE,),
        families=("zero",),
        plugins=(python_runner.PLUGIN,),
    )
    found = []
    for _ in range(rounds + 1):
        verdict = judge(request)
        assert verdict.status == "passed", verdict.detail
        found.append(verdict.seconds)
    return found[1:]


def main() -> None:
    """Print the median and a high quantile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    found = seconds(UNIFORM, rounds)
    high = quantiles(found, n=20)[-1]
    print(f"median {median(found):.2f} s, 95% below {high:.2f} s, {rounds} rounds")


if __name__ == "__main__":
    main()
