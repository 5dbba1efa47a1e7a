"""Writes the files of a build to their destinations: a file, a folder, or a library's package."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import SHARED, WEIGHTS, ArtifactFile
from aotc.errors import InputError
from aotc.output import (
    NewFile,
    check_links,
    check_temporary,
    check_writable,
    told_of,
    write_files,
)
from aotc.places import Place, check_apart, check_characters, check_name
from aotc.request import BuildRequest
from aotc.toolchain.data import SHARED_RUNTIME
from aotc.weights_file import add_weights

# The limit for file names on Linux, minus what a temporary name adds.
_LONGEST_NAME = 255 - 20


def check_output(request: BuildRequest) -> None:
    """Checks the output path and the folder for temporary files before anything is built. Raises
    InputError."""
    _check_names(request)
    check_temporary(os.environ)
    if request.save_temps is not None:
        check_writable(request.save_temps)
    if request.print_ir.folder is not None:
        check_writable(request.print_ir.folder)
    if request.weights is not None:
        check_writable(request.weights.parent)
        check_name("path from the artifact to --weights", weights_from_artifact(request))
    if request.out is None:
        check_writable(Path())
    elif request.out == "-":
        binary = [kind.name for kind in request.outputs if not kind.is_text]
        if binary:
            raise InputError(f"-o - is for text, and {', '.join(binary)} is not: name a file.")
        if len(request.outputs) > 1:
            raise InputError("-o - takes one --emit: text of several kinds would run together.")
    elif request.names_folder:
        check_writable(Path(request.out))
    else:
        if len(request.outputs) > 1:
            names = ", ".join(kind.name for kind in request.outputs)
            raise InputError(
                f"-o {request.out} is a file, and --emit {names} makes several: name a directory."
            )
        check_writable(Path(request.out).parent)
        check_links(Path(request.out))
        _check_count(request)
    check_apart(places_read(request), places_written(request), numbered=request.save_temps)


def places_read(request: BuildRequest) -> list[Place]:
    if request.content is not None or str(request.source) == "-":
        return []
    return [Place("input", request.source)]


def places_written(request: BuildRequest) -> list[Place]:
    """The files whose paths are known before the build: see `known_outputs`."""
    weights = [] if request.weights is None else [_weights_place(request.weights)]
    if request.out == "-":
        return weights
    others = known_outputs(replace(request, emit=request.outputs))
    return [*(Place("output", path, "-o") for path in others), *weights]


def _weights_place(path: Path) -> Place:
    return Place("file of weights", path, "--weights")


def _check_names(request: BuildRequest) -> None:
    """Checks that the names of the input and of the output files (without folders), which become
    part of artifacts, are UTF-8, as the contents of artifacts are."""
    check_name("input", str(request.source))
    # Debug information contains the input's path with its folder.
    check_characters("input", str(request.source) if request.has_lines else request.source.name)
    if request.weights is not None:
        check_name("--weights", str(request.weights))
    for path in known_outputs(request):
        check_name("output", path.name)
    for name in [request.library, *(path.name for path in known_outputs(request))]:
        if len(name.encode()) > _LONGEST_NAME:
            raise InputError(
                f"The name '{name[:20]}...', which a file would have, has {len(name.encode())} "
                f"bytes: a file system takes {_LONGEST_NAME}, with what is put beside it."
            )


def _check_count(request: BuildRequest) -> None:
    """Rejects several chips for one output file without building, if the chips alone decide it."""
    if request.emit[0].is_per_chip and len(request.chips) > 1:
        names = ", ".join(chip.name for chip in request.chips)
        raise InputError(
            f"-o {request.out} has room for one file, and --emit {request.emit[0].name} makes one "
            f"for each of {names}: name a directory (with a / at its end), or one chip."
        )


def check_room(request: BuildRequest, kind: ArtifactKind, names: Sequence[str]) -> None:
    """Raises InputError if -o is a single file and the build makes several files of `kind`."""
    is_one = request.out is not None and not request.names_folder
    if is_one and kind in request.emit and len(names) > 1:
        raise _no_room(request, names)


def _no_room(request: BuildRequest, names: Sequence[str]) -> InputError:
    return InputError(
        f"-o {request.out} has room for one file, and the build makes {len(names)}: "
        f"{', '.join(names)}. Name a directory, or fewer chips with --chip."
    )


def the_only_one(request: BuildRequest, files: Sequence[ArtifactFile]) -> ArtifactFile:
    """The only file of a build whose output is a single file. Raises InputError for more."""
    if len(files) > 1:
        raise _no_room(request, [file.file_name for file in files])
    return files[0]


def deliver(
    request: BuildRequest,
    files: Sequence[ArtifactFile],
    *,
    reads: Sequence[Place] = (),
    writes: Sequence[Place] = (),
) -> list[tuple[ArtifactKind, Path]]:
    """Writes the files atomically and returns their paths with their kinds. `reads` and `writes`
    are the other files of the command. Raises InputError."""
    _check_apart(request, files, reads, writes)
    if request.out is not None and not request.names_folder:
        the_only_one(request, [file for file in files if file.kind is not WEIGHTS])
    places = [_place(request, file) for file in files]
    new = [
        NewFile(place, file.path or file.content(), file.kind.is_executable)
        for place, file in zip(places, files, strict=True)
    ]
    with _added(new, request.weights) if request.adds_weights else nullcontext(new) as written:
        write_files(written)
    return [(file.kind, place) for file, place in zip(files, places, strict=True)]


@contextmanager
def _added(new: Sequence[NewFile], weights: Path | None) -> Iterator[list[NewFile]]:
    """The files, with the weights of an existing weights file merged into the new one; without the
    weights file, if the existing one has all of them. Concurrent builds that add weights wait.
    Raises InputError if the existing file is not a weights file."""
    assert weights is not None
    place = weights.resolve()
    with told_of(weights), ExitStack() as stack:
        place.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(place.parent, os.O_RDONLY)
        stack.callback(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not place.exists():
            yield list(new)
            return
        temporary = stack.enter_context(TemporaryDirectory(dir=place.parent, prefix="."))
        given, merged = Path(temporary) / "given", Path(temporary) / "merged"
        written = []
        for file in new:
            if file.path != weights:
                written.append(file)
                continue
            if isinstance(file.content, bytes):
                given.write_bytes(file.content)
            source = given if isinstance(file.content, bytes) else file.content
            if add_weights(place, source, merged):
                written.append(NewFile(weights, merged))
        yield written


def _place(request: BuildRequest, file: ArtifactFile) -> Path:
    """The path of a file: -o FILE itself, or the file's own name in a folder."""
    return _place_of(request, file.kind, file.folder, file.file_name)


