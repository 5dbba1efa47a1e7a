"""Where the files of a build go: a file, a folder, a library's package."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aotc.errors import InputError
from aotc.output import check_writable, write_file
from aotc.request import BuildRequest, EmitKind

if TYPE_CHECKING:
    from aotc.stages.build import StageFile

# What linkers give the right to be executed.
_EXECUTABLE = (EmitKind.EXE, EmitKind.SHARED)


def check_output(request: BuildRequest) -> None:
    """Refuses an output place that cannot work, before anything is built. Raises InputError."""
    if request.save_temps is not None:
        check_writable(request.save_temps)
    if request.out is None:
        check_writable(Path())
    elif request.out == "-":
        binary = [kind.value for kind in request.emit if not kind.is_text]
        if binary:
            raise InputError(f"-o - is for text, and {', '.join(binary)} is not: name a file.")
        if len(request.emit) > 1:
            raise InputError("-o - takes one --emit: text of several kinds would run together.")
    elif request.names_folder:
        check_writable(Path(request.out))
    else:
        if len(request.emit) > 1:
            names = ", ".join(kind.value for kind in request.emit)
            raise InputError(
                f"-o {request.out} names one file, and --emit {names} makes several: "
                "name a directory (with a / at its end)."
            )
        check_writable(Path(request.out).parent)


def the_only_one(request: BuildRequest, files: Sequence[StageFile]) -> StageFile:
    """The one file of a build whose output has room for one. Raises InputError for more."""
    if len(files) > 1:
        names = ", ".join(file.file_name for file in files)
        raise InputError(
            f"-o {request.out} has room for one file, and the build made {len(files)}: {names}. "
            "Name a directory, or fewer chips with --chip."
        )
    return files[0]


def deliver(request: BuildRequest, files: Sequence[StageFile]) -> list[tuple[EmitKind, Path]]:
    """Writes the files, each whole or not at all; where they are, by kind. Raises InputError."""
    for file in files:
        _protect_input(request, _place(request, file))
    if request.out is not None and not request.names_folder:
        the_only_one(request, files)
    delivered = []
    for file in files:
        place = _place(request, file)
        write_file(place, file.content(), executable=file.kind in _EXECUTABLE)
        delivered.append((file.kind, place))
    return delivered


def _place(request: BuildRequest, file: StageFile) -> Path:
    """Where a file goes: -o FILE itself, or under its own name into a folder."""
    if request.out is None:
        return Path(file.file_name)
    if not request.names_folder:
        return Path(request.out)
    is_package = any(kind.is_library for kind in request.emit)
    folder = Path(request.out) / file.folder if is_package else Path(request.out)
    return folder / file.file_name


def _protect_input(request: BuildRequest, place: Path) -> None:
    if request.content is not None:
        return
    with contextlib.suppress(OSError):
        if place.samefile(request.source):
            raise InputError(f"The output '{place}' would overwrite the input: name another (-o).")
