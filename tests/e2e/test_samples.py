"""The samples as executables on the CPU device, against NumPy: what a user gets, whole."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from e2e.own_programs import PROGRAMS as OWN_PROGRAMS
from e2e.support import ROOT, Programs, run

from samples import CASES, PROGRAMS, SAMPLES, generated, mismatch, source_of, write_files

ON_CPU = [case for case in CASES.values() if case.runs_on_cpu]
# Programs of several processes: tests/processes.
PROCESSES = {"sharded_matmul"}
# Seconds each: 2^30 multiplications, one at a time.
SLOW = {"matmul", "matmul-accumulates"}


def test_every_sample_has_a_case() -> None:
    """Nothing in samples/ goes unchecked."""
    files = {file.stem for file in SAMPLES.glob("*.mlir")}
    own = {name for name, program in OWN_PROGRAMS.items() if program.source.parent == SAMPLES}
    assert files == {*PROGRAMS, *own, *PROCESSES}


def check(programs: Programs, name: str, folder: Path, *options: str) -> None:
    """Runs a case; the harness and NumPy must both find the results right."""
    case = CASES[name]
    program = programs.build(source_of(case.program), *options)
    names = list(case.make().results)
    outs = [word for name in names for word in ("--out", f"{name}={folder / name}.npy")]
    result = run(program, *write_files(case, folder), *outs, "--device", "cpu")
    assert (result.stderr, result.returncode) == ("", 0)
    for name in names:
        assert f"{name} matches" in result.stdout
        problem = mismatch(case, name, np.load(folder / f"{name}.npy"))
        assert problem is None, problem


@pytest.mark.parametrize("name", [case.name for case in ON_CPU])
def test_result_is_numpys(programs: Programs, tmp_path: Path, name: str) -> None:
    """Each sample's executable gives NumPy's result, for sizes that divide by nothing, and none."""
    check(programs, name, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [case.name for case in ON_CPU if case.name not in SLOW])
def test_unoptimized_result_is_numpys(programs: Programs, tmp_path: Path, name: str) -> None:
    """-O0 changes how fast a program is, not what it computes."""
    check(programs, name, tmp_path, "-O0")


@pytest.mark.parametrize("name", ["vector_add-1000", "stencil", "activations-f16", "dot-1000"])
def test_wrong_expectation_is_found(programs: Programs, tmp_path: Path, name: str) -> None:
    """One element off by twice the tolerance: exit 1, and the message says where."""
    case = CASES[name]
    words = write_files(case, tmp_path)
    (result_name, expected), *_ = case.make().results.items()
    file = tmp_path / f"{name}.expect.{result_name}.npy"
    saved = np.load(file)
    place = tuple(size // 3 for size in saved.shape)
    saved[place] += (2 * case.rtol * abs(expected[place]) + 2 * case.atol).astype(saved.dtype)
    np.save(file, saved)
    result = run(programs.build(source_of(case.program)), *words, "--device", "cpu")
    assert result.returncode == 1
    assert f"'{result_name}' differs from {file} in 1 of {saved.size} elements" in result.stderr
    if place:
        assert str(list(place)) in result.stderr


def test_default_inputs_are_numpys(programs: Programs, tmp_path: Path) -> None:
    """Without any input, NumPy can make the same ones from what docs/harness.md says."""
    program = programs.build(source_of("vector_add"))
    dims = [word for name in "xyz" for word in ("--dim", f"{name}=1003")]
    outs = [word for name in "xyz" for word in ("--out", f"{name}={tmp_path / name}.npy")]
    result = run(program, *dims, *outs, "--device", "cpu", "--seed", "7", "--json")
    assert result.returncode == 0, result.stderr
    x, y, z = (np.load(tmp_path / f"{name}.npy") for name in "xyz")
    assert x.tobytes() == generated("x", (1003,), np.float32, seed=7).tobytes()
    assert y.tobytes() == generated("y", (1003,), np.float32, seed=7).tobytes()
    assert z.tobytes() == (x + y).tobytes()
    (reported,) = [r for r in json.loads(result.stdout)["results"] if r["name"] == "z"]
    assert reported["crc32"] == f"{zlib.crc32(z.tobytes()):08x}"


@pytest.mark.parametrize(
    "program", sorted({case.program for case in ON_CPU} - {"matmul", "block_sums"})
)
def test_threads_change_no_bit(programs: Programs, tmp_path: Path, program: str) -> None:
    """One thread or several: the same results, to the bit, call after call."""
    case = [case for case in ON_CPU if case.program == program][-1]
    words = write_files(case, tmp_path)
    seen = set()
    for threads in ("1", "2", "7"):
        result = run(
            programs.build(source_of(program)),
            *words,
            "--json",
            env={"AOTC_CPU_THREADS": threads, "AOTC_DEVICE": "cpu"},
        )
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        assert report["device"]["multiprocessors"] == int(threads)
        seen.add(tuple((r["name"], r["crc32"]) for r in report["results"]))
    assert len(seen) == 1


def test_repeated_calls_start_from_the_same_values(programs: Programs, tmp_path: Path) -> None:
    """--repeat: results are the first call's, and a timed call is not an idle one."""
    case = CASES["normalize-300x130"]
    program = programs.build(source_of(case.program))
    result = run(program, *write_files(case, tmp_path), "--repeat", "5", "--device=cpu", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["passed"] is True
    assert report["times"]["repeat"] == 5
    for clock in ("device_ms", "wall_ms"):
        times = report["times"][clock]
        assert 0 < times["min"] <= times["p10"] <= times["median"] <= times["p90"] <= times["max"]


# --- the executable, as it is moved about ---


def test_runs_anywhere_with_nothing(programs: Programs, tmp_path: Path) -> None:
    """A copy in another folder, an empty environment, nothing of aotc within reach."""
    copy = tmp_path / "elsewhere" / "program"
    copy.parent.mkdir()
    copy.write_bytes(programs.build(source_of("dot")).read_bytes())
    copy.chmod(0o755)
    result = run(copy, "--x", "arange", "--y", "2", "--dim", "x=101", "--dim", "y=101",
                 "--device", "cpu", "--print", "result0", cwd=copy.parent)  # fmt: skip
    assert (result.stderr, result.returncode) == ("", 0)
    assert "10100" in result.stdout
    assert [file.name for file in copy.parent.iterdir()] == ["program"]


def opened_libraries(program: Path, *arguments: str) -> tuple[int, set[str]]:
    """(exit code, names of the libraries that the dynamic linker looked for)."""
    result = run(program, *arguments, env={"LD_DEBUG": "files,libs"})
    found = re.findall(r"(?:file=|find library=)(\S+?)(?:;)? \[\d+\]", result.stderr)
    return result.returncode, {Path(name).name for name in found}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["--describe"], ["--describe", "--json"], ["--bad"]]
)
def test_no_driver_is_opened_for(programs: Programs, arguments: list[str]) -> None:
    """What needs no device does not look for libcuda."""
    program = programs.build(source_of("vector_add"))
    code, libraries = opened_libraries(program, *arguments)
    assert code == (2 if arguments == ["--bad"] else 0)
    assert "libc.so.6" in libraries
    assert not {name for name in libraries if "cuda" in name or "nvidia" in name}


