"""`aotc build --watch`: builds again when a file changes, and says what changed."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.command import SAMPLES, Outcome, aotc_command, process_environment

from aotc.commands import watch
from aotc.errors import InputError
from aotc.many.watch import Made, line_of, wait_for_change

SAXPY = (SAMPLES / "saxpy.mlir").read_text()
PROJECT = """\
[target.kernels]
inputs = "*.mlir"
emit = "cubin"
chips = "sm_90"
out = "out/"
"""


class _Watching:
    """A command that watches, and what it says, line by line."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            aotc_command("build", "--watch", *words),
            cwd=folder,
            env=process_environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> _Watching:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self._lines.put(line)

    def until(self, start: str) -> str:
        """The next line that starts so."""
        seen = []
        while not seen or not seen[-1].startswith(start):
            try:
                seen.append(self._lines.get(timeout=60))
            except queue.Empty:
                pytest.fail(f"no line starts with {start!r}: {seen}")
        return seen[-1]


def _write(file: Path, text: str) -> None:
    """As editors do: another file takes its place."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_a_project_is_watched(tmp_path: Path) -> None:
    """Only what a changed file belongs to is built; a failure, a project file that is wrong and a
    crash leave it watching; Ctrl-C ends it with 130."""
    saxpy, other = tmp_path / "saxpy.mlir", tmp_path / "other.mlir"
    saxpy.write_text(SAXPY)
    other.write_text(SAXPY.replace("@saxpy", "@other"))
    (tmp_path / "aotc.toml").write_text(PROJECT)
    with _Watching(tmp_path, "-j", "1") as watching:
        assert "other on sm_90: " in watching.until("aotc: other.mlir: ")
        first = watching.until("aotc: saxpy.mlir: ")
        assert first.rstrip().endswith(" registers")
        watching.until("aotc: watching 3 files")

        # What happens to one file is nothing to the other.
        _write(saxpy, SAXPY.replace("arith.addf", "arith.nonsense"))
        watching.until("saxpy.mlir:")
        watching.until("aotc: watching 3 files")
        _write(saxpy, SAXPY.replace("arith.addf", "arith.subf"))
        line = watching.until("aotc: ")
        assert line.startswith("aotc: saxpy.mlir: ")
        assert " s (was " in line
        assert line.rstrip().endswith("; registers as before")

        watching.until("aotc: watching 3 files")
        (tmp_path / "aotc.toml").write_text("[target.kernels]\n")
        watching.until("aotc.toml:1: error: target 'kernels' has no 'inputs'.")
        (tmp_path / "third.mlir").write_text(SAXPY.replace("@saxpy", "@third"))
        (tmp_path / "aotc.toml").write_text(PROJECT)
        watching.until("aotc: third.mlir: ")
        watching.until("aotc: watching 4 files")
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(timeout=60) == 130
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {f"{name}_kernels.sm_90.cubin" for name in ("saxpy", "other", "third")}


def test_a_change_while_the_project_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong project file is corrected before the command waits for that."""
    project = tmp_path / "aotc.toml"
    project.write_text("right")
    job = SimpleNamespace(request=SimpleNamespace(source=project, out=None))
    plans = iter(["right", "wrong", "corrected"])

    def plan() -> list[Any]:
        now = next(plans)
        if now == "wrong":
            project.write_text("corrected")
            raise InputError("wrong")
        if now == "corrected":
            raise KeyboardInterrupt
        return [job]

    looks = iter(range(20))

    def wait(before: dict[Path, Any]) -> set[Path]:
        return wait_for_change(before, lambda seconds: [next(looks)].clear())

    monkeypatch.setattr(watch, "files_of", lambda job: [project])
    monkeypatch.setattr(watch, "_build", lambda *arguments: project.write_text("wrong!"))
    monkeypatch.setattr(watch, "wait_for_change", wait)
    with pytest.raises(KeyboardInterrupt):
        watch.watch_jobs(plan, None, {"quiet": True})  # type: ignore[arg-type]


def test_a_line_says_what_changed() -> None:
    before = Made(0.5, 60_000, {("a", "sm_80"): 10, ("b", "sm_80"): 20})
    assert line_of("x.mlir", before, None) == (
        "x.mlir: 0.50 s, 58.6 KiB; a on sm_80: 10 registers; b on sm_80: 20 registers"
    )
    assert line_of("x.mlir", before, before) == (
        "x.mlir: 0.50 s (was 0.50), 58.6 KiB; registers as before"
    )
    after = Made(0.25, 59_000, {("a", "sm_80"): 12, ("c", "sm_80"): 20})
    assert line_of("x.mlir", after, before) == (
        "x.mlir: 0.25 s (was 0.50), 57.6 KiB (-1000 B); a on sm_80: 12 registers (was 10); "
        "c on sm_80: 20 registers (new); b on sm_80: gone"
    )
    many = Made(1, 10, {(f"k{number}", "sm_90"): 8 for number in range(5)})
    assert line_of("x", many, None).endswith("k2 on sm_90: 8 registers; 2 kernels more")


def test_a_file_that_is_still_written_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    steps = iter(["a", "ab", None, "abc", None, None])

    def pause(seconds: float) -> None:
        text = next(steps)
        if text is not None:
            file.write_text(text)
            os.utime(file, ns=(0, len(text)))

    assert wait_for_change({file: None, tmp_path / "none": None}, pause) == {file}
    assert file.read_text() == "ab"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-"], "--watch is for files: neither the input nor -o can be '-'."),
        (["x.mlir", "--tune"], "--watch and --tune do not go together: tune first."),
    ],
)
def test_what_cannot_be_watched(
    words: list[str], message: str, aotc: Callable[..., Outcome]
) -> None:
    assert aotc("build", "--watch", *words) == Outcome(2, "", f"aotc: error: {message}\n")
