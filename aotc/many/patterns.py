"""Files by patterns, as Python's `glob` with `recursive=True`, but with a limit on its work.

`**` does not follow links to folders.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from aotc.errors import InputError

# Maximum number of entries that one pattern visits, which takes some seconds. A pattern like "/**"
# would visit a whole disk.
MOST = 200_000
_ANY = "**"


def find_files(pattern: str, folder: Path) -> list[str]:
    """The regular files that match the pattern, sorted, relative to `folder` or absolute. Raises
    InputError if more than `MOST` files and folders would have to be visited."""
    if pattern.endswith("/"):
        return []
    words = [word for word in pattern.split("/") if word]
    parts = [word for i, word in enumerate(words) if word != _ANY or words[i - 1 : i] != [_ANY]]
    found: set[str] = set()
    # Pairs of a folder and the number of matched parts; each is visited once, although "**/a/**"
    # reaches it many times.
    pending = [("/" if pattern.startswith("/") else "", 0)]
    known = set(pending)
    looked_at = 0
    while pending:
        base, number = pending.pop()
        part, is_last = parts[number], number == len(parts) - 1
        if not glob.has_magic(part):
            names = [(part, number + 1)]
        else:
            if part == _ANY and not is_last:
                _add((base, number + 1), pending, known)
            entries = _entries(folder / base)
            looked_at += len(entries)
            if looked_at > MOST:
                raise InputError(
                    f"'{pattern}' has more than {MOST:,} files and folders to look at; aotc "
                    "looks at no more."
                )
            names = list(_following(entries, part, number, is_last=is_last))
        for name, following in names:
            path = f"{base.rstrip('/')}/{name}" if base else name
            if following < len(parts):
                _add((path, following), pending, known)
            elif _is_file(folder / path):
                found.add(path)
    return sorted(found)


def _following(
    entries: Iterable[os.DirEntry[str]], part: str, number: int, *, is_last: bool
) -> Iterator[tuple[str, int]]:
    """The entries that match the part, each with the number of the part for its own entries."""
    for entry in entries:
        if not _fits(entry.name, part):
            continue
        if part == _ANY and _is_folder(entry):
            yield entry.name, number
        elif is_last or part != _ANY:
            yield entry.name, number + 1


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, or a folder that is not readable
        return False


def _add(
    step: tuple[str, int], pending: list[tuple[str, int]], known: set[tuple[str, int]]
) -> None:
    if step not in known:
        known.add(step)
        pending.append(step)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The readable entries of the folder; at most as many as one pattern may visit."""
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) > MOST:
                    break
    except OSError:
        pass
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder; links are not followed, because they may form a cycle."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _fits(name: str, part: str) -> bool:
    """Whether the name matches; hidden names match only patterns that begin with a dot."""
    if name.startswith(".") and not part.startswith("."):
        return False
    return part == _ANY or fnmatch.fnmatchcase(name, part)
