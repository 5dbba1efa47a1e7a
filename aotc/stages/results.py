"""The results of the stages: one class for each, with what later stages take from it.

MLIR modules in them are changed in place by later stages; the rest is frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.artifacts import ArtifactFile

if TYPE_CHECKING:  # each is loaded when a stage needs it
    from aotc.cpu.kernels import CpuKernels
    from aotc.device.given import GivenBinary
    from aotc.device.requirements import Need
    from aotc.errors import InputError
    from aotc.host.constants import Constant
    from aotc.host.translate import Translation
    from aotc.host.weights import WeightsFile
    from aotc.input.source import Source
    from aotc.manifest import Entry, Manifest, Resources
    from aotc.request import Chip

    # A gpu.module by name, and the chip that an image of it is for.
    Image = tuple[str, Chip]


class StageResult(Struct, frozen=True, kw_only=True):
    """The files of the stage's artifacts, for those who asked for them."""

    files: tuple[ArtifactFile, ...] = ()


class Loaded(StageResult, frozen=True):
    """The parsed input. `lowered_entries` names the entries that are in the LLVM dialect already;
    a program has a main of its own; the input's size is in bytes."""

    source: Source
    entries: tuple[Entry, ...]
    lowered_entries: tuple[str, ...]
    is_program: bool
    input_size: int


class Outlined(StageResult, frozen=True):
    """The module with its kernels in gpu.modules. `managed_globals` are the variables that kernels
    use, `given` the gpu.binary operations that came with the input."""

    source: Source
    entries: tuple[Entry, ...]
    lowered_entries: tuple[str, ...]
    is_program: bool
    managed_globals: frozenset[str]
    given: tuple[GivenBinary, ...]

    @property
    def module(self) -> Any:
        return self.source.module


class DeviceModule(Struct, frozen=True):
    """A gpu.module that runs on GPUs: lowered, or as LLVM IR if the cache has that.

    If it was written for one chip, its kernels are launched on `only_chip` alone. Its
    `early_kernels` may begin while the work before them ends.
    """

    name: str
    module: Any
    llvm_ir: str | None
    only_chip: Chip | None
    early_kernels: tuple[str, ...]


class DeviceModules(StageResult, frozen=True):
    """The gpu.modules; those of `cpu_alone` have kernels that no GPU runs."""

    modules: tuple[DeviceModule, ...]
    cpu_alone: tuple[str, ...]


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


class Cubins(StageResult, frozen=True):
    """The images as cubins, and as PTX (those that ptxas takes); what each kernel, named with its
    gpu.module, needs on each chip; and by gpu.module or gpu.binary what it is built for: chips,
    and virtual ones whose PTX is there."""

    images: tuple[Image, ...]
    ptx: tuple[Image, ...]
    resources: Mapping[tuple[str, str], tuple[Resources, ...]]
    built_for: Mapping[str, tuple[str, ...]]


class DeviceImage(Struct, frozen=True):
    """What the host's code has of a gpu.module or gpu.binary: a fatbin, unless kernels run on the
    CPU alone. The rest is as in `DeviceModule` and `Cubins`."""

    name: str
    file: str | None
    built_for: tuple[str, ...] = ()
    only_chip: Chip | None = None
    early_kernels: tuple[str, ...] = ()


class Fatbins(StageResult, frozen=True):
    """The images of every gpu.module and gpu.binary."""

    images: tuple[DeviceImage, ...]


class CpuCode(StageResult, frozen=True):
    """The kernels as host functions, or why they have none."""

    kernels: CpuKernels


class HostModule(StageResult, frozen=True):
    """The host's half in the LLVM dialect."""

    module: Any


class CpuObjects(StageResult, frozen=True):
    """Objects of the kernels, apart from the host's, and the constants that they only declare."""

    objects: tuple[str, ...]
    constants: tuple[Constant, ...]


class TakenWeights(StageResult, frozen=True):
    """The file of large constants, and what is in it."""

    file: WeightsFile


class Described(StageResult, frozen=True):
    """The manifest, and its text."""

    manifest: Manifest
    text: str


class HostCode(StageResult, frozen=True):
    """Files of the host's LLVM IR: the `whole`, with the kernels, and what objects are made of,
    without them; each where it is asked for. The latter only declares `constants`; `variables`
    are the large ones that it defines."""

    whole: str | None
    code: str | None
    constants: tuple[Constant, ...]
    variables: tuple[Constant, ...] = ()


class Objects(StageResult, frozen=True):
    """What is linked: the module's objects, and those of the generated C, where executables (the
    harness's `table`) or libraries (their C functions) are made."""

    module: tuple[str, ...]
    table: str | None
    library: str | None
