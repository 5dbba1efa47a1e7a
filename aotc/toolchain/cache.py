"""aotc's cache folder, and `make_once`: an entry of it, made whole or not at all."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aotc.errors import InternalError, ToolError


def cache_root(environment: Mapping[str, str]) -> Path:
    """The cache folder, made if need be.

    `XDG_CACHE_HOME/aotc`, else `HOME/.cache/aotc`, else (where neither can be written: a
    container without a home) a folder of this user's in the folder for temporary files.
    """
    for place in _wanted(environment):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK | os.X_OK):
                return place
    return _temporary_cache(environment.get("TMPDIR") or tempfile.gettempdir())


def _wanted(environment: Mapping[str, str]) -> list[Path]:
    # The specification of XDG_CACHE_HOME says that a relative path is to be ignored.
    xdg = Path(environment.get("XDG_CACHE_HOME", ""))
    home = Path(environment.get("HOME", ""))
    places = []
    if xdg.is_absolute():
        places.append(xdg / "aotc")
    if home.is_absolute():
        places.append(home / ".cache" / "aotc")
    return places


@functools.cache
def _temporary_cache(parent: str) -> Path:
    """A private folder under `parent`, the same in the next process where that is safe."""
    try:
        place = Path(parent) / f"aotc-cache-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        # Anybody may have put something of that name there.
        status = place.lstat()
        private = status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0
        if stat.S_ISDIR(status.st_mode) and private:
            return place
        return Path(tempfile.mkdtemp(prefix="aotc-cache-", dir=parent))
    except OSError as error:
        raise ToolError(
            f"No folder for caches can be written: tried XDG_CACHE_HOME, HOME and {parent}: "
            f"{error}",
            hint="Set XDG_CACHE_HOME to a folder that can be written.",
        ) from None


def make_once(place: Path, make: Callable[[Path], None], *, expected: Sequence[str]) -> Path:
    """The folder `place`; if it is not there, what `make` puts into an empty folder.

    Two processes may make the same entry at once: both make it, whole, and one wins.
    `expected` are the names of the files that `make` makes. Something may have removed some of
    them since (folders for temporary files get cleaned): then the entry is made again.
    """
    if _is_whole(place, expected):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            shutil.rmtree(place)
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise ToolError(
            f"Cannot write to aotc's cache: {error}",
            hint="Set XDG_CACHE_HOME to a folder that can be written.",
        ) from None
    try:
        make(draft)
        if not _is_whole(draft, expected):
            raise InternalError(f"Making {place.name} left out one of: {', '.join(expected)}.")
        draft.chmod(0o755)  # mkdtemp's folders are private; a shared cache is not
        try:
            draft.rename(place)
        except OSError:
            if not _is_whole(place, expected):  # else the other process won
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _is_whole(place: Path, expected: Sequence[str]) -> bool:
    return all((place / name).is_file() for name in expected)
