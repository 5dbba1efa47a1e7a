"""The wheel in an environment of its own: what it has is enough, for each Python that is here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES

CLIENT = Path(__file__).resolve().parent / "client.py"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def _run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, without this checkout on its path; fails the test if it fails."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**kept, "AOTC_DEVICE": "cpu", "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def _python(version: str) -> Path | None:
    """That Python, if it is here. (Version managers have commands that say it is not.)"""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    code = "import sys, venv, ensurepip; print(sys.executable)"
    done = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel. Its dependencies are those of this one, which cost nothing."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    words = ["--disable-pip-version-check", "--no-deps", "--no-index", "--quiet"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", *words, wheel]
    subprocess.run(command, check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Files in a folder that a .pth file names are not read as .pth files: the checkout that is
    # installed here is not seen there.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def test_a_project_is_made_built_and_tested(environment: Path, tmp_path: Path) -> None:
    """The command, the runtime's sources, the templates and the API are all in the wheel."""
    aotc, python = environment / "bin" / "aotc", environment / "bin" / "python"
    where = _run(python, "-c", "import aotc; print(aotc.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    _run(aotc, "new", "--python", "my_axpy", cwd=tmp_path)
    assert "OK" in _run(python, "-m", "unittest", cwd=tmp_path / "my_axpy")
    _run(aotc, "build", SAMPLES / "saxpy.mlir", "--chip", "sm_80", "-o", "saxpy", cwd=tmp_path)
    said = _run(tmp_path / "saxpy", "--dim", "x=4", "--dim", "y=4", cwd=tmp_path)
    assert "saxpy on cpu" in said


@pytest.mark.exhaustive
def test_clients_are_checked_by_the_types_of_the_api(environment: Path, tmp_path: Path) -> None:
    """mypy takes the installed package's types (py.typed), as strictly as it can."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="),
            *("--python-executable", environment / "bin" / "python"),
            *("--cache-dir", tmp_path / "cache", CLIENT),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^\S*client\.py:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    marked = [
        (str(number), line.partition("  # error: ")[2])
        for number, line in enumerate(CLIENT.read_text().splitlines(), start=1)
        if "  # error: " in line
    ]
    assert found == marked, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_no_source_warns(version: str, wheel: Path, tmp_path: Path) -> None:
    """Each Python compiles all of it without a warning."""
    python = _python(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    shutil.unpack_archive(wheel, tmp_path, "zip")
    _run(python, "-W", "error", "-m", "compileall", "-q", tmp_path / "aotc", cwd=tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_installed_from_an_index(version: str, wheel: Path, tmp_path: Path) -> None:
    """pip finds all that it depends on, and a build works with that alone."""
    python = _python(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    _run(python, "-m", "venv", "environment", cwd=tmp_path)
    programs = tmp_path / "environment" / "bin"
    words = ["--disable-pip-version-check", "--quiet"]
    subprocess.run([programs / "pip", "install", *words, wheel], check=True, cwd=tmp_path)
    assert "Builds work here." in _run(programs / "aotc", "doctor", cwd=tmp_path)
    shutil.rmtree(tmp_path / "environment")  # a gigabyte
