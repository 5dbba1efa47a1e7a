"""An input of a front end, and the files that were read for it, as far as a key needs them.

Which files a front end reads beside its input (the weights of an ONNX model) is known only when it
has read them. So the first build notes their names and hashes; a later one, of the same bytes of
the input, compares the files that were noted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace


class ImportedInput(Struct, frozen=True):
    """The hash of the input, what is known of its file, and by path the hashes of the others."""

    path: Path
    digest: str
    status: tuple[int, int, int]
    largest: int
    files: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(path: Path, largest: int) -> ImportedInput:
        """Reads the file. Raises OSError, and ValueError for one of more than `largest` bytes."""
        if not path.is_file():
            raise ValueError("the input is no file")
        status = _status(path)
        return ImportedInput(path, _hash(path, largest), status, largest)

    def with_files(self, beside: Iterable[Path]) -> ImportedInput | None:
        """With the files that were read for it; None if the input was changed meanwhile, or if they
        are too large. Raises OSError for a file that is not there."""
        try:
            files = {str(path): _hash(path, self.largest) for path in beside}
        except ValueError:
            return None
        return replace(self, files=files) if _status(self.path) == self.status else None

    def document(self) -> bytes:
        return json.dumps(dict(sorted(self.files.items()))).encode()

    def matching(self, document: bytes) -> ImportedInput | None:
        """With the files of a document, if all have the contents that it says."""
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
