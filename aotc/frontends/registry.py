"""Finds the installed front ends, and the front end for a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from aotc.errors import AotcError, InputError, ToolError

if TYPE_CHECKING:
    import importlib.metadata

GROUP = "aotc.frontends"
# MLIR as text or bytecode. Files with unknown endings are read as MLIR, too.
MLIR = "mlir"
MLIR_ENDINGS = (".mlir", ".mlirbc")
# aotc's own front ends, which may be unavailable, by their endings.
_OWN = {".pt2": "torch", ".onnx": "onnx", ".stablehlo": "stablehlo"}


def _none_missing() -> str | None:
    return None


def _no_files(path: Path) -> Iterable[Path]:
    return ()


class Frontend(Struct, frozen=True):
    """An importer of another format to MLIR.

    - `endings` are the extensions of its files, with the dot.
    - `load(path, options)` returns an `ir.Module`, of either package of bindings and in any
      context. The locations of its operations name `path` as it was given, so that errors have
      the place. It raises `aotc.InputError` for errors in the file.
    - `options` maps the name of each option (`--frontend-option NAME=VALUE`) to its description.
    - `missing` returns how to install what `load` needs ("pip install 'aotc[torch]'"), or None if
      nothing is missing. It is called before `load`.
    - `beside(path)` returns the other files that `load` reads for that file, for `-MD`.
    - `is_extended` returns whether code of other packages takes part in an import.
    """

    name: str
    endings: tuple[str, ...]
    load: Callable[[Path, Mapping[str, str]], Any]
    about: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    missing: Callable[[], str | None] = _none_missing
    beside: Callable[[Path], Iterable[Path]] = _no_files
    is_extended: Callable[[], bool] = bool

    @property
    def is_own(self) -> bool:
        """Whether it is one of aotc's own, whose source files are all part of the build cache's
        key."""
        return self.load.__module__.startswith("aotc.") and not self.is_extended()

    def __post_init__(self) -> None:
        """Raises ValueError for endings that are not valid, or are MLIR's."""
        if not isinstance(self.endings, tuple) or any(
            not ending.startswith(".") or ending in MLIR_ENDINGS for ending in self.endings
        ):
            raise ValueError(
                f"endings are a tuple of texts with a dot, other than MLIR's: {self.endings!r}"
            )


class Found(Struct, frozen=True):
    """An entry point: the front end, or why it cannot be used, and the distribution that provides
    it."""

    name: str
    distribution: str
    frontend: Frontend | None
    failure: str | None = None

    def line(self) -> str:
        """The line that `aotc --version` prints."""
        if self.frontend is None:
            return f"{self.name:<14} {self.failure}"
        endings = " ".join(self.frontend.endings)
        missing = self.frontend.missing()
        state = f"not installed: {missing}" if missing else self.distribution
        return f"{self.name:<14} {endings}  ({state})"


def frontends() -> tuple[Found, ...]:
    """All installed front ends, by name. One that cannot be imported is included, with the
    reason."""
    import importlib.metadata  # takes as long to load as MLIR

    points = importlib.metadata.entry_points(group=GROUP)
    return tuple(_load(point) for point in sorted(points, key=lambda point: point.name))


def _load(point: importlib.metadata.EntryPoint) -> Found:
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist else "?"
    try:
        frontend = point.load()
        if isinstance(frontend, Frontend):
            frontend.missing()
    except Exception as error:
        return Found(point.name, distribution, None, f"{type(error).__name__}: {error}")
    if not isinstance(frontend, Frontend):
        return Found(point.name, distribution, None, f"{point.value} is no aotc Frontend")
    return Found(point.name, distribution, frontend)


def frontend_for(path: Path, name: str | None) -> Frontend | None:
    """The front end with that name; without a name, the one for the file's ending. None for MLIR.

    Raises InputError for an unknown name, and for an ending that several front ends have.
    """
    # No front end can have MLIR's endings, so none is loaded for them.
    if name == MLIR or (name is None and path.name.endswith((*MLIR_ENDINGS, "-"))):
        return None
    found = frontends()
    if name is not None:
        return _frontend_named(name, found)
    fitting = [
        one.frontend
        for one in found
        if one.frontend is not None and path.name.endswith(one.frontend.endings)
    ]
    if len(fitting) > 1:
        names = " or ".join(frontend.name for frontend in fitting)
        raise InputError(
            f"'{path}': its ending is that of several front ends.", hint=f"--frontend {names}"
        )
    if not fitting and (own := _OWN.get(path.suffix)):
        if all(one.name != own for one in found):
            raise ToolError(
                f"'{path}' is for the front end '{own}', which is not installed.",
                hint="front ends are found by the metadata of an installed aotc, and this one runs "
                "from a folder: install it by pip.",
            )
        return _frontend_named(own, found)
    return fitting[0] if fitting else None


def _frontend_named(name: str, found: Iterable[Found]) -> Frontend:
    called = [one for one in found if one.name == name]
    if len(called) > 1:
        packages = " and ".join(one.distribution for one in called)
        raise InputError(f"--frontend '{name}' is one of several packages: {packages}.")
    for one in called:
        if one.frontend is None:
            raise ToolError(f"The front end '{name}' cannot be used: {one.failure}.")
        return one.frontend
    known = ", ".join([MLIR, *(one.name for one in found)])
    raise InputError(f"Unknown --frontend '{name}'. Known: {known}.")


def check_usable(frontend: Frontend, path: Path, options: Mapping[str, str]) -> None:
    """Raises InputError for options that the front end does not have, and ToolError if packages
    that it needs are missing."""
    for option in options:
        if option not in frontend.options:
            known = ", ".join(frontend.options) or "none"
            raise InputError(
                f"The front end '{frontend.name}' has no option '{option}'. Known: {known}."
            )
    missing = frontend.missing()
    if missing:
        raise ToolError(
            f"'{path}' is for the front end '{frontend.name}', which lacks what it needs.",
            hint=missing,
        )


def run_frontend(frontend: Frontend, path: Path, options: Mapping[str, str]) -> Any:
    """Returns the front end's module of the file. Raises InputError for a file that cannot be read,
    and ToolError if the front end raises an error other than aotc's."""
    try:
        return frontend.load(path, options)
    except AotcError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.filename in (path, str(path)):
            raise InputError(f"Cannot read '{path}': {error.strerror}.") from None
        raise ToolError(
            f"The front end '{frontend.name}' failed: {type(error).__name__}: {error}"
        ) from error
