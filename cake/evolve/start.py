"""From a configuration to a new run: every default resolved, every file read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cake.cost import machine
from cake.evolve.config import EvolveConfig
from cake.evolve.gpu import find_gpu
from cake.evolve.setting import Setting
from cake.evolve.space import variants_of
from cake.evolve.store import Store
from cake.kernels import ScheduleFile, schedule_file, schedules
from cake.workloads import get, problem

RUNS = Path("runs")


def new_run(config: EvolveConfig) -> Store:
    """Create the run that ``config`` describes.

    Raises :class:`CakeError`, and what the names in the configuration lead to:
    ``UnknownWorkloadError``, ``UnknownTarget``, ``UnknownPart``, ``ContractError`` (a case that
    the contract does not admit), ``OSError`` (a schedule file that cannot be read).
    """
    contract = get(config.workload)
    case = config.case or contract.shapes["headline"][0]
    instance = problem(contract, case.shape, case.dtype)
    part = machine(config.target, config.part).part.name
    gpu = find_gpu(config.target, config.device)
    setting = Setting(
        workload=config.workload,
        target=config.target,
        case=case,
        part=part,
        device="cpu" if gpu is None else "cuda",
        baseline=config.baseline,
        seed=config.seed,
        keep=config.keep,
        variants=variants_of(_files(config), instance),
    )
    folder = config.out or RUNS / f"{config.workload}-{config.target}-{_date()}"
    return Store.create(folder, setting, config.budget)


def _files(config: EvolveConfig) -> tuple[ScheduleFile, ...]:
    shipped = schedules(config.workload, config.target) if config.shipped else ()
    return (*shipped, *(schedule_file(path, config.target) for path in config.files))


def _date() -> str:
    return datetime.now().strftime("%Y%m%d-%H%M%S")
