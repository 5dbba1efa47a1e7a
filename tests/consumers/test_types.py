"""Every type that an entry may have, through the header: as C and as C++, computed right."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers.every_type import TYPES
from consumers.support import DATA, STRICT, STRICT_C, Compiler, Package, run_program

from aotc.manifest import Dtype


def test_every_type_is_there(every_type_package: Package) -> None:
    entries = every_type_package.manifest["entries"]
    values = [value for entry in entries for value in (*entry["arguments"], *entry["results"])]
    assert {value["dtype"] for value in values} == {dtype.value for dtype in Dtype}
    scalars = {value["dtype"] for value in values if value["shape"] is None}
    assert scalars == {dtype.value for dtype in Dtype}
    assert len([entry for entry in entries if entry["name"].startswith("copy_")]) == len(TYPES)


@pytest.mark.parametrize(
    "words",
    [STRICT_C, ("-std=c++17", *STRICT), ("-std=c++20", *STRICT)],
    ids=["c11", "c++17", "c++20"],
)
def test_c_functions(
    words: tuple[str, ...], every_type_package: Package, compiler: Compiler, tmp_path: Path
) -> None:
    # A macro that is given a constant converts it, as its type says.
    options = (*words, "-Wno-conversion", every_type_package.include)
    libraries = every_type_package.link("shared")
    program = compiler.program(tmp_path, DATA / "every_type.c", *options, *libraries)
    assert run_program(program) == "failures: 0\n"


@pytest.mark.parametrize(
    "words",
    [("-std=c++17",), ("-std=c++20",), ("-std=c++23",), ("-std=c++20", "-fno-exceptions")],
    ids=" ".join,
)
def test_cxx_functions(
    words: tuple[str, ...], every_type_package: Package, compiler: Compiler, tmp_path: Path
) -> None:
    options = (*words, *STRICT, every_type_package.include)
    libraries = every_type_package.link("static")
    program = compiler.program(tmp_path, DATA / "every_type.cpp", *options, *libraries)
    assert run_program(program) == "failures: 0\n"
