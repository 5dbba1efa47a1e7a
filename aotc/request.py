"""The values that describe one build: `BuildRequest` and its parts, all frozen.

`Chip` and `HostTarget` parse their own spelling and reject anything else with an `InputError` that
lists similar names. The kinds of artifacts are in `aotc.artifacts`.
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import ClassVar, TypeVar

from msgspec import Struct, field

from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import EXE, OBJ, WEIGHTS, needed_for
from aotc.chips import FIRST_WITH_VARIANT, LIMITS, MAX_BLOCK, MAX_BLOCK_THREADS, TEGRA, Limits
from aotc.errors import InputError, near_names
from aotc.warnings import WarningOptions

T = TypeVar("T")

# The chips that both ptxas 13.5 (`ptxas --help`, --gpu-name) and clang 22 support, from the oldest
# that MLIR's NVVM target still supports. Code for an "a" chip runs on that architecture alone.
KNOWN_CHIPS = [
    f"sm_{capability}{variant}"
    for capability in LIMITS
    for variant in ("", "a")
    if not variant or capability >= FIRST_WITH_VARIANT
]

# A cubin also runs on later minor versions of its major version: these, with the PTX below, cover
# every GPU from Ampere on, without just-in-time compilation on the common ones.
# (docs/decisions.md explains why sm_86 and sm_89 are not among them.)
DEFAULT_CHIPS = ("sm_80", "sm_90", "sm_100", "sm_120")
DEFAULT_PTX = "compute_80"


class Chip(Struct, frozen=True, order=True):
    """A GPU's instruction set, by its CUDA name: `sm_90a`."""

    name: str

    @staticmethod
    def parse(text: str) -> Chip:
        if text in KNOWN_CHIPS:
            return Chip(text)
        raise _unknown(f"Unknown chip '{text}'.", text, KNOWN_CHIPS, "native", most_near=4)

    @property
    def number(self) -> str:
        """The chip as `fatbinary` names it: `90a` for `sm_90a`."""
        return self.name.removeprefix("sm_")

    @property
    def compute(self) -> str:
        """The virtual architecture of the same number: `compute_90a`."""
        return f"compute_{self.number}"

    @property
    def capability(self) -> int:
        """10 times the major plus the minor number: 90."""
        return int(re.match(r"\d+", self.number)[0])  # type: ignore[index]

    @property
    def limits(self) -> Limits:
        return LIMITS[self.capability]

    def runs_on(self, capability: int) -> bool:
        """Whether GPUs of that compute capability run a cubin for this chip: those with the same
        major version and at least its minor version."""
        if self.name.endswith("a") or {capability, self.capability} & set(TEGRA):
            return capability == self.capability
        return capability >= self.capability and capability // 10 == self.capability // 10

    def compiles_for(self, capability: int) -> bool:
        """Whether the driver compiles this chip's PTX for GPUs of that compute capability."""
        return capability >= self.capability if self.name[-1] != "a" else self.runs_on(capability)


def _unknown(
    message: str, text: str, known: Sequence[str], other: str, *, most_near: int
) -> InputError:
    """The error for a word that is neither in `known` nor `other`, with similar and all names."""
    near = near_names(text, known, most=most_near, cutoff=0.5)
    hint = f" Near names: {', '.join(near)}." if near else ""
    return InputError(f"{message}{hint} Known: {', '.join(known)}, {other}.")


def parse_ptx(text: str) -> Chip | None:
    """The chip whose virtual architecture `text` names (`compute_80`); None for `none`."""
    if text == "none":
        return None
    known = [chip.replace("sm_", "compute_") for chip in KNOWN_CHIPS]
    if text in known:
        return Chip(text.replace("compute_", "sm_"))
    raise _unknown(f"Unknown PTX target '{text}'.", text, known, "none", most_near=3)


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


_NUMBER = r"[0-9]{1,9}"
_TARGET = re.compile(rf"(\w+)-linux-(gnu|musl)(?:\.({_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?))?")


