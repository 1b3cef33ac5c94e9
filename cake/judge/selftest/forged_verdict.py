"""Answers that the candidate gives in the judge's name."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_FORGED = """\
import json
import os
import sys

kind = {kind!r}


def run(x, y):
    line = json.dumps({{"kind": kind, "body": {body}}}) + "\\n"
    os.write(int(sys.argv[2]), line.encode())
    os._exit(0)
"""


def _forged(kind: str, body: str) -> str:
    return _FORGED.format(kind=kind, body=body)


CLASS = IntegrityClass(
    name="forged-verdict",
    description="the verdict or an answer forged, the process left early with status 0",
    caught_by="only the parent makes verdicts; what the pipe says is no evidence",
    because={
        "answer": "exit code 0 before its answer",
        "verdict": "unknown kind 'Verdict'",
        "exit 0": "exit code 0 before its answer",
    },
    cheats={
        "answer": judged(evaluation(_forged("Lapped", "{}"))),
        "verdict": judged(evaluation(_forged("Verdict", '{"status": "passed"}'))),
        "exit 0": judged(evaluation("import os\n\n\ndef run(x, y):\n    os._exit(0)\n")),
    },
    honest=judged(evaluation(SOFTMAX + '    print("softmax: passed")\n')),
)
