"""`ActionResult`: the outputs of an action, by digest, as Bazel's remote caches store it.

The encoding is that of the message of that name in build/bazel/remote/execution/v2/
remote_execution.proto (bazelbuild/remote-apis), because servers may check it. aotc writes the
fields output_files (2), exit_code (4, zero and so absent), stdout_digest (6), stderr_digest (8)
and, of execution_metadata (9), worker (1). Other fields are ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from msgspec import Struct

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FILES, _EXIT_CODE, _STDOUT, _STDERR, _METADATA = 2, 4, 6, 8, 9
_FILE_PATH, _FILE_DIGEST, _FILE_IS_EXECUTABLE = 1, 2, 4
_DIGEST_HASH, _DIGEST_SIZE = 1, 2
_WORKER = 1


class Digest(Struct, frozen=True):
    """The SHA-256 of some bytes, in lowercase hexadecimal digits, and their number."""

    hash: str
    size: int

    @staticmethod
    def of(data: bytes) -> Digest:
        return Digest(hashlib.sha256(data).hexdigest(), len(data))

    def is_of(self, data: bytes) -> bool:
        return len(data) == self.size and hashlib.sha256(data).hexdigest() == self.hash


class OutputFile(Struct, frozen=True):
    """An output file of an action: its path in the action's folder, and its digest."""

    path: str
    digest: Digest
    is_executable: bool = False


class ActionResult(Struct, frozen=True):
    """The outputs of a successful action. `worker` identifies the producer and the action, to
    detect the result of a different action."""

    files: tuple[OutputFile, ...]
    stdout: Digest | None = None
    stderr: Digest | None = None
    worker: str = ""

    @property
    def digests(self) -> tuple[Digest, ...]:
        """The digests of all blobs that the result needs, without duplicates."""
        said = [digest for digest in (self.stdout, self.stderr) if digest is not None]
        return tuple(dict.fromkeys([*(file.digest for file in self.files), *said]))

    def to_bytes(self) -> bytes:
        parts = [_field(_FILES, _file_bytes(file)) for file in self.files]
        if self.stdout is not None:
            parts.append(_field(_STDOUT, _digest_bytes(self.stdout)))
        if self.stderr is not None:
            parts.append(_field(_STDERR, _digest_bytes(self.stderr)))
        if self.worker:
            parts.append(_field(_METADATA, _field(_WORKER, self.worker.encode())))
        return b"".join(parts)

    @staticmethod
    def from_bytes(data: bytes) -> ActionResult:
        """Parses the message. Raises ValueError if it is invalid, or if the action failed."""
        files: list[OutputFile] = []
        digests: dict[int, Digest] = {}
        worker = ""
        for number, value in _fields(data):
            if number == _FILES:
                files.append(_read_file(_bytes(value)))
            elif number in (_STDOUT, _STDERR):
                digests[number] = _read_digest(_bytes(value))
            elif number == _METADATA:
                for inner, text in _fields(_bytes(value)):
                    if inner == _WORKER:
                        worker = _bytes(text).decode()
            elif number == _EXIT_CODE and value != 0:
                raise ValueError("the result of an action that failed")
        return ActionResult(tuple(files), digests.get(_STDOUT), digests.get(_STDERR), worker)


def _file_bytes(file: OutputFile) -> bytes:
    executable = _key(_FILE_IS_EXECUTABLE, _VARINT) + b"\x01" if file.is_executable else b""
    path = _field(_FILE_PATH, file.path.encode())
    return path + _field(_FILE_DIGEST, _digest_bytes(file.digest)) + executable


def _digest_bytes(digest: Digest) -> bytes:
    size = _key(_DIGEST_SIZE, _VARINT) + _varint(digest.size) if digest.size else b""
    return _field(_DIGEST_HASH, digest.hash.encode()) + size


def _read_file(data: bytes) -> OutputFile:
    path, digest, executable = "", None, False
    for number, value in _fields(data):
        if number == _FILE_PATH:
            path = _bytes(value).decode()
        elif number == _FILE_DIGEST:
            digest = _read_digest(_bytes(value))
        elif number == _FILE_IS_EXECUTABLE:
            executable = bool(value)
    if not path or digest is None:
        raise ValueError("a file without a path or a digest")
    return OutputFile(path, digest, executable)


def _read_digest(data: bytes) -> Digest:
    digits, size = "", 0
    for number, value in _fields(data):
        if number == _DIGEST_HASH:
            digits = _bytes(value).decode()
        elif number == _DIGEST_SIZE and isinstance(value, int):
            size = value
    # The digits become a path, and part of a URL.
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ValueError("no SHA-256 in a digest")
    return Digest(digits, size)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field. Raises ValueError if the message is truncated."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, at = _read_varint(data, at)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if at + size > len(data):
            raise ValueError("the message is cut")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes belong")
    return value
