"""The GPU bundle: it builds, and its script runs it; on the GPU where there is one."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e import own_programs
from gpu import bundle, programs, toy_programs, weights_programs
from helpers.shared import made_once, shared_folder

# Its programs are several hundred.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, made once for all workers."""

    def make(folder: Path) -> None:
        assert bundle.main([str(folder)]) == 0

    return made_once(shared_folder(tmp_path_factory) / "gpu-bundle", make)


# All that `run` may use, beside sh itself.
COREUTILS = ("dirname", "env", "mktemp", "printf", "rm", "sort", "timeout")


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with coreutils alone: no grep, no awk, no Python."""
    folder = tmp_path / "coreutils"
    folder.mkdir()
    for name in COREUTILS:
        tool = shutil.which(name)
        assert tool is not None
        (folder / name).symlink_to(tool)
    (folder / "sh").symlink_to("/bin/sh")
    return str(folder)


def run_bundle(folder: Path, *arguments: str, path: str) -> tuple[int, list[str]]:
    result = subprocess.run(
        [folder / "run", *arguments],
        env={"PATH": path},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout.splitlines()


def test_every_program_is_in_it(built: Path) -> None:
    """Each file of tests/gpu/data is built, and each case that it has is run on cuda."""
    files = {file.stem for file in programs.DATA.glob("*.mlir")}
    assert files <= {file.name for file in (built / "bin").iterdir()}
    lines = (built / "cases.sh").read_text().splitlines()
    named = {line.split(" cuda ")[1].split()[0] for line in lines if " cuda " in line}
    assert {case.name for case in bundle.all_cases()} <= named
    assert os.access(built / "run", os.X_OK)


def test_it_is_small(built: Path) -> None:
    assert bundle.size_of(built.rglob("*")) <= bundle.MOST_BYTES


def test_it_names_no_place_of_this_machine(built: Path) -> None:
    """It is copied elsewhere: nothing in its scripts leads back."""
    for script in [built / "run", *built.glob("*.sh")]:
        text = script.read_text()
        assert str(bundle.ROOT) not in text
        assert str(built) not in text


def test_the_cpu_cases_pass(built: Path, bare_path: str) -> None:
    """Every case that a machine without a GPU can run, as the script runs it, with coreutils."""
    code, lines = run_bundle(built, "--device", "cpu", path=bare_path)
    failed = [line for line in lines if line.startswith("FAILED")]
    assert (code, failed) == (0, []), "\n".join(lines)
    found = re.fullmatch(r"(\d+) passed, 0 failed, (\d+) skipped", lines[-1])
    assert found is not None
    expected = 2 * sum(case.runs_on_cpu for case in bundle.all_cases())
    expected += 2 * len(own_programs.PROGRAMS) + len(toy_programs.EXAMPLES)
    expected += len(weights_programs.CASES)
    expected += len(list(built.glob("case-cpu-*.sh"))) + len(list(built.glob("case-any-*.sh")))
    assert int(found[1]) == expected
    assert len([line for line in lines if line.startswith("ok cpu:")]) == expected


def part_of(built: Path, folder: Path) -> Path:
    """A small bundle: one sample's program and files, and no case script."""
    for name in ("bin", "data"):
        (folder / name).mkdir(parents=True)
    for name in ("run", "lib.sh", "cases.sh", "bin/dot"):
        shutil.copy(built / name, folder / name)
    for file in (built / "data").glob("dot-1.*"):
        shutil.copy(file, folder / "data")
    return folder


def test_a_wrong_result_fails(built: Path, tmp_path: Path, bare_path: str) -> None:
    """FAILED, what the program said, and an exit code other than 0."""
    part = part_of(built, tmp_path / "part")
    code, lines = run_bundle(part, "cpu:dot-1", path=bare_path)
    assert (code, lines[0]) == (0, "ok cpu:dot-1")
    assert lines[-1].startswith("1 passed, 0 failed, ")
    expected = part / "data" / "dot-1.expect.result0.npy"
    data = bytearray(expected.read_bytes())
    data[-2] ^= 1
    expected.write_bytes(data)
    code, lines = run_bundle(part, "cpu:dot-1", path=bare_path)
    assert (code, lines[0]) == (1, "FAILED cpu:dot-1")
    assert any("'result0' differs from" in line for line in lines)
    assert "exit code 1" in lines
    assert lines[-1].startswith("0 passed, 1 failed, ")


