"""The wheel has what an installed aotc needs; `make` says what a machine lacks."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from aotc import __version__

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.iterdir()
    assert built.name == f"aotc-{__version__}-py3-none-any.whl"
    return zipfile.ZipFile(built)


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"aotc-{__version__}.dist-info/{name}").decode()


@pytest.mark.parametrize("name", ["runtime_c", "templates"])
def test_the_wheel_has_every_c_file_and_template(name: str, wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    files = [path for path in (ROOT / name).rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert f"aotc/_data/{path.relative_to(ROOT).as_posix()}" in names


def test_the_wheel_has_every_module_and_nothing_of_the_house(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    for ending in ("py", "toml", "cmake"):
        for path in (ROOT / "aotc").rglob(f"*.{ending}"):
            assert path.relative_to(ROOT).as_posix() in names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"aotc", *(f"aotc-{__version__}.{part}" for part in ("data", "dist-info"))}
    # Where CMake and man look in the folder of an environment.
    placed = {name.partition(".data/data/share/")[2] for name in names if ".data/" in name}
    pages = {f"man/man1/{path.name}" for path in (ROOT / "docs" / "man").iterdir()}
    assert "man/man1/aotc-build.1" in pages
    assert placed == {f"cmake/aotc/aotcConfig{part}.cmake" for part in ("", "Version")} | pages
    assert "aotc/_data/docs/warnings.md" in names  # aotc explain
    assert [name for name in names if "__pycache__" in name] == []


def test_the_wheel_makes_the_command_and_names_its_license(wheel: zipfile.ZipFile) -> None:
    assert "aotc = aotc.__main__:main" in metadata(wheel, "entry_points.txt")
    lines = metadata(wheel, "METADATA").splitlines()
    assert "License-Expression: Apache-2.0 WITH LLVM-exception" in lines
    assert "Requires-Python: >=3.11" in lines


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [item for item in project["dependencies"] if ">=" not in item] == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Only what `make` needs to begin."""
    folder = tmp_path / "house"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        (folder / name).write_text((ROOT / name).read_text())
    return folder


def make(house: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "setup", f"PYTHON={python}"],
        cwd=house,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(house: Path, *, refuses: str) -> str:
    """A python3 that fails where the code it is given has the word `refuses`."""
    python = house / "python3"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '*--version*) echo "Python 3.9.2" ;;\n'
        f"*{refuses}*) exit 1 ;;\n"
        "esac\n"
    )
    python.chmod(0o755)
    return str(python)


def test_make_keeps_an_environment_that_works(house: Path) -> None:
    """Another python3 would leave it with the files of two."""
    programs = house / ".venv" / "bin"
    programs.mkdir(parents=True)
    own = programs / "python"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    asked = house / "asked"
    other = house / "other"
    other.write_text(f'#!/bin/sh\ncase "$*" in "-m venv"*) touch {asked} ;; esac\n')
    other.chmod(0o755)
    assert make(house, str(other)).returncode == 0
    assert not asked.exists()
    own.write_text("#!/bin/sh\nexit 1\n")  # a half of one is made anew
    (house / ".venv" / "installed").unlink()
    make(house, str(other))
    assert asked.exists()


def test_make_says_that_python_is_too_old(house: Path) -> None:
    python = fake_python(house, refuses="version_info")
    done = make(house, python)
    assert done.returncode == 2
    assert f"aotc needs Python 3.11 or newer. '{python}' is: Python 3.9.2." in done.stderr
    assert "make PYTHON=/path/to/python3" in done.stderr
    assert not (house / ".venv").exists()


def test_make_says_that_venv_is_missing(house: Path) -> None:
    done = make(house, fake_python(house, refuses="ensurepip"))
    assert done.returncode == 2
    assert "cannot make virtual environments: it lacks venv or ensurepip" in done.stderr
    assert "apt-get install python3-venv" in done.stderr


def test_make_does_not_take_half_an_installation_for_a_whole_one(house: Path) -> None:
    """The stamp comes last: pip failed, so the next `make` tries again."""
    done = make(house, fake_python(house, refuses="-m venv"))
    assert done.returncode == 2
    assert not (house / ".venv" / "installed").exists()
