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

    # A gpu.module by name, and the chip that an image of it is for.
    Image = tuple[str, Chip]


class DeviceModule(Struct, frozen=True):
    """A gpu.module that runs on GPUs: lowered, or as LLVM IR if the cache has that.

    If it was written for one chip, its kernels are launched on `only_chip` alone. Its
    `pdl_kernels` may begin while the work before them ends: of these, `given_waits` get a wait
    in the PTX for chips that have it.
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
    """A gpu.module to be compiled: what its operations need of a chip, the chips that have it, and
    why others of the default set are left out. `translation` makes its LLVM IR where that is not
    known."""

    name: str
    needs: tuple[Need, ...]
    chips: tuple[Chip, ...]
    refusals: tuple[InputError, ...]
    llvm_ir: str | None
    translation: Translation | None
    given_waits: tuple[str, ...]


class DeviceUnits(Struct, frozen=True):
    """What `begin_device` prepares in the thread that may touch modules."""

    units: tuple[DeviceUnit, ...]


class TranslatedDevice(StageResult, frozen=True):
    """The LLVM IR of each unit is in the file of its name."""

    units: tuple[DeviceUnit, ...]


class CompiledPtx(StageResult, frozen=True):
    """The images as PTX, and by gpu.module why it has none for a chip of the default set."""

    images: tuple[Image, ...]
    refusals: tuple[tuple[str, InputError], ...]


class Cubins(KernelCode, frozen=True, kw_only=True):
    """The cubins, and the PTX that ptxas takes."""

    cubins: tuple[Image, ...]
    ptx: tuple[Image, ...]
