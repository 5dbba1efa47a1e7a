"""Expressions → MLIR: a line for each operation."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from property.operations import OPERATIONS
from property.program import (
    FLOATS,
    Constant,
    Expression,
    Id,
    Load,
    Memory,
    Operation,
    Program,
    Variable,
)

_WORKGROUP = "#gpu.address_space<workgroup>"
_PRIVATE = "#gpu.address_space<private>"


def memref_type(memory: Memory) -> str:
    """The type of the memref that programs load from and store to."""
    shape = [str(size) for size in memory.shape]
    if memory.is_dynamic or memory.space == "dynamic":
        shape[0] = "?"
    space = {"workgroup": _WORKGROUP, "dynamic": _WORKGROUP, "private": _PRIVATE}
    suffix = f", {space[memory.space]}" if memory.space in space else ""
    return f"memref<{'x'.join(shape)}x{memory.type}{suffix}>"


class ExpressionPrinter:
    """Prints expressions of one function, which knows what its variables are now."""

    def __init__(self, program: Program, *, has_launch_names: bool) -> None:
        """`has_launch_names`: whether ids are arguments of a gpu.launch."""
        self.program = program
        self._has_launch_names = has_launch_names
        self.lines: list[str] = []
        # A value and its type for each variable.
        self.values: dict[str, tuple[str, str]] = {}
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        self._count += 1
        return f"^b{self._count}"

    def define(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def _index(self, value: int) -> str:
        return self.define(f"arith.constant {value} : index")

    def make_memories(self) -> None:
        """What is made in the kernel itself: allocas, and views of the dynamic memory."""
        for memory in self.program.memories:
            type_ = memref_type(memory)
            if memory.space == "alloca":
                self.line(f"%{memory.name} = memref.alloca() : {type_}")
            elif memory.space == "dynamic":
                bytes_type = f"memref<?xi8, {_WORKGROUP}>"
                whole = self.define(f"gpu.dynamic_shared_memory : {bytes_type}")
                offset, size = self._index(memory.offset), self._index(memory.size)
                self.line(
                    f"%{memory.name} = memref.view {whole}[{offset}][{size}]"
                    f" : {bytes_type} to {type_}"
                )

    def element(self, name: str, index: Expression) -> str:
        """`%memory[%i, %j]` of the element with this number in row-major order."""
        memory = self.program.memory(name)
        rest = self.expression(index)
        places: list[str] = []
        for extent in reversed(memory.shape[1:]):
            size = self._index(extent)
            places.insert(0, self.define(f"arith.remui {rest}, {size} : index"))
            rest = self.define(f"arith.divui {rest}, {size} : index")
        return f"%{name}[{', '.join([rest, *places])}]"

    def expression(self, expression: Expression) -> str:
        match expression:
            case Constant(type=type_, value=value):
                return self.define(f"arith.constant {_literal(type_, value)}")
            case Variable(name=name):
                return self.values[name][0]
            case Id(name=name):
                return self._id(name)
            case Load(memory=name, index=index):
                element = self.element(name, index)
                type_ = memref_type(self.program.memory(name))
                return self.define(f"memref.load {element} : {type_}")
            case Operation(name=name, operands=operands):
                return self._operation(name, [self.expression(operand) for operand in operands])

    def _id(self, name: str) -> str:
        if self._has_launch_names and " " in name:
            what, dimension = name.split()
            letter = {"thread_id": "t", "block_id": "b", "grid_dim": "g", "block_dim": "s"}
            if what in letter:
                return f"%{letter[what]}{dimension}"
        type_ = "" if " " in name or name == "lane_id" else " : index"
        return self.define(f"gpu.{name}{type_}")

    def _operation(self, name: str, operands: Sequence[str]) -> str:
        found = self.name()
        lines = OPERATIONS[name].text
        for number, line in enumerate(lines):
            text = line.format(*operands).replace("$", f"{found}_")
            self.line(text if number < len(lines) - 1 else f"{found} = {text}")
        return found


def _literal(type_: str, value: float) -> str:
    if type_ == "i1":
        return "true" if value else "false"
    if type_ not in FLOATS:
        return f"{int(value)} : {type_}"
    if math.isfinite(value):
        return f"{float(value)!r} : {type_}" if "." in repr(float(value)) else _bits(type_, value)
    return _bits(type_, value)


def _bits(type_: str, value: float) -> str:
    """MLIR writes infinities and NaN, and reads any float, as bits."""
    code, width = ("<f", 8) if type_ == "f32" else ("<d", 16)
    number = int.from_bytes(struct.pack(code, value), "little")
    return f"0x{number:0{width}X} : {type_}"
