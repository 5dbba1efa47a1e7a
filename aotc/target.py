"""`DeviceTarget`: the interface of a kind of device that runs kernels; `TARGETS` are all of them.

A target is a package under `aotc/targets` whose module `target` defines it as `TARGET`. It is
loaded by name, because its modules import the request and the table of artifacts, which in turn
contains its rows. For that reason the module `target` imports little; its methods import what they
need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from aotc.artifact_kind import ArtifactKind
    from aotc.health import Check
    from aotc.images.image import Found, Image
    from aotc.images.view import View
    from aotc.input.given import GivenBinary
    from aotc.input.source import Source
    from aotc.request import Chip
    from aotc.toolchain.spec import ToolSpec


class DeviceTarget(Protocol):
    """A kind of device: its artifacts with the stages that make them, and its properties."""

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """The kinds of artifacts that its stages make from the outlined module, in order. Those
        that need only that module come before the host's artifacts, the others after."""

    @property
    def described(self) -> ArtifactKind:
        """The kind after which everything that the manifest reports about kernels is known. The
        result of its stage is a `KernelCode`."""

    @property
    def embedded(self) -> ArtifactKind:
        """The kind that is embedded into the host module: images, or host functions. The result of
        its stage is a `KernelCode`."""

    @property
    def linked(self) -> tuple[ArtifactKind, ...]:
        """The kinds that are linked with the host's object. The results of their stages are
        `KernelObjects`."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that it needs besides the host's (zig, clang), and its driver's headers."""

    def native_chips(self) -> tuple[Chip, ...]:
        """One chip for each kind of device of this target in this machine that --chip can name.
        Raises NoGpuError (`aotc.targets.native`), with the reason, if a device cannot be used."""

    def check_devices(self) -> tuple[Check, ...]:
        """The checks of `aotc doctor` for the target's driver and its devices in this machine. The
        names must be unique among targets."""

    def find_abilities(self, checks: Mapping[str, Check]) -> tuple[Check, ...]:
        """Which abilities of the target work on this machine, derived from the checks of the tools
        and of `check_devices`, by name."""

    def passes(self) -> tuple[str, ...]:
        """The MLIR passes that its stages run, as pipeline texts, for --print-ir."""

    def gpus_for(self, kernel: Any, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
        """The target's GPUs, each as a chip, that run the code that is built of a kernel (or
        gpu.launch) for the chips. A chip without one of its operations gets no code for it."""

    def given_binaries(self, source: Source) -> tuple[GivenBinary, ...]:
        """The gpu.binary operations of the input whose images are this target's. Raises InputError,
        with the place, for invalid images, and for kernels that an image does not contain."""

    def image_format(self, view: View) -> str | None:
        """The name that `aotc inspect` uses for a file that is entirely an image of this target;
        None for other files. Raises InputError for a damaged image."""

    def find_images(self, view: View) -> Iterator[Found]:
        """The target's images at any position in a file, in order. A damaged image is returned with
        a problem."""

    def image_text(
        self,
        image: Image,
        content: View,
        environment: Mapping[str, str],
        overrides: Mapping[str, Path],
    ) -> str:
        """An image as text, below a line that describes it: PTX is unchanged, machine code is
        disassembled. Raises ToolError if the disassembler is missing or fails. `overrides` maps
        names to tools, see `Toolchain`."""


_NAMES = ("cuda", "cpu")


def _load(name: str) -> DeviceTarget:
    target: DeviceTarget = importlib.import_module(f"aotc.targets.{name}.target").TARGET
    return target


# In the order in which their artifacts are made.
TARGETS = tuple(map(_load, _NAMES))
