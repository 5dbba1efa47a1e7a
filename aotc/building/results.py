"""The results of the stages: one class for each stage, with what later stages use of it.

Later stages change the MLIR modules in place; everything else is immutable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from aotc.artifacts import ArtifactFile
from aotc.errors import InternalError

if TYPE_CHECKING:  # each is loaded when a stage needs it
    from aotc.host.constants import Constant
    from aotc.host.kernels import CpuKernels
    from aotc.host.weights import WeightsFile
    from aotc.input.given import GivenBinary
    from aotc.input.source import Source
    from aotc.input.state import Initial
    from aotc.input.weights import HeldWeight
    from aotc.manifest import Entry, Manifest, Resources
    from aotc.request import Chip


class StageResult(Struct, frozen=True, kw_only=True):
    """The files of the stage's artifacts, if they are requested."""

    files: tuple[ArtifactFile, ...] = ()


class Loaded(StageResult, frozen=True):
    """The parsed input.

    `lowered_entries` are the names of entries that are in the LLVM dialect already. `is_program`
    says that the module has its own main. `input_size` is in bytes. `state` are the fields that
    entries keep between calls, `held` the weights that programs may replace."""

    source: Source
    entries: tuple[Entry, ...]
    lowered_entries: tuple[str, ...]
    is_program: bool
    input_size: int
    state: tuple[Initial, ...] = ()
    held: tuple[HeldWeight, ...] = ()


class Outlined(StageResult, frozen=True):
    """The module with its kernels in gpu.modules.

    `managed_globals` are the variables that kernels use, `given` the gpu.binary operations of the
    input, and `by_hand` the gpu.modules of the input. Kernels of the gpu.modules in `for_cpu` are
    launched on the CPU only."""

    source: Source
    entries: tuple[Entry, ...]
    lowered_entries: tuple[str, ...]
    is_program: bool
    managed_globals: frozenset[str]
    given: tuple[GivenBinary, ...]
    for_cpu: frozenset[str]
    state: tuple[Initial, ...] = ()
    held: tuple[HeldWeight, ...] = ()
    by_hand: frozenset[str] = frozenset()

    @property
    def module(self) -> Any:
        return self.source.module


class DeviceImage(Struct, frozen=True):
    """A gpu.module or gpu.binary as the host code sees it: a file with its images (None if no GPU
    runs its kernels), and a description of the images.

    If it was written for one chip, its kernels are launched on `only_chip` alone. `pdl_kernels` are
    launched with programmatic dependent launch.
    """

    name: str
    file: str | None
    built_for: tuple[str, ...] = ()
    only_chip: Chip | None = None
    pdl_kernels: tuple[str, ...] = ()


class KernelCode(StageResult, frozen=True):
    """What a target made of the kernels, for the stages that are common to all targets.

    `images` are for a driver. `functions` are the kernels as host functions, or why there are none;
    exactly one target has them. `built_for` maps a gpu.module or gpu.binary to the names of its
    images. `resources` maps (gpu.module, kernel) to the resources that the kernel needs on each
    chip. `tools` are the names of the tools that made the images, without the host's tools.
    """

    images: tuple[DeviceImage, ...] = ()
    functions: CpuKernels | None = None
    built_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[tuple[str, str], tuple[Resources, ...]] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


def functions_of(code: Sequence[KernelCode]) -> CpuKernels:
    """The kernels as host functions."""
    (functions,) = (one.functions for one in code if one.functions is not None)
    return functions


def images_of(code: Sequence[KernelCode], outlined: Outlined) -> tuple[DeviceImage, ...]:
    """The image of each gpu.module and gpu.binary; those for the CPU only have no file. Raises
    InternalError if two targets made the same one, or none did."""
    images: dict[str, DeviceImage] = {}
    for image in (image for one in code for image in one.images):
        if image.name in images:
            raise InternalError(f"Two targets made an image of {image.name}.")
        images[image.name] = image
    for kernel in functions_of(code).kernels:
        if kernel.module in images:
            continue
        if kernel.module not in outlined.for_cpu:
            raise InternalError(f"No target made an image of {kernel.module}.")
        images[kernel.module] = DeviceImage(kernel.module, None)
    return tuple(images.values())


class KernelObjects(StageResult, frozen=True):
    """The objects of the kernels, separate from the host's object: the functions that they define
    for the host, and the constants that they only declare."""

    objects: tuple[str, ...]
    functions: tuple[str, ...]
    constants: tuple[Constant, ...]


class HostModule(StageResult, frozen=True):
    """The host code in the LLVM dialect."""

    module: Any


class TakenWeights(StageResult, frozen=True):
    """The weights file with the large constants, and a description of it."""

    file: WeightsFile


class Described(StageResult, frozen=True):
    """The manifest, and its text."""

    manifest: Manifest
    text: str


class HostCode(StageResult, frozen=True):
    """Files with the host's LLVM IR: `whole` includes the kernels; `code`, from which objects are
    made, does not. Each is None if it is not needed. `code` only declares `constants`; `variables`
    are the large variables that it defines."""

    whole: str | None
    code: str | None
    constants: tuple[Constant, ...]
    variables: tuple[Constant, ...] = ()


class Objects(StageResult, frozen=True):
    """The objects to link: the module's, and those of generated C: `table` is the harness's for an
    executable, `library` has the C functions of a library."""

    module: tuple[str, ...]
    table: str | None
    library: str | None
