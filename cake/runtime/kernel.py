"""Loading a compiled kernel and launching it.

The first launch with new shapes checks everything and makes a *plan*: grid, parameters and the
geometry of tensor maps. A launch with known shapes looks its plan up, writes addresses and run-time
scalars into it and calls the driver. Nothing is allocated then and nothing waits, so launches can
be captured in a CUDA graph.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from typing import Any

from cake.codegen.abi import INTEGER_SCALARS, KernelAbi, TensorMapArg
from cake.codegen.hostexpr import HostExpr
from cake.diag import Diagnostic, Fact
from cake.runtime import driver
from cake.runtime.arrays import HOST, ArrayError, adapter_of
from cake.runtime.binding import Binder, LaunchError
from cake.runtime.driver import Device
from cake.runtime.findings import WRONG_TARGET
from cake.runtime.plan import Plan
from cake.runtime.streams import LEGACY_DEFAULT, stream_handle
from cake.runtime.tensormap import NOTHING_BYTES, TensorMapCache
from cake.runtime.workspace import WorkspacePool

_MAX_PLANS = 1024
_PORTABLE_CLUSTER = 8  # blocks; CUDA C++ Programming Guide, "Thread Block Clusters"
_TARGET = re.compile(r"sm_(?P<major>\d+)(?P<minor>\d)(?P<suffix>[af]?)")

_TENSOR_MAPS = TensorMapCache()


class LoadedKernel:
    """A kernel that can be launched on every GPU of its architecture.

    Raises :class:`cake.runtime.driver.NoDriver` on a machine without a driver, and
    :class:`cake.runtime.driver.DriverError` if the driver refuses the cubin. Launches from several
    threads are safe.
    """

    def __init__(self, cubin: bytes, abi: KernelAbi) -> None:
        cu = driver.driver()
        self.abi = abi
        self._binder = Binder(abi)
        loaded = cu.cuLibraryLoadData(cubin, [], [], 0, [], [], 0)
        self._library = driver.checked(loaded, f"loading the cubin of `{abi.name}`")
        found = cu.cuLibraryGetKernel(self._library, abi.name.encode())
        self._kernel = driver.checked(found, f"looking up `{abi.name}` in its cubin")
        self._functions: dict[int, Any] = {}
        self._plans: dict[Hashable, Plan] = {}
        self._workspaces = WorkspacePool()
        self._lock = threading.Lock()
        self._tensors = tuple(tensor.name for tensor in abi.tensors)
        self._scalars = tuple(scalar.name for scalar in abi.scalars)
        self._shaping = _shaping_scalars(abi)

    def launch(self, args: Mapping[str, Any], *, stream: Any = None) -> None:
        """Launch on the GPU of the arrays; returns before the kernel has run.

        ``args`` holds every tensor and scalar by name. Without ``stream`` the work goes to the
        stream that the arrays' library works on now (torch, CuPy, or the one that
        ``__cuda_array_interface__`` names), else to the legacy default stream. Raises
        :class:`cake.runtime.binding.LaunchError` with everything that does not fit.
        """
        pointers, layouts = [], []
        try:
            for name in self._tensors:
                array = args[name]
                pointer, layout = adapter_of(array).read(array)
                pointers.append(pointer)
                layouts.append(layout)
            scalars = [args[name] for name in self._scalars]
            key = (*layouts, *[args[name] for name in self._shaping])
            plan = self._plans.get(key)
        except (ArrayError, KeyError, TypeError):
            self._binder.views(args)  # raises with all that is wrong
            raise
        known = plan is not None and len(args) == len(pointers) + len(scalars)
        if plan is None or not known or plan.refuses(pointers):
            plan = self._plan(key, args)
        if plan.empty:
            return
        handle = self._stream(args, plan.device) if stream is None else stream_handle(stream)
        self._launch(plan, pointers, scalars, handle)

    def close(self) -> None:
        """Unload the code and free the workspaces.

        No launch may be running, and no captured graph that contains one may be left.
        """
        self._plans.clear()
        self._functions.clear()
        self._workspaces.free()
        driver.checked(driver.driver().cuLibraryUnload(self._library), "cuLibraryUnload")

    def _stream(self, args: Mapping[str, Any], device: int) -> int:
        for name in self._tensors:
            array = args[name]
            handle = adapter_of(array).current_stream(array, device)
            if handle is not None:
                return handle
        return LEGACY_DEFAULT

    def _plan(self, key: Hashable, args: Mapping[str, Any]) -> Plan:
        arrays, scalars = self._binder.views(args)
        on_gpu = [array.device for array in arrays.values() if array.device > HOST]
        device = driver.device(on_gpu[0] if on_gpu else 0)
        check_device(self.abi, device)
        binding = self._binder.bind(arrays, scalars, device)
        if not binding.empty:
            self._prepare(device)
        ordered = [arrays[name] for name in self._tensors]
        plan = Plan(driver.driver(), self.abi, binding, ordered, device.ordinal)
        with self._lock:
            if len(self._plans) >= _MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = plan
        return plan

    def _prepare(self, device: Device) -> None:
        """Once for each GPU: load the code and set the attributes that launches rely on."""
        if device.ordinal in self._functions:
            return
        cu = driver.driver()
        attributes = cu.CUfunction_attribute
        wanted = {attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: self.abi.smem_bytes}
        x, y, z = self.abi.cluster or (1, 1, 1)
        if x * y * z > _PORTABLE_CLUSTER:
            wanted[attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = 1
        with driver.current(device.ordinal), driver.during_capture():
            found = cu.cuKernelGetFunction(self._kernel)  # loads now what is otherwise lazy
            function = driver.checked(found, f"loading `{self.abi.name}` on {device.name}")
            for attribute, value in wanted.items():
                done = cu.cuFuncSetAttribute(function, attribute, value)
                driver.checked(done, f"setting {attribute.name} of `{self.abi.name}` to {value}")
        self._functions[device.ordinal] = function

    def _launch(self, plan: Plan, pointers: list[int], scalars: list[Any], stream: int) -> None:
        cu = driver.driver()
        _, now = cu.cuCtxGetCurrent()
        at_home = int(now) == int(driver.primary_context(plan.device))
        with plan.lock, nullcontext() if at_home else driver.current(plan.device):
            plan.fill(pointers, scalars)
            maps = []  # kept until the driver has copied the parameters
            for index, place, spec in plan.maps:
                pointer = self._nothing(plan, stream) if place is None else pointers[place]
                maps.append(_TENSOR_MAPS.get(spec, pointer))
                plan.point_to_map(index, maps[-1].address)
            for index, name, size, zeroed in plan.workspaces:
                plan.values[index] = self._workspaces.pointer(
                    device=plan.device, stream=stream, name=name, size=size, zeroed=zeroed
                )
            plan.config.hStream = stream
            function = self._functions[plan.device]
            (error,) = cu.cuLaunchKernelEx(plan.config, function, plan.parameters, 0)
        if error:
            raise driver.driver_error(error, f"launching `{self.abi.name}`")

    def _nothing(self, plan: Plan, stream: int) -> int:
        """Where the maps of arrays without elements point."""
        return self._workspaces.pointer(
            device=plan.device, stream=stream, name="", size=NOTHING_BYTES, zeroed=True
        )


def architecture(target: str, device: Device) -> str:
    """The architecture to build a schedule's code for so that ``device`` runs it.

    Targets with a suffix are exact. Code for a plain target uses nothing that later devices lack,
    but a cubin runs within its major version only: for a later one it is built anew.
    (CUDA C++ Programming Guide, "Binary compatibility".)
    """
    found = _TARGET.fullmatch(target)
    major, minor = device.capability
    if found is None or found["suffix"] or int(found["major"]) >= major:
        return target
    return f"sm_{major}{minor}"


def check_device(abi: KernelAbi, device: Device) -> None:
    """Raises :class:`LaunchError` unless code for ``abi.target`` runs on ``device``.

    (CUDA C++ Programming Guide, "Binary compatibility" and "Architecture-specific features".)
    """
    found = _TARGET.fullmatch(abi.target)
    major, minor = device.capability
    runs = found is not None and int(found["major"]) == major
    if runs and found is not None:
        built = int(found["minor"])
        runs = built == minor if found["suffix"] == "a" else built <= minor
    where = f"GPU {device.ordinal} ({device.name})"
    problem = ""
    if not runs:
        problem = f"is built for {abi.target}; {where} has compute capability {major}.{minor}"
    elif abi.smem_bytes > device.smem_per_block_bytes:
        problem = (
            f"needs {abi.smem_bytes} bytes of dynamic shared memory; {where} allows "
            f"{device.smem_per_block_bytes} a block"
        )
    if problem:
        facts: dict[str, Fact] = {
            "target": abi.target,
            "capability": f"{major}.{minor}",
            "smem_bytes": abi.smem_bytes,
            "smem_limit": device.smem_per_block_bytes,
        }
        remedy = f"build the kernel for a target of compute capability {major}.{minor}"
        finding = Diagnostic.of(
            WRONG_TARGET, f"`{abi.name}` {problem}", facts=facts, helps=(remedy,)
        )
        raise LaunchError([finding])


def _shaping_scalars(abi: KernelAbi) -> tuple[str, ...]:
    """The integer scalars that host expressions use: a plan holds for one value of them."""
    texts = [*abi.grid, *(guard.text for guard in abi.guards), *(w.bytes for w in abi.workspaces)]
    for arg in abi.args:
        if isinstance(arg, TensorMapArg):
            texts += arg.dims or ()
    used = frozenset[str]().union(*(HostExpr(text).names for text in texts))
    return tuple(s.name for s in abi.scalars if s.dtype in INTEGER_SCALARS and s.name in used)
