"""The kinds of artifacts: one row for each, in the order in which the stages make them.

The command line, the pipeline, the paths of output files and the cache all read `KINDS`. A new kind
needs one row here, or in a target, and one function of a stage. The table is separate from
`request` because the cache and the stages need it without a request.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from aotc.artifact_kind import LOAD, MLIR, ArtifactKind
from aotc.errors import InputError, near_names
from aotc.target import TARGETS


class ArtifactFile(Struct, frozen=True):
    """A file that a stage made: its kind, its name as an output, and a function for its bytes.

    `folder` is its folder in a library's package. `path` is a file that has the bytes, if any.
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
    """The kinds that --emit accepts."""
    return [kind for kind in KINDS.values() if kind.is_named]


def parse_kind(text: str) -> ArtifactKind:
    """The kind that --emit calls `text`. Raises InputError, with similar names."""
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
    """The kinds whose stages are needed to make `kinds`, including all their inputs, in order."""
    needed: set[ArtifactKind] = set()
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        if kind not in needed:
            needed.add(kind)
            pending += [*kind.takes, *kind.of_targets]
    return [kind for kind in KINDS.values() if kind in needed]


HOST_MLIR = ArtifactKind(
    "host-mlir", "stages.host.lower_to_host", ("{name}.host.mlir",), takes=(MLIR,), needs="entry"
)
# Before the manifest, which describes the file. --weights gives its path.
WEIGHTS = ArtifactKind(
    "weights",
    "stages.weights.take",
    ("{weights}",),
    takes=(MLIR, HOST_MLIR),
    is_named=False,
    is_text=False,
)
# After the images, because it contains what the tools report for each kernel.
MANIFEST = ArtifactKind(
    "manifest",
    "stages.manifest.describe",
    ("{library}.json",),
    takes=(MLIR,),
    may_take=(WEIGHTS,),
    of_targets=tuple(target.described for target in TARGETS),
    needs="types",
)
HEADER = ArtifactKind(
    "header", "stages.library.declare", ("include/{library}.h",), takes=(MANIFEST,)
)
PACKAGE = ArtifactKind(
    "package",
    "stages.library.package",
    (
        "lib/pkgconfig/{library}.pc",
        "lib/cmake/{library}/{library}Config.cmake",
        "lib/cmake/{library}/{library}ConfigVersion.cmake",
    ),
    takes=(MANIFEST,),
)
HOST_LL = ArtifactKind(
    "host-ll",
    "stages.host.translate_host",
    ("{name}.ll",),
    takes=(MLIR, HOST_MLIR, MANIFEST),
    may_take=(WEIGHTS,),
    of_targets=tuple(target.embedded for target in TARGETS),
    needs="entry",
)
ASM = ArtifactKind("asm", "stages.host.compile_asm", ("{name}.s",), takes=(HOST_LL,), needs="entry")
OBJ = ArtifactKind(
    "obj",
    "stages.host.compile_object",
    ("{name}.o",),
    takes=(MLIR, MANIFEST, HOST_LL),
    of_targets=tuple(kind for target in TARGETS for kind in target.linked),
    is_text=False,
    has_code=True,
    needs="entry",
)
STATIC = ArtifactKind(
    "static",
    "stages.library.link_static",
    ("lib/lib{library}.a",),
    takes=(OBJ, MANIFEST),
    is_text=False,
    has_code=True,
    is_library=True,
)
SHARED = ArtifactKind(
    "shared",
    "stages.library.link_shared",
    ("lib/lib{library}.so",),
    takes=(OBJ, MANIFEST),
    is_text=False,
    is_executable=True,
    has_code=True,
    is_library=True,
)
EXE = ArtifactKind(
    "exe",
    "stages.host.link_executable",
    ("{name}",),
    takes=(MLIR, OBJ),
    is_text=False,
    is_executable=True,
    has_code=True,
)

_OF_TARGETS = [kind for target in TARGETS for kind in target.kinds]
# By name, in the order in which they are made.
KINDS = {
    row.name: row
    for row in (
        *(LOAD, MLIR),
        *(kind for kind in _OF_TARGETS if kind.needs == "module"),
        HOST_MLIR,
        *(kind for kind in _OF_TARGETS if kind.needs != "module"),
        *(WEIGHTS, MANIFEST, HEADER, PACKAGE, HOST_LL, ASM, OBJ, STATIC, SHARED, EXE),
    )
}
# Pickled by name: in another process a kind is the row of that process.
copyreg.pickle(ArtifactKind, lambda kind: (_kind, (kind.name,)))
