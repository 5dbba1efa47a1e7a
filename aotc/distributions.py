"""Installed distributions, by the names of their `.dist-info` folders and what METADATA says there.

This does what importlib.metadata does (Python Packaging User Guide, «Recording installed
projects»), whose import takes longer than MLIR's. It is used for distributions that are installed
in another way.
"""

from __future__ import annotations

import csv
import functools
import os
import re
import sys
from pathlib import Path


def version_of(name: str) -> str | None:
    """The version of a distribution, None if it is not installed."""
    folder = info_folder(name)
    if folder is not None:
        with (folder / "METADATA").open(encoding="utf-8") as file:
            for line in file:
                if line.startswith("Version:"):
                    return line.partition(":")[2].strip()
                if not line.strip():  # the description starts after the headers
                    break
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def info_folder(name: str) -> Path | None:
    """The `.dist-info` folder of a distribution, the first on Python's path."""
    for entry in sys.path:
        try:
            changed = Path(entry).stat().st_mtime_ns
        except OSError:
            continue
        folder = _infos(entry, changed).get(_normal(name))
        if folder is not None and (folder / "METADATA").is_file():
            return folder
    return None


def files_of(name: str) -> list[Path] | None:
    """The files that a distribution installed; None where it is not installed."""
    folder = info_folder(name)
    if folder is not None and (folder / "RECORD").is_file():
        with (folder / "RECORD").open(encoding="utf-8", newline="") as file:
            return [folder.parent / row[0] for row in csv.reader(file) if row]
    import importlib.metadata

    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    return [Path(str(distribution.locate_file(file))) for file in distribution.files or []]


@functools.cache
def _infos(entry: str, changed: int) -> dict[str, Path]:
    """By name, of the folder `entry`, which was last changed at that time."""
    try:
        names = os.listdir(entry or ".")  # noqa: PTH208
    except OSError:  # a zip file
        return {}
    infos = (name for name in names if name.endswith(".dist-info"))
    return {_normal(name.partition("-")[0]): Path(entry, name) for name in infos}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
