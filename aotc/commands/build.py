"""`aotc build`: argv → BuildRequest → build → files."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from aotc.artifacts import ArtifactFile, named_kinds
from aotc.cache.builds import BuildCache
from aotc.cache.opening import open_cache
from aotc.commands.option import option
from aotc.commands.options import (
    Commas,
    build_options,
    cache_choice,
    given_options,
    many_options,
    named_tools,
)
from aotc.delivery import deliver, the_only_one
from aotc.errors import EXIT_OK, InputError
from aotc.many.job import Job
from aotc.many.plan import check_jobs, other_reads, other_writes, trace_place
from aotc.output import write_file
from aotc.places import Place
from aotc.processes.record import temporary_folder
from aotc.request import BuildRequest
from aotc.request_words import read_tuned
from aotc.warnings import Severity, WarningOptions, first_of


@click.command("build")
@click.argument(
    "sources",
    metavar="[INPUT.mlir]...",
    nargs=-1,
    type=click.Path(path_type=Path, allow_dash=True),
)
@option(
    "--emit",
    multiple=True,
    type=Commas([kind.name for kind in named_kinds()]),
    metavar="KIND",
    help=f"Artifacts to make: {', '.join(kind.name for kind in reversed(named_kinds()))}. "
    "Default: exe. "
    "Several at once: --emit shared,manifest.",
)
@option(
    "-o",
    "out",
    metavar="PATH",
    help="Output file or directory, or - to print text to standard output.",
)
@option(
    "--weights",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write constants of 1 KiB and more to FILE instead of into the artifact, which maps FILE "
    "into memory on first use.",
)
@option(
    "--add-weights",
    is_flag=True,
    help="Keep the weights that FILE has, for other artifacts that share it, and append those that "
    "it lacks.",
)
@option(
    "--replaceable",
    multiple=True,
    metavar="NAME",
    help="With --weights: allow programs to replace the weights of this name (* and ? match any "
    "characters). They are not constant-folded.",
)
@option(
    "--tune",
    is_flag=True,
    help="Measure the matmul kernels on this machine's GPU before the build, as 'aotc tune' does, "
    "and write the results to the file of --tuned. Default: INPUT.tune.json.",
)
@option(
    "--watch",
    is_flag=True,
    help="Rebuild when a file changes: the inputs and files that belong to them, aotc.toml, and "
    "files that options name. Ctrl-C stops it.",
)
@many_options
@build_options
@click.pass_context
def build(context: click.Context, /, sources: Sequence[Path], **options: Any) -> int:
    """Build each INPUT.mlir ('-' reads standard input).

    Without an input, build the targets of aotc.toml in this directory or a parent. INPUT may also
    be the name of such a target.
    """
    from aotc.commands.jobs import build_all, jobs_of

    if options["watch"]:
        from aotc.commands.watch import watch_jobs

        if options["tune"]:
            raise InputError("--watch and --tune do not go together: tune first.")
        given = given_options(context)
        with traced(options["trace"]):
            watch_jobs(lambda: jobs_of(sources, options, given), build_one, options)
    if options["tune"]:
        file, options = options["tuned"], {**options, "tuned": None}
        given = given_options(context) - {"tuned"}
        jobs = jobs_of(sources, options, given)
        check_jobs(jobs, [*trace_place(options["trace"]), *_tuned_places(jobs, file)])
        jobs = [_with_tuning(job, file, options) for job in jobs]
    else:
        jobs = jobs_of(sources, options, given_options(context))
    with traced(options["trace"]):
        if len(jobs) > 1:
            return build_all(jobs, build_one, options)
        build_one(jobs[0], {**options, "tool_jobs": options["jobs"]})
    return EXIT_OK


def _tuned_places(jobs: Sequence[Job], file: Path | None) -> list[Place]:
    from aotc.commands.tune import tuned_file

    files = dict.fromkeys(file or tuned_file(job.request) for job in jobs)
    return [Place("file of what is fastest", one, "--tuned") for one in files]


def _with_tuning(job: Job, file: Path | None, options: dict[str, Any]) -> Job:
    """The job with the tuning file that is measured now."""
    from aotc.commands.tune import tune_here

    text = read_tuned(tune_here(job.request, file, options))
    return replace(job, request=replace(job.request, tuned=text))


@contextlib.contextmanager
def traced(path: Path | None) -> Iterator[None]:
    """A context for the builds of one command: completes the file of --trace at the end."""
    if path is None:
        yield
        return
    from aotc.trace import begin_trace, end_trace

    begin_trace(path)
    try:
        yield
    finally:
        end_trace(path)


def build_one(
    job: Job,
    options: dict[str, Any],
    *,
    watch: Any = None,
    work: Path | None = None,
    name: str = "aotc",
) -> Sequence[Path]:
    """Builds a module, writes its outputs and prints their paths; used by the command and by its
    worker processes. Returns the paths.

    `watch` is an additional observer, `work` is the folder for intermediates, and `name` is the
    prefix of warnings without a place in the input.
    """
    request = job.request
    with work_folder(work) as folder:
        free = {"stdout_is_free": request.out != "-"}
        files = run_stages(request, folder, {**options, **free}, watch=watch, name=name)
        if request.out == "-":
            sys.stdout.buffer.write(the_only_one(request, files).content())
            sys.stdout.buffer.flush()
            made: list[Path] = []
        else:
            writes = [*other_writes(job), *trace_place(options["trace"])]
            places = deliver(request, files, reads=other_reads(job), writes=writes)
            made = [place for _, place in places]
    if job.depfile is not None:
        write_depfile(job, made)
    return made


def write_depfile(job: Job, made: Sequence[Path]) -> None:
    """Writes the depfile of the outputs `made`, after they exist."""
    from aotc.depfile import depfile_text, files_read, quote
    from aotc.identity import own_files

    assert job.depfile is not None
    targets = job.depfile.targets or tuple(quote(str(place)) for place in made)
    inputs = [*files_read(job.request), *job.depfile.inputs, *own_files()]
    write_file(job.depfile.path, os.fsencode(depfile_text(targets, inputs)))


@contextlib.contextmanager
def work_folder(parent: Path | None = None) -> Iterator[Path]:
    with temporary_folder(parent) as folder:
        yield folder


def run_stages(
    request: BuildRequest,
    folder: Path,
    options: dict[str, Any],
    *,
    watch: Any = None,
    name: str = "aotc",
) -> tuple[ArtifactFile, ...]:
    """The requested files, from the cache, or made in `folder`. Prints warnings and reports."""
    tools = named_tools(options)
    make = functools.partial(_make, request, folder, tools, options, watch=watch, name=name)
    cache = open_cache(cache_choice(options), request, tools, explains=options["explain"])
    if cache is None:
        if options["explain_cache"]:
            print("aotc: cache: off", file=sys.stderr)
        return make()
    try:
        with cache:
            return _find_or_make(
                cache, request, options, functools.partial(make, cache=cache), name
            )
    finally:
        _print_cache(cache, options, name)


def _find_or_make(
    cache: BuildCache,
    request: BuildRequest,
    options: dict[str, Any],
    make: Callable[..., tuple[ArtifactFile, ...]],
    name: str,
) -> tuple[ArtifactFile, ...]:
    """The cached result of the build, with its warnings printed; otherwise the result of `make`."""
    started = time.perf_counter()
    found, content = cache.find_build()
    if found is None:
        return make(content=content)
    if options["verbose"]:
        print("# from the cache: all of it", file=sys.stderr)
    if options["explain"] and found.explanation is not None:
        _print_explanation(found.explanation, options)
    if not options["quiet"]:
        print_warnings(found.warnings, request.warnings, name)
    if options["trace"] is not None:
        from aotc.trace import Trace

        Trace(f"{request.source} (from the cache)").append_to(options["trace"])
    if options["time_report"]:
        from aotc.observers import TimeReport

        times = TimeReport()
        times.stage_finished("cache", found.files, (started, time.perf_counter()))
        print(times.text(), file=sys.stderr)
    return found.files


def _make(
    request: BuildRequest,
    folder: Path,
    tools: dict[str, Path],
    options: dict[str, Any],
    *,
    watch: Any,
    name: str,
    cache: BuildCache | None = None,
    content: bytes | None = None,
) -> tuple[ArtifactFile, ...]:
    # The bindings take a sixth of a second to load: not needed for --help, usage errors and cached
    # results.
    from aotc.observers import Progress, SaveTemps, TimeReport
    from aotc.pipeline import new_build, run_build
    from aotc.trace import Trace

    observer = (lambda line: print(line, file=sys.stderr)) if options["verbose"] else None
    build = new_build(
        request,
        folder,
        tools=tools,
        watch_commands=observer,
        jobs=options.get("tool_jobs"),
        cache=cache,
        content=content,
    )
    times = TimeReport()
    trace = Trace(str(request.source))
    observers: list[Any] = [times, trace, *([watch] if watch is not None else [])]
    if request.save_temps is not None:
        observers.append(SaveTemps(request.save_temps))
    progress = Progress(build.runner.counts)
    if sys.stderr.isatty() and not options["quiet"] and not options["verbose"]:
        observers.append(progress)
    try:
        files = run_build(build, observers).files
    finally:
        progress.close()
        if options["trace"] is not None:
            trace.append_to(options["trace"], build.runner.spans)
        if options["explain"] and build.log.explanation is not None:
            # Printed also if the build failed.
            _print_explanation(build.log.explanation.text(), options)
        if not options["quiet"]:
            print_warnings(build.log.warnings, request.warnings, name)
    if options["time_report"]:
        print(times.text(), file=sys.stderr)
    return files


def _print_explanation(text: str, options: dict[str, Any]) -> None:
    # Standard output may be used for an artifact, or by the program that runs.
    print(text, file=sys.stdout if options["stdout_is_free"] else sys.stderr)


def _print_cache(cache: BuildCache, options: dict[str, Any], name: str) -> None:
    if options["explain_cache"]:
        print(cache.report.text(), file=sys.stderr)
    if not options["quiet"]:
        for trouble in cache.troubles():
            print(f"{name}: note: {trouble}", file=sys.stderr)


def print_warnings(found: Iterable[Any], options: WarningOptions, name: str) -> None:
    texts = (
        warning.text(Severity.WARNING, name)
        for warning in found
        if options.severity(warning.name, is_sure=warning.is_sure) is Severity.WARNING
    )
    for text in first_of(texts, "warnings"):
        print(text, file=sys.stderr)
