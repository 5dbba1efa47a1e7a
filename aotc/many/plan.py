"""Inputs → jobs with distinct outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from aotc.delivery import check_output, known_outputs, places_read, places_written
from aotc.depfile import Depfile, files_read, quote
from aotc.errors import InputError
from aotc.many.job import Job
from aotc.places import Place, check_apart
from aotc.request import BuildRequest, PrintIr
from aotc.toolchain.data import SHARED_RUNTIME


def requests_for(sources: Sequence[Path], request: BuildRequest) -> list[BuildRequest]:
    """One request per source; `request` is that of the first source. Raises InputError if its
    output is a single file."""
    if len(sources) == 1:
        return [request]
    count = f"there are {len(sources)} inputs"
    if any(str(source) == "-" for source in sources):
        raise InputError("Standard input ('-') is an input for itself: name files, or - alone.")
    if request.out == "-":
        raise InputError(f"-o - takes the text of one input, and {count}.")
    if request.out_is_file:
        raise InputError(f"-o {request.out} is a file, and {count}: name a directory.")
    if request.weights is not None:
        raise InputError(f"--weights {request.weights} is one file, and {count}.")
    return [
        replace(
            request,
            source=source,
            out=request.out and f"{request.out.rstrip('/')}/",
            save_temps=request.save_temps and request.save_temps / _name(request, source),
            print_ir=_print_ir(request, source),
        )
        for source in sources
    ]


def _print_ir(request: BuildRequest, source: Path) -> PrintIr:
    wanted = request.print_ir
    return replace(wanted, folder=wanted.folder and wanted.folder / _name(request, source))


def _name(request: BuildRequest, source: Path) -> str:
    return replace(request, source=source).name


def check_jobs(jobs: Sequence[Job], writes: Sequence[Place]) -> None:
    """Checks the outputs of all jobs before anything is built. `writes` are the command's own
    files, such as a trace. Raises InputError."""
    for request in dict.fromkeys(job.request for job in jobs):
        check_output(request)
    if len(jobs) > 1:
        _check_names(jobs)
    reads = [place for job in jobs for place in (*_inputs(job.request), *other_reads(job))]
    written = [place for job in jobs for place in places_written(job.request)]
    shared = {place.path: place for place in written if place.path.name == SHARED_RUNTIME}
    written = [place for place in written if place.path not in shared]
    written += [place for job in jobs for place in other_writes(job)]
    check_apart(reads, [*written, *shared.values(), *writes])
    for folder in {job.request.save_temps: None for job in jobs if job.request.save_temps}:
        check_apart(reads, [*written, *writes], numbered=folder)


def _inputs(request: BuildRequest) -> list[Place]:
    """The input, and the other files that a front end reads."""
    places = places_read(request)
    with contextlib.suppress(Exception):  # the file may be missing: the build reports it
        places += [Place("file", path) for path in files_read(request)[1:]]
    return places


def other_reads(job: Job) -> list[Place]:
    """The files that a build reads besides its input."""
    return [Place("file", path) for path in job.reads]


def other_writes(job: Job) -> list[Place]:
    """The files that a build writes besides its artifacts."""
    return [] if job.depfile is None else [Place("depfile", job.depfile.path, "-MF")]


def trace_place(path: Path | None) -> list[Place]:
    return [] if path is None else [Place("trace", path, "--trace")]


def _check_names(jobs: Sequence[Job]) -> None:
    """Raises one InputError for all outputs of several inputs that have the same path."""
    by_place: dict[Path, list[str]] = {}
    for job in jobs:
        for place in known_outputs(job.request):
            if place.name == SHARED_RUNTIME:  # shared by all packages
                continue
            by_place.setdefault(place.resolve(), []).append(job.title)
    # The files of a package clash together: report the first one.
    clashes = {tuple(titles): place for place, titles in reversed(by_place.items())}
    lines = [
        f"{' and '.join(titles)} would both be '{_shown(place)}'."
        for titles, place in reversed(clashes.items())
        if len(titles) > 1
    ]
    if lines:
        raise InputError(
            "Several inputs make outputs of one name.\n  " + "\n  ".join(lines),
            hint="Build them into different directories (-o DIR/), or rename one.",
        )


def _shown(place: Path) -> str:
    here = Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else str(place)


def depfile_for(
    request: BuildRequest,
    *,
    path: Path | None,
    targets: Sequence[str],
    quoted_targets: Sequence[str],
    inputs: Sequence[Path],
) -> Depfile:
    """The depfile of a build: `path` (-MF), otherwise beside the output, named as compilers do.

    `targets` (-MT) are used as they are, `quoted_targets` (-MQ) are quoted. Raises InputError if
    the depfile has no path.
    """
    for word in (str(request.source), request.out or "", *quoted_targets, *map(str, inputs)):
        if "\n" in word:
            raise InputError(
                f"A depfile (-MD) has no text for the path {word!r}: it has a newline."
            )
    words = (*targets, *map(quote, quoted_targets))
    if path is None:
        if request.out == "-":
            raise InputError("-MD with -o - needs -MF FILE: there is no output to put it beside.")
        if request.out is None or request.names_folder:
            # Both kinds have several files; an executable has the module's name.
            name = request.library if request.makes_library else request.name
            path = Path(request.out or "") / f"{name}.d"
        else:
            path = Path(request.out).with_suffix(".d")
    if request.out == "-" and not words:
        raise InputError("-MD with -o - needs -MT TARGET: there is no output that depends.")
    return Depfile(path, words, tuple(inputs))


def named_inputs(pipeline: str | None, tools: Sequence[Path], tuned: Path | None) -> list[Path]:
    """The files that options name: `@FILE` of --pipeline, the file of --tuned, and tools that
    replace those of the packages."""
    pipelines = [Path(pipeline[1:])] if pipeline and pipeline.startswith("@") else []
    return [*pipelines, *([] if tuned is None else [tuned]), *tools]
