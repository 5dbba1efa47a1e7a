"""`vector.contract` of another kind than `add` → products of whole vectors, and a reduction.

MLIR lowers the kind `add`, and the other kinds for some shapes only. Here both operands become
vectors with an element for each step of the contraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text


def expand_contractions(module: Any) -> None:
    """Changes `module` in place. These are left as they are: the kind `add`, masked contractions,
    operands of another element type than the result, and scalable vectors."""
    with module.context:
        for contract in ops.find(module.operation, "vector.contract"):
            factors = [ir.VectorType(value.type) for value in list(contract.operands)[:2]]
            element = ops.element_type(contract.results[0].type)
            if (
                "<add>" in str(contract.attributes["kind"])
                or contract.parent.operation.name == "vector.mask"
                or any(type_.element_type != element or type_.scalable for type_ in factors)
            ):
                continue
            replace_by_text(contract, _text(contract))


def _text(contract: Any) -> str:
    """The text of a function of the two operands and the accumulator."""
    one, other, start = (value.type for value in contract.operands)
    maps = [_dimensions(attribute.value) for attribute in contract.attributes["indexing_maps"]]
    sizes = _sizes(maps, (one, other))
    kept = maps[2]
    # The reduction keeps the order of the dimensions; the result may have another order.
    in_order = sorted(kept)
    reduced = [i for i in range(len(sizes)) if i not in kept]
    element = ops.element_type(start)
    whole = _vector(sizes, element)
    result = _vector([sizes[i] for i in in_order], element) if kept else str(start)
    multiply = "arith.mulf" if isinstance(element, ir.FloatType) else "arith.muli"
    kind = str(contract.attributes["kind"]).removeprefix("#vector.kind")
    lines = [f"func.func @contract(%a: {one}, %b: {other}, %c: {start}) -> {start} {{"]
    factors = [
        _spread(lines, name, str(type_), dimensions, sizes)
        for name, type_, dimensions in zip(("%a", "%b"), (one, other), maps, strict=False)
    ]
    lines.append(f"%product = {multiply} {', '.join(factors)} : {whole}")
    begin = _permute(lines, "%c", [kept.index(i) for i in in_order], str(start), result)
    lines.append(
        f"%reduced = vector.multi_reduction {kind}, %product, {begin} {reduced} "
        f": {whole} to {result}"
    )
    end = _permute(lines, "%reduced", [in_order.index(i) for i in kept], result, str(start))
    return "\n".join([*lines, f"return {end} : {start}\n}}"])


def _dimensions(map_: Any) -> list[int]:
    return [int(ir.AffineDimExpr(result).position) for result in map_.results]


def _sizes(maps: Sequence[list[int]], factors: Sequence[Any]) -> list[int]:
    """The number of steps of the contraction along each dimension."""
    sizes = {
        dimension: size
        for dimensions, type_ in zip(maps, factors, strict=False)
        for dimension, size in zip(dimensions, type_.shape, strict=True)
    }
    return [sizes[i] for i in range(len(sizes))]


def _vector(sizes: Sequence[int], element: Any) -> str:
    return f"vector<{'x'.join(map(str, sizes))}x{element}>"


def _spread(
    lines: list[str], value: str, type_: str, dimensions: list[int], sizes: list[int]
) -> str:
    """The operand, broadcast to all dimensions in their order. Appends its operations to
    `lines`."""
    element = type_.removesuffix(">").rpartition("x")[2]
    # A broadcast adds new dimensions in front.
    order = [i for i in range(len(sizes)) if i not in dimensions] + dimensions
    made = _vector([sizes[i] for i in order], element)
    lines.append(f"{value}_spread = vector.broadcast {value} : {type_} to {made}")
    permutation = [order.index(i) for i in range(len(sizes))]
    return _permute(lines, f"{value}_spread", permutation, made, _vector(sizes, element))


def _permute(lines: list[str], value: str, permutation: list[int], type_: str, result: str) -> str:
    """The value with its dimensions permuted. Appends the operation to `lines`."""
    if permutation == sorted(permutation):
        return value
    lines.append(f"{value}_t = vector.transpose {value}, {permutation} : {type_} to {result}")
    return f"{value}_t"
