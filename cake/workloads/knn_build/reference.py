"""Float64 reference of the neighbour graph: a search with the rows themselves as queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array, Expected, Ints
from cake.workloads.knn_search.reference import neighbours
from cake.workloads.problem import Problem


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``ids`` and ``distances`` at ``rows`` (flat over B and M) by the order of the distances."""
    x = inputs["x"]
    batches, places = np.divmod(rows, max(problem.dims["M"], 1))
    own = places if problem.parameters["exclude_self"] else None
    return neighbours(x[batches, places], batches, x, problem.dims["k"], own)
