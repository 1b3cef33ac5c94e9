"""Exchange with flashinfer-bench: its Definition, Workload, Solution and Trace, read and written.

The records hold what the schema of flashinfer-bench 0.1 holds and refuse what its validator
refuses; entries that they do not know are dropped on reading.
"""

from cake.judge.interchange.convert import (
    candidate_of,
    definition_of,
    solution_of,
    trace_of,
    workload_of,
)
from cake.judge.interchange.schema import (
    Definition,
    InterchangeError,
    Solution,
    Trace,
    Workload,
    dumps,
    loads,
    read_traces,
    write_traces,
)

__all__ = [
    "Definition",
    "InterchangeError",
    "Solution",
    "Trace",
    "Workload",
    "candidate_of",
    "definition_of",
    "dumps",
    "loads",
    "read_traces",
    "solution_of",
    "trace_of",
    "workload_of",
    "write_traces",
]
