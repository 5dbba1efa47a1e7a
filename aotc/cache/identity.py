"""The identity of everything that builds: aotc's sources, the bindings, each tool; as key texts.

The text is the same on every machine for the same contents: `ziglang 0.17.1 #4f1d…`. Computing it
takes longer than a fully cached build may take, so it is stored together with the size, time and
inode of the files that it depends on. No tool is started for it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aotc.cache.store import Miss, Store
from aotc.cache_folder import content_digest
from aotc.version import __version__

_PACKAGE = Path(__file__).resolve().parent.parent
# Packages that compute parts of an artifact, each with a file that only a complete one has: the
# bindings, of which the first complete package is imported, and a library.
_IMPORTED = {"mlir": "_mlir_libs", "torch_mlir": "_mlir_libs", "numpy": "__init__.py"}
# The packages that aotc's front ends read their formats with.
_FRAMEWORKS = ("torch", "onnx")
# A file that is newer than its package's RECORD by more than this, in seconds, was modified.
_INSTALLATION = 60


class Identities:
    """Computes identities, and stores them in the store. Thread-safe.

    `environment` is the user's, `tools` the files that options name.
    """

    def __init__(
        self, store: Store, environment: Mapping[str, str], tools: Mapping[str, Path]
    ) -> None:
        self._store = store
        self._environment = environment
        self._tools = tools
        self._programs: dict[str, str] = {}

    @functools.cached_property
    def aotc(self) -> str:
        """The identity of aotc's own files."""
        folders = [_PACKAGE, *_data_folders()]
        signature = _digest(
            f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
            for path, status in _own_files(folders)
        )
        place = self._place(f"aotc {_PACKAGE}")
        remembered = self._recall(place)
        if remembered.get("signature") == signature:
            return str(remembered["identity"])
        parts = (
            f"{Path(path).relative_to(folder)} {content_digest(Path(path))}"
            for folder in folders
            for path, _ in _own_files([folder])
        )
        identity = f"{__version__} #{_digest(parts)}"
        self._remember(place, {"signature": signature, "identity": identity})
        return identity

    @functools.cached_property
    def installed(self) -> dict[str, str]:
        """The identities of the bindings, of libraries and of every tool, by name. A missing tool
        is `none`: whatever needs it fails."""
        # Not found by sys.path, which contains the current folder with `python -m`.
        packages = _imported_packages()
        place = self._place(f"installed {sys.version} {sys.prefix} {packages} {self._named()}")
        remembered = self._recall(place)
        if remembered.get("seen") == _look(remembered.get("paths", ())):
            return dict(remembered["identities"])
        paths, identities = self._find_installed(packages)
        self._remember(
            place, {"paths": paths, "seen": _look(paths), "identities": dict(identities)}
        )
        return identities

    @functools.cached_property
    def packages(self) -> str | None:
        """The identity of all packages installed besides aotc, by names and versions, which
        determine what front ends import. None if a framework is imported from elsewhere: then it
        may change without a new version."""
        installed = _installed_packages()
        if any(_is_elsewhere(framework, installed) for framework in _FRAMEWORKS):
            return None
        return f"#{_digest(installed)}"

    def of_program(self, path: Path) -> str:
        """The identity of a program, or of a file that programs read."""
        name = str(path)
        if name not in self._programs:
            self._programs[name] = self._recall_program(path)
        return self._programs[name]

    def _recall_program(self, path: Path) -> str:
        place = self._place(f"file {path}")
        remembered = self._recall(place)
        seen = _look([str(path)])
        if remembered.get("seen") == seen:
            return str(remembered["identity"])
        identity = _package_identity(path) or f"#{content_digest(path)}"
        self._remember(place, {"seen": seen, "identity": identity})
        return identity

    def _named(self) -> list[str]:
        """The tools that the user selected."""
        variables = [
            f"{name}={value}"
            for name, value in self._environment.items()
            if name.startswith("AOTC_")
        ]
        return sorted([*variables, *(f"--{name}={path}" for name, path in self._tools.items())])

    def _find_installed(
        self, packages: Mapping[str, str | None]
    ) -> tuple[list[str], dict[str, str]]:
        """The paths to check for changes, and the identities of what is installed."""
        from aotc.errors import AotcError
        from aotc.toolchain.tools import DECIDING_TOOLS, Toolchain, header_of

        paths, identities = [], {"python": f"{sys.version_info[0]}.{sys.version_info[1]}"}
        for name, folder in packages.items():
            identities[name] = "none" if folder is None else _library_identity(Path(folder))
            if folder is not None:
                paths += [folder, *map(str, _shared_objects(Path(folder)))]
        # Packages are installed into and removed from these.
        paths += [entry for entry in sys.path if entry.endswith("-packages")]
        toolchain = Toolchain(self._environment, self._tools)
        for name in DECIDING_TOOLS:
            try:
                place = toolchain.place_of(name)
            except AotcError:
                identities[name] = "none"
                continue
            witness = place / header_of(name) if place.is_dir() else place
            paths.append(str(witness))
            identities[name] = self.of_program(witness)
        return paths, identities

    def _place(self, what: str) -> Path:
        return (
            self._store.root
            / "identity"
            / hashlib.sha256(what.encode(errors="surrogateescape")).hexdigest()[:32]
        )

    def _recall(self, place: Path) -> dict[str, Any]:
        try:
            found = json.loads(self._store.read_sealed(place))
        except (Miss, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _remember(self, place: Path, content: Mapping[str, Any]) -> None:
        self._store.write_sealed(place, json.dumps(content).encode())


def _installed_packages() -> list[str]:
    found: set[str] = set()
    for entry in sys.path:
        if entry.endswith("-packages"):
            with contextlib.suppress(OSError):
                # (A Path for each takes longer.)
                found.update(name for name in os.listdir(entry) if name.endswith(".dist-info"))  # noqa: PTH208
    return sorted(found)


def _is_elsewhere(package: str, installed: list[str]) -> bool:
    """Whether a package is imported from a source folder: by PYTHONPATH or an editable install."""
    for entry in sys.path:
        if os.path.exists(f"{entry or '.'}/{package}/__init__.py"):  # noqa: PTH110 (as above)
            return not entry.endswith("-packages")
    return any(name.startswith(f"{package}-") for name in installed)


def _imported_packages() -> dict[str, str | None]:
    """The folders that the bindings and libraries are imported from; None for missing ones."""
    found: dict[str, str | None] = {}
    for package, mark in _IMPORTED.items():
        places = (f"{entry or '.'}/{package}" for entry in sys.path)
        # (A Path for each takes longer than the look.)
        found[package] = next(
            (place for place in places if os.path.exists(f"{place}/{mark}")),  # noqa: PTH110
            None,
        )
    return found


def _look(paths: Iterable[str]) -> list[list[int] | None]:
    """The size, time and inode of each path; None for a path that does not exist."""
    seen: list[list[int] | None] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116 (a Path for each takes longer than the look)
        except OSError:
            seen.append(None)
            continue
        seen.append([status.st_size, status.st_mtime_ns, status.st_ino])
    return seen


def _data_folders() -> list[Path]:
    from aotc.toolchain.data import data_dir

    # The runtime's tests do not affect artifacts.
    runtime = data_dir("runtime_c")
    return [*(runtime / name for name in ("include", "programs", "src")), data_dir("templates")]


def _own_files(folders: Iterable[Path]) -> Iterator[tuple[str, os.stat_result]]:
    """The files under the folders, in an order that is the same on every machine."""
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    if entry.name not in ("__pycache__", "_data"):
                        yield from _own_files([Path(entry.path)])
                elif not entry.name.startswith("."):
                    yield entry.path, entry.stat()


def _package_identity(path: Path) -> str | None:
    """The identity of the package that installed a file; None for a file that belongs to none of
    our packages, and for one that was modified since."""
    from aotc.toolchain.tools import TOOL_PACKAGES

    for site in path.parents:
        if not site.name.endswith("-packages"):
            continue
        name = f"\n{path.relative_to(site).as_posix()},".encode(errors="surrogateescape")
        records = _records(site)
        own = [record for one in TOOL_PACKAGES if (record := records.get(one.replace("-", "_")))]
        # The longest RECORD last: most of the files in it are of one program.
        for record in sorted(own, key=lambda record: record.stat().st_size):
            if name in b"\n" + record.read_bytes():
                return _record_identity(record) if _is_of(path, record) else None
    return None


def _records(site: Path) -> dict[str, Path]:
    """The RECORD files of the packages installed in a folder, by the packages' names."""
    with contextlib.suppress(OSError):
        return {
            name.partition("-")[0].lower(): site / name / "RECORD"
            for name in os.listdir(site)  # noqa: PTH208 (a Path for each takes longer)
            if name.endswith(".dist-info") and (site / name / "RECORD").is_file()
        }
    return {}


def _is_of(file: Path, record: Path) -> bool:
    """Whether a file is unchanged since its package was installed."""
    return file.stat().st_mtime < record.stat().st_mtime + _INSTALLATION


def _library_identity(package: Path) -> str:
    """The identity of an imported package: from its RECORD, otherwise from its contents."""
    records = _records(package.parent)
    for name in (package.name, "mlir_python_bindings"):
        if name in records:
            record = records[name]
            changed = [file for file in _shared_objects(package) if not _is_of(file, record)]
            contents = "".join(f" #{content_digest(file)}" for file in changed)
            return _record_identity(record) + contents
    return f"#{_digest(f'{path} {content_digest(path)}' for path in sorted(package.rglob('*.*')))}"


def _record_identity(record: Path) -> str:
    """The identity from a package's list of files with hashes (RECORD; PEP 376, PEP 627): its name,
    its version and the hash of the list without the lines that an installer adds."""
    return _identity_of_list(record, record.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _identity_of_list(record: Path, _time: int) -> str:
    lines = [
        line
        for line in record.read_bytes().splitlines()
        if b"sha256=" in line
        and b".dist-info/" not in line
        and b".pyc," not in line
        and not line.startswith(b"..")
    ]
    name = record.parent.name.removesuffix(".dist-info").replace("-", " ")
    digest = hashlib.sha256(b"\n".join(sorted(lines))).hexdigest()
    return f"{name} #{digest}"


def _shared_objects(package: Path) -> list[Path]:
    return sorted(package.glob("_mlir_libs/*.so*"))


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode(errors="surrogateescape") + b"\n")
    return digest.hexdigest()
