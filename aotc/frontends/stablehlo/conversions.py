"""Conversions of floats to integers saturate, and those of NaN are 0, as XLA computes them. The
pass to linalg makes operations of arith whose results are not defined outside the integers' range.
(StableHLO's specification does not define them either.)"""

from __future__ import annotations

import functools
from typing import Any

from aotc import ops

_ORDERED_GE, _UNORDERED = 3, 14  # predicates of arith.cmpf
# The bits of the significand.
_PRECISIONS = {"f32": 24, "f64": 53}


def saturate_conversions(ir: Any, module: Any) -> None:
    """Changes the module, which is on linalg, in place."""
    with module.context:
        for operation in ops.find(module.operation, "arith.fptosi", "arith.fptoui"):
            number, width = operation.operands[0], operation.results[0].type.width
            if width > 1 and not isinstance(number.type, ir.ShapedType):
                with operation.location, ir.InsertionPoint(operation):
                    made = _saturated(ir, operation.name, number, operation.results[0].type)
                ops.replace(operation, [made])


def _saturated(ir: Any, name: str, number: Any, type_: Any) -> Any:
    create = functools.partial(_create, ir)
    if str(number.type) not in _PRECISIONS:
        number = create("arith.extf", [number], ir.F32Type.get())
    is_signed = name == "arith.fptosi"
    bits = type_.width - is_signed
    least, most = -(1 << bits) if is_signed else 0, (1 << bits) - 1

    def constant(value: int) -> Any:
        attribute = ir.FloatAttr.get(number.type, float(value))
        return create("arith.constant", [], number.type, value=attribute)

    def integer(value: int) -> Any:
        return create("arith.constant", [], type_, value=ir.IntegerAttr.get(type_, value))

    def compare(predicate: int, other: Any) -> Any:
        code = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        flag = ir.IntegerType.get_signless(1)
        return create("arith.cmpf", [number, other], flag, predicate=code)

    # The larger of NaN and a number is the number.
    bounded = create("arith.maxnumf", [number, constant(least)], number.type)
    is_exact = bits <= _PRECISIONS[str(number.type)]
    if is_exact:
        bounded = create("arith.minnumf", [bounded, constant(most)], number.type)
    made = create(name, [bounded], type_)
    if not is_exact:
        is_large = compare(_ORDERED_GE, constant(most + 1))
        largest = integer(most if is_signed else -1)
        made = create("arith.select", [is_large, largest, made], type_)
    if is_signed:
        made = create("arith.select", [compare(_UNORDERED, number), integer(0), made], type_)
    return made


def _create(ir: Any, name: str, operands: list[Any], type_: Any, **attributes: Any) -> Any:
    return ir.Operation.create(
        name, results=[type_], operands=operands, attributes=attributes
    ).result
