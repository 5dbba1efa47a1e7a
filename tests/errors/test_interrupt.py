"""An interrupted build: exit code 130, and nothing left behind, neither files nor processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, aotc_command, process_environment

_PATIENCE = 30.0


@pytest.fixture
def slow_ptxas(tmp_path: Path) -> Path:
    """Tells its own process and a child of its, then sleeps far longer than any test."""
    script = tmp_path / "slow-ptxas"
    script.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "--version) echo 'Cuda compilation tools, release 13.5, V13.5.37'; exit 0 ;;\n"
        "esac\n"
        "sleep 600 &\n"
        f"echo $$ $! > {tmp_path}/starting.$$\n"
        f"mv {tmp_path}/starting.$$ {tmp_path}/started.$$\n"
        "wait\n"
    )
    script.chmod(0o755)
    return script


def _started(folder: Path) -> list[int]:
    return [int(pid) for file in folder.glob("started.*") for pid in file.read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _wait_until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("chips", "inputs"),
    [
        ("sm_80", ["vector_add.mlir"]),
        ("sm_80,sm_86,sm_90", ["vector_add.mlir"]),
        ("sm_80,sm_86", ["vector_add.mlir", "saxpy.mlir", "dot.mlir"]),
    ],
)
def test_an_interrupted_build_leaves_nothing(
    number: signal.Signals, chips: str, inputs: list[str], slow_ptxas: Path, tmp_path: Path
) -> None:
    """One tool at a time or several, one module or several: all processes end, and the folder of
    intermediates goes."""
    temporary, out = tmp_path / "tmpdir", tmp_path / "out"
    temporary.mkdir()
    command = aotc_command(
        *("build", *(SAMPLES / name for name in inputs), "--emit", "exe,manifest,ptx"),
        *("--chip", chips, "--ptxas", slow_ptxas, "-j", "2", "-o", f"{out}/"),
    )
    with subprocess.Popen(
        command,
        env=process_environment({"TMPDIR": str(temporary)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C reaches a process group; here aotc alone is told, and must tell its tools.
        start_new_session=True,
    ) as process:
        try:
            # A script tells two processes.
            tools = 2 * min(len(inputs), 2)
            _wait_until(lambda: len(_started(tmp_path)) >= tools, "ptxas starts")
            # The command, its fork server, and where there are several inputs two workers.
            python = _descendants(process.pid, "python")
            assert len(python) >= (3 if len(inputs) > 1 else 2)
            assert list(temporary.iterdir()), "the intermediates are somewhere else"
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=_PATIENCE)
        finally:
            process.kill()
    # The newline: on a terminal, ^C stands on the line.
    assert (process.returncode, stdout, stderr) == (130, b"", b"\naotc: interrupted\n")
    assert list(temporary.iterdir()) == []
    assert not out.exists()
    pids = [*python, *_started(tmp_path)]
    _wait_until(lambda: not any(map(_is_alive, pids)), f"the tools end: {pids}")


def test_an_interrupted_program_under_aotc_run(tmp_path: Path) -> None:
    """`aotc run` is interrupted while the program runs: the program ends, too."""
    source = tmp_path / "endless.mlir"
    source.write_text(
        """
func.func private @pause() -> i32
func.func @main() {
  cf.br ^again
^again:
  %r = func.call @pause() : () -> i32
  cf.br ^again
}
"""
    )
    temporary = tmp_path / "tmpdir"
    temporary.mkdir()
    with subprocess.Popen(
        aotc_command("run", source),
        env=process_environment({"TMPDIR": str(temporary)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _wait_until(lambda: _descendants(process.pid, "endless"), "the program starts")
            (child,) = _descendants(process.pid, "endless")
            # The terminal's Ctrl-C: to aotc and to the program.
            os.killpg(process.pid, signal.SIGINT)
            _, stderr = process.communicate(timeout=_PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 130, stderr
    assert list(temporary.iterdir()) == []
    _wait_until(lambda: not _is_alive(child), "the program ends")


def _descendants(process: int, name: str) -> list[int]:
    """The processes of that name that the process started, and those that they did."""
    parents, named = {}, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        start, _, rest = words.rpartition(")")
        parents[int(place.name)] = int(rest.split()[1])
        if f"({name}" in start:
            named.append(int(place.name))
    return [pid for pid in named if process in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while (pid := parents.get(pid, 0)) > 1:
        found.append(pid)
    return found
