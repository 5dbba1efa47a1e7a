"""The results of CUDA's stages, as in `aotc.building.results`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.building.results import KernelCode, StageResult

if TYPE_CHECKING:  # each is loaded when a stage needs it
    from aotc.errors import InputError
    from aotc.host.translate import Translation
    from aotc.request import Chip
    from aotc.targets.cuda.requirements import Need

    # The name of a gpu.module, and the chip of an image.
    Image = tuple[str, Chip]


class DeviceModule(Struct, frozen=True):
    """A gpu.module for GPUs: lowered, or as LLVM IR if the cache has it.

    If it was written for one chip, its kernels are launched on `only_chip` alone. `pdl_kernels` are
    launched with programmatic dependent launch. Of these, `given_waits` get a wait in the PTX for
    chips that have it.
    """

    name: str
    module: Any
    llvm_ir: str | None
    only_chip: Chip | None
    pdl_kernels: tuple[str, ...]
    given_waits: tuple[str, ...]


class DeviceModules(StageResult, frozen=True):
    """The gpu.modules that have kernels for GPUs."""

    modules: tuple[DeviceModule, ...]


class DeviceUnit(Struct, frozen=True):
    """A gpu.module to be compiled: the requirements of its operations, the chips that meet them,
    and why others of the default set are left out. `translation` makes its LLVM IR, if `llvm_ir` is
    None."""

    name: str
    needs: tuple[Need, ...]
    chips: tuple[Chip, ...]
    refusals: tuple[InputError, ...]
    llvm_ir: str | None
    translation: Translation | None
    given_waits: tuple[str, ...]


class DeviceUnits(Struct, frozen=True):
    """What `begin_device` prepares in the thread that may access modules."""

    units: tuple[DeviceUnit, ...]


class TranslatedDevice(StageResult, frozen=True):
    """The LLVM IR of each unit, in the file with its name."""

    units: tuple[DeviceUnit, ...]


class CompiledPtx(StageResult, frozen=True):
    """The images as PTX, and (gpu.module, reason) for each chip of the default set without one."""

    images: tuple[Image, ...]
    refusals: tuple[tuple[str, InputError], ...]


class Cubins(KernelCode, frozen=True, kw_only=True):
    """The cubins, and the PTX that ptxas accepts."""

    cubins: tuple[Image, ...]
    ptx: tuple[Image, ...]
