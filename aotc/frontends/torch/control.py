"""Imports `torch.cond`, `scan` and `map` as torch-mlir's `torch.prim.If` and `torch.prim.Loop`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch.places import place_of_node


def fx_importer(hooks: Any) -> Any:
    """torch-mlir's importer, extended by these operators.

    The functions that an operator takes become functions of the module, which are called. Raises
    InputError for a higher-order operator that neither this importer nor torch-mlir's supports.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_importer import FxImporter, GraphNodeImporter

    class NodeImporter(GraphNodeImporter):  # type: ignore[misc, unused-ignore]
        def _import_hop(self, loc: Any, node: Any, hop: Any) -> None:
            if not hasattr(self, f"_import_hop_{hop.name()}"):
                raise InputError(
                    f"{place_of_node(node)}{hop.name()}, which calls functions, has no lowering.",
                    hint="write it with torch.cond, torch.while_loop, scan or map.",
                )
            super()._import_hop(loc, node, hop)

        def _import_hop_cond(self, loc: Any, node: Any, hop: Any) -> None:
            _Importer(self, loc, node).import_cond(*node.args)

        def _import_hop_scan(self, loc: Any, node: Any, hop: Any) -> None:
            _Importer(self, loc, node).import_scan(*node.args)

        def _import_hop_map_impl(self, loc: Any, node: Any, hop: Any) -> None:
            function, rows, others = node.args
            _Importer(self, loc, node).import_scan(function, (), rows, others)

    context = ir.Context()
    dialect.register_dialect(context)
    return FxImporter(context=context, hooks=hooks, graph_node_importer_cls=NodeImporter)


