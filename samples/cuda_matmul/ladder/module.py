"""A module, and its entries: what a C function of the library or executable is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aotc.mlir import dialect, ir, make_context
from ladder.expressions import Array

func = dialect("func")

# m, n, k
Sizes = tuple[int, int, int]


@contextmanager
def new_module() -> Iterator[Any]:
    """An `ir.Module`, whose functions are made under the `with`."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint(module.body):
            yield module
        module.operation.verify()


@contextmanager
def entry(name: str, element: str, sizes: Sizes | None = None) -> Iterator[list[Array]]:
    """The function `name` of three memrefs A (m x k), B (k x n) and C (m x n), whose body is made
    under the `with`. Without `sizes` they are known when it is called."""
    unknown = ir.ShapedType.get_dynamic_size()
    m, n, k = sizes or (unknown, unknown, unknown)
    type_ = ir.Type.parse(element)
    types = [ir.MemRefType.get(shape, type_) for shape in ((m, k), (k, n), (m, n))]
    function = func.FuncOp(name, (types, []))
    function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    names = [{"aotc.name": ir.StringAttr.get(argument)} for argument in "ABC"]
    function.arg_attrs = [ir.DictAttr.get(named) for named in names]
    with ir.InsertionPoint(function.add_entry_block()):
        yield [Array(argument) for argument in function.arguments]
        func.return_([])
