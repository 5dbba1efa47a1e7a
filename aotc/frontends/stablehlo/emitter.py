"""Puts operations on tensors of dynamic shape in the place of StableHLO's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.frontends.stablehlo.sizes import Expression, Sizes, folded

_EQ, GE = 0, 5  # predicates of arith.cmpi


class Emitter:
    """`ir` is the package of bindings that the module belongs to."""

    def __init__(self, ir: Any) -> None:
        self._ir = ir
        self._sizes = Sizes(ir)

    def _padded(
        self, read: Any, value: Any, low: Sequence[int], high: Sequence[int], inner: Sequence[int]
    ) -> Any:
        """A padded tensor of dynamic shape, at the insertion point. The pass to linalg lowers
        padding that is not negative."""
        ir, rank = self._ir, read.type.rank
        ends = [[max(width, 0) for width in widths] for widths in (low, high)]
        cuts = [[min(width, 0) for width in widths] for widths in (low, high)]
        sizes = []
        for i, width in enumerate(inner):
            size = self._sizes.of(read, i)
            if width:
                size = folded("arith.subi", folded("arith.muli", size, width + 1), width)
                size = folded("arith.maxsi", size, 0)
            sizes.append(folded("arith.addi", size, ends[0][i] + ends[1][i]))
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        made = ir.Operation.create(
            "stablehlo.pad",
            results=[self._type_of(read.type, sizes)],
            operands=[read, value],
            attributes={
                name: ir.DenseI64ArrayAttr.get([*widths])
                for name, widths in zip(names, (*ends, inner), strict=True)
            },
        ).result
        if any(map(any, cuts)):
            kept = [
                folded("arith.maxsi", folded("arith.addi", size, before + after), 0)
                for size, before, after in zip(sizes, *cuts, strict=True)
            ]
            type_ = self._type_of(read.type, kept)
            open_ = [self._sizes.emit(kept[i]) for i in range(rank) if type_.is_dynamic_dim(i)]
            places = {
                "static_offsets": [-before for before in cuts[0]],
                "static_sizes": [*type_.shape],
                "static_strides": [1] * rank,
            }
            attributes = {name: ir.DenseI64ArrayAttr.get(one) for name, one in places.items()}
            counts = ir.DenseI32ArrayAttr.get([1, 0, len(open_), 0])
            made = ir.Operation.create(
                "tensor.extract_slice",
                results=[type_],
                operands=[made, *open_],
                attributes={**attributes, "operandSegmentSizes": counts},
            ).result
            sizes = kept
        self._sizes.known[made] = sizes
        return made

    def _type_of(self, type_: Any, sizes: Sequence[Expression]) -> Any:
        """The type with these sizes, where its own are known."""
        dynamic = self._ir.ShapedType.get_dynamic_size()
        shape = [dynamic if type_.is_dynamic_dim(i) else size for i, size in enumerate(sizes)]
        return self._ir.RankedTensorType.get(shape, type_.element_type)

    def _zero(self, element: Any) -> Any:
        ir = self._ir
        type_ = ir.RankedTensorType.get([], element)
        zero = "0.0" if "f" in str(element) else "0"
        value = ir.Attribute.parse(f"dense<{zero}> : {type_}")
        return ir.Operation.create(
            "stablehlo.constant", results=[type_], attributes={"value": value}
        ).result

    def _size_names(self, type_: Any) -> list[str]:
        """Names of dynamic sizes, and static sizes."""
        return [
            f"%s{i}" if type_.is_dynamic_dim(i) else str(type_.get_dim_size(i))
            for i in range(type_.rank)
        ]

    def _generic(
        self,
        operation: Any,
        made: Sequence[Expression],
        reads: Sequence[Any],
        maps: Sequence[str],
        lines: str,
        values: dict[str, Any] | None = None,
    ) -> None:
        """Replaces the operation by a linalg.generic, in which `lines` define %a of the elements
        %a of the operands `reads`."""
        result = operation.results[0].type
        loops = ", ".join(f"d{i}" for i in range(result.rank))
        identity = f"affine_map<({loops}) -> ({loops})>"
        kinds = ", ".join('"parallel"' for _ in range(result.rank))
        sizes = ", ".join(name for name in self._size_names(result) if name.startswith("%"))
        inputs = ", ".join("%x" for _ in reads)
        types = ", ".join(str(one.type) for one in reads)
        element = result.element_type
        arguments = "".join(f"%a: {one.type.element_type}, " for one in reads)
        body = [
            f"%empty = tensor.empty({sizes}) : {result}",
            f"%r = linalg.generic {{indexing_maps = [{', '.join([*maps, identity])}], "
            f"iterator_types = [{kinds}]}}"
            + (f" ins({inputs} : {types})" if reads else "")
            + f" outs(%empty : {result}) {{",
            f"^bb0({arguments}%old: {element}):",
            lines,
            f"linalg.yield %a : {element}",
            f"}} -> {result}",
            f"return %r : {result}",
        ]
        given = dict(values or {})
        if reads:
            given["%x"] = reads[0]
        self._put(operation, made, given, body)

    def _put(
        self,
        operation: Any,
        made: Sequence[Expression],
        values: dict[str, Any],
        lines: Sequence[str],
    ) -> None:
        """Replaces the operation's result by that of a function's body. `values` are its
        arguments; dynamic sizes of the result follow, as %s0, ..."""
        ir, result = self._ir, operation.results[0].type
        for name, size in zip(self._size_names(result), made, strict=True):
            if name.startswith("%"):
                values[name] = self._sizes.emit(size)
        arguments = ", ".join(f"{name}: {value.type}" for name, value in values.items())
        text = "\n".join([f"func.func @f({arguments}) -> {result} {{", *lines, "}"])
        parsed = ir.Module.parse(text)
        body = ops.terminator(parsed.body).regions[0].blocks[0]
        self._sizes.known[ops.terminator(body).operands[0]] = list(made)
        ops.replace_by_body(operation, body, list(values.values()))

    def _expect(self, one: Expression, other: Expression, message: str) -> None:
        if one != other:
            self._assert(("arith.cmpi", _EQ, one, other), message)

    def _assert(self, condition: Expression, message: str) -> None:
        said = self._ir.StringAttr.get(message)
        value = self._sizes.emit(condition)
        self._ir.Operation.create("cf.assert", operands=[value], attributes={"msg": said})

    def _create(self, name: str, operands: Sequence[Any], type_: Any) -> Any:
        return self._ir.Operation.create(name, results=[type_], operands=list(operands)).result


def integers_of(ir: Any, operation: Any, name: str) -> list[int] | None:
    if name not in operation.attributes:
        return None
    return list(ir.DenseI64ArrayAttr(operation.attributes[name]))
