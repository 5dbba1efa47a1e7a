"""The supervisor: whatever happens to the command's process, the exit code says it, and nothing of
it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """if True:
    import os, signal, subprocess, sys, time
    from aotc.processes.record import Step, note_file, note_step, temporary_folder
    from aotc.processes import supervisor

    supervisor.available_memory = lambda: {memory}
    def work():
        with temporary_folder() as folder:
            (folder / "intermediate").write_text("x")
            note_file("draft")
            open("draft", "w").close()
            note_step(Step("the stage 'mlir' of x.mlir", reads_input={reads_input}))
            {body}
        return 7

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    supervisor.supervised(work, mask)
"""
# Hears nothing, as MLIR's passes do; with a child in a group of its own, as tools are.
DEAF = """signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
            subprocess.Popen(["sleep", "600"], process_group=0)
            print("started", flush=True)
            time.sleep(600)"""


def run(
    tmp_path: Path, body: str, *, reads_input: bool = False, memory: int = 1 << 40
) -> subprocess.Popen[bytes]:
    (tmp_path / "tmp").mkdir()
    program = PROGRAM.replace("{body}", body).replace("{memory}", str(memory))
    return subprocess.Popen(
        [sys.executable, "-c", program.replace("{reads_input}", str(reads_input))],
        cwd=tmp_path,
        env={
            "TMPDIR": str(tmp_path / "tmp"),
            "PYTHONPATH": ":".join(sys.path),
            "AOTC_PASS_SECONDS": os.environ.get("AOTC_PASS_SECONDS", "600"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_the_exit_code_is_the_works(tmp_path: Path) -> None:
    """What ends as it should is left alone."""
    with run(tmp_path, "pass") as process:
        assert process.communicate() == (b"", b"")
    assert process.returncode == 7
    assert (tmp_path / "draft").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_is_heard_at_once(number: signal.Signals, tmp_path: Path) -> None:
    """All processes end within a second, also those that hear no signal; their files go."""
    with run(tmp_path, DEAF) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        began = time.monotonic()
        process.send_signal(number)
        # What waits for stdout's end waits for all that have it.
        assert process.communicate(timeout=30) == (b"", b"\naotc: interrupted\n")
        assert time.monotonic() - began < 1
    assert process.returncode == 130
    assert not (tmp_path / "draft").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_stopped_process_goes_on(tmp_path: Path) -> None:
    """Ctrl-Z and `fg` interrupt nothing, also where that takes longer than the supervisor waits
    between two looks at the command."""
    body = 'print("started", flush=True); time.sleep(1)'
    with run(tmp_path, body) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 7
    assert (tmp_path / "draft").exists()


# Tells our parent once the command's process has ended, and then ends itself.
LATE = """ours, command = os.getppid(), os.getpid()
            if os.fork() == 0:
                while os.getppid() == command:
                    time.sleep(0.001)
                os.kill(ours, signal.SIGINT)
                os._exit(0)"""


def test_an_interrupt_after_the_work_is_heard(tmp_path: Path) -> None:
    """What follows the command in a shell's list does not run; what was written stays."""
    with run(tmp_path, LATE) as process:
        assert process.communicate(timeout=30) == (b"", b"\naotc: interrupted\n")
    assert process.returncode == 130
    assert (tmp_path / "draft").exists()


@pytest.mark.parametrize(
    ("reads_input", "code", "said"),
    [(False, 4, "."), (True, 2, ": MLIR's reader does not survive this input.")],
)
def test_a_crash_is_an_error(reads_input: bool, code: int, said: str, tmp_path: Path) -> None:
    """A process that a signal ends is told with what it did: while it reads the input that is at
    fault, and else aotc is."""
    crash = "os.kill(os.getpid(), signal.SIGSEGV)"
    with run(tmp_path, crash, reads_input=reads_input) as process:
        _, stderr = process.communicate()
    assert process.returncode == code
    expected = f"aotc: error: The build (the stage 'mlir' of x.mlir) was ended by SIGSEGV{said}"
    assert stderr.decode().splitlines()[0] == expected
    assert not (tmp_path / "draft").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


PASS = """from aotc.processes.record import running_pass
            with running_pass("cse"):
                pass
            until = time.process_time() + 1.5
            while time.process_time() < until:
                pass
            with running_pass("canonicalize"):
                while True:
                    pass"""


def test_a_pass_that_does_not_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, after the processor time that a pass may take; others may take more."""
    monkeypatch.setenv("AOTC_PASS_SECONDS", "1")
    with run(tmp_path, PASS) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.decode().startswith(
        "aotc: error: The build was in the pass 'canonicalize' for 1 s of processor time: it may "
        "never end.\n"
    )
    assert "AOTC_PASS_SECONDS=N" in said.decode()
    assert not (tmp_path / "draft").exists()


def test_a_limit_that_is_no_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOTC_PASS_SECONDS", "soon")
    with run(tmp_path, "pass") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    message = "aotc: error: AOTC_PASS_SECONDS is 'soon'; expected a number of seconds.\n"
    assert said.decode() == message


def test_too_much_memory_is_an_error(tmp_path: Path) -> None:
    """A process that needs more memory than there is ends before the machine does."""
    body = "parts = [b'x' * (1 << 24) for _ in iter(int, 1)]"
    with run(tmp_path, body, memory=1 << 29) as process:
        _, stderr = process.communicate()
    assert process.returncode == 2
    assert "needs more memory than the 0.4 GiB that" in stderr.decode()
