"""Packages and compilers, made once for all workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from consumers.every_type import every_type
from consumers.support import Compiler, Package, Packages, find_gcc, zig_compiler
from helpers.command import SAMPLES


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    # Under xdist each worker has a folder of its own in the session's.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "consumers"


@pytest.fixture(scope="session")
def packages(shared_folder: Path) -> Packages:
    return Packages(shared_folder)


@pytest.fixture(scope="session")
def package(packages: Packages) -> Package:
    """vector_add's, shared and static."""
    return packages.build(SAMPLES / "vector_add.mlir")[0]


@pytest.fixture(scope="session")
def every_type_package(packages: Packages, shared_folder: Path) -> Package:
    # The same text by every worker, whole from the first: nobody reads half of it.
    place = shared_folder / "every_type.mlir"
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{os.getpid()}.draft")
    draft.write_text(every_type())
    draft.rename(place)
    return packages.build(place)[0]


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
