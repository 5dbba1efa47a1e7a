"""The chips that support an operation, known from its name before any compiler runs.

The values are those of ptxas 13.5. An operation that is not listed may still be refused by clang or
ptxas, without a place in the input.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.chips import FIRST_WITH_REDUX, LIMITS
from aotc.mlir import ir
from aotc.request import Chip

_WITH_REGISTERS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a")
_BLACKWELL = ("sm_100a", "sm_103a")

# Prefix of an operation's name → the least compute capability, or the only chips that support it.
# The longest prefix that matches counts.
_REQUIREMENTS: dict[str, int | tuple[str, ...]] = {
    "gpu.cluster_": 90,
    "nvgpu.device_async_": 80,
    "nvgpu.mbarrier.": 80,
    "nvgpu.mbarrier.arrive.expect_tx": 90,
    "nvgpu.mbarrier.try_wait": 90,
    "nvgpu.mma.sp.": 80,
    "nvgpu.tma.": 90,
    "nvgpu.warpgroup.": ("sm_90a",),
    "nvvm.cluster.": 90,
    "nvvm.clusterlaunchcontrol.": 100,
    "nvvm.cp.async.": 80,
    "nvvm.cp.async.bulk.": 90,
    "nvvm.elect.sync": 90,
    "nvvm.fence.mbarrier.init": 90,
    "nvvm.fence.proxy.": 90,
    "nvvm.griddepcontrol": 90,
    "nvvm.mapa": 90,
    "nvvm.mbarrier.": 80,
    "nvvm.mbarrier.arrive.expect_tx": 90,
    "nvvm.mbarrier.arrive_drop.expect_tx": 90,
    "nvvm.mbarrier.complete_tx": 90,
    "nvvm.mbarrier.expect_tx": 90,
    "nvvm.mbarrier.try_wait": 90,
    "nvvm.mma.sp.": 80,
    "nvvm.read.ptx.sreg.cluster": 90,
    "nvvm.read.ptx.sreg.nclusterid.": 90,
    "nvvm.redux.sync": FIRST_WITH_REDUX,
    "nvvm.setmaxregister": _WITH_REGISTERS,
    "nvvm.stmatrix": 90,
    "nvvm.tcgen05.": _BLACKWELL,
    "nvvm.wgmma.": ("sm_90a",),
}
_PREFIXES = sorted(_REQUIREMENTS, key=len, reverse=True)
_MMA = ("nvgpu.mma.sync", "nvvm.mma.sync")


class Need(Struct, frozen=True):
    """An operation of a kernel, and its requirement: the least compute capability, or one of the
    only chips that support it."""

    operation: str
    location: Any
    least: int = 0
    only: tuple[str, ...] = ()

    def is_met_by(self, chip: Chip) -> bool:
        return chip.name in self.only if self.only else chip.capability >= self.least

    def __str__(self) -> str:
        what = " or ".join(self.only) if self.only else f"sm_{self.least} or later"
        return f"{self.operation} needs {what}"


def find_needs(gpu_module: Any) -> tuple[Need, ...]:
    """The requirements of a gpu.module, each once, with the first operation that has it."""
    found: dict[Any, Need] = {}
    for operation in ops.walk(gpu_module):
        requirement = _requirement(operation)
        if isinstance(requirement, tuple):
            need = Need(operation.name, operation.location, only=requirement)
        elif requirement is not None:
            need = Need(operation.name, operation.location, least=requirement)
        else:
            continue
        found.setdefault(requirement, need)
    return tuple(found.values())


def gpus_for(kernel: Any, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
    """The GPUs that can run cubins of the kernel for the chips, each as the chip of its own name.
    A chip has no cubin if neither it nor its variant ("a") supports all of the kernel's
    operations."""
    needs = find_needs(kernel)
    able = [
        chip
        for chip in chips
        if any(
            all(need.is_met_by(candidate) for need in needs)
            for candidate in (chip, Chip(f"{chip.name}a"))
        )
    ]
    served = (one for one in LIMITS if any(chip.runs_on(one) for chip in able))
    return tuple(Chip(f"sm_{capability}") for capability in served)


def _requirement(operation: Any) -> int | tuple[str, ...] | None:
    name = operation.name
    if name in _MMA:
        return _least_for_mma(operation)
    if name == "nvvm.redux.sync" and isinstance(operation.results[0].type, ir.F32Type):
        return _BLACKWELL
    if not name.startswith(("nvvm.", "nvgpu.", "gpu.cluster_")):
        return None
    return next((_REQUIREMENTS[start] for start in _PREFIXES if name.startswith(start)), None)


def _least_for_mma(operation: Any) -> int | None:
    """The least capability for mma. Turing has m8n8 of integers, and m16n8k8 of f16 (PTX ISA,
    "mma")."""
    # (Printing the whole operation would number it within its function.)
    attributes = operation.attributes
    text = (
        f"{', '.join(f'{name} = {attributes[name]}' for name in attributes)} : "
        f"{', '.join(str(value.type) for value in operation.operands)} -> "
        f"{', '.join(str(value.type) for value in operation.results)}"
    )
    if re.search(r"f8E\w+|<e[45]m[23]>", text):
        return 89
    if re.search(r"bf16|tf32|f64|vector<\d+x\d+xf32>, vector<\d+x\d+xf32>, ", text):
        return 80
    shape = re.search(r"mmaShape = \[(\d+), (\d+), (\d+)\]", text) or re.search(
        r"#nvvm\.shape<m = (\d+), n = (\d+), k = (\d+)>", text
    )
    is_turing = shape is None or shape[1] == "8" or ("f16" in text and shape[3] == "8")
    return None if is_turing else 80
