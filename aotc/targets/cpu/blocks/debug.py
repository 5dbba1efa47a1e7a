"""Debug information of kernels on the CPU: lines of the input, and the ids as variables.

A debugger shows `thread_id`, `block_id`, `block_dim` and `grid_dim`, each a struct of x, y and z,
in every function that runs a kernel. They are in memory on the stack, which the optimizer promotes
to registers or removes.
"""

from __future__ import annotations

import os
import re
from typing import Any

from aotc.mlir import ir
from aotc.ops import create
from aotc.targets.cpu import build

VARIABLES = ("thread_id", "block_id", "block_dim", "grid_dim")
_WORD = 8
_FILE_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


class DebugInfo:
    """The debug information of one function: its subprogram and its variables."""

    def __init__(self, function: Any, kernel: str, location: Any) -> None:
        """Gives the llvm.func `function` a scope. `location` is that of the kernel in the input."""
        found = _FILE_PLACE.search(str(location))
        path, line, column = (found[1], int(found[2]), int(found[3])) if found else ("-", 1, 1)
        attributes = _attributes(path, line, kernel)
        self.place = ir.Location.file(path, line, column)
        self._variables = {name: attributes[name] for name in VARIABLES}
        self._memory: dict[str, Any] = {}
        function.operation.location = ir.Location.fused(
            [self.place], metadata=attributes["subprogram"]
        )

    def declare(self) -> None:
        """Allocates the variables, in a function's entry block."""
        expression = ir.Attribute.parse("#llvm.di_expression<>")
        with self.place:
            for name, variable in self._variables.items():
                self._memory[name] = build.allocate(build.i64(), 3, _WORD)
                create(
                    "llvm.intr.dbg.declare",
                    [self._memory[name]],
                    attributes={"varInfo": variable, "locationExpr": expression},
                )

    def set(self, name: str, values: list[Any]) -> None:
        """Stores x, y and z of a variable."""
        for number, value in enumerate(values):
            build.store(value, build.at(self._memory[name], number * _WORD))


def _attributes(path: str, line: int, kernel: str) -> Any:
    """The subprogram and the variables, parsed from one text, so that they share distinct nodes."""
    folder, name = os.path.split(path)
    file = f'#llvm.di_file<"{name}" in "{folder}">'
    unit = (
        "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, "
        f'file = {file}, producer = "aotc", isOptimized = true, emissionKind = Full>'
    )
    escaped = kernel.replace("\\", "\\\\").replace('"', '\\"')
    subprogram = (
        f"#llvm.di_subprogram<id = distinct[1]<>, compileUnit = {unit}, scope = {file}, "
        f'name = "{escaped}", file = {file}, line = {line}, scopeLine = {line}, '
        'subprogramFlags = "Definition|Optimized", '
        "type = #llvm.di_subroutine_type<callingConvention = DW_CC_normal>>"
    )
    index = (
        '#llvm.di_basic_type<tag = DW_TAG_base_type, name = "index", sizeInBits = 64, '
        "encoding = DW_ATE_signed>"
    )
    members = ", ".join(
        f'#llvm.di_derived_type<tag = DW_TAG_member, name = "{dimension}", baseType = {index}, '
        f"sizeInBits = 64, offsetInBits = {64 * number}>"
        for number, dimension in enumerate("xyz")
    )
    three = (
        '#llvm.di_composite_type<tag = DW_TAG_structure_type, name = "dim3", '
        f"sizeInBits = 192, elements = {members}>"
    )
    variables = ", ".join(
        f'{variable} = #llvm.di_local_variable<scope = {subprogram}, name = "{variable}", '
        f"file = {file}, line = {line}, type = {three}>"
        for variable in VARIABLES
    )
    return ir.Attribute.parse(f"{{subprogram = {subprogram}, {variables}}}")
