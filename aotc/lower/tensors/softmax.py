"""Lowers `linalg.softmax` on buffers to reductions and elementwise operations.

Upstream only decomposes softmax on tensors. As there, the maximum of each row is subtracted from
its elements, so that the exponentials do not overflow.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text

_MINUS_INFINITY = {
    "f16": "0xFC00",
    "bf16": "0xFF80",
    "f32": "0xFF800000",
    "f64": "0xFFF0000000000000",
}


def expand_softmax_of_buffers(module: Any) -> None:
    """Changes `module` in place. Softmax on tensors, and of other element types, remains."""
    for softmax in ops.find(module.operation, "linalg.softmax"):
        source, result = softmax.operands
        if not all(isinstance(value.type, ir.MemRefType) for value in (source, result)):
            continue
        if str(ir.MemRefType(source.type).element_type) not in _MINUS_INFINITY:
            continue
        with module.context:
            axis = ir.IntegerAttr(softmax.attributes["dimension"]).value
            replace_by_text(softmax, _text(source.type, result.type, axis))


def _text(source: Any, result: Any, axis: int) -> str:
    """The text of a function of the source and the result, whose body replaces the operation."""
    type_ = ir.MemRefType(source)
    element, shape = str(type_.element_type), list(type_.shape)
    names = [f"d{i}" for i in range(len(shape))]
    kept = [i for i in range(len(shape)) if i != axis]
    dynamic = [i for i in kept if type_.is_dynamic_dim(i)]
    sizes = "x".join(["?" if i in dynamic else str(shape[i]) for i in kept] + [element])
    row = f"memref<{sizes}>"
    whole = f"affine_map<({', '.join(names)}) -> ({', '.join(names)})>"
    rows = f"affine_map<({', '.join(names)}) -> ({', '.join(names[i] for i in kept)})>"
    parallel = ", ".join(['"parallel"'] * len(shape))
    reduction = ", ".join('"reduction"' if i == axis else '"parallel"' for i in range(len(shape)))
    lines = [
        f"%c{i} = arith.constant {i} : index\n%n{i} = memref.dim %x, %c{i} : {source}"
        for i in dynamic
    ]
    allocation = f"memref.alloc({', '.join(f'%n{i}' for i in dynamic)}) : {row}"

    def reduce(operation: str, start: str, into: str, value: str, of: str) -> str:
        return f"""
  %{into}_start = arith.constant {start} : {element}
  %{into} = {allocation}
  linalg.fill ins(%{into}_start : {element}) outs(%{into} : {row})
  linalg.generic {{indexing_maps = [{whole}, {rows}], iterator_types = [{reduction}]}}
      ins({value} : {of}) outs(%{into} : {row}) {{
  ^bb0(%v: {element}, %before: {element}):
    %next = {operation} %v, %before : {element}
    linalg.yield %next : {element}
  }}"""

    def combine(value: str, of: str, row_value: str, body: str) -> str:
        return f"""
  linalg.generic {{indexing_maps = [{whole}, {rows}, {whole}], iterator_types = [{parallel}]}}
      ins({value}, {row_value} : {of}, {row}) outs(%y : {result}) {{
  ^bb0(%v: {element}, %r: {element}, %unused: {element}):
    {body}
    linalg.yield %new : {element}
  }}"""

    return "\n".join(
        [
            f"func.func @softmax(%x: {source}, %y: {result}) {{",
            *lines,
            reduce("arith.maxnumf", _MINUS_INFINITY[element], "largest", "%x", str(source)),
            combine(
                "%x",
                str(source),
                "%largest",
                f"%d = arith.subf %v, %r : {element}\n    %new = math.exp %d : {element}",
            ),
            reduce("arith.addf", "0.0", "sum", "%y", str(result)),
            combine("%y", str(result), "%sum", f"%new = arith.divf %v, %r : {element}"),
            f"memref.dealloc %largest : {row}",
            f"memref.dealloc %sum : {row}",
            "return\n}",
        ]
    )
