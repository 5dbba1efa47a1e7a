"""`StageFile`: what stages make, and builds hand out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from aotc.request import EmitKind


class StageFile(Struct, frozen=True):
    """One thing that a stage made: its kind, the name it likes to have, and its bytes on demand.

    `folder` is its place within a library's package. `path` is a file that has the bytes, if any.
    """

    kind: EmitKind
    file_name: str
    content: Callable[[], bytes]
    folder: str = ""
    path: Path | None = None
