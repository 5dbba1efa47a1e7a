"""How the harness uses the runtime: order, memory, times, failures, notes and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.support import RUNTIME, Run

REASON = "no NVIDIA driver: libcuda.so.1 is not there"


def test_order_of_calls(run: Run, tmp_path: Path) -> None:
    """The device is chosen, memory placed, the entry called on our stream; then all is freed."""
    assert run("matmul", "--device", "cuda:1", FAKE_DEVICE="cuda", FAKE_LOG="log").code == 0
    calls = (tmp_path / "log").read_text().splitlines()
    place = ["aotc_memory_allocate", "allocate kind 1 bytes {}", "aotc_memory_copy"]
    sizes = (48, 60, 80)
    assert calls == [
        "aotc_device_request",
        "cuda:1",
        "aotc_device_resolve",
        *(line.format(size) for size in sizes for line in place),
        "aotc_stream_open",
        "aotc_timer_open",
        "aotc_error_clear",
        "aotc_stream_adopt",
        "not synchronizing",
        "aotc_timer_start",
        "aotc_timer_stop",
        "aotc_stream_release",
        "aotc_memory_copy",
        "aotc_error_clear",
        "aotc_timer_close",
        "aotc_error_clear",
        "aotc_stream_close",
        *["aotc_memory_free"] * 3,
    ]


def test_environment_decides_without_device(run: Run, tmp_path: Path) -> None:
    """Without --device the runtime is asked with NULL: AOTC_DEVICE, else auto."""
    assert run("matmul", FAKE_LOG="log").code == 0
    assert (tmp_path / "log").read_text().splitlines()[1] == "(null)"


def test_host_access_synchronizes(run: Run, tmp_path: Path) -> None:
    """An entry that touches memory on the host waits for the stream inside."""
    assert run("kernels", "returns", "--dim", "x=2", FAKE_LOG="log").code == 0
    assert "synchronizing" in (tmp_path / "log").read_text().splitlines()


def test_memory_kinds(run: Run, tmp_path: Path) -> None:
    """Each buffer is in the memory that the table says."""
    assert run("kernels", "places", FAKE_DEVICE="cuda", FAKE_LOG="log").code == 0
    calls = (tmp_path / "log").read_text().splitlines()
    kinds = [line for line in calls if line.startswith("allocate")]
    assert kinds == [f"allocate kind {kind} bytes 16" for kind in (0, 1, 2, 0)]


def test_results_on_a_device(run: Run, tmp_path: Path) -> None:
    """Device memory, which traps when the host touches it, is only copied."""
    ran = run("matmul", "--out", "C=c.npy", "--out", "A=a.npy", "--repeat", "3", FAKE_DEVICE="cuda")
    assert ran.code == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == "matmul on cuda:1 (Fake GPU)"
    on_device = (tmp_path / "c.npy").read_bytes()
    assert run("matmul", "--out", "C=c.npy").code == 0
    assert (tmp_path / "c.npy").read_bytes() == on_device


def test_repeat(run: Run) -> None:
    """The first call is on its own; the N-th call of the fake device takes N ms."""
    words = ["matmul", "--warmup", "2", "--repeat", "10"]
    ran = run(*words, "--json")
    times = json.loads(ran.stdout)["times"]
    assert times["first_call"]["device_ms"] == 1
    assert (times["warmup"], times["repeat"]) == (2, 10)
    samples = np.arange(4, 14)
    expected = {
        "median": np.median(samples),
        "min": 4,
        "p10": np.percentile(samples, 10),
        "p90": np.percentile(samples, 90),
        "max": 13,
    }
    assert times["device_ms"] == pytest.approx(expected)
    wall = times["wall_ms"]
    assert 0 < wall["min"] <= wall["p10"] <= wall["median"] <= wall["p90"] <= wall["max"]
    lines = run(*words).stdout.splitlines()
    assert lines[3] == "10 timed calls after the first"
    assert lines[4] == ("device time: first 1 ms, then median 8.5 ms, min 4, p10-p90 4.9 to 12.1")
    assert lines[5].startswith("wall time:   first ")
    # Long times are whole milliseconds, not powers of ten.
    slow = run("matmul", "--repeat", "1", FAKE_MILLISECONDS="12345.5").stdout.splitlines()
    assert slow[4].startswith("device time: first 12346 ms, then median 24691 ms, min 24691,")
    once = json.loads(run("matmul", "--json").stdout)["times"]
    assert (once["repeat"], once["device_ms"], once["wall_ms"]) == (0, None, None)
    assert once["first_call"]["wall_ms"] > 0


def test_repeat_restores_inputs(run: Run, tmp_path: Path) -> None:
    """Results are the first call's, and each call finds the first values again."""
    words = ["kernels", "accumulate", "--x", "41", "--dim", "x=3"]
    ran = run(*words, "--repeat", "5", "--print", "x", FAKE_LOG="log")
    assert "x = [42 42 42]\n" in ran.stdout
    calls = (tmp_path / "log").read_text().splitlines()
    # One copy places the input, one fetches the result, one before each of the five calls.
    assert calls.count("aotc_memory_copy") == 7


