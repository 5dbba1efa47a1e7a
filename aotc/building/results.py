"""The results of the stages: one class for each, with what later stages take from it.

MLIR modules in them are changed in place by later stages; the rest is frozen.
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
    """The files of the stage's artifacts, for those who asked for them."""

    files: tuple[ArtifactFile, ...] = ()


class Loaded(StageResult, frozen=True):
    """The parsed input. `lowered_entries` names the entries that are in the LLVM dialect already;
    a program has a main of its own; the input's size is in bytes. `state` has the fields of what
    entries remember, `held` the weights that programs may replace."""

    source: Source
    entries: tuple[Entry, ...]
    lowered_entries: tuple[str, ...]
    is_program: bool
    input_size: int
    state: tuple[Initial, ...] = ()
    held: tuple[HeldWeight, ...] = ()


class Outlined(StageResult, frozen=True):
    """The module with its kernels in gpu.modules. `managed_globals` are the variables that kernels
    use, `given` the gpu.binary operations that came with the input, and `by_hand` its gpu.modules.
    Kernels of the gpu.modules `for_cpu` are launched on the CPU alone."""

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
    """What the host's code has of a gpu.module or gpu.binary: a file with its images, unless no GPU
    runs its kernels, and what is in it.

    If it was written for one chip, its kernels are launched on `only_chip` alone. Its
    `pdl_kernels` may begin while the work before them ends.
    """

    name: str
    file: str | None
    built_for: tuple[str, ...] = ()
    only_chip: Chip | None = None
    pdl_kernels: tuple[str, ...] = ()


class KernelCode(StageResult, frozen=True):
    """What a target made of the kernels, as far as the stages know that are the same for all.

    `images` are for a driver, `functions` for the host: the kernels as its functions, or why they
    have none, from the one target that makes such. By gpu.module or gpu.binary, `built_for` names
    the images; `resources` is what each kernel, named with its gpu.module, needs on each chip;
    `tools` are the names of those that made the images, beside the host's.
    """

    images: tuple[DeviceImage, ...] = ()
    functions: CpuKernels | None = None
    built_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[tuple[str, str], tuple[Resources, ...]] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


def functions_of(code: Sequence[KernelCode]) -> CpuKernels:
    """The kernels as the host's functions."""
    (functions,) = (one.functions for one in code if one.functions is not None)
    return functions


def images_of(code: Sequence[KernelCode], outlined: Outlined) -> tuple[DeviceImage, ...]:
    """The image of each gpu.module and gpu.binary: without a file for those of the CPU alone.
    Raises InternalError where two targets made one, or none did."""
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
    """Objects of the kernels, apart from the host's: the functions that they define for the host,
    and the constants that they only declare."""

    objects: tuple[str, ...]
    functions: tuple[str, ...]
    constants: tuple[Constant, ...]


class HostModule(StageResult, frozen=True):
    """The host's half in the LLVM dialect."""

    module: Any


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