def test_a_case_that_is_missing_its_program_fails(
    built: Path, tmp_path: Path, bare_path: str
) -> None:
    part = part_of(built, tmp_path / "part")
    (part / "bin" / "dot").unlink()
    code, lines = run_bundle(part, "cpu:dot-1", path=bare_path)
    assert (code, lines[0]) == (1, "FAILED cpu:dot-1")


def test_case_scripts_are_run(built: Path, tmp_path: Path, bare_path: str) -> None:
    """Any case-*.sh: 0 is ok, 77 skipped, anything else failed, and so is a strange name."""
    part = part_of(built, tmp_path / "part")
    (part / "cases.sh").write_text("")
    scripts = {
        "case-cpu-good.sh": ". ./lib.sh\nexpect 3 sh -c 'echo one two; exit 3'\nhas two\nlacks 2\n",
        "case-any-bad.sh": ". ./lib.sh\nexpect 0 sh -c 'echo one'\nhas two\n",
        "case-cpu-disorder.sh": ". ./lib.sh\nin_order 1e-3 0.5 7 70\nin_order 3 2\n",
        "case-cpu-none.sh": ". ./lib.sh\nskip 'not here'\n",
        "case-cuda-other.sh": "exit 0\n",
        "case-strange.sh": "exit 0\n",
    }
    for name, text in scripts.items():
        (part / name).write_text(text)
    code, lines = run_bundle(part, "--device=cpu", path=bare_path)
    assert code == 1
    said = [line for line in lines if re.match(r"ok |FAILED |skipped ", line)]
    assert said == [
        "FAILED any:bad",
        "FAILED cpu:disorder",
        "ok cpu:good",
        "skipped cpu:none: not here",
        "FAILED strange",
    ]
    assert "expected 'two' in:" in lines
    assert lines[-1] == "1 passed, 3 failed, 2 skipped"


def test_the_last_line_of_a_full_run(built: Path, tmp_path: Path, bare_path: str) -> None:
    """Without options it is exactly «N passed, N failed»; nothing at all is no success."""
    part = part_of(built, tmp_path / "part")
    lines = (part / "cases.sh").read_text().splitlines()
    (part / "cases.sh").write_text(next(line for line in lines if " cpu dot-1 " in line) + "\n")
    assert run_bundle(part, path=bare_path) == (0, ["ok cpu:dot-1", "1 passed, 0 failed"])
    (part / "cases.sh").write_text("")
    assert run_bundle(part, path=bare_path) == (1, ["0 passed, 0 failed"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fast"], "run: unknown option '--fast'; ./run --help"),
        (["--device", "gpu"], "run: --device takes all, cpu or cuda, not 'gpu'"),
        (["--device"], "run: --device takes all, cpu or cuda, not ''"),
    ],
)
def test_wrong_usage(built: Path, bare_path: str, arguments: list[str], message: str) -> None:
    assert run_bundle(built, *arguments, path=bare_path) == (2, [message])


def test_help_tells_the_usage(built: Path, bare_path: str) -> None:
    code, lines = run_bundle(built, "--help", path=bare_path)
    assert code == 0
    assert any(line.startswith("  ./run --device cpu") for line in lines)
    assert not any("set -u" in line for line in lines)


def test_another_folder_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """bundle.py replaces its own bundle, and nothing else."""
    (tmp_path / "thesis.txt").write_text("precious")
    assert bundle.main([str(tmp_path)]) == 2
    assert "holds something else" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def gpu_count() -> int:
    """The GPUs that the driver reports; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


@pytest.mark.skipif(gpu_count() == 0, reason="no NVIDIA driver and GPU: cuda cases cannot run")
def test_the_cuda_cases_pass(built: Path, bare_path: str) -> None:
    """Everything, as on the machine that the bundle is for."""
    code, lines = run_bundle(built, path=bare_path)
    assert code == 0, "\n".join(lines)
    assert re.fullmatch(r"[1-9]\d* passed, 0 failed", lines[-1])


def test_no_file_is_written_over_by_another_of_its_name(tmp_path: Path) -> None:
    bundle.own_program_lines(tmp_path)
    with pytest.raises(FileExistsError, match=r"another vectors\.txt"):
        bundle._copy(bundle.E2E_DATA / "vectors.txt", tmp_path / "vectors.txt")