class HostTarget(Struct, frozen=True):
    """A host machine: architecture, system and C library, with the oldest glibc to run on."""

    architecture: str
    library: str
    version: str | None

    _ARCHITECTURES: ClassVar[tuple[str, ...]] = ("x86_64", "aarch64")
    _FLOOR: ClassVar[str] = "2.28"
    # The versions that zig 0.17 has stubs for: from older x86_64 and aarch64 systems to the newest.
    _GLIBC: ClassVar[tuple[str, str]] = ("2.17", "2.44")

    @staticmethod
    def parse(text: str) -> HostTarget:
        """Parses zig's spelling: `x86_64-linux-gnu.2.28`, `aarch64-linux-musl`."""
        found = _TARGET.fullmatch(text)
        if found is None or found[1] not in HostTarget._ARCHITECTURES:
            raise InputError(
                f"Unknown host target '{text}'. Expected ARCH-linux-gnu[.GLIBC] or "
                f"ARCH-linux-musl, with ARCH one of {', '.join(HostTarget._ARCHITECTURES)}: "
                "for example x86_64-linux-gnu.2.28."
            )
        architecture, library, version = found.groups()
        if library == "gnu" and version is None:
            version = HostTarget._FLOOR
        if library == "gnu":
            oldest, newest = (version_numbers(limit) for limit in HostTarget._GLIBC)
            if not oldest <= version_numbers(version)[:2] <= newest:
                raise InputError(
                    f"Unknown host target '{text}': glibc can be from {HostTarget._GLIBC[0]} to "
                    f"{HostTarget._GLIBC[1]}."
                )
        if library == "musl" and version is not None:
            raise InputError(f"Unknown host target '{text}': musl takes no version.")
        return HostTarget(architecture, library, version)

    @staticmethod
    def native() -> HostTarget:
        """This machine's architecture, with the oldest glibc that aotc supports."""
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
            platform.machine().lower(), platform.machine().lower()
        )
        return HostTarget.parse(f"{machine}-linux-gnu.{HostTarget._FLOOR}")

    @property
    def triple(self) -> str:
        """The target as `zig cc -target` accepts it."""
        suffix = f".{self.version}" if self.version else ""
        return f"{self.architecture}-linux-{self.library}{suffix}"

    @property
    def is_native(self) -> bool:
        return self.architecture == HostTarget.native().architecture


class MemoryMode(Enum):
    """Where buffers of host code that kernels use are placed: see `aotc.lower.placement`."""

    AUTO = "auto"
    EXPLICIT = "explicit"
    MANAGED = "managed"


def parse_block(text: str) -> tuple[int, ...]:
    """Parses the threads of a block along x, y, z: `256`, `32x8` or `8x8x4`."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9}){0,2}", text):
        raise InputError(f"--block '{text}' is not a block: write 256, 32x8 or 8x8x4.")
    sizes = tuple(int(part) for part in text.split("x"))
    for axis, size, limit in zip("xyz", sizes, MAX_BLOCK, strict=False):
        if not 0 < size <= limit:
            raise InputError(f"--block {text}: along {axis} a block has 1 to {limit} threads.")
    if math.prod(sizes) > MAX_BLOCK_THREADS:
        raise InputError(
            f"--block {text} has {math.prod(sizes)} threads: GPUs take {MAX_BLOCK_THREADS}."
        )
    return sizes


def unique(items: Iterable[T]) -> tuple[T, ...]:
    """The items in order, without duplicates."""
    return tuple(dict.fromkeys(items))


class PrintIr(Struct, frozen=True):
    """The names of the passes before and after which the module is printed; ALL means all passes.
    If `folder` is set, each module is written to a file there instead of standard error."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    folder: Path | None = None

    ALL: ClassVar[str] = "all"

    @property
    def is_on(self) -> bool:
        return bool(self.before or self.after)


