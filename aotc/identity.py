"""The identity of this aotc, for build systems: targets are rebuilt when aotc or a tool changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aotc.distributions import info_folder, version_of
from aotc.errors import InternalError
from aotc.toolchain.data import data_dir
from aotc.toolchain.tools import DECIDING_PACKAGES
from aotc.version import __version__

_PACKAGE = Path(__file__).resolve().parent
_DATA = ("runtime_c", "templates")
# The distributions that determine the bytes of artifacts.
_DISTRIBUTIONS = ("aotc", "mlir-python-bindings", "torch-mlir", *DECIDING_PACKAGES)


def own_files() -> list[Path]:
    """Files of which at least one changes or disappears when aotc or a package it builds with does.

    For an installed package this is its METADATA, whose path contains the version. (Installers may
    preserve a file's time, so times alone are not enough.) For a checkout it is every source, too.
    """
    found = [_PACKAGE / "__init__.py"]
    for name in _DISTRIBUTIONS:
        folder = info_folder(name)
        if folder is not None:
            found.append((folder / "METADATA").absolute())
    return [*found, *_checkout()]


def identity() -> str:
    """A line that changes when aotc or a package that it builds with changes."""
    found = ((name, version_of(name)) for name in _DISTRIBUTIONS)
    versions = [f"{name} {version}" for name, version in found if version is not None]
    digest = hashlib.sha256()
    for file in _checkout():
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\0".encode() + content)
    return f"aotc {__version__} ({', '.join(versions)}; {digest.hexdigest()[:16]})"


def _checkout() -> list[Path]:
    """The sources, if aotc runs from a checkout instead of an installed package."""
    try:
        folders = [data_dir(name) for name in _DATA]
    except InternalError:
        return []
    if any(folder.is_relative_to(_PACKAGE) for folder in folders):
        return []
    files = [*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.toml")]
    for folder in folders:
        files += [one for one in folder.rglob("*") if "tests" not in one.relative_to(folder).parts]
    return sorted(file for file in files if file.is_file())