def _place_of(request: BuildRequest, kind: ArtifactKind, inside: str, name: str) -> Path:
    if kind is WEIGHTS:
        assert request.weights is not None
        return request.weights
    if request.out is None:
        return Path(name)
    if not request.names_folder:
        return Path(request.out)
    return (Path(request.out) / inside if request.is_package else Path(request.out)) / name


def known_outputs(request: BuildRequest) -> list[Path]:
    """The files that a build will write, in the order of --emit, for build systems.

    If a kind has one file per gpu.module, whose names only the build knows, one path stands for
    all of them.
    """
    places = [
        _place_of(request, kind, *os.path.split(path))
        for kind in request.emit
        for path in request.paths_of(kind)
    ]
    if request.shares_runtime and request.is_package:
        places.append(Path(str(request.out)) / SHARED.folder / SHARED_RUNTIME)
    return places


def weights_from_artifact(request: BuildRequest) -> str:
    """The path of the weights file relative to the folder of the artifact. Raises InputError if
    there is no such path, or several."""
    assert request.weights is not None
    if request.weights.is_dir():
        raise InputError(f"--weights {request.weights} is a directory: name a file.")
    folders = {_folder_of_code(request, kind) for kind in request.emit if kind.has_code}
    if len(folders) > 1:
        names = " and ".join(sorted(f"'{folder}'" for folder in folders))
        raise InputError(
            f"--weights: what uses {request.weights} would be in {names}, and looks for it from "
            "where it is: build them one by one."
        )
    (folder,) = folders
    place = request.weights.parent.resolve() / request.weights.name
    if request.out is not None and place == Path(request.out).resolve():
        raise InputError(f"--weights {request.weights} and -o {request.out} are one file.")
    return os.path.relpath(place, folder.resolve())


def _folder_of_code(request: BuildRequest, kind: ArtifactKind) -> Path:
    if request.out is None:
        return Path()
    if not request.names_folder:
        return Path(request.out).parent
    return Path(request.out) / kind.folder


def _check_apart(
    request: BuildRequest,
    files: Sequence[ArtifactFile],
    reads: Sequence[Place],
    writes: Sequence[Place],
) -> None:
    """Checks also the names that only the build determines. (Several outputs for a single file are
    a separate error.)"""
    made = [
        _weights_place(place) if file.kind is WEIGHTS else Place("output", place, "-o")
        for place, file in {_place(request, file): file for file in files}.items()
    ]
    check_apart([*places_read(request), *reads], [*made, *writes], numbered=request.save_temps)
