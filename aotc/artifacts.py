"""The kinds of artifacts: one row for each, in the order in which the stages make them.

The command line, the pipeline, the places of output files and the cache all read `KINDS`, so a new
kind takes one row here and one function in `aotc.stages`. The table is apart from `request`
because the cache and the stages need it without a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from aotc.errors import InputError, near_names


class ArtifactKind(Struct, frozen=True, eq=False):
    """A kind of artifact, and the stage of the same name that makes it.

    `files` are the paths of its files in a package, as patterns: `{name}` is the module's name,
    `{library}` the library's. A kind with one file for each gpu.module has `{gpu_module}` in its
    path, and one with a file for each image `{chip}` as well.

    `stage` is the stage's function (MODULE.FUNCTION in `aotc.stages`): it is called with the build
    and the result of each of the stages `takes`, then of `may_take`, which is None where the build
    has no such stage. A stage that `is_concurrent` runs in another thread while later stages run,
    until one of them takes its result. It runs tools, and touches no MLIR module: `begin` is the
    function that does so before, if that is needed; the stage is called with its result, too.

    Without `is_named`, --emit does not know the kind: it is a part of others. `has_code` holds for
    machine code of the host. `needs` is what the module must have: nothing more (a module of
    kernels alone has device code), an entry, or the argument types of its entries, which an entry
    in the LLVM dialect no longer has.
    """

    name: str
    stage: str
    files: tuple[str, ...] = ()
    takes: tuple[ArtifactKind, ...] = ()
    may_take: tuple[ArtifactKind, ...] = ()
    begin: str | None = None
    is_concurrent: bool = False
    is_named: bool = True
    is_text: bool = True
    is_executable: bool = False
    has_code: bool = False
    is_library: bool = False
    needs: Literal["module", "entry", "signature"] = "signature"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is that one's row."""
        return _kind, (self.name,)

    def paths(self, **words: str) -> tuple[str, ...]:
        """The files' paths. Without a chip, one path stands for those of all chips."""
        files = self.files
        if "chip" not in words:
            files = tuple(path.replace(".{chip}", "") for path in files)
        return tuple(path.format(**words) for path in files)

    @property
    def folder(self) -> str:
        """The folder of its (first) file in a package."""
        return self.files[0].rpartition("/")[0]

    @property
    def is_per_chip(self) -> bool:
        return any("{chip}" in path for path in self.files)


class ArtifactFile(Struct, frozen=True):
    """A file that a stage made: its kind, its name as an output, and its bytes on demand.

    `folder` is its place in a library's package. `path` is a file that has the bytes, if any.
    """

    kind: ArtifactKind
    file_name: str
    content: Callable[[], bytes]
    folder: str = ""
    path: Path | None = None

    @staticmethod
    def at(
        place: str, kind: ArtifactKind, content: Callable[[], bytes], path: Path | None = None
    ) -> ArtifactFile:
        """The file with the path `place` in a package."""
        folder, _, name = place.rpartition("/")
        return ArtifactFile(kind, name, content, folder, path)


def _kind(name: str) -> ArtifactKind:
    return KINDS[name]


def named_kinds() -> list[ArtifactKind]:
    """Those that --emit knows."""
    return [kind for kind in KINDS.values() if kind.is_named]


def parse_kind(text: str) -> ArtifactKind:
    """The kind that --emit calls `text`. Raises InputError with near names."""
    names = [kind.name for kind in named_kinds()]
    if text in names:
        return KINDS[text]
    near = near_names(text, names, most=2, cutoff=0.5)
    raise InputError(
        f"Unknown --emit '{text}'."
        + (f" Did you mean {' or '.join(near)}?" if near else "")
        + f" Known: {', '.join(names)}."
    )


def needed_for(kinds: Iterable[ArtifactKind]) -> list[ArtifactKind]:
    """The kinds whose stages make `kinds`: with all that they take, in order."""
    needed: set[ArtifactKind] = set()
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        if kind not in needed:
            needed.add(kind)
            pending.extend(kind.takes)
    return [kind for kind in KINDS.values() if kind in needed]