def test_the_driver_is_looked_for_when_a_kernel_runs(programs: Programs) -> None:
    """The check before this one sees libcuda where it is wanted, and the cpu alone wants none."""
    program = programs.build(source_of("vector_add"))
    dims = [f"--dim={name}=4" for name in "xyz"]
    assert "libcuda.so.1" in opened_libraries(program, *dims)[1]
    assert "libcuda.so.1" not in opened_libraries(program, *dims, "--device", "cpu")[1]


def test_needs_libc_alone(programs: Programs) -> None:
    """What ldd lists is libc and what comes with it; no symbol is younger than glibc 2.28."""
    program = programs.build(source_of("matmul"))
    # What ldd does.
    result = run(program, env={"LD_TRACE_LOADED_OBJECTS": "1"})
    names = {line.split()[0] for line in result.stdout.splitlines()}
    parts = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}
    assert "libc.so.6" in names
    assert {name for name in names if not re.search(r"/ld-linux\S*$", name)} <= parts
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", program.read_bytes())
    assert versions
    assert max((int(major), int(minor)) for major, minor in versions) <= (2, 28)


def test_holds_no_path_of_this_machine(programs: Programs) -> None:
    """Nothing in the executable says where it was made."""
    data = programs.build(source_of("activations")).read_bytes()
    for path in (str(ROOT), str(Path.home()), "/tmp/"):
        assert path.encode() not in data


