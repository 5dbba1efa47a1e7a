"""The report of the cache on a build, for `--explain-cache`: hits, misses and their reasons.

The cache stores a note about the last build of the same input and kinds, with the components of
each step's key. The components that differ from it are the reasons for a miss.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from aotc.cache.store import Miss, Store
from aotc.cache_folder import ABSENT

# Length of digests in a note, enough to distinguish them.
_SHORT = 12


class Line(Struct, frozen=True):
    """The outcome of one step: "found", "missed", "passed by" or "made again", and the reason."""

    step: str
    outcome: str
    why: str = ""

    def text(self) -> str:
        return f"{self.step}: {self.outcome}" + (f" ({self.why})" if self.why else "")


class Report:
    """Collects lines from several threads, and reads and writes the note `about`, which identifies
    the input and the kinds."""

    def __init__(self, store: Store, about: str) -> None:
        self._store = store
        self._place = (
            store.root
            / "last"
            / hashlib.sha256(about.encode(errors="surrogateescape")).hexdigest()[:32]
        )
        self._lock = threading.Lock()
        self._before: dict[str, Any] | None = None
        self._now: dict[str, Any] = {}
        self.lines: list[Line] = []
        self.found = 0
        self.missed = 0

    def hit(self, step: str, key: str, components: Mapping[str, str], *, where: str = "") -> None:
        with self._lock:
            self._note(step, key, components)
            self.found += 1
            self.lines.append(Line(step, "found", where))

    def miss(self, step: str, key: str, components: Mapping[str, str], reason: str) -> None:
        """`reason` is the store's; if the entry is absent, changed components explain it."""
        with self._lock:
            before = self._last().get(step)
            self._note(step, key, components)
            self.missed += 1
            why = reason if reason != ABSENT else _why(before, key, components)
            self.lines.append(Line(step, "missed", why))

    def pass_by(self, step: str, why: str) -> None:
        """Records that a step was not looked up, or not stored."""
        with self._lock:
            self.lines.append(Line(step, "passed by", why))

    def made_again(self, step: str, why: str) -> None:
        """Records that an entry that all builds share was damaged and is made again."""
        with self._lock:
            self.lines.append(Line(step, "made again", why))

    def text(self) -> str:
        return "\n".join(f"aotc: cache: {line.text()}" for line in self.lines)

    def save(self) -> None:
        """Writes the note for the next build."""
        last = self._last()
        merged = {**last, **self._now}
        if merged != last:
            self._store.write_sealed(self._place, json.dumps(merged).encode())

    def _note(self, step: str, key: str, components: Mapping[str, str]) -> None:
        short = {name: _shorten(value) for name, value in components.items()}
        self._now[step] = {"key": key, "components": short}

    def _last(self) -> dict[str, Any]:
        if self._before is None:
            try:
                found = json.loads(self._store.read_sealed(self._place))
            except (Miss, ValueError):
                found = {}
            self._before = found if isinstance(found, dict) else {}
        return self._before


def _shorten(value: str) -> str:
    """Shortens digests, and replaces long texts by digests."""
    if len(value) > 80:
        value = "#" + hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()
    return value[: _SHORT + 1] if value.startswith("#") else value


def _why(before: Any, key: str, components: Mapping[str, str]) -> str:
    if not isinstance(before, dict) or not isinstance(before.get("components"), dict):
        return "never built"
    if before.get("key") == key:
        return "removed since"
    old = before["components"]
    changes = []
    for name in dict.fromkeys([*old, *components]):
        was, now = old.get(name), components.get(name)
        is_now = None if now is None else _shorten(now)
        if was != is_now:
            changes.append(_change(name, was, is_now))
    return ", ".join(changes) or "never built"


def _change(name: str, was: str | None, now: str | None) -> str:
    if was is None:
        return f"{name} is new"
    if now is None:
        return f"{name} is gone"
    if was.startswith("#") or now.startswith("#"):
        return f"{name} changed"
    return f"{name}: {was or 'none'} → {now or 'none'}"


def note_of(folder: Path, input_: str, kinds: str) -> str:
    """The identifier of a note: the input's full path and the requested kinds."""
    return f"{folder / input_} {kinds}"
