"""Opens the cache of a build: options, AOTC_CACHE, AOTC_REMOTE_CACHE → `BuildCache`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from aotc.cache.builds import BuildCache
from aotc.cache.identity import Identities
from aotc.cache.sizes import limit_of
from aotc.cache.store import Store
from aotc.cache_folder import cache_root
from aotc.errors import InputError
from aotc.request import BuildRequest

FOLDER_VARIABLE = "AOTC_CACHE"
REMOTE_VARIABLE = "AOTC_REMOTE_CACHE"
UPLOAD_VARIABLE = "AOTC_REMOTE_CACHE_UPLOAD"
_SWITCH = {"1": True, "yes": True, "on": True, "0": False, "no": False, "off": False}
# The value that disables the cache, in place of a folder.
OFF = "off"


class CacheChoice(Struct, frozen=True):
    """The choices that the options make; otherwise the environment decides."""

    is_on: bool = True
    folder: Path | None = None
    remote: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def folder_of(choice: CacheChoice) -> Path | None:
    """The folder for results; None if there is no cache."""
    if not choice.is_on:
        return None
    if choice.folder is not None:
        return choice.folder.expanduser().absolute()
    named = choice.environment.get(FOLDER_VARIABLE)
    if named == OFF:
        return None
    return Path(named).expanduser().absolute() if named else cache_root(choice.environment)


def open_cache(
    choice: CacheChoice,
    request: BuildRequest,
    tools: Mapping[str, Path],
    *,
    explains: bool = False,
) -> BuildCache | None:
    """The build's cache, or None. Raises InputError for an invalid variable."""
    folder = folder_of(choice)
    if folder is None:
        return None
    limit = limit_of(choice.environment)
    store = Store(folder)
    url = choice.remote or choice.environment.get(REMOTE_VARIABLE)
    remote = None
    if url:
        from aotc.cache.remote import Remote

        remote = Remote(url, uploads=_uploads(choice.environment))
    identities = Identities(store, choice.environment, tools)
    return BuildCache(request, store, identities, limit=limit, remote=remote, explains=explains)


def _uploads(environment: Mapping[str, str]) -> bool:
    word = environment.get(UPLOAD_VARIABLE) or "1"
    if word not in _SWITCH:
        raise InputError(f"{UPLOAD_VARIABLE} is '{word}': expected one of {', '.join(_SWITCH)}.")
    return _SWITCH[word]
