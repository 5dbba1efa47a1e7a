"""`Results`: looks up and stores the outputs of actions, in the folder and on the server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.cache.report import Report
from aotc.cache.result import ActionResult, Digest, OutputFile
from aotc.cache.store import Miss, Store
from aotc.cache_folder import DAMAGED
from aotc.version import __version__

if TYPE_CHECKING:
    from aotc.cache.remote import Remote

# A place in a source file, as in warnings and in messages of assertions in an artifact.
PLACE = re.compile(rb":\d+:\d+")
# Part of every key, so that results with another layout are not found.
_LAYOUT = "aotc cache 1"


class Made(Struct, frozen=True):
    """The outputs of an action: the bytes of its files by path, its stdout and stderr."""

    files: Mapping[str, bytes]
    executables: frozenset[str] = frozenset()
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values())) + len(self.stdout) + len(self.stderr)


def key_of(components: Mapping[str, str]) -> str:
    """The key of an action: the SHA-256 of everything that its result depends on."""
    text = json.dumps([_LAYOUT, *components.items()], ensure_ascii=True)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


class Results:
    """Looks in the folder first; results of the server are copied to it. Thread-safe."""

    def __init__(self, store: Store, report: Report, remote: Remote | None = None) -> None:
        self.store = store
        self.report = report
        self.remote = remote

    def find(
        self, step: str, components: Mapping[str, str], paths: Sequence[str] | None = None
    ) -> Made | None:
        """The outputs of an action, or None; adds a line to the report. `paths`, if given, are
        exactly the files that it must have."""
        key = key_of(components)
        try:
            made = self._read(key, paths)
        except Miss as miss:
            fetched = self._fetch(key, paths)
            if fetched is None:
                self.report.miss(step, key, components, miss.reason)
            else:
                self.report.hit(step, key, components, where="on the server")
            return fetched
        self.store.touch(key)
        self.report.hit(step, key, components)
        return made

    def keep(self, components: Mapping[str, str], made: Made) -> None:
        """Stores the outputs of an action, if possible."""
        key = key_of(components)
        store = self.store
        files = tuple(
            OutputFile(path, store.write_blob(data), path in made.executables)
            for path, data in made.files.items()
        )
        stdout, stderr = (store.write_blob(said) for said in (made.stdout, made.stderr))
        result = ActionResult(
            files, stdout if made.stdout else None, stderr if made.stderr else None, _worker(key)
        )
        # Stored after the blobs, so that the blobs exist when a process finds the result.
        data = result.to_bytes()
        store.write_result(key, data)
        if self.remote is not None:
            blobs = [*made.files.values(), made.stdout, made.stderr]
            self.remote.put(key, data, [blob for blob in blobs if blob])

    def _read(self, key: str, paths: Sequence[str] | None) -> Made:
        data = self.store.read_result(key)
        try:
            result = _checked(data, key, paths)
            return self._gather(result)
        except ValueError:
            self.store.remove_result(key)
            raise Miss(DAMAGED) from None
        except Miss as miss:
            # Without one of its blobs the result is useless.
            self.store.remove_result(key)
            raise Miss(f"a file of it was {miss.reason}") from None

    def _gather(self, result: ActionResult) -> Made:
        blobs = {digest: self.store.read_blob(digest) for digest in result.digests}
        return _made(result, blobs)

    def _fetch(self, key: str, paths: Sequence[str] | None) -> Made | None:
        """The verified outputs from the server, which are also stored in the folder."""
        if self.remote is None:
            return None
        data = self.remote.get_result(key)
        if data is None:
            return None
        try:
            result = _checked(data, key, paths)
        except ValueError:
            self.remote.distrust("a result that is none")
            return None
        blobs: dict[Digest, bytes] = {}
        for digest in result.digests:
            try:
                blob: bytes | None = self.store.read_blob(digest)
            except Miss:
                blob = self.remote.get_blob(digest)
            if blob is None:
                return None
            blobs[digest] = blob
        for blob in blobs.values():
            self.store.write_blob(blob)
        self.store.write_result(key, data)
        return _made(result, blobs)


def _worker(key: str) -> str:
    return f"aotc {__version__} {key}"


def _checked(data: bytes, key: str, paths: Sequence[str] | None) -> ActionResult:
    """The parsed result. Raises ValueError if the bytes are not a result of this action."""
    result = ActionResult.from_bytes(data)
    if not result.worker.startswith("aotc ") or not result.worker.endswith(f" {key}"):
        raise ValueError("another action's result")
    if paths is not None and sorted(paths) != sorted(file.path for file in result.files):
        raise ValueError("other files than the action's")
    return result


def _made(result: ActionResult, blobs: Mapping[Digest, bytes]) -> Made:
    return Made(
        {file.path: blobs[file.digest] for file in result.files},
        frozenset(file.path for file in result.files if file.is_executable),
        blobs[result.stdout] if result.stdout else b"",
        blobs[result.stderr] if result.stderr else b"",
    )
