"""Checks that no two files that a command reads and writes are the same, which would lose data."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from aotc.errors import InputError
from aotc.pipes import is_special

# The prefix of the files of --save-temps.
_NUMBERED = re.compile(r"\d\d+-")


class Place(Struct, frozen=True):
    """A file that a command reads or writes: its role, its path, and the option that names it."""

    what: str
    path: Path
    option: str = ""


def check_apart(
    reads: Iterable[Place], writes: Iterable[Place], *, numbered: Path | None = None
) -> None:
    """Raises InputError if a file to be written is also read, is written twice, or would have to be
    the parent folder of another one. `numbered` is the folder of --save-temps.

    Devices and pipes are exempt: their contents are not replaced.
    """
    read = [place for place in reads if not is_special(place.path)]
    written = [place for place in writes if not is_special(place.path)]
    by_identity = {key: place for place in reversed(read) for key in _identities(place.path)}
    by_path: dict[str, Place] = {}
    for place in written:
        for key in _identities(place.path):
            if (other := by_identity.get(key)) is not None:
                raise InputError(
                    f"The {place.what} '{place.path}' would overwrite {_shown(other)}: name "
                    f"another ({place.option})."
                )
        before = by_path.setdefault(os.path.realpath(place.path), place)
        if before is not place:
            raise InputError(
                f"{place.option} {place.path} and {before.option} {before.path} are one file."
            )
    for real, place in by_path.items():
        for parent in Path(real).parents:
            if (other := by_path.get(str(parent))) is not None:
                raise InputError(
                    f"{other.option} {other.path} is a file, and {place.option} {place.path} "
                    "would be in it."
                )
    if numbered is not None:
        _check_numbered(numbered, read, written)


def _check_numbered(folder: Path, read: Sequence[Place], written: Sequence[Place]) -> None:
    """Rejects all numbered names in the folder, because only the build knows which it will use."""
    real = os.path.realpath(folder)
    for place in written:
        if os.path.realpath(place.path) == real:
            raise InputError(f"{place.option} {place.path} is a file, and --save-temps a folder.")
    for place in (*read, *written):
        parent, name = os.path.split(os.path.realpath(place.path))
        if parent == real and _NUMBERED.match(name):
            raise InputError(
                f"'{place.path}' is named like the files that --save-temps {folder} writes: name "
                "another folder (--save-temps)."
            )


def _shown(read: Place) -> str:
    return "the input" if read.what == "input" else f"'{read.path}', which is read"


def _identities(path: Path) -> list[object]:
    """Keys that two paths of the same file share: the resolved path, and the file's identity."""
    found: list[object] = [os.path.realpath(path)]
    try:
        status = path.stat()
    except OSError:
        return found
    return [*found, (status.st_dev, status.st_ino)]


def check_name(what: str, text: str) -> None:
    """Raises InputError for a name that becomes part of artifacts and is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(_not_utf8(what, text)) from None


def check_characters(what: str, text: str) -> None:
    """Raises InputError for a name with characters that have a special meaning in C and PTX."""
    for character in text:
        if character in '"\\' or unicodedata.category(character) == "Cc":
            raise InputError(
                f"The name of the {what}, {text!r}, has the character {character!r} in it: what is "
                "built has the name in its text, where that has another meaning. Name it otherwise."
            )


def _not_utf8(what: str, text: str) -> str:
    try:
        name = os.fsencode(text).decode()
    except UnicodeError:
        return f"The name of the {what}, {text!r}, is not UTF-8."
    return (
        f"The name of the {what}, {name!r}, cannot be read: Python takes the names of files for "
        "ASCII here. Set PYTHONUTF8=1."
    )
