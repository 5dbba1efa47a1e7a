"""Assertions and traps of kernels on the CPU device: the launch ends, and says who failed where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from e2e.support import Programs, run

SOURCE = Path(__file__).parent / "data" / "kernel_assertions.mlir"
# 3 blocks of 50 threads.
THREADS = 150
OPTIONS = pytest.mark.parametrize("options", [("-O0",), ("-O3",)], ids=lambda o: o[0])

MESSAGES = {
    "meeting": 'assertion failed: the neighbour is "small" (100%) (kernel_assertions.mlir:16:7)',
    "alone": "assertion failed: small (kernel_assertions.mlir:23:7)",
    "trapping": "trap (kernel_assertions.mlir:39:9)",
}
# The first thread that fails when thread i has the number i and 99 is the first large one.
FAILING = {"meeting": 48, "alone": 49, "trapping": 49}


@OPTIONS
@pytest.mark.parametrize("entry", MESSAGES)
def test_failure_names_thread_and_place(
    programs: Programs, tmp_path: Path, entry: str, options: tuple[str, ...]
) -> None:
    """The first block with a failure ends the launch; with one worker that is always the same."""
    program = programs.build(SOURCE, "--chip", "sm_90a", *options)
    np.save(tmp_path / "x.npy", np.arange(THREADS, dtype=np.int32))
    arguments = ("--arg", f"x={tmp_path / 'x.npy'}", "--limit", "99")
    env = {"AOTC_DEVICE": "cpu", "AOTC_CPU_THREADS": "1"}
    done = run(program, entry, *arguments, env=env)
    assert done.returncode == 4
    assert done.stdout == ""
    failing = FAILING[entry]
    assert (
        f"kernel '{entry}': block (1, 0, 0), thread ({failing}, 0, 0): {MESSAGES[entry]}"
        in done.stderr
    )


@OPTIONS
@pytest.mark.parametrize("entry", MESSAGES)
def test_assertions_that_hold_change_nothing(
    programs: Programs, tmp_path: Path, entry: str, options: tuple[str, ...]
) -> None:
    """The results are those of the kernel without them."""
    program = programs.build(SOURCE, "--chip", "sm_90a", *options)
    x = np.arange(THREADS, dtype=np.int32)
    np.save(tmp_path / "x.npy", x)
    arguments = ("--arg", f"x={tmp_path / 'x.npy'}", "--limit", "150")
    result = tmp_path / "result.npy"
    done = run(program, entry, *arguments, "--out", f"x={result}", "--device", "cpu")
    assert (done.stderr, done.returncode) == ("", 0)
    expected = {"meeting": x ^ 1, "alone": 2 * x, "trapping": x}[entry]
    np.testing.assert_array_equal(np.load(result), expected)


def test_launch_with_too_little_dynamic_shared_memory(programs: Programs, tmp_path: Path) -> None:
    """Views whose end is not known, and globals without elements, need what the launch gives."""
    program = programs.build(SOURCE.with_name("dynamic_shared.mlir"))
    x = np.arange(64, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    result = tmp_path / "result.npy"
    for entry in ("view", "global"):
        arguments = (entry, "--arg", f"x={tmp_path / 'x.npy'}", "--device", "cpu")
        done = run(program, *arguments, "--bytes", "100000", "--out", f"x={result}")
        assert (done.stderr, done.returncode) == ("", 0)
        np.testing.assert_array_equal(np.load(result), x[::-1])
        done = run(program, *arguments, "--bytes", "0")
        assert done.returncode == 4
        assert f"'{entry}' uses dynamic shared memory" in done.stderr


@pytest.mark.parametrize("entry", ["element", "loop"])
def test_host_code_ends_after_a_failure(programs: Programs, tmp_path: Path, entry: str) -> None:
    """It reads no element that a kernel has not written: as an index it would crash the process,
    and a loop would wait for it forever."""
    program = programs.build(SOURCE.with_name("read_after_failure.mlir"))
    for x, status in ((np.arange(8), 0), (np.arange(8) + 1, 4)):
        np.save(tmp_path / "x.npy", x.astype(np.int64))
        done = run(program, entry, "--arg", f"x={tmp_path / 'x.npy'}", "--device", "cpu")
        assert done.returncode == status
        assert ("assertion failed: no index" in done.stderr) == bool(status)


def test_a_loop_with_tokens_ends_after_a_failure(programs: Programs) -> None:
    program = programs.build(SOURCE.with_name("loop_after_failure.mlir"))
    for first, status in (("3", 0), ("0", 4)):
        done = run(program, "--arg", f"x={first}", "--device", "cpu")
        assert done.returncode == status
        assert ("assertion failed: three" in done.stderr) == bool(status)
