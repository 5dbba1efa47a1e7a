"""`DeviceTarget`: what a kind of device that kernels run on brings; `TARGETS` are all of them.

A target is a folder here, whose module `target` has it as `TARGET`. It is looked up by its name:
what a target has in its folder needs the request and the table of artifacts, which its rows are in.
So such a module imports little; its methods import what they need.
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
    """A kind of device: its artifacts, with the stages that make them; what others ask of it."""

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """The kinds of artifacts that its stages make of the outlined module, in the order in which
        they are made. What needs only the module comes before the host's half, the rest after."""

    @property
    def described(self) -> ArtifactKind:
        """The one after which all is known that the manifest says of the kernels. The result of its
        stage is a `KernelCode`."""

    @property
    def embedded(self) -> ArtifactKind:
        """The one that goes into the host's module: images, or functions of the host. The result of
        its stage is a `KernelCode`."""

    @property
    def linked(self) -> tuple[ArtifactKind, ...]:
        """Those that are linked with the host's object. The results of their stages are
        `KernelObjects`."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that it needs beside the host's (zig, clang), and its driver's headers."""

    def native_chips(self) -> tuple[Chip, ...]:
        """One chip for each kind of this target's devices in this machine that --chip can name.
        Raises NoGpuError (`aotc.targets.native`), with the reason, where there should be one."""

    def check_devices(self) -> tuple[Check, ...]:
        """What `aotc doctor` says of the target's driver and of its devices in this machine, under
        names that no other target has."""

    def find_abilities(self, checks: Mapping[str, Check]) -> tuple[Check, ...]:
        """What works with the target here, and what does not, as far as the checks tell (by their
        names: the tools', and those of `check_devices`)."""

    def passes(self) -> tuple[str, ...]:
        """The passes of MLIR that its stages run, as texts of pipelines: --print-ir knows them."""

    def gpus_for(self, kernel: Any, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
        """The target's GPUs that run the code of a kernel (or of a gpu.launch) that is made for the
        chips, each as a chip. A chip that lacks one of its operations has no code of it."""

    def given_binaries(self, source: Source) -> tuple[GivenBinary, ...]:
        """The gpu.binary operations of the input, if their images are this target's. Raises
        InputError, with the place, for what is no image, and for a kernel that is not in it."""

    def image_format(self, view: View) -> str | None:
        """What `aotc inspect` calls a file that is an image of this target's as a whole; None for
        another. Raises InputError for one that is damaged."""

    def find_images(self, view: View) -> Iterator[Found]:
        """The target's images in a file, wherever they are, in order. What is damaged is an image
        with a problem."""

    def image_text(
        self,
        image: Image,
        content: View,
        environment: Mapping[str, str],
        overrides: Mapping[str, Path],
    ) -> str:
        """An image in text, below a line that says what it is: assembly as it is, and machine code
        disassembled. Raises ToolError where the tool for that is missing, or fails. `overrides`
        names tools, see `Toolchain`."""


_NAMES = ("cuda", "cpu")


def _load(name: str) -> DeviceTarget:
    target: DeviceTarget = importlib.import_module(f"aotc.targets.{name}.target").TARGET
    return target


# In the order in which their artifacts are made.
TARGETS = tuple(map(_load, _NAMES))
