"""`ArtifactKind`: a row of the table of artifacts; and the rows that targets start from.

They are separate from the table, `aotc.artifacts`, because each target adds its own rows to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct


class ArtifactKind(Struct, frozen=True, eq=False):
    """A kind of artifact, and the stage of the same name that makes it.

    `files` are the path patterns of its files in a package: `{name}` is the module's name,
    `{library}` the library's. The path of a kind with one file per gpu.module contains
    `{gpu_module}`; with one file per image it contains `{chip}` as well.

    `stage` is the stage's function (MODULE.FUNCTION in `aotc`). Its arguments are the build, the
    results of the stages in `takes`, and the results of those in `may_take`, each of which is None
    if the build has no such stage. If there are `of_targets`, which are kinds that targets define,
    one tuple with their results follows. A stage that `is_concurrent` runs in another thread while
    later stages run, until one of them needs its result. It runs tools and must not access an MLIR
    module; if it needs data of one, `begin` is a function that is called before and whose result
    is passed to the stage.

    --emit does not accept a kind that is not `is_named`: such a kind is part of others. `has_code`
    is true for machine code of the host. `needs` is the requirement on the module: nothing (a
    module of kernels alone has device code), an entry, or the argument types of its entries, which
    an entry in the LLVM dialect has lost. "types" refers to the entries that exist, and accepts a
    module of kernels alone.
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
        """The files' paths. Without a chip, one path stands for the files of all chips."""
        files = self.files
        if "chip" not in words:
            files = tuple(path.replace(".{chip}", "") for path in files)
        return tuple(path.format(**words) for path in files)

    @property
    def folder(self) -> str:
        """The folder of its first file in a package."""
        return self.files[0].rpartition("/")[0]

    @property
    def is_per_chip(self) -> bool:
        return any("{chip}" in path for path in self.files)


LOAD = ArtifactKind("load", "stages.module.load", is_named=False, needs="module")
MLIR = ArtifactKind(
    "mlir", "stages.module.outline_module", ("{name}.gpu.mlir",), takes=(LOAD,), needs="module"
)


def own_kinds(names: Mapping[str, Any]) -> tuple[ArtifactKind, ...]:
    """The rows that a target's module `artifacts` defines, in order; `names` is its namespace."""
    rows = (value for value in names.values() if isinstance(value, ArtifactKind))
    return tuple(row for row in rows if row not in (LOAD, MLIR))
