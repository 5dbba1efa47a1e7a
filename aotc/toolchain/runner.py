"""`Runner`: runs command lists, and turns a failure into a `ToolError` that says everything."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol, TypeVar

from msgspec import Struct

from aotc.errors import ToolError
from aotc.processes.signals import uninterrupted
from aotc.trace import Span

T = TypeVar("T")

KEEP_HINT = "keep the intermediates with --save-temps DIR"


class Completed(Struct, frozen=True):
    """A command that succeeded, and what it said."""

    command: tuple[str, ...]
    stdout: str = ""
    stderr: str = ""


class FileCommand(Struct, frozen=True):
    """A command that makes files of files, in `folder`.

    `env` adds to the tools' environment. `reads` are files, or folders of headers; relative ones,
    and all of `writes`, are in `folder`. `names_matter`: whether what it makes depends on their
    names.
    """

    words: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    reads: tuple[str | Path, ...]
    writes: tuple[str, ...]
    names_matter: bool = True


class CommandCache(Protocol):
    """Runs commands, or gives what they made before: see `aotc.cache.actions`."""

    def run(
        self, command: FileCommand, execute: Callable[[], Completed]
    ) -> tuple[Completed, bool]: ...

    def tell_made_again(self, step: str, why: str) -> None: ...


class StoppedError(Exception):
    """The runner was stopped while, or before, this command ran. Never reaches the user."""


def cores() -> int:
    """How many this process may use: a container or `taskset` may leave it fewer than there are."""
    return len(os.sched_getaffinity(0))


def tool_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of every tool, from the user's.

    Small on purpose: with CPATH, LIBRARY_PATH, CFLAGS or a locale in it, the same input
    would not give the same bytes.
    """
    tools = {
        "LC_ALL": "C",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": "0",
        "PATH": os.defpath,
    }
    if "TMPDIR" in environment:
        tools["TMPDIR"] = environment["TMPDIR"]
    return tools


