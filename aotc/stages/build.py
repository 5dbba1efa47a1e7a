"""A build on its way: the request, the tools, and what the stages have made so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from aotc.emit.c_text import file_stem
from aotc.errors import InputError, InternalError
from aotc.input.source import excerpt, find_place
from aotc.request import BuildRequest, Chip, EmitKind
from aotc.stages.file import StageFile
from aotc.toolchain import (
    Runner,
    Toolchain,
)
from aotc.warnings import BuildWarning

if TYPE_CHECKING:  # each is loaded when a stage needs it
    from aotc.cache.builds import BuildCache
    from aotc.cpu.kernels import CpuKernels
    from aotc.device.compile import DeviceCompiler
    from aotc.device.given import GivenBinary
    from aotc.device.requirements import Need
    from aotc.host.compile import HostCompiler
    from aotc.host.constants import Constant
    from aotc.host.link import Linker
    from aotc.host.translate import Translation
    from aotc.host.weights import WeightsFile
    from aotc.input.source import Source
    from aotc.lower.passes.run import PassWatch
    from aotc.manifest import Entry, Manifest, Resources
    from aotc.stages.print_ir import IrPrinter


# How the bindings' diagnostics are printed where nobody catches them.
_PLACED = re.compile(r"^loc\((.*)\): error: (.*)$", re.MULTILINE)

# What Python says of text that is none.
_NOT_UTF8 = "codec can't decode"


class Tellable(Protocol):
    """What `--explain` prints: see `aotc.lower.plan.explanation`."""

    def text(self) -> str: ...


class Build(Struct):
    """One build on its way: the request, the tools, and what the stages have made so far.

    Files are made in `folder`, which the caller removes. `content` are the input's bytes, where
    they were read already; `cache` has what builds made before.
    """

    request: BuildRequest
    toolchain: Toolchain
    runner: Runner
    folder: Path
    context: Any
    content: bytes | None = None
    cache: BuildCache | None = None
    warnings: list[BuildWarning] = field(default_factory=list)
    explanation: Tellable | None = None
    printer: IrPrinter | None = None

    source: Source | None = None
    # Of the input in bytes.
    input_size: int = 0
    entries: tuple[Entry, ...] = ()
    # Names of those that are in the LLVM dialect already.
    lowered_entries: tuple[str, ...] = ()
    is_program: bool = False
    managed_globals: frozenset[str] = frozenset()
    # By gpu.module: lowered for the device; None for those whose LLVM IR is known.
    device_modules: dict[str, Any] = field(default_factory=dict)
    # gpu.modules of kernels that are launched on one chip alone, and on no GPU.
    only_for: dict[str, Chip] = field(default_factory=dict)
    cpu_alone: list[str] = field(default_factory=list)
    # By gpu.module: its kernels that may begin while the work before them ends.
    early_kernels: dict[str, list[str]] = field(default_factory=dict)
    device_texts: dict[str, str] = field(default_factory=dict)
    # By (gpu.module, chip): file names in `folder`.
    ptx: dict[tuple[str, Chip], str] = field(default_factory=dict)
    cubins: dict[tuple[str, Chip], str] = field(default_factory=dict)
    fatbins: dict[str, str] = field(default_factory=dict)
    # By gpu.module: what its operations need of a chip.
    needs: dict[str, tuple[Need, ...]] = field(default_factory=dict)
    # By gpu.module: why it has no code for a chip of the default set.
    refusals: dict[str, list[InputError]] = field(default_factory=dict)
    # What stages found that run beside others: their warnings come when those are awaited.
    warnings_beside: list[BuildWarning] = field(default_factory=list)
    # By gpu.module: its translation to LLVM IR, on its way.
    translations: dict[str, Translation] = field(default_factory=dict)
    # By gpu.module: the chips that have all its operations.
    able: dict[str, list[Chip]] = field(default_factory=dict)
    # The gpu.binary operations that came with the input.
    given: tuple[GivenBinary, ...] = ()
    resources: dict[tuple[str, str], list[Resources]] = field(default_factory=dict)
    # Generated C files that have an object.
    compiled: set[str] = field(default_factory=set)
    cpu: CpuKernels | None = None
    # Of the kernels, if they are apart from the host's code.
    cpu_objects: list[str] = field(default_factory=list)
    host: Any = None
    # What of the module is linked: the host's code, the kernels', constants.
    objects: list[str] = field(default_factory=list)
    # What the LLVM IR only declares.
    constants: list[Constant] = field(default_factory=list)
    # The file of large constants, and what is in it.
    weights: WeightsFile | None = None
    manifest: Manifest | None = None
    # Its text, of a build that was found in the cache.
    manifest_text: str | None = None

    @property
    def module(self) -> Any:
        assert self.source is not None
        return self.source.module

    @property
    def lines(self) -> tuple[str, ...]:
        assert self.source is not None
        return self.source.lines

    def watch(self, stage: str) -> PassWatch:
        """What the passes of a stage are told to."""
        from aotc.lower.passes.run import UNWATCHED

        return UNWATCHED if self.printer is None else self.printer.watch(stage)

    def warn(self, name: str, message: str) -> None:
        """Notes a warning that has no place in the input."""
        self.warnings.append(BuildWarning(name, message))

    @property
    def device_compiler(self) -> DeviceCompiler:
        from aotc.device.compile import DeviceCompiler

        r = self.request
        return DeviceCompiler(self.toolchain, self.runner, self.folder, r.optimization, r.debug)

    @property
    def host_compiler(self) -> HostCompiler:
        from aotc.host.compile import HostCompiler

        r = self.request
        return HostCompiler(
            self.toolchain, self.runner, self.folder, r.target, r.optimization, r.debug
        )

    @property
    def linker(self) -> Linker:
        from aotc.host.link import Linker

        return Linker(
            self.toolchain, self.runner, self.folder, self.request.target, self.request.debug
        )

    def translation(self, module: Any) -> Translation:
        """The translation, on its way, of a module in the LLVM dialect to what the clang in use
        reads."""
        from aotc.host.translate import Translation

        return Translation(module, self.toolchain.clang.version)

    def translated(self, translation: Translation) -> str:
        """The translation's text. Where the bindings name a place in the input, it is the input's
        fault that there is none."""
        assert self.source is not None
        try:
            return translation.text()
        except InternalError as error:
            said = _PLACED.search(error.message)
            place = find_place(said[1], self.source.name) if said else None
            if _NOT_UTF8 in error.message:
                raise InputError(
                    f"{self.source.name}: a string that LLVM IR would have is not UTF-8."
                ) from None
            if said is None or place is None:
                raise
            parts = [f"{place}: error: {said[2]}"]
            parts += filter(None, [excerpt(place, self.source.name, self.source.lines)])
            raise InputError("\n".join(parts)) from None

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
        return file_stem(self.request.name)

    def file(
        self, kind: EmitKind, name: str, *, called: str | None = None, folder: str = ""
    ) -> StageFile:
        """The artifact that is the file `name` of the work folder."""
        path = self.folder / name
        return StageFile(kind, called or name, path.read_bytes, folder, path)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


class Stage(Struct, frozen=True):
    """A step of the build: its name, the stages whose work it takes, and its work.

    One that is `beside` runs while stages behind it work, unless they take what it makes: it is
    for tools, and touches no module. `begin` is what of it must come before those, if anything.
    """

    name: str
    takes: tuple[str, ...]
    run: Callable[[Build], list[StageFile]]
    beside: bool = False
    begin: Callable[[Build], None] | None = None


# What is longer is cut out of texts that nobody asked for, but to read them.
LONGEST_SAVED = 1 << 16


def printed(build: Build, kind: EmitKind, name: str, operation: Any) -> list[StageFile]:
    """The text of an operation, when somebody will want it: it may be long.

    Among the intermediates, large constants are left out of it.
    """
    r = build.request
    if kind in r.emit:
        limit = None
    elif r.save_temps is not None:
        limit = LONGEST_SAVED
    else:
        return []
    # Printed now: later stages change the module.
    text = operation.get_asm(
        enable_debug_info=r.debug, large_elements_limit=limit, large_resource_limit=limit
    )
    return [StageFile(kind, name, lambda: f"{text}\n".encode())]
