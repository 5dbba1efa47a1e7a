"""The input of a front end and the files that were read for it, as components of a cache key.

The files that a front end reads besides its input (the weights of an ONNX model) are known only
after it has read them. So the first build records their names and hashes; a later build of the same
input bytes compares the recorded files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace


class ImportedInput(Struct, frozen=True):
    """The input's hash and file status, and the hashes of the other files by path."""

    path: Path
    digest: str
    status: tuple[int, int, int]
    largest: int
    files: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(path: Path, largest: int) -> ImportedInput:
        """Reads the file. Raises OSError, and ValueError if it exceeds `largest` bytes."""
        if not path.is_file():
            raise ValueError("the input is no file")
        status = _status(path)
        return ImportedInput(path, _hash(path, largest), status, largest)

    def with_files(self, beside: Iterable[Path]) -> ImportedInput | None:
        """A copy with the files that were read for the input; None if the input has changed since,
        or if they are too large. Raises OSError for a missing file."""
        try:
            files = {str(path): _hash(path, self.largest) for path in beside}
        except ValueError:
            return None
        return replace(self, files=files) if _status(self.path) == self.status else None

    def document(self) -> bytes:
        return json.dumps(dict(sorted(self.files.items()))).encode()

    def matching(self, document: bytes) -> ImportedInput | None:
        """A copy with the files of a document, if all files still have the recorded hashes."""
        try:
            files = json.loads(document)
            if any(_hash(Path(path), self.largest) != known for path, known in files.items()):
                return None
        except (OSError, ValueError, AttributeError):
            return None
        return replace(self, files=files)


def _status(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _hash(path: Path, largest: int) -> str:
    size = path.stat().st_size
    if size > largest:
        raise ValueError(f"the input has {size} bytes, more than are kept")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
