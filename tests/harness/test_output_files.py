"""Results and arguments written to files: --out."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.support import Build, Run, aotc_random


def test_out_of_everything(run: Run, tmp_path: Path) -> None:
    """Results and arguments, those that are only read too."""
    words = [word for name in "ABC" for word in ("--out", f"{name}={name}.npy")]
    ran = run("matmul", *words)
    assert ran.code == 0, ran.stderr
    a, b, c = (np.load(tmp_path / f"{name}.npy") for name in "ABC")
    assert np.array_equal(a, aotc_random("A", (4, 3), "f4"))
    assert np.array_equal(b, aotc_random("B", (3, 5), "f4"))
    assert np.allclose(c, a @ b)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.npy", "B.npy", "C.npy"]


def test_out_replaces(run: Run, tmp_path: Path) -> None:
    """An existing file is replaced whole, a link keeps leading to it, the mode is the umask's."""
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    assert run("matmul", "--out", "C=link.npy").code == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (4, 5)
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o666 & ~umask


def test_out_to_a_pipe(run: Run) -> None:
    """What is no regular file is written in place, and stays what it is."""
    assert run("matmul", "--out", "C=/dev/null").code == 0
    assert Path("/dev/null").is_char_device()
    ran = run("matmul", "--out", "C=/dev/full")
    assert ran.code == 2
    assert ran.stderr == "matmul: error: cannot write '/dev/full': No space left on device\n"


def test_write_that_fails(build: Build, tmp_path: Path) -> None:
    """A file that cannot be finished leaves the old one, and nothing else."""
    (tmp_path / "t.npy").write_text("old")
    words = ["--dim", "source=1000x10", "--dim", "target=1000x10", "--out", "target=t.npy"]

    # In units of 512 bytes.
    limited = _after("trap '' XFSZ; ulimit -f 8", build.program("kernels"), "copy_f32", *words)
    ran = subprocess.run(
        limited, cwd=tmp_path, env=build.environment, capture_output=True, text=True
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == f"kernels: error: cannot write '{tmp_path}/t.npy': File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.npy"]
    assert (tmp_path / "t.npy").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt(build: Build, tmp_path: Path, number: signal.Signals) -> None:
    """A signal while a file is written ends the program as ever, and leaves no file."""
    with subprocess.Popen(
        [build.program("unit"), "interrupt", "c.npy"], cwd=tmp_path, env=build.environment,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        (half,) = tmp_path.iterdir()
        assert half.name.startswith(".c.npy.")
        process.send_signal(number)
        assert process.wait(timeout=30) == -number
    assert list(tmp_path.iterdir()) == []


def _after(commands: str, *program: str | Path) -> list[str | Path]:
    """The program, once a shell has run the commands. (A function that a child calls would make
    Python fork, of which JAX warns where another test has loaded it.)"""
    return ["/bin/sh", "-c", f'{commands}; exec "$@"', "sh", *program]


def test_ignored_signals_stay_ignored(build: Build, tmp_path: Path) -> None:
    """Under nohup, a hangup does not end the program."""
    command = _after("trap '' HUP", build.program("unit"), "interrupt", "c.npy")
    with subprocess.Popen(
        command, cwd=tmp_path, env=build.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
        process.terminate()
    assert list(tmp_path.iterdir()) == []
