"""The tensors that a candidate gets: poisoned where it has to write, guarded at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake.judge.devices import Memory
from cake.judge.protocol import Array
from cake.judge.verdict import Finding
from cake.workloads import Problem, TensorSpec

GUARD_BYTES = 1 << 16  # before and behind every tensor; a tile row of a large matrix fits in

# One byte each: 0xFF makes a NaN of every float type and -1 of an integer, 0x5A a finite number.
POISONS = (0xFF, 0x5A)


class GuardedTensor:
    """One tensor between two guards; everything starts out as ``poison``."""

    def __init__(self, device: Memory, problem: Problem, spec: TensorSpec, poison: int) -> None:
        self.spec = spec
        self.poison = poison
        self._device = device
        self._shape = problem.shape_of(spec.name)
        self._dtype = problem.dtype_of(spec.name)
        self._start = GUARD_BYTES
        self._stop = GUARD_BYTES + problem.bytes_of(spec.name)
        self._buffer = device.allocate(self._stop + GUARD_BYTES)
        self.array = device.array(self._buffer, self._start, self._shape, self._dtype)
        device.fill(self._buffer, 0, self._stop + GUARD_BYTES, poison)

    def write(self, host: Array) -> None:
        """Set the contents to those of ``host``."""
        flat = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        self._device.upload(self._buffer, self._start, flat)

    def copy_from(self, buffer: Any) -> None:
        """Set the contents to the first bytes of a device buffer."""
        self._device.copy(buffer, self._buffer, self._start, self._stop - self._start)

    def spoil(self) -> None:
        """Fill the contents with poison again."""
        self._device.fill(self._buffer, self._start, self._stop, self.poison)

    def read(self) -> Array:
        """The contents, on the host."""
        flat = self._device.download(self._buffer, self._start, self._stop)
        array: Array = flat.view(self._dtype).reshape(self._shape)
        return array

    def guard_finding(self) -> Finding | None:
        """Whether something wrote into a guard, and where first."""
        ends = {
            "before": self._device.download(self._buffer, 0, self._start),
            "behind": self._device.download(self._buffer, self._stop, self._stop + GUARD_BYTES),
        }
        for place, guard in ends.items():
            hit = np.flatnonzero(guard != self.poison)
            if hit.size:
                distance = hit[0] if place == "behind" else guard.size - hit[-1] - 1
                return Finding(
                    kind="guard-overwritten",
                    tensor=self.spec.name,
                    message=f"{hit.size} bytes {place} the tensor were overwritten, the nearest "
                    f"{distance} bytes away from it",
                )
        return None


class Arguments:
    """All tensors of a problem on the device, for one run."""

    def __init__(self, device: Memory, problem: Problem, poison: int) -> None:
        self.tensors = {
            spec.name: GuardedTensor(device, problem, spec, poison)
            for spec in problem.contract.tensors
        }

    def arrays(self) -> dict[str, Any]:
        """The device arrays by name, as a candidate receives them."""
        return {name: tensor.array for name, tensor in self.tensors.items()}

    def load(self, inputs: Mapping[str, Array]) -> None:
        """Upload the inputs."""
        for name, host in inputs.items():
            self.tensors[name].write(host)

    def refresh(self, contents: Mapping[str, Any]) -> None:
        """Inputs from device buffers, everything else poisoned."""
        for name, tensor in self.tensors.items():
            if name in contents:
                tensor.copy_from(contents[name])
            else:
                tensor.spoil()

    def outputs(self) -> dict[str, Array]:
        """The outputs, on the host."""
        return {
            name: tensor.read() for name, tensor in self.tensors.items() if tensor.spec.is_output
        }

    def findings(self, inputs: Mapping[str, Array]) -> list[Finding]:
        """Overwritten guards and modified inputs."""
        guards = (tensor.guard_finding() for tensor in self.tensors.values())
        found = [finding for finding in guards if finding is not None]
        for name, host in inputs.items():
            tensor = self.tensors[name]
            if tensor.spec.role == "input" and tensor.read().tobytes() != host.tobytes():
                message = "an input was modified"
                found.append(Finding(kind="input-modified", tensor=name, message=message))
        return found
