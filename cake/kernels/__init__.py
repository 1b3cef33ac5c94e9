"""The shipped schedules as data, and what ties a schedule file to a problem.

A schedule file lies at ``<workload>/<target>.py`` or, for a structural variant, at
``<workload>/<target>_<variant>.py``. It holds one or several schedules, launched in source order.
Files are text: they are parsed, never imported.
"""

from cake.kernels.binding import Bound, Misfit, bind, elaborate, launchable, meta_domains
from cake.kernels.library import ScheduleFile, available, schedule_file, schedules
from cake.kernels.meta_text import decode_meta, encode_meta, with_meta
from cake.kernels.simulation import poisoned, scalars, simulate_schedule
from cake.kernels.tensors import Temporary, temporaries

__all__ = [
    "Bound",
    "Misfit",
    "ScheduleFile",
    "Temporary",
    "available",
    "bind",
    "decode_meta",
    "elaborate",
    "encode_meta",
    "launchable",
    "meta_domains",
    "poisoned",
    "scalars",
    "schedule_file",
    "schedules",
    "simulate_schedule",
    "temporaries",
    "with_meta",
]
