"""Pipes, closed streams, links to nowhere: an error in seconds, and nothing astray."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, aotc_command, process_environment

from aotc.benchmark.results import Results, Row

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "saxpy.mlir"
BUILD = ("build", str(SAMPLE), "--emit", "manifest", "--chip", "sm_90")


def shell(line: str, *words: str) -> Outcome:
    """aotc with words, started by a line of the shell in which it is "$@"."""
    done = subprocess.run(
        ["bash", "-c", line, "bash", *aotc_command(*words)],
        env=process_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        *((*BUILD, "-o", "-"), ("--help",), ("--cmake-dir",), ("cache", "--help")),
        *((*BUILD, "--explain", "-o", "/dev/null"), ("doctor",)),
        # Any ELF file.
        ("inspect", "/bin/sh"),
    ],
    ids=str,
)
def test_standard_output_that_is_closed(words: tuple[str, ...]) -> None:
    """Where there was something to print, nobody got it."""
    expected = Outcome(2, "", "aotc: error: Cannot write: standard output is closed.\n")
    assert shell('"$@" >&-', *words) == expected


def test_other_closed_streams_do_no_harm(tmp_path: Path) -> None:
    """No file that the build opens takes their numbers."""
    out = tmp_path / "out"
    shell('"$@"', *BUILD, "-o", str(out)).succeeded()
    made = out.read_bytes()
    for closed in ("<&- >&- 2>&-", ">&-", "<&-"):
        out.unlink()
        assert shell(f'"$@" {closed}', *BUILD, "-o", str(out)) == Outcome(0, "", "")
        assert out.read_bytes() == made
    outcome = shell('"$@" <&-', "build", "-", "-o", str(out))
    assert outcome == Outcome(2, "", "aotc: error: <stdin> is empty.\n")


def test_pipes_that_nobody_writes(aotc: Aotc, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.mlir"
    os.mkfifo(pipe)
    message = f"aotc: error: Cannot read '{pipe}': it is a pipe that no process writes to.\n"
    assert aotc("build", pipe) == Outcome(2, "", message)
    assert aotc("inspect", pipe).code == 2


@pytest.mark.parametrize("cache", ["off", "cache"])
def test_inputs_without_an_end(
    aotc: Aotc, tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices, pipes and standard input are read up to a limit."""
    monkeypatch.setattr("aotc.pipes.LARGEST_STREAM", 3 << 29)
    monkeypatch.setattr("aotc.processes.memory.available_memory", lambda: 64 << 20)
    monkeypatch.setenv("AOTC_CACHE", cache if cache == "off" else str(tmp_path / cache))
    said = "it has more than 0.0 GiB, and no end; aotc reads more of regular files alone.\n"
    expected = Outcome(2, "", f"aotc: error: Cannot read '/dev/zero': {said}")
    assert aotc("build", "/dev/zero") == expected
    assert aotc("build", SAMPLE, "--tuned", "/dev/zero") == expected
    assert aotc("build", SAMPLE, "--pipeline", "@/dev/zero") == expected
    assert aotc("bench", "/dev/zero") == expected
    with Path("/dev/zero").open() as zero:
        monkeypatch.setattr("sys.stdin", zero)
        done = aotc("build", "-")
    assert done == Outcome(2, "", f"aotc: error: Cannot read standard input: {said}")


def test_a_file_larger_than_memory(aotc: Aotc, tmp_path: Path) -> None:
    path = tmp_path / "sparse.mlir"
    with path.open("wb") as file:
        file.truncate(1 << 43)
    done = aotc("build", path)
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: Cannot read '{path}': it has 8192.0 GiB; memory ")


def test_results_from_a_pipe(aotc: Aotc, tmp_path: Path) -> None:
    """`aotc bench` waits for a writer no longer than a build does, and reads a pipe once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    message = f"aotc: error: Cannot read '{pipe}': it is a pipe that no process writes to.\n"
    assert aotc("bench", pipe) == Outcome(2, "", message)
    results = Results("0.1.0", "H200", 20, 5, (Row("p", "f", 8, (1.0,), (1.0,), bytes=8),))
    writer = threading.Timer(0.5, pipe.write_text, [results.to_json()])
    writer.start()
    assert aotc("bench", pipe).succeeded().stdout.startswith("H200; 5 rounds of 20 calls")
    writer.join()


def test_a_pipe_that_nobody_reads(aotc: Aotc, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    message = f"Cannot write '{tmp_path / 'pipe'}': it is a pipe that no process reads from.\n"
    assert aotc(*BUILD, "-o", tmp_path / "pipe") == Outcome(2, "", f"aotc: error: {message}")


@pytest.mark.parametrize("cache", [[], ["--cache", "cache"]])
def test_pipes_with_writers(
    aotc: Aotc, tmp_path: Path, cache: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named one, and what the shell makes of <(...)."""
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "pipe.mlir"
    os.mkfifo(pipe)
    writer = threading.Timer(0.5, pipe.write_bytes, [SAMPLE.read_bytes()])
    writer.start()
    words = ("--emit", "host-mlir", "--chip", "sm_90", "-o", "-", *cache)
    made = aotc("build", pipe, *words).succeeded().stdout
    writer.join()
    assert "llvm.func @saxpy" in made
    again = shell(f'"$@" <(sleep 0.2; cat {SAMPLE})', "build", *words).succeeded()
    assert "llvm.func @saxpy" in again.stdout


def test_a_pipe_for_output_is_read(aotc: Aotc, tmp_path: Path) -> None:
    read: list[bytes] = []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Timer(0.5, lambda: read.append(pipe.read_bytes()))
    reader.start()
    aotc(*BUILD, "-o", pipe).succeeded()
    reader.join()
    assert b'"saxpy"' in read[0]


def test_links_to_nowhere(aotc: Aotc, tmp_path: Path) -> None:
    """No folder is made where a link leads; a file is, in a folder that is there."""
    (tmp_path / "file").symlink_to("none/deeper/file")
    (tmp_path / "folder").symlink_to("none")
    for out, link in (("file", "file"), ("folder/file", "folder"), ("folder/a/b/", "folder")):
        outcome = aotc(*BUILD, "-o", f"{tmp_path}/{out}")
        assert outcome.code == 2
        assert f"is a link to '{tmp_path}/none" in outcome.stderr
        assert str(tmp_path / link) in outcome.stderr
        assert not (tmp_path / "none").exists()
    (tmp_path / "there").mkdir()
    (tmp_path / "new").symlink_to("there/new")
    aotc(*BUILD, "-o", tmp_path / "new").succeeded()
    assert (tmp_path / "new").is_symlink()
    assert (tmp_path / "there" / "new").is_file()
