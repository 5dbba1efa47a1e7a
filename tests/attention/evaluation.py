"""What integers are that operations compute, without running them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aotc import ops
from aotc.builder import Builder
from aotc.builder.numbers import Value, wrap
from aotc.mlir import ir
from aotc.ops import create

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.ceildivui": lambda x, y: -(-x // y),
    "arith.minui": min,
    "arith.maxui": max,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.shli": operator.lshift,
    "arith.shrui": operator.rshift,
}
_CASTS = (
    *("arith.index_castui", "arith.extui", "arith.trunci"),
    *("llvm.inttoptr", "llvm.bitcast"),
)


@contextmanager
def arguments(types: Sequence[str]) -> Iterator[tuple[Builder, list[Value]]]:
    """Values of these types, and a builder of operations on them."""
    with ir.Context(), ir.Location.unknown():
        b, module = Builder(), ir.Module.create()
        with ir.InsertionPoint(module.body):
            region = create("scf.execute_region", regions=1).regions[0]
        block = region.blocks.append(*map(b.type, types))
        with ir.InsertionPoint(block):
            yield b, list(map(wrap, block.arguments))


def evaluate(value: Any, given: Mapping[Any, int]) -> int:
    """An unsigned number. `given`: what values are that nothing computes; and the sizes of buffers,
    by buffer and axis."""
    if value in given:
        return given[value]
    maker: Any = ops.defining(value)
    if maker.name == "arith.constant":
        return int(ir.IntegerAttr(maker.attributes["value"]).value)
    if maker.name == "memref.dim":
        return given[maker.operands[0], evaluate(maker.operands[1], given)]
    numbers = [evaluate(operand, given) for operand in maker.operands]
    if maker.name in _CASTS:
        return numbers[0]
    found = _ARITHMETIC[maker.name](*numbers)
    bits = value.type.width if isinstance(value.type, ir.IntegerType) else 64
    return found % (1 << bits)
