"""A program that uses a library's state, as C and as C++."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers.support import DATA, STRICT, STRICT_C, Compiler, Packages, run_program


@pytest.mark.parametrize(
    ("words", "kind"),
    [(STRICT_C, "shared"), (("-std=c++17", *STRICT), "static")],
    ids=["c11", "c++17"],
)
def test_a_program_with_two_states(
    words: tuple[str, ...],
    kind: str,
    packages: Packages,
    compiler: Compiler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (package,) = packages.build(DATA / "remember.mlir")
    source = DATA / "remember.c"
    libraries = package.link(kind)
    program = compiler.program(tmp_path, source, *words, package.include, *libraries)
    monkeypatch.chdir(tmp_path)
    assert run_program(program) == "failures: 0\n"
    assert (tmp_path / "saved.state").exists()
