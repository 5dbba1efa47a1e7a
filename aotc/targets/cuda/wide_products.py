"""`nvgpu.mma.sync` of f64 in the shapes that Hopper added → inline PTX.

convert-nvgpu-to-nvvm supports only m8n8k4 for f64. In the other shapes, a lane has two rows of A
and C, 8 apart (PTX manual, «Matrix Fragments for mma.m16n8k4, mma.m16n8k8 and mma.m16n8k16 with
.f64»). The fragments of `nvgpu.mma.sync` have the same order, so the registers of A, B and C are
the vectors' elements in order.
"""

from __future__ import annotations

import itertools
from typing import Any

from aotc import ops
from aotc.llvm_ops import extract_value
from aotc.mlir import ir
from aotc.ops import create, extract, find

_NAME = "nvgpu.mma.sync"
_ROWS = 16


def replace_wide_products(device: Any) -> None:
    """Replaces these operations everywhere under `device`."""
    for operation in find(device, _NAME):
        element = operation.operands[0].type.element_type
        shape = [ir.IntegerAttr(size).value for size in operation.attributes["mmaShape"]]
        if isinstance(element, ir.F64Type) and shape[0] == _ROWS:
            with ir.InsertionPoint(operation), operation.location:
                operation.results[0].replace_all_uses_with(_product(operation, shape, element))
            ops.erase(operation)


def _product(operation: Any, shape: list[int], element: Any) -> Any:
    a, b, sums = (_elements(vector) for vector in operation.operands)
    m, n, k = shape
    numbers = itertools.count()
    groups = [
        "{" + ", ".join(f"${next(numbers)}" for _ in group) + "}" for group in (sums, a, b, sums)
    ]
    name = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.f64.f64.f64.f64"
    constraints = ",".join(["=d"] * len(sums) + ["d"] * len([*a, *b, *sums]))
    registers = create(
        "llvm.inline_asm",
        [*a, *b, *sums],
        [ir.Type.parse(f"!llvm.struct<({', '.join(['f64'] * len(sums))})>")],
        {
            "asm_string": ir.StringAttr.get(f"{name} {', '.join(groups)};"),
            "constraints": ir.StringAttr.get(constraints),
            # Like the operation, it is executed by all lanes together: it must not be moved into a
            # branch.
            "is_convergent": ir.UnitAttr.get(),
        },
    ).result
    result = operation.results[0].type
    elements = [extract_value(registers, element, number) for number in range(len(sums))]
    return create("vector.from_elements", elements, [result]).result


def _elements(vector: Any) -> list[Any]:
    rows, columns = vector.type.shape
    return [extract(vector, row, column) for row in range(rows) for column in range(columns)]