class BuildRequest(Struct, frozen=True):
    """Everything that determines the result of a build.

    `content` is built instead of the content of the file `source`, which then only names it. It
    `is_module` if it is bytecode that the bindings in use have just written.
    `frontend` converts the input to MLIR; the default is the front end for the source's suffix, if
    there is one.
    `chips`: empty means the default set. `ptx` is the chip whose PTX the fatbin contains, None for
    no PTX.
    `block` is the block size of loops that are mapped to threads, unless a loop specifies it.
    `cpu` is LLVM's name of the oldest processor that host code runs on; the default is the oldest
    of the target's architecture.
    `debug`: host and device code have line information for the input; `lineinfo`: device code
    alone, which is otherwise unchanged. `verify`: operations are verified at run time.
    `allow_tf32`: f32 matmuls may round their operands to tf32. `allow_3xtf32`: they may be sums of
    three tf32 matmuls. `untested_kernels`: kernels that have not run on any GPU may be selected.
    `allow_file_directives`: host code may contain directives that include files when it is
    assembled and linked.
    `prefix` is prepended to every symbol that a library exports. The library `shares_runtime` if
    libmlir_cuda_runtime.so is a separate file beside it.
    `out` is a file, a directory, None (the current directory, under the module's name) or "-".
    `weights` is the file for large constants, which are otherwise part of the artifact;
    `replaceable` are patterns for the names of those that programs may replace. A build that
    `adds_weights` keeps the existing contents of the file.
    `tuned` is the text of the measurements: see `aotc.kernels.matmul.tuned`.
    """

    source: Path
    content: bytes | None = None
    is_module: bool = False
    frontend: str | None = None
    frontend_options: tuple[tuple[str, str], ...] = ()
    emit: tuple[ArtifactKind, ...] = (EXE,)
    out: str | None = None
    weights: Path | None = None
    adds_weights: bool = False
    replaceable: tuple[str, ...] = ()
    chips: tuple[Chip, ...] = ()
    default_chips: tuple[Chip, ...] = tuple(Chip(name) for name in DEFAULT_CHIPS)
    ptx: Chip | None = field(default_factory=lambda: parse_ptx(DEFAULT_PTX))
    target: HostTarget = field(default_factory=HostTarget.native)
    cpu: str | None = None
    optimization: int = 3
    debug: bool = False
    lineinfo: bool = False
    entries: tuple[str, ...] = ()
    pipeline: str | None = None
    memory: MemoryMode = MemoryMode.AUTO
    block: tuple[int, ...] | None = None
    cpu_kernels: bool = True
    verify: bool = False
    allow_tf32: bool = False
    allow_3xtf32: bool = False
    untested_kernels: bool = False
    allow_file_directives: bool = False
    prefix: str = ""
    shares_runtime: bool = False
    tuned: str | None = None
    save_temps: Path | None = None
    print_ir: PrintIr = PrintIr()
    warnings: WarningOptions = field(default_factory=WarningOptions)

    @property
    def name(self) -> str:
        """The program's or library's name: the source's, without its suffix."""
        return "stdin" if str(self.source) == "-" else self.source.name.split(".")[0] or "module"

    @property
    def library(self) -> str:
        """The base name of a library's files."""
        return f"{self.prefix}{self.name}"

    @property
    def makes_code(self) -> bool:
        """Whether the build compiles the host code and the CPU kernels to objects."""
        return OBJ in needed_for(self.emit)

    @property
    def has_lines(self) -> bool:
        """Whether artifacts contain line information for the input."""
        return self.debug or self.lineinfo

    @property
    def makes_library(self) -> bool:
        return any(kind.is_library for kind in self.emit)

    @property
    def outputs(self) -> tuple[ArtifactKind, ...]:
        """The kinds whose files are written to `out`."""
        return tuple(kind for kind in self.emit if kind is not WEIGHTS)

    def paths_of(self, kind: ArtifactKind, **words: str) -> tuple[str, ...]:
        """The paths of a kind's files in a package; `words` select the gpu.module or image. Without
        them, one path stands for all."""
        weights = "" if self.weights is None else self.weights.name
        own = {"name": self.name, "library": self.library, "weights": weights}
        return kind.paths(**{**own, "gpu_module": self.name, **words})

    @property
    def names_folder(self) -> bool:
        """Whether `out` is a directory: it exists as one, ends in a slash, or does not exist and is
        for several kinds."""
        if self.out is None or self.out == "-":
            return False
        is_new = len(self.outputs) > 1 and not self.out_is_file
        return self.out.endswith("/") or Path(self.out).is_dir() or is_new

    @property
    def out_is_file(self) -> bool:
        """Whether `out` exists and is not a directory."""
        return self.out is not None and os.path.lexists(self.out) and not Path(self.out).is_dir()

    @property
    def is_package(self) -> bool:
        """Whether `out` is the folder of a library's package."""
        return self.names_folder and self.makes_library

    @property
    def soname(self) -> str:
        """The name that programs linked with the shared library look up."""
        is_file = self.out not in (None, "-") and not self.names_folder
        return Path(str(self.out)).name if is_file else f"lib{self.library}.so"

    @property
    def has_default_chips(self) -> bool:
        return not self.chips

    @property
    def cubin_chips(self) -> tuple[Chip, ...]:
        return self.chips or self.default_chips

    @property
    def is_for_trying(self) -> bool:
        """Whether a short build time matters more than the generated code: -O1."""
        return self.optimization == 1

    @property
    def capabilities(self) -> tuple[int, ...]:
        """The compute capabilities of all known GPUs that the images run on."""
        return tuple(
            capability
            for capability in LIMITS
            if any(chip.runs_on(capability) for chip in self.cubin_chips)
            or (self.ptx is not None and self.ptx.compiles_for(capability))
        )
