"""Packages and compilers, made once for all workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers.every_type import every_type
from consumers.support import Compiler, Package, Packages, find_gcc, zig_compiler
from helpers.command import SAMPLES
from helpers.shared import made_once, shared_folder


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(shared_folder(tmp_path_factory) / "consumers")


@pytest.fixture(scope="session")
def package(packages: Packages) -> Package:
    """vector_add's, shared and static."""
    return packages.build(SAMPLES / "vector_add.mlir")[0]


@pytest.fixture(scope="session")
def every_type_package(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Package:
    def make(folder: Path) -> None:
        (folder / "every_type.mlir").write_text(every_type())

    folder = made_once(shared_folder(tmp_path_factory) / "every_type", make)
    return packages.build(folder / "every_type.mlir")[0]


@pytest.fixture(params=["gcc", "zig"])
def compiler(request: pytest.FixtureRequest, tmp_path: Path) -> Compiler:
    if request.param == "zig":
        return zig_compiler(tmp_path / "compilers")
    found = find_gcc()
    if found is None:
        pytest.skip("there are no gcc and g++")
    return found


@pytest.fixture
def any_compiler(tmp_path: Path) -> Compiler:
    """The system's where there is one, for tests of what no compiler decides."""
    return find_gcc() or zig_compiler(tmp_path / "compilers")
