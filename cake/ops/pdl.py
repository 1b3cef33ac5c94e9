"""``pdl_wait()`` and ``pdl_launch()``: programmatic dependent launch."""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ops.base import SyncEffect
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.sync import define


def _meaning(unit: Unit, call: Call) -> None:
    """Nothing: the simulator runs one kernel, whose predecessors have ended."""


def _emit_wait(cg: Emitter, call: Call) -> None:
    code = """\
__device__ __forceinline__ void pdl_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}"""
    cg.line(f"{cg.helper('pdl_wait', code)}();")


def _emit_launch(cg: Emitter, call: Call) -> None:
    code = """\
__device__ __forceinline__ void pdl_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}"""
    cg.line(f"{cg.helper('pdl_launch', code)}();")


define(
    "pdl_wait",
    SyncEffect("wait", "pdl"),
    doc="Wait until the kernels this one depends on have ended and their memory is visible. Comes"
    " before the first access to what they write. Needs launch(pdl=True) to overlap anything.",
    source="PTX ISA 9.0, griddepcontrol.wait",
    meaning=_meaning,
    emit=_emit_wait,
    requires="pdl",
    convergent=False,
)
define(
    "pdl_launch",
    SyncEffect("arrive", "pdl"),
    doc="Let the next kernel of the stream begin once every CTA has said so or ended. Gives no"
    " visibility of this kernel's writes: the next one waits with pdl_wait.",
    source="PTX ISA 9.0, griddepcontrol.launch_dependents",
    meaning=_meaning,
    emit=_emit_launch,
    requires="pdl",
    convergent=False,
)
