"""Programs that ask for the sizes of results before they call, as C and as C++."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers.support import DATA, STRICT, STRICT_C, Compiler, Packages, run_program


@pytest.mark.parametrize(
    ("source", "words", "kind"),
    [
        ("sizes.c", STRICT_C, "shared"),
        ("sizes.c", ("-std=c++17", *STRICT), "static"),
        ("sizes.cpp", ("-std=c++17", *STRICT), "static"),
        ("sizes.cpp", ("-std=c++20", *STRICT), "shared"),
    ],
    ids=["c11", "c as c++17", "c++17", "c++20"],
)
def test_a_program(
    source: str,
    words: tuple[str, ...],
    kind: str,
    packages: Packages,
    compiler: Compiler,
    tmp_path: Path,
) -> None:
    (package,) = packages.build(DATA / "sizes.mlir")
    libraries = package.link(kind)
    program = compiler.program(tmp_path, DATA / source, *words, package.include, *libraries)
    assert run_program(program) == "failures: 0\n"
