"""`ArtifactKind`: what a row of the table of artifacts says, and the rows that targets begin with.

They are apart from the table, `aotc.artifacts`, to which each target adds rows of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct


class ArtifactKind(Struct, frozen=True, eq=False):
    """A kind of artifact, and the stage of the same name that makes it.

    `files` are the paths of its files in a package, as patterns: `{name}` is the module's name,
    `{library}` the library's. A kind with one file for each gpu.module has `{gpu_module}` in its
    path, and one with a file for each image `{chip}` as well.

    `stage` is the stage's function (MODULE.FUNCTION in `aotc`): it is called with the build and the
    result of each of the stages `takes`, then of `may_take`, which is None where the build has no
    such stage. Where there are `of_targets`, which are kinds that targets bring, it is called with
    one tuple of their results, too. A stage that `is_concurrent` runs in another thread while later
    stages run, until one of them takes its result. It runs tools, and touches no MLIR module:
    `begin` is the function that does so before, if that is needed; the stage is called with its
    result, too.

    Without `is_named`, --emit does not know the kind: it is a part of others. `has_code` holds for
    machine code of the host. `needs` is what the module must have: nothing more (a module of
    kernels alone has device code), an entry, or the argument types of its entries, which an entry
    in the LLVM dialect no longer has. "types" are those of the entries that it has, and it may be
    one of kernels alone.
    """

    name: str
    stage: str
    files: tuple[str, ...] = ()
    takes: tuple[ArtifactKind, ...] = ()
    may_take: tuple[ArtifactKind, ...] = ()
    of_targets: tuple[ArtifactKind, ...] = ()
    begin: str | None = None
    is_concurrent: bool = False
    is_named: bool = True
    is_text: bool = True
    is_executable: bool = False
    has_code: bool = False
    is_library: bool = False
    needs: Literal["module", "types", "entry", "signature"] = "signature"

    def __str__(self) -> str:
        return self.name

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


LOAD = ArtifactKind("load", "stages.module.load", is_named=False, needs="module")
MLIR = ArtifactKind(
    "mlir", "stages.module.outline_module", ("{name}.gpu.mlir",), takes=(LOAD,), needs="module"
)


def own_kinds(names: Mapping[str, Any]) -> tuple[ArtifactKind, ...]:
    """The rows that a target's module `artifacts` defines, in its order: `names` are its names."""
    rows = (value for value in names.values() if isinstance(value, ArtifactKind))
    return tuple(row for row in rows if row not in (LOAD, MLIR))