def test_owned_results_of_the_runtime(run: Run, tmp_path: Path) -> None:
    """Results in managed memory are freed by the runtime, each call's; a failure to is told."""
    words = ["kernels", "managed", "--repeat", "2"]
    assert run(*words, FAKE_DEVICE="cuda", FAKE_LOG="log").code == 0
    calls = (tmp_path / "log").read_text().splitlines()
    assert calls.count("aotc_memory_allocate") == calls.count("aotc_memory_free") == 6
    for number in (1, 6):
        ran = run(*words, FAKE_FAIL=f"aotc_memory_free:{number}:7")
        assert (ran.code, ran.stdout) == (4, "")
        assert ran.stderr == "kernels: error: aotc_memory_free was asked to fail\n"


def test_list_devices(run: Run, tmp_path: Path) -> None:
    ran = run("matmul", "--list-devices", FAKE_DEVICE="cuda", FAKE_LOG="log")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        "cuda:1  Fake GPU  sm_90  132 multiprocessors  140.0 GiB\n"
        "cpu                      2 threads            8.0 GiB\n"
    )
    assert (tmp_path / "log").read_text() == "aotc_device_list\n"
    ran = run("kernels", "--list-devices")
    assert ran.stdout == f"cpu      2 threads  8.0 GiB\nno GPU: {REASON}\n"
    ran = run("matmul", "--list-devices", "--json", FAKE_DEVICE="cuda")
    devices = json.loads(ran.stdout)["devices"]
    assert [device["kind"] for device in devices] == ["cuda", "cpu"]
    assert devices[1]["capability"] is None
    ran = run("matmul", "--list-devices", FAKE_FAIL="aotc_device_list:1:7")
    assert (ran.code, ran.stderr) == (4, "matmul: error: aotc_device_list was asked to fail\n")


def test_note_of_the_cpu(run: Run) -> None:
    """When auto took the cpu for kernels, one line on stderr says so; --quiet leaves it out."""
    note = f"matmul: note: running on the cpu: {REASON}\n"
    ran = run("matmul", FAKE_DEVICE="auto-cpu")
    assert (ran.code, ran.stderr) == (0, note)
    ran = run("matmul", "--json", FAKE_DEVICE="auto-cpu")
    assert ran.stderr == note
    assert json.loads(ran.stdout)["device"]["reason"] == REASON
    for words in (["-q"], ["--quiet"], ["--device", "cpu"]):
        assert run("matmul", *words, FAKE_DEVICE="auto-cpu").stderr == ""
    # No kernels: nothing that a GPU would have done.
    assert run("kernels", "nothing", FAKE_DEVICE="auto-cpu").stderr == ""


def test_no_device(run: Run) -> None:
    ran = run("matmul", "--out", "C=c.npy", FAKE_DEVICE="none")
    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr == f"matmul: error: no device: {REASON}, and no kernels for the cpu\n"


def test_bad_environment(run: Run) -> None:
    """A device in the environment that is none is the user's input."""
    ran = run("matmul", FAKE_DEVICE="bad")
    assert ran.code == 2
    assert ran.stderr == "matmul: error: AOTC_DEVICE=gpu is not auto, cuda, cuda:N or cpu\n"


