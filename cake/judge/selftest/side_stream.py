"""Kernels on a stream that the timed one does not wait for."""

from cake.judge.cupti import Activity, span_ms
from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial

_MICROSECOND = 1000


def _seen(*, other_stream: bool) -> Trial:
    """Caught: what runs beside counts until its end."""
    main_end, side_end = 30 * _MICROSECOND, 500 * _MICROSECOND

    def trial() -> Outcome:
        records = [
            Activity(start=0, end=10, call=1, is_mark=True),
            Activity(start=20, end=main_end, call=2, is_mark=False),
            Activity(start=main_end + 10, end=main_end + 20, call=4, is_mark=True),
        ]
        if other_stream:
            records.append(Activity(start=25, end=side_end, call=3, is_mark=False))
        span = span_ms(records)
        return Outcome(caught=span > 0.4, evidence=f"a span of {span:.3f} ms")

    return trial


CLASS = IntegrityClass(
    name="side-stream",
    description="device work outside of the timed stream",
    caught_by="the span over the activity of all streams, where CUPTI is the clock",
    because="a span of 0.500 ms",
    cheats={"longer kernel": _seen(other_stream=True)},
    honest=_seen(other_stream=False),
)
