"""`aotc build a.mlir b.mlir ...`: several inputs, one pool of workers."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import SAMPLES, Outcome, aotc_command, process_environment

from aotc import cli
from aotc.commands import jobs as command
from aotc.commands.build import build_one
from aotc.delivery import known_outputs
from aotc.many import pool, progress
from aotc.many.job import Ended, Job, Tally
from aotc.request_words import make_request

Aotc = Callable[..., Outcome]
QUICK = ("--emit", "ptx", "--chip", "sm_90")
TWO = (SAMPLES / "vector_add.mlir", SAMPLES / "saxpy.mlir")


@pytest.fixture
def broken(mlir_file: Callable[..., Path]) -> Path:
    return mlir_file("func.func @f() {\n  nonsense\n}\n", "broken.mlir")


@pytest.fixture
def ptxas(tmp_path: Path) -> Callable[[str], Path]:
    """A ptxas that runs shell code first; without any, it notes who started it."""

    def make(code: str) -> Path:
        script = tmp_path / "ptxas"
        script.write_text(
            '#!/bin/sh\ncase "$1" in --version)\n'
            "echo 'Cuda compilation tools, release 13.5, V13.5.37'; exit 0 ;;\nesac\n"
            f'{code}\nfor last; do :; done\n: > "$last"\n'
        )
        script.chmod(0o755)
        return script

    return make


def test_a_new_directory_needs_no_slash(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    aotc("build", *TWO, "--emit", "mlir", "-o", "out").succeeded()
    names = sorted(file.name for file in Path("out").iterdir())
    assert names == ["saxpy.gpu.mlir", "vector_add.gpu.mlir"]


def test_each_makes_what_it_makes_alone(aotc: Aotc, tmp_path: Path) -> None:
    options = ("--emit", "exe,ptx", "--chip", "sm_90")
    done = aotc("build", *TWO, *options, "-j", "2", "-o", f"{tmp_path}/out/").succeeded()
    assert done.stdout == ""
    assert done.stderr.startswith("aotc: 2 built (")
    for source in TWO:
        aotc("build", source, *options, "-o", f"{tmp_path}/alone/").succeeded()
    together = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    alone = {file.name: file.read_bytes() for file in (tmp_path / "alone").iterdir()}
    assert len(together) == 4
    assert together == alone


def test_a_failure_stops_no_other(aotc: Aotc, broken: Path, tmp_path: Path) -> None:
    """The messages come once, in the order of the inputs; the exit code is the worst family's."""
    inputs = (broken, TWO[0], tmp_path / "missing.mlir", TWO[1])
    done = aotc("build", *inputs, *QUICK, "-j", "2", "-o", f"{tmp_path}/out/")
    first, second, summary = (
        done.stderr.index(words)
        for words in (f"{broken}:2:3: error: ", "missing.mlir: error: Cannot read", "aotc: 2 built")
    )
    assert (done.code, done.stdout) == (2, "")
    assert first < second < summary
    assert f"2 built, 2 failed: {broken}, {tmp_path}/missing.mlir (" in done.stderr
    assert done.stderr.count("error: custom op 'nonsense'") == 1
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_fail_fast_begins_no_more(aotc: Aotc, broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = aotc("build", broken, *TWO, *QUICK, "-j", "1", "--fail-fast", "-o", f"{out}/")
    assert done.code == 2
    assert f"0 built, 2 not begun, 1 failed: {broken} (" in done.stderr
    assert not out.exists()


def test_the_worst_family_is_the_exit_code() -> None:
    jobs = [Job(make_request(Path(f"{name}.mlir"))) for name in "abcd"]
    codes = {0: Ended(2), 1: Ended(3), 3: Ended(0)}
    tally = Tally(jobs, codes)
    assert tally.code == 3
    assert tally.summary() == "1 built, 1 not begun, 2 failed: a.mlir, b.mlir"


def test_workers_are_used_again(
    aotc: Aotc, ptxas: Callable[[str], Path], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Three modules by two workers: two processes start the tools."""
    text = TWO[0].read_text()
    inputs = [mlir_file(text, f"m{number}.mlir") for number in range(3)]
    log = tmp_path / "log"
    tool = ptxas(f"echo $PPID >> {log}; sleep 0.3")
    aotc(
        *("build", *inputs, "--emit", "cubin", "--chip", "sm_90", "--ptxas", tool),
        *("-j", "2", "-o", f"{tmp_path}/out/"),
    ).succeeded()
    starters = log.read_text().split()
    assert (len(starters), len(set(starters))) == (3, 2)
    assert str(os.getpid()) not in starters


def test_tools_share_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of 8 cores, 3 workers have 2 tools at a time each; a single build has all of them."""
    seen: list[dict[str, Any]] = []

    def run_jobs(
        jobs: Any, build: Any, options: Any, watcher: Any, *, workers: int, fail_fast: bool
    ) -> Tally:
        seen.append({**options, "workers": workers})
        return Tally(jobs)

    monkeypatch.setattr("aotc.many.pool.run_jobs", run_jobs)
    monkeypatch.setattr("aotc.toolchain.runner.cores", lambda: 8)
    jobs = [Job(make_request(Path(f"{name}.mlir"))) for name in "abcd"]
    options = {"quiet": True, "verbose": False, "fail_fast": False}
    options |= {"time_report": False, "explain_cache": False}
    command.build_all(jobs, build_one, {**options, "jobs": 3})
    command.build_all(jobs, build_one, {**options, "jobs": None})
    command.build_all(jobs, build_one, {**options, "jobs": 100})
    assert [(one["workers"], one["tool_jobs"]) for one in seen] == [(3, 2), (4, 2), (4, 2)]


def test_a_process_that_dies_takes_no_other_along(
    aotc: Aotc, ptxas: Callable[[str], Path], tmp_path: Path
) -> None:
    """As when MLIR crashes: that module fails as a bug, the others are built by a new process."""
    tool = ptxas('case "$*" in *vector_add*) kill -SEGV $PPID; sleep 5;; esac')
    options = ("--emit", "cubin", "--chip", "sm_90", "--ptxas", tool, "-j", "1")
    done = aotc("build", *TWO, *options, "-o", f"{tmp_path}/out/")
    assert done.code == 4
    assert f"{TWO[0]}: error: The process that built it ended: killed by SIGSEGV" in done.stderr
    assert "1 built, 1 failed" in done.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["saxpy_kernels.sm_90.cubin"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "/dev/null"), "-o /dev/null is a file, and there are 2 inputs: name a directory."),
        (("-o", "-", "--emit", "ptx"), "-o - takes the text of one input, and there are 2"),
        (("--weights", "w", "-o", "out/"), "--weights w is one file, and there are 2 inputs"),
        (("-MD", "-MF", "x.d"), "-MF and -MT are for one input, and there are 2"),
    ],
)
def test_what_has_room_for_one(
    options: tuple[str, ...],
    words: str,
    aotc: Aotc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = aotc("build", *TWO, *options)
    assert done.code == 2
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_outputs_of_one_name(aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are told, and nothing is built; kinds of different names go together."""
    monkeypatch.chdir(tmp_path)
    for name in ("a/one.mlir", "b/one.mlir", "a/two.mlir", "b/two.new.mlir"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(TWO[0].read_text())
    inputs = ("a/one.mlir", "a/two.mlir", "b/one.mlir", "b/two.new.mlir")
    done = aotc("build", *inputs, "--emit", "shared", "-o", "out/")
    assert done.code == 2
    assert done.stderr == (
        "aotc: error: Several inputs make outputs of one name.\n"
        "  a/one.mlir and b/one.mlir would both be 'out/lib/libone.so'.\n"
        "  a/two.mlir and b/two.new.mlir would both be 'out/lib/libtwo.so'.\n"
        "aotc: hint: Build them into different directories (-o DIR/), or rename one.\n"
    )
    assert not Path("out").exists()


def test_warnings_and_explanations_come_whole_and_in_order(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning that has no place in the input begins with the input's name."""
    monkeypatch.chdir(tmp_path)
    options = ("--emit", "shared", "--runtime", "shared", "--chip", "sm_90", "--explain", "-j", "2")
    done = aotc("build", *TWO, *options).succeeded()
    starts = [line.split(": warning: ")[0] for line in done.stderr.splitlines()]
    assert starts[:-1] == [str(source) for source in TWO]
    heads = [line.split(" has ")[0] for line in done.stdout.splitlines() if " has " in line]
    assert heads == [f"// {source}" for source in TWO]


def test_verbose_names_each_input(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("build", *TWO, *QUICK, "-v", "-j", "2", "-o", f"{tmp_path}/out/").succeeded()
    lines = done.stderr.splitlines()
    assert f"[1/2] {TWO[0]}" in lines
    assert lines.index(f"[1/2] {TWO[0]}") < lines.index(f"[2/2] {TWO[1]}")
    assert sum(" clang --target=nvptx64" in line for line in lines) == 2


def test_times_say_whose_they_are(aotc: Aotc, tmp_path: Path) -> None:
    options = (*QUICK, "--time-report", "-j", "2", "-o", f"{tmp_path}/out/")
    lines = aotc("build", *TWO, *options).succeeded().stderr.splitlines()
    heads = [line for line in lines if line.startswith("[")]
    assert heads == [f"[{number}/2] {source}" for number, source in enumerate(TWO, start=1)]
    assert [line.split()[0] for line in lines].count("total") == 2


def test_outputs_are_known_before(aotc: Aotc, tmp_path: Path) -> None:
    """What clashes, and what build systems are told, is what a build makes."""
    kinds = ["exe", "obj", "asm", "host-ll", "header", "manifest"]
    out = f"{tmp_path}/out/"
    aotc("build", TWO[0], "--emit", ",".join(kinds), "--chip", "sm_90", "-o", out).succeeded()
    request = make_request(TWO[0], emit=kinds, out=out)
    assert sorted(known_outputs(request)) == sorted((tmp_path / "out").iterdir())


def test_quiet_is_silent(aotc: Aotc, tmp_path: Path) -> None:
    assert aotc("build", *TWO, *QUICK, "-q", "-o", f"{tmp_path}/out/") == Outcome(0, "", "")


def test_a_terminal_shows_what_runs(ptxas: Callable[[str], Path], tmp_path: Path) -> None:
    """And nothing of it stays but the summary."""
    # Each waits for the other, so that both are seen.
    both = (
        f": > {tmp_path}/$$.at\n"
        f"while [ $(ls {tmp_path}/*.at | wc -l) -lt 2 ]; do sleep 0.1; done\nsleep 0.5"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        aotc_command(
            *("build", *TWO, "--emit", "cubin", "--chip", "sm_90", "--ptxas", ptxas(both)),
            *("-j", "2", "-o", f"{tmp_path}/out/"),
        ),
        env=process_environment({"TERM": "xterm", "COLUMNS": "300"}),
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        os.close(ours)
    assert process.returncode == 0
    text = said.decode()
    assert f"[0/2]  {TWO[0]}: cubin, {TWO[1]}: cubin" in text
    assert text.rstrip().splitlines()[-1].endswith("s)")


def test_the_line_of_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(make_request(Path(f"{name}.mlir"))) for name in "abc"]
    live = progress.Live(jobs)
    try:
        live.show(1, "ptx")
        live.show(0, "exe")
        assert live.line() == "[0/3]  a.mlir: exe, b.mlir: ptx"
        live.end(1, Ended(2))
        assert live.line() == "[1/3] 1 failed  a.mlir: exe"
    finally:
        live.close()


def test_files_of_the_current_folder_are_no_modules(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is a Python of its own, which must not import what happens to lie there."""
    monkeypatch.chdir(tmp_path)
    for name in ("random.py", "aotc.py", "ctypes.py"):
        Path(name).write_text("raise SystemExit('imported')\n")
    aotc("build", *TWO, *QUICK, "-j", "1", "-o", "out/").succeeded()


def test_a_killed_build_leaves_no_process(ptxas: Callable[[str], Path], tmp_path: Path) -> None:
    """SIGKILL, which nobody handles: the workers end all the same, and so do their tools."""
    tool = ptxas(f"echo $PPID $$ > {tmp_path}/$$.pids; exec sleep 600")
    command_line = aotc_command(
        *("build", *TWO, "--emit", "cubin", "--chip", "sm_90", "--ptxas", tool, "-j", "2"),
        *("-o", f"{tmp_path}/out/"),
    )
    with subprocess.Popen(command_line, env=process_environment(), start_new_session=True) as one:
        try:
            _wait_until(lambda: len(list(tmp_path.glob("*.pids"))) == 2)
        finally:
            one.send_signal(signal.SIGKILL)
    pids = [int(pid) for file in tmp_path.glob("*.pids") for pid in file.read_text().split()]
    assert len(set(pids)) == 4
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_worker_that_does_not_hear_is_killed_with_its_tools(
    ptxas: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a long pass of MLIR's: Ctrl-C waits for it, but not for ever."""
    monkeypatch.setattr(pool, "_PATIENCE", 0.5)
    tool = ptxas(
        f"echo $PPID $$ > {tmp_path}/starting; mv {tmp_path}/starting {tmp_path}/pids\nsleep 600"
    )
    place = tmp_path / "pids"

    class Interrupter:
        def started(self, number: int) -> None:
            pass

        def stage(self, number: int, name: str) -> None:
            if name == "cubin":
                _wait_until(place.exists)
                os.kill(int(place.read_text().split()[0]), signal.SIGSTOP)
                raise KeyboardInterrupt

        def ended(self, number: int, result: Ended) -> None:
            pytest.fail("it cannot have ended")

    seen: list[Any] = []
    monkeypatch.setattr(command, "build_all", lambda *arguments: seen.append(arguments))
    chosen = ("--emit", "cubin", "--chip", "sm_90", "--ptxas", str(tool), "-o", f"{tmp_path}/out/")
    cli.run(["build", *map(str, TWO), *chosen])
    ((jobs, build, options),) = seen
    with pytest.raises(KeyboardInterrupt):
        pool.run_jobs(jobs, build, {**options, "tool_jobs": 1}, Interrupter(), workers=1)
    pids = [int(pid) for pid in place.read_text().split()]
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