class _Importer:
    """Builds the operations of one graph node at the insertion point of `importer`, which is
    torch-mlir's."""

    def __init__(self, importer: Any, loc: Any, node: Any) -> None:
        from torch_mlir import ir

        self._importer, self._loc, self._node, self._ir = importer, loc, node, ir
        self._int, self._bool = (
            ir.Type.parse(f"!torch.{name}", importer._c) for name in ("int", "bool")
        )
        value = node.meta["val"]
        self._results = list(value) if isinstance(value, list | tuple) else [value]
        self._types = [importer._cc.value_info_to_type(one) for one in self._results]

    def import_cond(self, holds: Any, then: Any, otherwise: Any, operands: Sequence[Any]) -> None:
        """Imports a call of one of two functions, chosen by `holds`, on the same operands."""
        condition, *values = self._values([holds, *operands])
        if condition.type != self._bool:
            condition = self._make("torch.aten.Bool.Tensor", self._bool, condition)
        choice = self._operation("torch.prim.If", self._types, [condition], regions=2)
        for region, function in zip(choice.regions, (then, otherwise), strict=True):
            with self._block(region, ()):
                results = self._call(function, values, self._types)
                self._operation("torch.prim.If.yield", [], results)
        self._bind(choice.results)

    def import_scan(
        self, function: Any, initial: Sequence[Any], rows: Sequence[Any], others: Sequence[Any]
    ) -> None:
        """Imports a loop over the rows of `rows`.

        Each iteration calls `function` with the loop-carried values, one row of each tensor of
        `rows`, and `others`. The results are the last loop-carried values, then tensors whose rows
        are the function's other results.
        """
        count = len(initial)
        carried, wholes = self._types[:count], self._types[count:]
        values = self._values([*initial, *rows, *others])
        starts, inputs, same = (
            values[:count],
            values[count:][: len(rows)],
            values[count:][len(rows) :],
        )
        zero, true = self._constant("int", 0), self._constant("bool", True)
        trips = self._make("torch.aten.size.int", self._int, inputs[0], zero)
        starts = [self._cast(*pair) for pair in zip(starts, carried, strict=True)]
        starts += [self._zeros(one, trips) for one in self._results[count:]]
        starts[count:] = [self._cast(*pair) for pair in zip(starts[count:], wholes, strict=True)]
        loop = self._operation("torch.prim.Loop", self._types, [trips, true, *starts], regions=1)
        with self._block(loop.regions[0], [self._int, *self._types]) as block:
            index, *before = block.arguments
            taken = [
                self._make("torch.aten.select.int", self._row(one.type), one, zero, index)
                for one in inputs
            ]
            types = [*carried, *map(self._row, wholes)]
            made = self._call(function, [*before[:count], *taken, *same], types)
            put = [
                self._make("torch.aten.select_scatter", whole.type, whole, row, zero, index)
                for whole, row in zip(before[count:], made[count:], strict=True)
            ]
            self._operation("torch.prim.Loop.condition", [], [true, *made[:count], *put])
        self._bind(loop.results)

    def _values(self, arguments: Sequence[Any]) -> list[Any]:
        return list(self._importer._import_tuple_argument(self._loc, tuple(arguments), None))

    def _call(self, function: Any, values: Sequence[Any], types: Sequence[Any]) -> list[Any]:
        """Calls the function that a graph node refers to, and returns its results cast to
        `types`."""
        importer, ir = self._importer, self._ir
        module = getattr(self._node.graph.owning_module, function.target)
        name = importer.fx_importer._graph_module_to_func_name[id(module)]
        definition = importer.fx_importer.symbol_table[name]
        type_ = ops.function_type(definition)
        operands = [self._cast(*pair) for pair in zip(values, type_.inputs, strict=True)]
        callee = {"callee": ir.FlatSymbolRefAttr.get(name, importer._c)}
        call = self._operation("func.call", type_.results, operands, attributes=callee)
        return [self._cast(*pair) for pair in zip(call.results, types, strict=True)]

    def _zeros(self, value: Any, trips: Any) -> Any:
        """Zeros with the shape of a result whose first dimension has the size `trips`."""
        sizes = [trips, *map(self._size, value.shape[1:])]
        list_type = self._ir.Type.parse("!torch.list<int>", self._importer._c)
        shape = self._make("torch.prim.ListConstruct", list_type, *sizes)
        none = self._make(
            "torch.constant.none", self._ir.Type.parse("!torch.none", self._importer._c)
        )
        from torch_mlir.extras.fx_importer import TORCH_DTYPE_TO_INT

        dtype = self._constant("int", TORCH_DTYPE_TO_INT[value.dtype])
        type_ = self._importer._cc.value_info_to_type(value)
        return self._make("torch.aten.zeros", type_, shape, dtype, none, none, none)

    def _size(self, size: Any) -> Any:
        """A size as a `!torch.int` value. A symbolic size is taken from an operand that has a
        dimension of the same size."""
        if isinstance(size, int):
            return self._constant("int", size)
        for node in self._node.all_input_nodes:
            for dimension, other in enumerate(getattr(node.meta.get("val"), "shape", ())):
                if str(other) == str(size):
                    (tensor,) = self._values([node])
                    number = self._constant("int", dimension)
                    return self._make("torch.aten.size.int", self._int, tensor, number)
        raise InputError(
            f"{place_of_node(self._node)}{self._node.target.name()} has a result of size {size}, "
            "which none of its operands has.",
            hint="give its function a tensor of that size, too.",
        )

    def _row(self, type_: Any) -> Any:
        """The type of a row of a tensor: that of `[3,4],f32` is `[4],f32`."""
        start, _, rest = str(type_).partition("[")
        sizes, _, element = rest.partition("]")
        others = ",".join(sizes.split(",")[1:])
        return self._ir.Type.parse(f"{start}[{others}]{element}", self._importer._c)

    def _constant(self, kind: str, value: Any) -> Any:
        ir, context = self._ir, self._importer._c
        is_int = kind == "int"
        i64 = ir.IntegerType.get_signless(64, context)
        attribute = ir.IntegerAttr.get(i64, value) if is_int else ir.BoolAttr.get(value, context)
        type_ = self._int if is_int else self._bool
        name = f"torch.constant.{kind}"
        return self._operation(name, [type_], [], attributes={"value": attribute}).results[0]

    def _cast(self, value: Any, type_: Any) -> Any:
        if value.type == type_:
            return value
        return self._make("torch.tensor_static_info_cast", type_, value)

    def _make(self, name: str, type_: Any, *operands: Any) -> Any:
        return self._operation(name, [type_], operands).results[0]

    def _operation(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any],
        regions: int = 0,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        return self._ir.Operation.create(
            name,
            results=list(types),
            operands=list(operands),
            attributes=attributes,
            regions=regions,
            loc=self._loc,
        )

    @contextlib.contextmanager
    def _block(self, region: Any, types: Sequence[Any]) -> Iterator[Any]:
        """A new block, which is the insertion point while the context is active."""
        block = self._ir.Block.create_at_start(region, list(types), [self._loc] * len(types))
        with self._ir.InsertionPoint(block):
            yield block

    def _bind(self, results: Sequence[Any]) -> None:
        """Binds the values to the results of the node."""
        importer = self._importer
        if not isinstance(self._node.meta["val"], list | tuple):
            importer.bind_node_value(self._node, results[0])
            return
        importer._multi_result_nodes.add(self._node)
        for number, result in enumerate(results):
            importer.bind_node_value(self._node, result, number)
