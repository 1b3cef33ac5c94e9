"""Stream handles out of whatever a caller calls a stream."""

from __future__ import annotations

from typing import Any

from cake.diag import CakeError, Diagnostic
from cake.runtime.findings import BAD_STREAM

LEGACY_DEFAULT = 0


def stream_handle(stream: Any) -> int:
    """The ``CUstream`` handle of ``stream``.

    ``stream`` is an integer handle, an object with ``__cuda_stream__`` (cuda.core, torch >= 2.10),
    a torch stream (``cuda_stream``) or a CuPy stream (``ptr``). Raises
    :class:`cake.diag.CakeError` for anything else.
    """
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # Early versions of cuda.core had a property here instead of a method.
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise CakeError(
        [
            Diagnostic.of(
                BAD_STREAM,
                f"a {type(stream).__qualname__} is no CUDA stream: {str(stream)[:80]}",
                helps=("pass a handle, or a stream of torch, CuPy or cuda.core",),
            )
        ]
    )
