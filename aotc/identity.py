"""Which aotc this is, for build systems: what is made again when aotc or a tool of it changes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from pathlib import Path

from aotc import __version__
from aotc.errors import InternalError
from aotc.toolchain.data import data_dir

_PACKAGE = Path(__file__).resolve().parent
_DATA = ("runtime_c", "templates")
# What decides the bytes that aotc makes.
_DISTRIBUTIONS = (
    *("aotc", "mlir-python-bindings", "torch-mlir", "ziglang"),
    *("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-runtime"),
)


def own_files() -> list[Path]:
    """Files of which one changes, or is gone, when aotc or a package that it builds with changes.

    Of an installed package that is its METADATA, whose path has the version. (Installers may keep
    a file's old time, so that time alone does not tell.) Of a checkout it is every source, too.
    """
    found = [_PACKAGE / "__init__.py"]
    for name in _DISTRIBUTIONS:
        metadata = _metadata(name)
        if metadata is not None:
            found.append(metadata)
    return [*found, *_checkout()]


def identity() -> str:
    """A line that is another one when aotc or a package that it builds with is another one."""
    versions = []
    for name in _DISTRIBUTIONS:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    digest = hashlib.sha256()
    for file in _checkout():
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\0".encode() + content)
    return f"aotc {__version__} ({', '.join(versions)}; {digest.hexdigest()[:16]})"


def _metadata(name: str) -> Path | None:
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    stem = re.sub(r"[-_.]+", "_", name)
    folder = Path(str(distribution.locate_file(f"{stem}-{distribution.version}.dist-info")))
    file = folder / "METADATA"
    return file.absolute() if file.is_file() else None


def _checkout() -> list[Path]:
    """The sources, where aotc is not installed but used from a checkout."""
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
