"""A build on its way: the request, the tools, and what the stages have made so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aotc import mlir
from aotc.cpu.kernels import CpuKernels
from aotc.device.compile import DeviceCompiler
from aotc.device.given import GivenBinary
from aotc.device.requirements import Need
from aotc.emit.c_text import c_identifier
from aotc.errors import InputError
from aotc.host.compile import HostCompiler
from aotc.host.constants import Constant
from aotc.host.link import Linker
from aotc.host.llvm_text import downlevel
from aotc.input.source import Source
from aotc.lower.plan.explanation import Explanation
from aotc.manifest import Entry, Manifest, Resources
from aotc.request import BuildRequest, Chip, EmitKind
from aotc.toolchain import (
    Runner,
    Toolchain,
    Version,
)
from aotc.warnings import BuildWarning


@dataclass(frozen=True)
class StageFile:
    """One thing that a stage made: its kind, the name it likes to have, and its bytes on demand.

    `folder` is its place within a library's package.
    """

    kind: EmitKind
    file_name: str
    content: Callable[[], bytes]
    folder: str = ""


@dataclass
class Build:
    """One build on its way: the request, the tools, and what the stages have made so far.

    Files are made in `folder`, which the caller removes.
    """

    request: BuildRequest
    toolchain: Toolchain
    runner: Runner
    folder: Path
    context: Any
    warnings: list[BuildWarning] = field(default_factory=list)
    explanation: Explanation | None = None

    source: Source | None = None
    entries: tuple[Entry, ...] = ()
    # Names of those that are in the LLVM dialect already.
    lowered_entries: tuple[str, ...] = ()
    is_program: bool = False
    managed_globals: frozenset[str] = frozenset()
    device_modules: dict[str, Any] = field(default_factory=dict)
    # By (gpu.module, chip): file names in `folder`.
    ptx: dict[tuple[str, Chip], str] = field(default_factory=dict)
    cubins: dict[tuple[str, Chip], str] = field(default_factory=dict)
    fatbins: dict[str, str] = field(default_factory=dict)
    # By gpu.module: what its operations need of a chip.
    needs: dict[str, tuple[Need, ...]] = field(default_factory=dict)
    # By gpu.module: why it has no code for a chip of the default set.
    refusals: dict[str, list[InputError]] = field(default_factory=dict)
    # The gpu.binary operations that came with the input.
    given: tuple[GivenBinary, ...] = ()
    resources: dict[tuple[str, str], list[Resources]] = field(default_factory=dict)
    cpu: CpuKernels | None = None
    host: Any = None
    # What the LLVM IR only declares.
    constants: list[Constant] = field(default_factory=list)
    manifest: Manifest | None = None

    @property
    def module(self) -> Any:
        assert self.source is not None
        return self.source.module

    @property
    def lines(self) -> tuple[str, ...]:
        assert self.source is not None
        return self.source.lines

    def warn(self, name: str, message: str) -> None:
        """Notes a warning that has no place in the input."""
        self.warnings.append(BuildWarning(name, message))

    @property
    def device_compiler(self) -> DeviceCompiler:
        r = self.request
        return DeviceCompiler(self.toolchain, self.runner, self.folder, r.optimization, r.debug)

    @property
    def host_compiler(self) -> HostCompiler:
        r = self.request
        return HostCompiler(
            self.toolchain, self.runner, self.folder, r.target, r.optimization, r.debug
        )

    @property
    def linker(self) -> Linker:
        return Linker(
            self.toolchain, self.runner, self.folder, self.request.target, self.request.debug
        )

    def downlevel(self, text: str) -> str:
        """LLVM IR text of the bindings as the clang in use reads it."""
        return downlevel(
            text,
            writer=Version.parse(mlir.bindings().llvm_version),
            reader=self.toolchain.clang.version,
        )

    def built_for(self, gpu_module: str) -> tuple[str, ...]:
        """The images of a gpu.module or gpu.binary: chips, and virtual ones whose PTX is there."""
        for binary in self.given:
            if binary.name == gpu_module:
                return binary.built_for
        chips = [chip.name for owner, chip in self.cubins if owner == gpu_module]
        ptx = self.request.ptx
        has_ptx = ptx is not None and (gpu_module, ptx) in self.ptx
        return (*chips, *([ptx.compute] if ptx is not None and has_ptx else []))

    @property
    def stem(self) -> str:
        """The request's name as the work folder's files start with it: no option to a tool."""
        return c_identifier(self.request.name)

    def file(
        self, kind: EmitKind, name: str, *, called: str | None = None, folder: str = ""
    ) -> StageFile:
        """The artifact that is the file `name` of the work folder."""
        return StageFile(kind, called or name, (self.folder / name).read_bytes, folder)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


@dataclass(frozen=True)
class Stage:
    """A step of the build: its name, the stages whose work it takes, and its work."""

    name: str
    takes: tuple[str, ...]
    run: Callable[[Build], list[StageFile]]


# What is longer is cut out of texts that nobody asked for, but to read them.
_LONGEST_SAVED = 1 << 16


def printed(build: Build, kind: EmitKind, name: str, operation: Any) -> list[StageFile]:
    """The text of an operation, when somebody will want it: it may be long.

    Among the intermediates, large constants are left out of it.
    """
    r = build.request
    if kind in r.emit:
        limit = None
    elif r.save_temps is not None:
        limit = _LONGEST_SAVED
    else:
        return []
    # Printed now: later stages change the module.
    text = operation.get_asm(
        enable_debug_info=r.debug, large_elements_limit=limit, large_resource_limit=limit
    )
    return [StageFile(kind, name, lambda: f"{text}\n".encode())]
