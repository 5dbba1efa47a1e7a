"""The fork server: how a task ends is an answer or an error, and never this process's end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aotc.errors import InputError, InternalError
from aotc.processes.fork_server import ForkServer, Limits, TaskError


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    made = ForkServer()
    yield made
    made.stop()


def test_answers(server: ForkServer) -> None:
    """An answer comes for each task, of any size, whoever is waited for first."""
    large = os.urandom(1 << 20)
    pending = [server.start("tasks:reverse", b"ab", part) for part in (b"cd", b"", large)]
    assert pending[2].answer() == large[::-1] + b"ba"
    assert pending[0].answer() == b"dcba"
    assert pending[1].answer() == b"ba"


def test_errors_are_raised_again(server: ForkServer) -> None:
    """An error of aotc's families arrives as it is, another one as a bug."""
    with pytest.raises(InputError, match="this is wrong") as refused:
        server.call("tasks:refuse")
    assert refused.value.hint == "write it otherwise"
    with pytest.raises(InternalError, match=r"(?s)Traceback.*KeyError: 'nothing of that name'"):
        server.call("tasks:fail")


def test_a_crash_is_an_error(server: ForkServer) -> None:
    """What a task said and told before it crashed is known; the server goes on."""
    with pytest.raises(TaskError) as crashed:
        server.call("tasks:crash")
    error = crashed.value
    assert (error.reason, error.step, error.said) == ("SIGSEGV", "the third node", "last words\n")
    assert error.left == b"the module"
    assert server.call("tasks:reverse", b"ab") == b"ba"


def test_a_task_without_progress_ends(server: ForkServer) -> None:
    """The time begins anew with each step: only an endless one passes the limit."""
    with pytest.raises(TaskError) as ended:
        server.call("tasks:spin", b"4", limits=Limits(memory=1 << 40, seconds=0.8))
    assert ended.value.reason == "no progress in 1 s"
    assert ended.value.step == "an endless loop"


def test_a_task_has_time_for_what_it_reads(server: ForkServer) -> None:
    """Each step may take longer by the size of what the task is given to read."""
    with pytest.raises(TaskError, match=r"no progress in 2 s"):
        server.call("tasks:spin", b"1", limits=Limits(memory=1 << 40, seconds=0.1, size=38_000_000))


def test_a_task_that_waits_for_ever_ends(server: ForkServer) -> None:
    """A task that uses no processor time has ten times its limit."""
    began = time.monotonic()
    with pytest.raises(TaskError, match="no progress"):
        server.call("tasks:sleep", limits=Limits(memory=1 << 40, seconds=0.1))
    assert time.monotonic() - began < 30


def test_a_task_that_grows_ends(server: ForkServer) -> None:
    """A task is ended before it has taken much more memory than it may."""
    with pytest.raises(TaskError, match=r"more than 0\.5 GiB"):
        server.call("tasks:grow", limits=Limits(memory=1 << 29, seconds=60))


def test_a_server_that_ended_is_started_again(server: ForkServer) -> None:
    """A killed server fails the task that it runs, and no later one."""
    assert server.call("tasks:reverse", b"ab") == b"ba"
    assert server._process is not None
    pending = server.start("tasks:sleep")
    time.sleep(0.5)  # until it runs
    os.kill(server._process.pid, signal.SIGKILL)
    with pytest.raises(TaskError):
        pending.answer()
    assert server.call("tasks:reverse", b"ab") == b"ba"


PROGRAM = """if True:
    import os, sys, threading
    sys.path.insert(0, sys.argv[1])
    from aotc.owner import PROCESS
    PROCESS.is_ours = True
    from aotc.mlir import make_context
    from aotc.processes.fork_server import ForkServer, has_one_thread
    forks = []
    os.register_at_fork(after_in_parent=lambda: forks.append(1))
    if sys.argv[2] == "thread":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    server = ForkServer()
    server.begin(make_context())
    assert server.call("tasks:reverse", b"ab") == b"ba"
    print(has_one_thread(), len(forks), server._process is not None)
    server.stop()
"""


@pytest.mark.parametrize(
    ("thread", "expected"), [("none", "True 1 False"), ("thread", "False 0 True")]
)
def test_a_process_with_threads_is_not_forked(thread: str, expected: str) -> None:
    """The server is a fork of the command's process while that has one thread, and else a fresh
    Python."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), thread],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_program_with_threads_builds_without_a_word(tmp_path: Path) -> None:
    """Python warns of forks in programs with threads, from 3.12 on; some packages do, too."""
    program = """if True:
        import os, threading, warnings
        warnings.simplefilter("error")
        os.register_at_fork(before=lambda: print("forked"))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        import aotc
        text = 'func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} { return }'
        aotc.build(text, emit="obj", chips="sm_90", out=OUT)
    """.replace("OUT", repr(f"{tmp_path}/x.o"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
