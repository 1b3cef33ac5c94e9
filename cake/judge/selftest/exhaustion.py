"""Taking more than a share: memory, time, output, disk, processes."""

from dataclasses import replace

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import LIMITS, IntegrityClass, evaluation, judged

_SHORT = replace(LIMITS, run=2.0, memory_bytes=4 << 30)


def _spends(statement: str) -> str:
    imports = "import os\nimport signal\n\nimport numpy as np\n"
    return f"{imports}\n\ndef run(x, y):\n    {statement}\n    y[...] = 0\n"


_BOMBS = {
    "memory": "kept = [np.empty(1 << 27) for _ in range(64)]",
    "time": "while True: pass",
    "output": "while True: print('x' * 4096)",
    "disk": "open('/tmp/full', 'wb').write(bytes(1 << 28))",
    "processes": "[os.fork() or signal.pause() for _ in range(1 << 12)]",
}

CLASS = IntegrityClass(
    name="exhaustion",
    description="memory, time, output, disk or processes without end",
    caught_by="limits of resources, a deadline for every answer, a bound on the output",
    because={
        "memory": "MemoryError",
        "time": "hang: no answer within 2 s",
        "output": "printed more than 1048576 bytes",
        "disk": "File too large",
        "processes": "hang: no answer within 2 s|BlockingIOError",
    },
    cheats={name: judged(evaluation(_spends(s), limits=_SHORT)) for name, s in _BOMBS.items()},
    honest=judged(
        evaluation(SOFTMAX + "    print('x' * 4096)\n    np.ones(1 << 24)\n", limits=_SHORT)
    ),
)
