"""From work to time: which resource of the machine takes longest, and how long that is.

Each resource has a rate; work divided by rate is the time that it alone would take on the SM with
the most CTAs or tiles. The kernel's time is the longest of them, plus the launch:

* ``tensor``, ``fma``, ``alu``, ``sfu``: the pipes. A warp that waits for one pipe leaves the
  others to the other warps of its scheduler, so with n warps a scheduler 1/n of the time of the
  shorter pipes is exposed: ``longest + (sum of the others) / n``, where n counts the warps of the
  role with the most pipe work.
* ``issue``: warp instructions. ``smem``: shared-memory bytes. ``l2``: bytes between SM and L2.
* ``hbm``: bytes between L2 and device memory: what is requested, but of each tensor at most all of
  it once (L2 keeps what is read again).
* ``latency``: waits for device memory that a warp cannot overlap. Loads of one block of statements
  overlap; a ring of S stages has S - 1 fills in flight; ``cp_async_wait(n)`` has n + 1 groups.

Nothing here is fitted. Ceilings that were measured on a part replace its data sheet
(``calibrated``); without them the result is a bound that no kernel reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cake.cost.machine import LAUNCH_SECONDS, MEMORY_LATENCY, Machine, machine
from cake.cost.occupancy import Occupancy, occupancy, register_demand, resident_blocks
from cake.cost.result import Estimate, ScheduleEstimate, Usage
from cake.cost.walk import Site
from cake.cost.work import Work, work_of
from cake.ir.program import Pipeline, Program

PIPES = ("tensor", "fma", "alu", "sfu")


def estimate_schedule(
    programs: Sequence[Program],
    dims: Mapping[str, int | float],
    *,
    part: str | None = None,
    built_registers: Mapping[str, int] | None = None,
) -> ScheduleEstimate:
    """Estimate programs that are launched one after another; see :func:`estimate`.

    ``built_registers`` are by name of the program.
    """
    built = built_registers or {}
    kernels = tuple(
        estimate(p, dims, part=part, built_registers=built.get(p.name)) for p in programs
    )
    return ScheduleEstimate(kernels=kernels)


def estimate(
    program: Program,
    dims: Mapping[str, int | float],
    *,
    part: str | None = None,
    built_registers: int | None = None,
) -> Estimate:
    """Estimate the time of one kernel.

    Args:
        program: an elaborated program.
        dims: run-time dimensions and scalar parameters by name.
        part: a part of the program's target; its typical one without.
        built_registers: registers a thread, as ptxas reports them.

    Raises:
        DoesNotFit: a CTA exceeds the SM.
        UnknownPart: the target has no such part.
        ValueError: an extent of the grid needs a dimension that ``dims`` lacks.
    """
    device = machine(program.target, part)
    held = occupancy(program, device.target, built_registers)
    share = min(resident_blocks(program), held.ctas)
    work = work_of(program, dims, device.sms * share)
    return _Model(program, dims, device, held, work).estimate()


class _Model:
    """The arithmetic of one estimate."""

    def __init__(
        self,
        program: Program,
        dims: Mapping[str, int | float],
        device: Machine,
        held: Occupancy,
        work: Work,
    ) -> None:
        self.program = program
        self.dims = dims
        self.device = device
        self.held = held
        self.work = work
        self.assumptions = list(work.assumptions)
        busiest = -(-work.ctas // device.sms)
        if work.persistent and work.ctas:
            busiest *= -(-work.tiles // work.ctas)
        units = work.tiles if work.persistent else work.ctas
        self.balance = units / (busiest * device.sms) if busiest else 1.0
        self.resident = min(held.ctas, -(-work.ctas // device.sms))

    def estimate(self) -> Estimate:
        rows = [*self._pipes(), *self._memory(), self._latency()]
        top = max(rows, key=lambda r: r.exposed)
        seconds = top.exposed + LAUNCH_SECONDS
        work, device = self.work, self.device
        capacity = work.ctas if work.persistent else device.sms * self.held.ctas
        self._note_registers()
        return Estimate(
            kernel=self.program.name,
            part=device.part.name,
            cycles=seconds * device.clock,
            seconds=seconds,
            bound=top.name if top.exposed > LAUNCH_SECONDS else "launch",
            resources=tuple(rows),
            occupancy=self.held,
            ctas=work.ctas,
            tiles=work.tiles,
            waves=(work.tiles if work.persistent else work.ctas) / max(1, capacity),
            balance=self.balance,
            warps_per_scheduler=self._streams(),
            is_bound=not device.calibrated,
            calibrated=device.calibrated,
            assumptions=tuple(dict.fromkeys(self.assumptions)),
            sites=work.sites,
        )

    def _on_sms(self, work: float, per_clock: float) -> float:
        """Seconds on the busiest SM for work that is spread over all of them."""
        return work / (per_clock * self.device.sms * self.device.clock * self.balance)

    # -- pipes -----------------------------------------------------------------------------------

    def _pipes(self) -> list[Usage]:
        rates = self.device.target.rates
        lanes = {"fma": rates.fp32_lanes, "alu": rates.alu_lanes, "sfu": rates.sfu_lanes}
        seconds = {"tensor": self._tensor_seconds()}
        work = {"tensor": self._total(lambda s: s.cost.tensor * s.times)}
        for name, per_clock in lanes.items():
            work[name] = self._lanes(name)
            seconds[name] = self._on_sms(work[name], per_clock)
        longest = max(PIPES, key=lambda name: seconds[name])
        others = sum(seconds.values()) - seconds[longest]
        return [
            Usage(
                name=name,
                work=work[name],
                unit="FMA" if name == "tensor" else "lane operations",
                seconds=seconds[name],
                exposed=seconds[name] + (others / self._streams() if name == longest else 0.0),
            )
            for name in PIPES
        ]

    def _tensor_seconds(self) -> float:
        seconds = 0.0
        for s in self.work.sites:
            if not s.cost.tensor or s.cost.tensor_dtype is None:
                continue
            rate = self.device.tensor_fma(s.cost.tensor_dtype, s.op)
            if rate is None:
                self.assumptions.append(f"no tensor rate is known for {s.cost.tensor_dtype}")
            else:
                seconds += self._on_sms(s.cost.tensor * s.times * self.work.ctas, rate)
        return seconds

    def _streams(self) -> float:
        """Warps a scheduler that share the pipes."""
        load: dict[str, float] = {}
        for s in self.work.sites:
            pipes = s.cost.tensor + s.cost.fma + s.cost.alu + s.cost.sfu
            load[s.role] = load.get(s.role, 0.0) + pipes * s.times
        if not load:
            return 1.0
        role = max(load, key=lambda name: load[name])
        warps = next(r.warps for r in self.program.role_decls() if r.name == role)
        schedulers = self.device.target.rates.issue_slots
        return max(1.0, warps * self.resident / schedulers)

    # -- memory ----------------------------------------------------------------------------------

    def _memory(self) -> list[Usage]:
        rates = self.device.target.rates
        issue = self._total(lambda s: s.cost.issue * s.times)
        smem = self._total(lambda s: s.cost.smem * s.active)
        requested = self._requested()
        rows = [
            self._usage(
                "issue", issue, "warp instructions", self._on_sms(issue, rates.issue_slots)
            ),
            self._usage("smem", smem, "B", self._on_sms(smem, rates.smem_bytes)),
        ]
        total = sum(requested.values())
        l2_bytes = self.device.l2_bytes
        if l2_bytes is None:
            self.assumptions.append(f"no L2 rate is known for {self.device.target.name}")
        else:
            rows.append(self._usage("l2", total, "B", self._on_sms(total, l2_bytes)))
        moved = sum(min(size, self._tensor_bytes(name)) for (name, _), size in requested.items())
        return [*rows, self._usage("hbm", moved, "B", moved / self.device.dram)]

    def _requested(self) -> dict[tuple[str, str], float]:
        """Bytes that the SMs ask of L2, by tensor and direction."""
        found: dict[tuple[str, str], float] = {}
        for s in self.work.sites:
            if s.tensor is None:
                continue
            atomics = s.cost.atomics * self._element_bytes(s.tensor)
            for way, size in (("read", s.cost.gmem_read), ("write", s.cost.gmem_write + atomics)):
                if size:
                    key = (s.tensor, way)
                    found[key] = found.get(key, 0.0) + size * s.active * self.work.ctas
        return found

    def _element_bytes(self, tensor: str) -> int:
        found = next((t for t in self.program.tensors if t.name == tensor), None)
        return found.dtype.bytes if found is not None else 4

    def _tensor_bytes(self, tensor: str) -> float:
        """The size of a tensor parameter; a workspace has no bound here."""
        found = next((t for t in self.program.tensors if t.name == tensor), None)
        if found is None:
            return float("inf")
        size = float(found.dtype.bytes)
        for d in found.shape:
            size *= d if isinstance(d, int) else self.dims[d]
        return size

    def _latency(self) -> Usage:
        waits = max(self.work.exposed.values(), default=0.0)
        for ring in self.program.find(Pipeline):
            if any(s.role == ring.producer and s.tensor is not None for s in self.work.sites):
                fills = self.work.fills.get(ring.name, 0.0)
                waits = max(waits, fills / max(1, ring.stages - 1))
        capacity = self.device.sms * self.held.ctas
        rounds = 1 if self.work.persistent else -(-self.work.ctas // capacity)
        seconds = waits * rounds * MEMORY_LATENCY / self.device.clock
        return self._usage("latency", waits * rounds, "waits", seconds)

    # -- helpers ---------------------------------------------------------------------------------

    def _lanes(self, pipe: str) -> float:
        return self._total(lambda s: float(getattr(s.cost, pipe)) * s.times)

    def _total(self, part: Callable[[Site], float]) -> float:
        return sum(map(part, self.work.sites)) * self.work.ctas

    def _usage(self, name: str, work: float, unit: str, seconds: float) -> Usage:
        return Usage(name=name, work=work, unit=unit, seconds=seconds, exposed=seconds)

    def _note_registers(self) -> None:
        for role in self.program.role_decls():
            needed = register_demand(self.program)[role.name]
            if role.regs is not None and needed > role.regs:
                self.assumptions.append(
                    f"role {role.name} holds about {needed} registers, its budget is {role.regs}: "
                    "spills are likely and not counted"
                )