LOAD = ArtifactKind("load", "module.load", is_named=False, needs="module")
MLIR = ArtifactKind(
    "mlir", "module.outline_module", ("{name}.gpu.mlir",), takes=(LOAD,), needs="module"
)
DEVICE_MLIR = ArtifactKind(
    "device-mlir",
    "device.lower_to_nvvm",
    ("{gpu_module}.device.mlir",),
    takes=(MLIR,),
    needs="module",
)
DEVICE_LL = ArtifactKind(
    "device-ll",
    "device.translate_device",
    ("{gpu_module}.device.ll",),
    takes=(MLIR, DEVICE_MLIR),
    begin="device.begin_device",
    is_concurrent=True,
    needs="module",
)
PTX = ArtifactKind(
    "ptx",
    "device.compile_ptx",
    ("{gpu_module}.{chip}.ptx",),
    takes=(DEVICE_LL,),
    is_concurrent=True,
    needs="module",
)
CUBIN = ArtifactKind(
    "cubin",
    "device.assemble",
    ("{gpu_module}.{chip}.cubin",),
    takes=(MLIR, DEVICE_LL, PTX),
    is_concurrent=True,
    is_text=False,
    needs="module",
)
FATBIN = ArtifactKind(
    "fatbin",
    "device.bundle",
    ("{gpu_module}.fatbin",),
    takes=(MLIR, DEVICE_MLIR, CUBIN),
    is_concurrent=True,
    is_text=False,
    needs="module",
)
CPU_MLIR = ArtifactKind(
    "cpu-mlir", "cpu.lower_to_cpu", ("{name}.cpu.mlir",), takes=(MLIR,), needs="module"
)
HOST_MLIR = ArtifactKind(
    "host-mlir", "host.lower_to_host", ("{name}.host.mlir",), takes=(MLIR,), needs="entry"
)
CPU_OBJ = ArtifactKind(
    "cpu-obj",
    "cpu.compile_cpu",
    ("{unit}.o",),
    takes=(MLIR, CPU_MLIR),
    is_named=False,
    is_text=False,
)
# Before the manifest, which describes the file. It goes where --weights says.
WEIGHTS = ArtifactKind(
    "weights", "weights.take", ("{weights}",), takes=(HOST_MLIR,), is_named=False, is_text=False
)
# After the cubins: what ptxas says of each kernel is part of it.
MANIFEST = ArtifactKind(
    "manifest",
    "manifest.describe",
    ("{library}.json",),
    takes=(MLIR, DEVICE_MLIR, CUBIN, CPU_MLIR),
    may_take=(WEIGHTS,),
)
HEADER = ArtifactKind("header", "library.declare", ("include/{library}.h",), takes=(MANIFEST,))
PACKAGE = ArtifactKind(
    "package",
    "library.package",
    (
        "lib/pkgconfig/{library}.pc",
        "lib/cmake/{library}/{library}Config.cmake",
        "lib/cmake/{library}/{library}ConfigVersion.cmake",
    ),
    takes=(MANIFEST,),
)
HOST_LL = ArtifactKind(
    "host-ll",
    "host.translate_host",
    ("{name}.ll",),
    takes=(MLIR, HOST_MLIR, FATBIN, CPU_MLIR, MANIFEST),
    may_take=(WEIGHTS,),
    needs="entry",
)
ASM = ArtifactKind("asm", "host.compile_asm", ("{name}.s",), takes=(HOST_LL,), needs="entry")
OBJ = ArtifactKind(
    "obj",
    "host.compile_object",
    ("{name}.o",),
    takes=(MLIR, CPU_MLIR, CPU_OBJ, MANIFEST, HOST_LL),
    is_text=False,
    has_code=True,
    needs="entry",
)
STATIC = ArtifactKind(
    "static",
    "library.link_static",
    ("lib/lib{library}.a",),
    takes=(OBJ, MANIFEST),
    is_text=False,
    has_code=True,
    is_library=True,
)
SHARED = ArtifactKind(
    "shared",
    "library.link_shared",
    ("lib/lib{library}.so",),
    takes=(OBJ, MANIFEST),
    is_text=False,
    is_executable=True,
    has_code=True,
    is_library=True,
)
EXE = ArtifactKind(
    "exe",
    "host.link_executable",
    ("{name}",),
    takes=(MLIR, OBJ),
    is_text=False,
    is_executable=True,
    has_code=True,
)

# By name, in the order of the rows above.
KINDS = {row.name: row for row in list(globals().values()) if isinstance(row, ArtifactKind)}