# --- devices ---

HAS_DRIVER = any(
    Path(folder, "libcuda.so.1").exists()
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
)
without_driver = pytest.mark.skipif(HAS_DRIVER, reason="this machine has NVIDIA's driver")


def small(programs: Programs, *arguments: str, **env: str) -> tuple[int, str, str]:
    program = programs.build(source_of("vector_add"))
    dims = [f"--dim={name}=4" for name in "xyz"]
    result = run(program, *dims, *arguments, env=env)
    return result.returncode, result.stdout, result.stderr


@without_driver
@pytest.mark.parametrize("device", ["", "auto"])
def test_auto_takes_the_cpu_and_says_why(programs: Programs, device: str) -> None:
    code, out, err = small(programs, AOTC_DEVICE=device)
    assert (code, out.splitlines()[0]) == (0, "vector_add on cpu")
    assert err.startswith("vector_add: note: running on the cpu: no NVIDIA driver: libcuda.so.1")
    assert small(programs, "--quiet", AOTC_DEVICE=device) == (0, out, "")


@without_driver
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:3"])
def test_cuda_without_a_driver_is_an_error(programs: Programs, device: str) -> None:
    """A GPU that was asked for and is not there: exit 3, as option and as variable."""
    by_variable = small(programs, AOTC_DEVICE=device)
    by_option = small(programs, "--device", device)
    for code, out, err in (by_variable, by_option):
        assert (code, out) == (3, "")
        assert "no NVIDIA driver" in err
        assert "libcuda.so.1" in err


def test_the_option_comes_before_the_variable(programs: Programs) -> None:
    code, out, err = small(programs, "--device", "cpu", AOTC_DEVICE="cuda")
    assert (code, out.splitlines()[0], err) == (0, "vector_add on cpu", "")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu:0"])
def test_unknown_device(programs: Programs, device: str) -> None:
    """A word that means no device: exit 2 and what it may be, as option and as variable."""
    for code, out, err in (
        small(programs, "--device", device),
        small(programs, AOTC_DEVICE=device),
    ):
        assert (code, out) == (2, "")
        assert f"'{device}'" in err
        assert "auto, cuda, cuda:N or cpu" in err


@without_driver
def test_list_devices_without_a_driver(programs: Programs) -> None:
    """The CPU is always there; that no GPU is, is no error."""
    result = run(programs.build(source_of("matmul")), "--list-devices", "--json")
    assert result.returncode == 0
    (device,) = json.loads(result.stdout)["devices"]
    assert device["kind"] == "cpu"
    assert "libcuda.so.1" in device["reason"]


# --- a module with its own main ---

OWN_MAIN = Path(__file__).parent / "data" / "own_main.mlir"


@pytest.mark.parametrize("options", [[], ["-O0"]])
def test_own_main_is_the_program(programs: Programs, options: list[str]) -> None:
    """Its main gets the arguments, the harness's options among them, and gives the exit code."""
    program = programs.build(OWN_MAIN, *options)
    code = sum(i * i for i in range(1000)) % 97
    for arguments in ([], ["--help"], ["a", "--device", "cuda"]):
        result = run(program, *arguments, env={"AOTC_DEVICE": "cpu"})
        assert (result.returncode, result.stdout, result.stderr) == (code + len(arguments), "", "")


@without_driver
def test_own_main_reports_a_missing_device(programs: Programs) -> None:
    """The module cannot see that a launch failed; its user does."""
    result = run(programs.build(OWN_MAIN), env={"AOTC_DEVICE": "cuda"})
    assert (result.returncode, result.stdout) == (3, "")
    assert "own_main: error: " in result.stderr
    assert "no NVIDIA driver" in result.stderr
