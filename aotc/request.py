"""The values of one build: `BuildRequest` and what it is made of, all frozen.

`Chip` and `HostTarget` know their own spelling and refuse what they cannot mean with an
`InputError` that lists near names; the kinds of artifacts are in `aotc.artifacts`.
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

# The chips that both ptxas 13.5 (`ptxas --help`, --gpu-name) and clang 22 know, from the oldest
# that MLIR's NVVM target still lowers for. "a" chips run on that architecture alone.
KNOWN_CHIPS = [
    f"sm_{capability}{variant}"
    for capability in LIMITS
    for variant in ("", "a")
    if not variant or capability >= FIRST_WITH_VARIANT
]

# A cubin runs on later minor versions of its major version: these, with the PTX below,
# cover every GPU from Ampere on without a just-in-time compilation on the common ones.
# (docs/decisions.md has what code for sm_86 and sm_89 would be.)
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
        """`90a` of `sm_90a`: what `fatbinary` calls it."""
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
        """Whether GPUs of that compute capability run a cubin for this chip: later ones of its
        major version."""
        if self.name.endswith("a") or {capability, self.capability} & set(TEGRA):
            return capability == self.capability
        return capability >= self.capability and capability // 10 == self.capability // 10

    def compiles_for(self, capability: int) -> bool:
        """Whether the driver compiles PTX of this number for GPUs of that compute capability."""
        return capability >= self.capability if self.name[-1] != "a" else self.runs_on(capability)


def _unknown(
    message: str, text: str, known: Sequence[str], other: str, *, most_near: int
) -> InputError:
    """The error for a word that is none of `known` (nor `other`): with near names, and all."""
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
    # What zig 0.17 has stubs for: older x86_64 and aarch64 systems, and the newest release.
    _GLIBC: ClassVar[tuple[str, str]] = ("2.17", "2.44")

    @staticmethod
    def parse(text: str) -> HostTarget:
        """From zig's spelling: `x86_64-linux-gnu.2.28`, `aarch64-linux-musl`."""
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
        """This machine's architecture, with the oldest glibc that we promise to run on."""
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
            platform.machine().lower(), platform.machine().lower()
        )
        return HostTarget.parse(f"{machine}-linux-gnu.{HostTarget._FLOOR}")

    @property
    def triple(self) -> str:
        """As `zig cc -target` takes it."""
        suffix = f".{self.version}" if self.version else ""
        return f"{self.architecture}-linux-{self.library}{suffix}"

    @property
    def is_native(self) -> bool:
        return self.architecture == HostTarget.native().architecture


class MemoryMode(Enum):
    """Where the buffers of host code that kernels use are: see `aotc.lower.placement`."""

    AUTO = "auto"
    EXPLICIT = "explicit"
    MANAGED = "managed"


def parse_block(text: str) -> tuple[int, ...]:
    """Threads of a block along x, y, z from `256`, `32x8` or `8x8x4`."""
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
    """The items in order, each once."""
    return tuple(dict.fromkeys(items))


class PrintIr(Struct, frozen=True):
    """The passes by name before and after which the module is printed, ALL for each; `folder` gets
    a file for each time, where it is not standard error."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    folder: Path | None = None

    ALL: ClassVar[str] = "all"

    @property
    def is_on(self) -> bool:
        return bool(self.before or self.after)


class BuildRequest(Struct, frozen=True):
    """Everything that decides what a build makes.

    `content` is built in place of what the file `source` has, which then only names it. It
    `is_module` where the bindings in use have just written it.
    `frontend` makes MLIR of it: by default the one whose files end like the source's, if any.
    `chips` empty means the default set; `ptx` is the one whose PTX the image has, None for no PTX.
    `block` is the size of the blocks that loops are mapped to, where the loop does not say itself.
    `cpu` is LLVM's name of the oldest processor that host code is for: by default the oldest of the
    target's architecture.
    `debug`: host and device code have the input's lines; `lineinfo`: device code alone, which is
    otherwise the same. `verify`: operations are verified at run time.
    `allow_tf32`: products of f32 may round their operands to tf32; `allow_3xtf32`: they may be sums
    of three products of tf32. `untested_kernels`: kernels may be taken that no GPU has run yet.
    `allow_file_directives`: host code may have files read when it is assembled and linked.
    `prefix` stands in front of all that a library exports; it `shares_runtime` when
    libmlir_cuda_runtime.so is a file beside it.
    `out` is a file, a directory, None (beside the current directory, by name) or "-".
    `weights` is the file for large constants, which are otherwise in the artifact; `replaceable`
    are patterns for the names of those that programs may replace. A build that `adds_weights` keeps
    what the file has.
    `tuned` is the text of what was measured: see `aotc.kernels.matmul.tuned`.
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
        """The program's or library's name: the input's, without its ending."""
        return "stdin" if str(self.source) == "-" else self.source.name.split(".")[0] or "module"

    @property
    def library(self) -> str:
        """What the files of a library are called."""
        return f"{self.prefix}{self.name}"

    @property
    def makes_code(self) -> bool:
        """Whether objects are made of the host's code, and of the CPU's kernels."""
        return OBJ in needed_for(self.emit)

    @property
    def has_lines(self) -> bool:
        """Whether what is made has places in the input."""
        return self.debug or self.lineinfo

    @property
    def makes_library(self) -> bool:
        return any(kind.is_library for kind in self.emit)

    @property
    def outputs(self) -> tuple[ArtifactKind, ...]:
        """What goes where `out` says."""
        return tuple(kind for kind in self.emit if kind is not WEIGHTS)

    def paths_of(self, kind: ArtifactKind, **words: str) -> tuple[str, ...]:
        """The paths of a kind's files in a package; `words` say which files of a gpu.module or an
        image. Without them, one path stands for all."""
        weights = "" if self.weights is None else self.weights.name
        own = {"name": self.name, "library": self.library, "weights": weights}
        return kind.paths(**{**own, "gpu_module": self.name, **words})

    @property
    def names_folder(self) -> bool:
        """Whether `out` is a directory: it is one, has a slash at its end, or is to hold several
        kinds and is not there yet."""
        if self.out is None or self.out == "-":
            return False
        is_new = len(self.outputs) > 1 and not self.out_is_file
        return self.out.endswith("/") or Path(self.out).is_dir() or is_new

    @property
    def out_is_file(self) -> bool:
        """Whether `out` is there, and is no directory."""
        return self.out is not None and os.path.lexists(self.out) and not Path(self.out).is_dir()

    @property
    def is_package(self) -> bool:
        """Whether `out` is the folder of a library's package."""
        return self.names_folder and self.makes_library

    @property
    def soname(self) -> str:
        """What programs look for that were linked with the shared library."""
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
        """Whether the build shall be quick rather than what it makes: -O1."""
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
