"""Lowers `tm_tensor.scatter` by `aotc.frontends.scatter`."""

from __future__ import annotations

from typing import Any

from aotc.frontends.scatter import Scatter
from aotc.frontends.scatter_text import Points

_COMMUTATIVE = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli")


def scatter_text(ir: Any, operation: Any) -> str | None:
    """The text of a scatter of elements, or of slices that are complete along the other dimensions.
    None for other scatters."""
    types = updates, indices, result = tuple(
        ir.RankedTensorType(value.type) for value in operation.operands
    )
    named = list(ir.DenseI64ArrayAttr(operation.attributes["dimension_map"]))
    if result.rank == 0:
        return None
    others = [of for of in range(result.rank) if of not in named]
    # The dimensions of the updates after the first one: those of a window, or of a slice.
    window = updates.rank - 1
    if window == result.rank and all(updates.shape[1 + of] == 1 for of in named):
        places = ["%c0" if of in named else f"%d{of}" for of in range(result.rank)]
    elif window == len(others):
        places = [f"%d{of}" for of in others]
    else:
        return None
    if any(
        updates.shape[updates.rank - len(others) + i] != result.shape[of]
        for i, of in enumerate(others)
        if window == len(others)
    ):
        return None
    count = None if updates.is_dynamic_dim(0) else updates.shape[0]
    points = Points(
        loops=[("%i", "%count0")],
        number="%i",
        lines=_coordinates(indices, len(named)),
        named=named,
        checked=named,
        update=["%number", *places],
        count=count,
        most=count,
    )
    return Scatter(ir, types, points, _combination(operation)).text()


def _coordinates(indices: Any, count: int) -> str:
    element, lines = indices.element_type, []
    for j in range(count):
        lines.append(f"%j{j} = arith.constant {j} : index")
        read = f"tensor.extract %indices[%i, %j{j}] : {indices}"
        if str(element) == "i64":
            lines.append(f"%at{j} = {read}")
        else:
            lines += [f"%read{j} = {read}", f"%at{j} = arith.extsi %read{j} : {element} to i64"]
    return "\n".join(lines)


def _combination(operation: Any) -> str | None:
    """The combination, as the parameter `operation` of `Scatter`."""
    block = operation.regions[0].blocks[0]
    *body, returned = block.operations
    (yielded,) = returned.operands
    if not body and yielded == block.arguments[0]:
        return ""
    if len(body) != 1 or yielded != body[0].results[0]:
        return None
    name, operands = body[0].operation.name, list(body[0].operands)
    arguments = list(block.arguments)
    is_same = operands == arguments or (name in _COMMUTATIVE and operands == arguments[::-1])
    return name if is_same else None
