"""The products that a machine with a GPU checks: they are modules, and differ in their names."""

from __future__ import annotations

import pytest
from gpu.products.__main__ import LISTS, chosen

from aotc.mlir import ir


@pytest.mark.parametrize("name", LISTS)
def test_programs_are_modules(name: str) -> None:
    with ir.Context(), ir.Location.unknown():
        for program in LISTS[name]():
            ir.Module.parse(program.text).operation.verify()


def test_names_are_of_one_program_each() -> None:
    names = [program.name for program in chosen([], [], 1)]
    assert len(set(names)) == len(names)
