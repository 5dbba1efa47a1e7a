"""`aotc build --watch`: rebuilds when a file changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from aotc.delivery import known_outputs
from aotc.errors import EXIT_OK, AotcError, InputError
from aotc.many.job import Ended, Job
from aotc.many.pool import run_jobs
from aotc.many.watch import (
    Made,
    State,
    files_of,
    line_of,
    made_of,
    states_of,
    wait_for_change,
)
from aotc.toolchain.runner import cores

if TYPE_CHECKING:
    from aotc.many.worker import BuildJob


def watch_jobs(
    plan: Callable[[], list[Job]], build: BuildJob, options: Mapping[str, Any]
) -> NoReturn:
    """Builds the jobs of `plan`, and rebuilds those that a changed file belongs to, until it is
    interrupted. Raises InputError for invalid jobs before anything is built."""
    jobs = pending = plan()
    for job in jobs:
        if str(job.request.source) == "-" or job.request.out == "-":
            raise InputError("--watch is for files: neither the input nor -o can be '-'.")
    made: dict[Path, Made] = {}
    seen: dict[Path, State] = {}
    while True:
        # Read before the build and, of files that are known, before the plan, so that changes
        # during these are detected.
        now = states_of(file for job in jobs for file in files_of(job))
        seen = {file: seen.get(file, state) for file, state in now.items()}
        if pending:
            _build(pending, build, options, made)
            _say(options, f"aotc: watching {len(seen)} file{'s' if len(seen) != 1 else ''}")
        changed = wait_for_change(seen)
        seen = states_of(seen)
        try:
            jobs = plan()
        except AotcError as error:  # in aotc.toml
            print(error.text(), file=sys.stderr, flush=True)
            pending = []
            continue
        pending = [job for job in jobs if _key(job) not in made or changed & {*files_of(job)}]


def _key(job: Job) -> Path:
    """A path that identifies a job across repeated builds."""
    return known_outputs(job.request)[0]


def _build(
    jobs: Sequence[Job], build: BuildJob, options: Mapping[str, Any], made: dict[Path, Made]
) -> None:
    """Builds in child processes, so that a crash does not end this one. Updates `made`."""
    workers = min(options["jobs"] or cores(), len(jobs))
    shared = {**options, "tool_jobs": max(1, cores() // workers)}
    run_jobs(jobs, build, shared, _Reporter(jobs, options, made), workers=workers)


class _Reporter:
    """Prints the output of each build, and one line with its outputs or its failure."""

    def __init__(
        self, jobs: Sequence[Job], options: Mapping[str, Any], made: dict[Path, Made]
    ) -> None:
        self._jobs = jobs
        self._options = options
        self._made = made

    def started(self, number: int) -> None:
        pass

    def stage(self, number: int, name: str) -> None:
        pass

    def ended(self, number: int, result: Ended) -> None:
        sys.stdout.write(result.stdout)
        sys.stdout.flush()
        sys.stderr.write(result.stderr)
        job = self._jobs[number]
        if result.code != EXIT_OK:
            print(result.failure, file=sys.stderr, flush=True)
            return
        made = made_of(result.made, result.seconds)
        _say(self._options, f"aotc: {line_of(job.title, made, self._made.get(_key(job)))}")
        self._made[_key(job)] = made


def _say(options: Mapping[str, Any], line: str) -> None:
    if not options["quiet"]:
        print(line, file=sys.stderr, flush=True)