@contextlib.contextmanager
def zig_environment(command: Sequence[str], folder: Path | None) -> Iterator[dict[str, str]]:
    """What `zig cc` needs besides: a folder for its cache, which it would look for at HOME.

    It is an empty one, below `folder`: zig does not check by its hash what it finds in its cache.
    """
    if tuple(command[1:2]) != ("cc",):
        yield {}
        return
    # (Children of a zig that was killed may still write there.)
    with tempfile.TemporaryDirectory(
        prefix=".zig-", dir=folder, ignore_cleanup_errors=True
    ) as place:
        yield {"ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}


def tool_name(command: Sequence[str]) -> str:
    """How messages call the tool of `command`: `ptxas`, or `zig cc`, which is one of several."""
    name = Path(command[0]).name
    if name == "zig" and len(command) > 1:
        return f"zig {command[1]}"
    return name


# Signals that a process gets for what it does itself.
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class Runner:
    """Runs tools. One object serves several threads.

    `environment` is the user's (tools get `tool_environment` of it). `observer` is called
    with each command line, quoted for a shell, before it runs, one at a time. `jobs` is how many
    tools run at a time, by default as many as there are cores for this process. `cache` has what
    commands made before.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        observer: Callable[[str], None] | None = None,
        jobs: int | None = None,
        cache: CommandCache | None = None,
    ) -> None:
        self._environment = environment
        self._jobs = jobs or cores()
        self._cache = cache
        self._observer = observer
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        # Of each set of tasks that run side by side: how many are done, and how many there are.
        self._batches: list[list[int]] = []
        self._tool_environment: dict[str, str] | None = None
        # The commands that ran: what they made, when, and by which tool.
        self.spans: list[Span] = []

    def note(self, text: str) -> None:
        """Tells the observer something between commands."""
        if self._observer is not None:
            self._observer(f"# {text}")

    def tell_made_again(self, step: str, why: str) -> None:
        """Says that something kept is made again, and why."""
        with self._lock:
            self.note(f"made again: {step} ({why})")
        if self._cache is not None:
            self._cache.tell_made_again(step, why)

    def run(
        self,
        command: Sequence[str],
        *,
        making: str,
        input: bytes | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str | Path] = (),
        writes: Sequence[str] = (),
        names_matter: bool = True,
        prepare: Callable[[], Mapping[str, str]] | None = None,
    ) -> Completed:
        """Runs `command` to its end, after `prepare`. `making` names its product, for messages.

        `env` adds to the tools' environment, and so does what `prepare` returns, which makes no
        difference to what the command makes. `reads` and `writes` are all the files that make a
        difference to what it does, and that it makes, from `cwd`: with them, a command that was
        run before need not run again; if not `names_matter`, even for files of other names, with
        the same content. Raises ToolError when the tool cannot be started or fails.
        When this thread is interrupted, the tool and its children are killed.
        """

        def execute() -> Completed:
            prepared = {} if prepare is None else prepare()
            done = self._execute(command, making, input, cwd, {**prepared, **(env or {})})
            missing = [name for name in writes if not ((cwd or Path()) / name).is_file()]
            if missing:
                raise ToolError(
                    f"{tool_name(command)} ended as if it had made {making}, and there is no "
                    f"{', '.join(missing)}: is it the program that it should be?",
                    command=command,
                    stderr=done.stderr or done.stdout,
                    hint=KEEP_HINT,
                )
            return done

        if self._cache is None or cwd is None or not writes or input is not None:
            return execute()
        done, was_run = self._cache.run(
            FileCommand(tuple(command), cwd, env or {}, tuple(reads), tuple(writes), names_matter),
            execute,
        )
        if not was_run:
            with self._lock:
                self.note(f"from the cache: {making}")
        return done

    def _execute(
        self,
        command: Sequence[str],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> Completed:
        command = tuple(command)
        with self._lock:
            if self._stopped:
                raise StoppedError(making)
            if self._tool_environment is None:
                self._tool_environment = tool_environment(self._environment)
            if self._observer is not None:
                self._observer(shlex.join(command))
        with zig_environment(command, cwd) as own:
            process, stdout, stderr = self._complete(command, making, input, cwd, {**own, **env})
        if process.returncode != 0:
            if self._stopped:
                raise StoppedError(making)
            raise self._failure(command, making, process.returncode, stdout, stderr)
        return Completed(command, _text(stdout), _text(stderr))

    def _complete(
        self,
        command: tuple[str, ...],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> tuple[subprocess.Popen[bytes], bytes, bytes]:
        """Runs `command` to its end; the process, and what it wrote to stdout and stderr."""
        process = None
        began = time.perf_counter()
        try:
            with uninterrupted():
                process = self._start(command, making, input, cwd, env)
            if self._stopped:  # between our caller's look and now
                raise StoppedError(making)
            return process, *process.communicate(input)
        finally:
            if process is not None:
                # After a normal end there is nothing left to kill.
                if process.returncode is None:
                    _kill(process)
                with self._lock:
                    self._live.discard(process)
                    self.spans.append(Span(making, began, time.perf_counter(), tool_name(command)))

    def _start(
        self,
        command: tuple[str, ...],
        making: str,
        input: bytes | None,
        cwd: Path | None,
        env: Mapping[str, str],
    ) -> subprocess.Popen[bytes]:
        """Starts `command`, one of those that `stop` ends from now on."""
        assert self._tool_environment is not None
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={**self._tool_environment, **env},
                # A group of its own: zig starts children, and all of them must go at once.
                process_group=0,
            )
        except OSError as error:
            raise ToolError(
                f"{tool_name(command)} cannot be started to make {making}: {error}",
                command=command,
            ) from None
        with self._lock:
            self._live.add(process)
        return process

    @staticmethod
    def _failure(
        command: Sequence[str], making: str, code: int, stdout: bytes, stderr: bytes
    ) -> ToolError:
        return ToolError(
            f"{tool_name(command)} could not make {making}: {_ending(code)}",
            command=command,
            # Some tools complain on stdout.
            stderr=_text(stderr) or _text(stdout),
            hint=KEEP_HINT,
            is_crash=-code in _CRASHES,
        )

    def stop(self) -> None:
        """Kills every running tool, and refuses to start another. For any thread."""
        with self._lock:
            self._stopped = True
            live = list(self._live)
        for process in live:
            _signal_group(process)

    def in_parallel(self, tasks: Sequence[Callable[[], T]], *, jobs: int | None = None) -> list[T]:
        """Calls every task, several at a time; their results, in order.

        When one fails, or the caller is interrupted, every tool that this runner runs is
        killed; the failure that came first, in the order of the tasks, is raised.
        """
        batch = [0, len(tasks)]

        def counted(task: Callable[[], T]) -> T:
            made = task()
            with self._lock:
                batch[0] += 1
            return made

        with self._lock:
            self._batches.append(batch)
        try:
            return self._in_parallel([partial(counted, task) for task in tasks], jobs)
        finally:
            with self._lock:
                self._batches = [one for one in self._batches if one is not batch]

    def counts(self) -> tuple[int, int] | None:
        """How many of the tasks that run side by side now are done, and how many there are; None
        where there are no several."""
        with self._lock:
            done, all_ = (sum(batch[i] for batch in self._batches) for i in (0, 1))
        return (done, all_) if all_ > 1 else None

    def _in_parallel(self, tasks: Sequence[Callable[[], T]], jobs: int | None) -> list[T]:
        if len(tasks) < 2:
            return [task() for task in tasks]
        # Not concurrent.futures.wait: an interrupt in it can leave a future locked for ever,
        # and its thread with it.
        ended: SimpleQueue[Future[T]] = SimpleQueue()
        futures: list[Future[T]] = []
        with ThreadPoolExecutor(max_workers=jobs or self._jobs) as pool:
            try:
                with uninterrupted():
                    for task in tasks:
                        futures.append(pool.submit(task))
                        futures[-1].add_done_callback(ended.put)
                if any(ended.get().exception() is not None for _ in tasks):
                    self.stop()
            except BaseException:
                self.stop()
                raise
            finally:
                pool.shutdown(cancel_futures=True)
                # The threads have ended: whoever handles the failure may run more.
                self._stopped = False
        failures = [
            failure
            for future in futures
            if not future.cancelled() and (failure := future.exception()) is not None
        ]
        real = [failure for failure in failures if not isinstance(failure, StoppedError)]
        if failures:
            raise (real or failures)[0]
        return [future.result() for future in futures]


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")


def _signal_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class RecordingRunner(Runner):
    """For tests: runs nothing, remembers every command and answers with `respond`."""

    def __init__(self, respond: Callable[[tuple[str, ...]], Completed] | None = None) -> None:
        super().__init__({})
        self.commands: list[tuple[str, ...]] = []
        self.made: list[str] = []
        self._respond = respond

    def run(
        self,
        command: Sequence[str],
        *,
        making: str,
        input: bytes | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str | Path] = (),
        writes: Sequence[str] = (),
        names_matter: bool = True,
        prepare: Callable[[], Mapping[str, str]] | None = None,
    ) -> Completed:
        """Remembers `command`; `respond`, if given, may write files or raise ToolError."""
        command = tuple(command)
        with self._lock:
            self.commands.append(command)
            self.made.append(making)
        return Completed(command) if self._respond is None else self._respond(command)
