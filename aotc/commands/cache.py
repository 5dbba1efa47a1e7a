"""`aotc cache`: shows, trims and clears the build cache."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from aotc.cache.opening import FOLDER_VARIABLE, CacheChoice, folder_of
from aotc.cache.sizes import VARIABLE, limit_of, parse_size, size_text
from aotc.cache.store import Store
from aotc.cache.trim import Usage, clear, trim, usage
from aotc.cache_folder import cache_root
from aotc.commands.option import option
from aotc.errors import EXIT_OK, InputError


@click.group("cache")
def cache() -> None:
    """Show, trim or clear the build cache."""


def _folder_option(command: Any) -> Any:
    add = option(
        "--cache",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help=f"Directory of the cache (also {FOLDER_VARIABLE}). Default: ~/.cache/aotc.",
    )
    return add(command)


@cache.command("info")
@_folder_option
@option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(folder: Path | None, as_json: bool) -> int:
    """Show the location, size and hit counts of the cache."""
    store = _store(folder)
    found = usage(store, cache_root(os.environ))
    limit = limit_of(os.environ)
    if as_json:
        document = {"folder": str(store.root), "limit": limit, **asdict(found)}
        click.echo(json.dumps(document, indent=2))
        return EXIT_OK
    asked = found.found + found.missed
    share = f" ({100 * found.found / asked:.0f} %)" if asked else ""
    rows = [
        ("folder", str(store.root)),
        ("results", f"{found.results}, of {found.blobs} files"),
        ("size", f"{size_text(found.bytes)} of {size_text(limit)} ({VARIABLE})"),
        ("found", f"{found.found} of {asked}{share}"),
        ("runtime", f"{size_text(found.runtime_bytes)}, built once for each host target"),
        ("zig", size_text(found.zig_bytes)),
    ]
    click.echo("\n".join(f"{name:<8} {text}" for name, text in rows))
    return EXIT_OK


@cache.command("trim")
@_folder_option
@option("--size", help=f"Maximum size to keep: 500M, 2G. Default: {VARIABLE}, or 4G.")
def trim_command(folder: Path | None, size: str | None) -> int:
    """Remove the least recently used entries until the cache is small enough."""
    store = _store(folder)
    _check(store)
    limit = parse_size(size, "--size") if size is not None else limit_of(os.environ)
    before = usage(store)
    trim(store, limit)
    after = usage(store)
    _say_what_went(before, after)
    if after.bytes > limit and after.results == before.results:
        raise _not_removed(store)
    return EXIT_OK


@cache.command("clear")
@_folder_option
@option(
    "--runtime",
    is_flag=True,
    help="Also remove the runtime, harness and C libraries for host targets.",
)
def clear_command(folder: Path | None, runtime: bool) -> int:
    """Remove all cached builds."""
    store = _store(folder)
    _check(store)
    shared = cache_root(os.environ)
    before = usage(store, shared)
    clear(store, shared if runtime else None)
    after = usage(store, shared)
    _say_what_went(before, after)
    if after.results:
        raise _not_removed(store)
    return EXIT_OK


def _say_what_went(before: Usage, after: Usage) -> None:
    size = _all_bytes(before) - _all_bytes(after)
    click.echo(f"took away {before.results - after.results} results, {size_text(max(0, size))}")


def _all_bytes(used: Usage) -> int:
    return used.bytes + used.runtime_bytes + used.zig_bytes


def _not_removed(store: Store) -> InputError:
    return InputError(f"Not all that was to go could be removed: may you write to '{store.root}'?")


def _check(store: Store) -> None:
    """Raises InputError for a folder that is not a cache: nothing may be removed from it."""
    if store.root.exists() and not store.is_ours and store.root != cache_root(os.environ):
        raise InputError(f"'{store.root}' is no cache of aotc's: nothing was removed.")


def _store(folder: Path | None) -> Store:
    place = folder_of(CacheChoice(folder=folder, environment=os.environ))
    if place is None:
        raise InputError(f"There is no cache: {FOLDER_VARIABLE} is 'off'.", hint="--cache DIR")
    return Store(place)
