"""The jobs of an `aotc build` command, and running several of them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotc.commands.options import named_tools, request_of, request_words
from aotc.errors import InputError
from aotc.many.job import Job
from aotc.many.plan import check_jobs, depfile_for, named_inputs, requests_for, trace_place
from aotc.many.project import Planned, chosen_targets

if TYPE_CHECKING:
    from aotc.many.worker import BuildJob


def jobs_of(
    sources: Sequence[Path], options: Mapping[str, Any], given: frozenset[str]
) -> list[Job]:
    """The modules to build: the inputs, or the targets of aotc.toml. `given` are the options on
    the command line. Raises InputError for invalid jobs, before anything is built."""
    chosen = chosen_targets(sources)
    if chosen is not None:
        project, names = chosen
        planned = project.plan(names, request_words(options), given)
        read = [Path(os.path.relpath(project.path))]
    else:
        first = request_of(sources[0], options)
        named = {"pipeline": options["pipeline"], "tuned": options["tuned"]}
        planned = [Planned(request, **named) for request in requests_for(sources, first)]
        read = []
    jobs = _jobs(planned, options, read)
    check_jobs(jobs, trace_place(options["trace"]))
    return jobs


def _jobs(
    planned: Sequence[Planned], options: Mapping[str, Any], read: Sequence[Path]
) -> list[Job]:
    tools = list(named_tools(options).values())
    named = [named_inputs(one.pipeline, tools, one.tuned) for one in planned]
    reads = [(*read, *inputs) for inputs in named]
    words = options["depfile_targets"] or options["depfile_quoted_targets"]
    if not options["make_depfile"]:
        if options["depfile"] is not None or words:
            raise InputError("-MF and -MT say where a depfile goes and what is in it: add -MD.")
        return [
            Job(one.request, one.title, reads=files)
            for one, files in zip(planned, reads, strict=True)
        ]
    if len(planned) > 1 and (options["depfile"] is not None or words):
        raise InputError(
            f"-MF and -MT are for one input, and there are {len(planned)}: with -MD alone each "
            "has its own depfile."
        )
    return [
        Job(
            one.request,
            one.title,
            depfile_for(
                one.request,
                path=options["depfile"],
                targets=options["depfile_targets"],
                quoted_targets=options["depfile_quoted_targets"],
                inputs=inputs,
            ),
            files,
        )
        for one, inputs, files in zip(planned, named, reads, strict=True)
    ]


def build_all(jobs: list[Job], build: BuildJob, options: Mapping[str, Any]) -> int:
    """Builds several modules with `build`, reports their results and returns the exit code."""
    from aotc.many.pool import run_jobs
    from aotc.many.progress import Reporter
    from aotc.toolchain.runner import cores

    workers = min(options["jobs"] or cores(), len(jobs))
    # Each build runs tools in parallel, too: limit the total to the number of cores.
    shared = {**options, "tool_jobs": max(1, cores() // workers)}
    quiet, verbose = options["quiet"], options["verbose"]
    began = time.monotonic()
    # Output of several builds needs the name of the build.
    lines = verbose or options["time_report"] or options["explain_cache"]
    reporter = Reporter(jobs, lines=lines, live=sys.stderr.isatty() and not (quiet or verbose))
    with contextlib.closing(reporter):
        tally = run_jobs(
            jobs, build, shared, reporter, workers=workers, fail_fast=options["fail_fast"]
        )
    for number in tally.failed:
        print(tally.ended[number].failure, file=sys.stderr)
    if tally.failed or not quiet:
        seconds = time.monotonic() - began
        print(f"aotc: {tally.summary()} ({seconds:.1f} s)", file=sys.stderr)
    return tally.code