# The status of an entry's failure, the device, the exit code.
FAILURES = [
    (1, "cpu", 4),
    (2, "cpu", 3),
    (3, "cuda", 3),
    (4, "cpu", 3),
    (5, "cuda", 4),
    (6, "cuda", 4),
    (7, "cuda", 4),
    (8, "cpu", 3),
    (8, "cuda", 4),
]


@pytest.mark.parametrize(("status", "device", "code"), FAILURES)
def test_failure_inside_the_entry(
    run: Run, tmp_path: Path, status: int, device: str, code: int
) -> None:
    """The message is the runtime's; there is no report and no file."""
    words = ["kernels", "fails", "--status", status, "--out", "result0=r.npy", "--json"]
    ran = run(*words, FAKE_DEVICE=device)
    assert (ran.code, ran.stdout) == (code, "")
    assert ran.stderr == "kernels: error: the launch of 'k' failed\n"
    assert list(tmp_path.iterdir()) == []


# Each function of the runtime, and how often a run calls it.
CALLS = {
    "aotc_device_request": 1,
    "aotc_device_resolve": 1,
    "aotc_memory_allocate": 3,
    "aotc_memory_copy": 6,
    "aotc_stream_open": 1,
    "aotc_timer_open": 1,
    "aotc_stream_adopt": 3,
    "aotc_timer_start": 3,
    "aotc_timer_stop": 3,
    "aotc_stream_close": 1,
    "aotc_memory_free": 3,
}


@pytest.mark.parametrize(
    ("function", "number"), [(name, i + 1) for name, count in CALLS.items() for i in range(count)]
)
def test_every_call_may_fail(run: Run, tmp_path: Path, function: str, number: int) -> None:
    """Whichever call fails: its message, exit 4, no report, no file, and no crash."""
    words = ["matmul", "--repeat", "2", "--out", "C=c.npy"]
    ran = run(*words, FAKE_DEVICE="cuda", FAKE_FAIL=f"{function}:{number}:7", FAKE_LOG="log")
    assert ran.stderr == f"matmul: error: {function} was asked to fail\n"
    assert (ran.code, ran.stdout) == (4, "")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    # One more of it is never asked for: the table above is complete.
    if number == CALLS[function]:
        beyond = run(*words, FAKE_DEVICE="cuda", FAKE_FAIL=f"{function}:{number + 1}:7")
        assert beyond.code == 0


def test_program_with_its_own_main(run: Run) -> None:
    """Its value is the exit code, unless the runtime failed: then the message, and 3 or 4."""
    ran = run("own_main", 0)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "")
    assert run("own_main", 17).code == 17
    for status, device, code in FAILURES:
        ran = run("own_main", 17, status, FAKE_DEVICE=device)
        assert (ran.code, ran.stderr) == (code, "own_main: error: the launch of 'k' failed\n")
    # As in test_bad_environment; what needs no device does not ask.
    assert run("own_main", 17, 1, FAKE_DEVICE="bad").code == 2
    assert run("own_main", 17, FAKE_DEVICE="bad").code == 17


def test_runtime_header_is_there() -> None:
    """The fake implements the real interface: it is compiled against the runtime's own header."""
    assert (RUNTIME / "include" / "aotc_runtime.h").exists()


def test_misspelled_variables_are_noted(run: Run) -> None:
    """Those near to one that is read, without which the device would be another; not others'."""
    given = {"AOTC_DEVICES": "cpu", "AOTC_CPU_THREADS": "1", "AOTC_CACHE": "x", "AOTC_NVXT": ""}
    done = run("matmul", FAKE_DEVICE="cuda", **given)
    assert done.code == 0
    notes = [line for line in done.stderr.splitlines() if "variable" in line]
    assert sorted(line.partition("note: ")[2] for line in notes) == [
        "nothing reads the variable AOTC_DEVICES of the environment: did you mean AOTC_DEVICE?",
        "nothing reads the variable AOTC_NVXT of the environment: did you mean AOTC_NVTX?",
    ]
    assert "AOTC" not in run("matmul", "--quiet", FAKE_DEVICE="cuda", **given).stderr
