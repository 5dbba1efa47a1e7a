"""Pipes and closed streams: nobody is waited for without end, and no report goes astray."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.support import Build, Run, Save, report

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(build: Build, tmp_path: Path) -> Start:
    """Starts matmul in the test's folder."""

    def start_program(
        *words: str, shell: str = "", stdin: int | None = None
    ) -> subprocess.Popen[str]:
        program = str(build.program("matmul"))
        command = ["sh", "-c", f'exec "$0" "$@" {shell}', program, *words]
        return subprocess.Popen(
            command,
            cwd=tmp_path,
            env=build.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=stdin,
        )

    return start_program


def test_pipes_that_nobody_opens(start: Start, tmp_path: Path) -> None:
    """An input, what is expected and an output: each is given up, with exit code 2."""
    for name in "abc":
        os.mkfifo(tmp_path / name)
    uses = ("--A=./a", "--expect=C=./b", "--out=C=./c")
    running = [start(use) for use in uses]
    said = [process.communicate(timeout=30)[1] for process in running]
    assert [process.returncode for process in running] == [2, 2, 2]
    assert said == [
        "matmul: error: --A: cannot read './a': it is a pipe that no process writes to\n",
        "matmul: error: --expect: cannot read './b': it is a pipe that no process writes to\n",
        "matmul: error: cannot write './c': it is a pipe that no process reads from\n",
    ]


@pytest.mark.parametrize("wait", ["before it opens", "before it writes", "between bytes"])
def test_a_slow_writer_is_waited_for(start: Start, tmp_path: Path, wait: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    np.save(tmp_path / "a.npy", np.ones((4, 3), "f4"))
    content = (tmp_path / "a.npy").read_bytes()

    def write() -> None:
        time.sleep(0.3 if wait == "before it opens" else 0)
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            # Longer than a writer may take that has not opened it.
            time.sleep(6 if wait == "before it writes" else 0)
            for part in (content[:1], content[1:100], content[100:]):
                pipe.write(part)
                time.sleep(0.2 if wait == "between bytes" else 0)

    writer = threading.Thread(target=write)
    process = start("--A=./pipe", "--B=1", "--json")
    writer.start()
    stdout, stderr = process.communicate(timeout=30)
    writer.join()
    assert (process.returncode, stderr) == (0, "")
    assert json.loads(stdout)["results"][0]["max"] == 3


def test_a_writer_that_wrote_nothing(start: Start) -> None:
    """It has been there: nobody waits for another."""
    reader, writer = os.pipe()
    os.close(writer)
    began = time.monotonic()
    for shell in ("", "< /dev/null", "<&-"):
        process = start("--A=/dev/stdin", shell=shell, stdin=reader)
        _, stderr = process.communicate(timeout=30)
        assert process.returncode == 2
        assert stderr == "matmul: error: --A: cannot read '/dev/stdin': it is not a .npy file\n"
    assert time.monotonic() - began < 4
    os.close(reader)


@pytest.mark.parametrize("words", [[], ["--help"], ["--describe"], ["--out=C=c.npy"]])
def test_closed_standard_output(start: Start, tmp_path: Path, words: list[str]) -> None:
    """What was to be told is not told: that is an error, and no other file gets it."""
    process = start(*words, shell=">&-")
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 2
    assert stderr == "matmul: error: cannot write to standard output: Bad file descriptor\n"
    if words == ["--out=C=c.npy"]:
        assert np.load(tmp_path / "c.npy").shape == (4, 5)


def test_arrays_without_elements_end(run: Run, save: Save) -> None:
    """Whatever the other sizes: 2^32 rows of nothing are printed at once."""
    for shape in ((1 << 32, 0), (0, 1 << 40), (3, 0)):
        save("a.npy", np.zeros(shape, "f4"))
        words = [
            "kernels",
            "copy_f32",
            "--source",
            "a.npy",
            "--dim",
            f"target={shape[0]}x{shape[1]}",
        ]
        value = report(run, *words, "--print", "target", "--print", "source")
        for result in value["results"]:
            assert (result["shape"], result["values"]) == (list(shape), [])
        assert run(*words, "--print", "target").code == 0


def test_out_of_memory_is_one_code(build: Build, run: Run) -> None:
    """For an input as for a result: 4. A size that no memory could hold is the input's fault."""
    if build.name == "sanitized":
        pytest.skip("the sanitizer warns of it")
    ran = run("kernels", "copy_f64", "--source", "0", "--dim", f"source={1 << 40}x8192")
    assert (ran.code, "out of memory: 'source' of shape" in ran.stderr) == (4, True)
    ran = run("kernels", "copy_f64", "--source", "0", "--dim", f"source={1 << 40}x{1 << 40}")
    assert (ran.code, "is larger than memory can be" in ran.stderr) == (2, True)
