"""The text of a 2-D convolution of images of dynamic shape as a linalg.generic. The pass to linalg
lowers some orders of their dimensions, of known height and width.
"""

from __future__ import annotations

from typing import Any

from aotc.frontends.stablehlo.sizes import Expression, folded, integer_pairs

_RANK = 4
# The loops: image, channel and place in the result, channel of the image, place in the filter.
_LOOPS = ("n", "f", "y0", "y1", "c", "k0", "k1")
_PARALLEL = 4


class Convolution:
    """A `stablehlo.convolution`."""

    def __init__(self, ir: Any, operation: Any) -> None:
        from torch_mlir._mlir_libs._stablehlo import ConvDimensionNumbers

        self._ir, self._operation = ir, operation
        self._image, self._filter = (value.type for value in operation.operands)
        self._result = operation.results[0].type
        numbers = ConvDimensionNumbers(operation.attributes["dimension_numbers"])
        self._spatial = [*numbers.input_spatial_dimensions]
        self._made_spatial = [*numbers.output_spatial_dimensions]
        self._filter_spatial = [*numbers.kernel_spatial_dimensions]
        self._channels = (
            numbers.input_feature_dimension,
            numbers.kernel_output_feature_dimension,
            numbers.output_feature_dimension,
        )
        self._filter_channel = numbers.kernel_input_feature_dimension
        self._batches = numbers.input_batch_dimension, numbers.output_batch_dimension
        self._groups = ir.IntegerAttr(operation.attributes["feature_group_count"]).value
        self._strides = self._integers("window_strides")
        self._dilations = self._integers("rhs_dilation")
        self._padding = integer_pairs(ir, operation, "padding", len(self._spatial))
        self._channel_dimensions = (
            (self._image, self._channels[0]),
            (self._result, self._channels[2]),
        )

    def is_supported(self) -> bool:
        ir, attributes = self._ir, self._operation.attributes
        elements = [type_.element_type for type_ in (self._image, self._filter, self._result)]
        integers = [isinstance(one, ir.IntegerType) and one.is_signless for one in elements]
        floats = [str(one) in ("f16", "bf16", "f32", "f64") for one in elements]
        return (
            self._image.rank == _RANK
            and not self._image.has_static_shape
            and self._filter.has_static_shape
            and not any(type_.is_dynamic_dim(axis) for type_, axis in self._channel_dimensions)
            and (all(integers) or all(floats))
            and ir.IntegerAttr(attributes["batch_group_count"]).value == 1
            and self._integers("lhs_dilation") == [1, 1]
            and "window_reversal" not in attributes
            and (self._groups == 1 or self._is_depthwise())
            and all(width >= 0 for pair in self._padding for width in pair)
        )

    def made(self, given: list[Expression]) -> list[Expression]:
        """The sizes of the result, of those of the image."""
        sizes: list[Expression] = [0] * _RANK
        sizes[self._batches[1]] = given[self._batches[0]]
        sizes[self._channels[2]] = self._result.get_dim_size(self._channels[2])
        for i, (axis, at) in enumerate(zip(self._spatial, self._made_spatial, strict=True)):
            window = self._dilations[i] * (self._size_of_filter(i) - 1) + 1
            more = sum(self._padding[i]) - window + self._strides[i]
            room = folded("arith.addi", given[axis], more)
            if more < 0:
                # An image that is smaller than the window has no result.
                room = folded("arith.maxsi", room, 0)
            sizes[at] = folded("arith.divsi", room, self._strides[i])
        return sizes

    def lines(self) -> list[str]:
        """The lines of a function of %x and %w, and of %s0, ..., dynamic sizes of the result."""
        element, result, image = (
            self._result.element_type,
            self._result,
            self._image.element_type,
        )
        widths = dict(zip(self._spatial, self._padding, strict=True))
        low, high = (
            ", ".join(str(widths.get(axis, (0, 0))[side]) for axis in range(_RANK))
            for side in range(2)
        )
        dynamic = self._ir.ShapedType.get_dynamic_size()
        shape = [
            dynamic
            if self._image.is_dynamic_dim(axis)
            else self._image.get_dim_size(axis) + sum(widths.get(axis, (0, 0)))
            for axis in range(_RANK)
        ]
        padded = self._ir.RankedTensorType.get(shape, image)
        sizes = ", ".join(f"%s{i}" for i in range(_RANK) if result.is_dynamic_dim(i))
        kinds = ", ".join(
            '"parallel"' if number < _PARALLEL else '"reduction"' for number in range(len(_LOOPS))
        )
        return [
            f"%nothing = arith.constant {_zero(image)} : {image}",
            f"%padded = tensor.pad %x low[{low}] high[{high}] {{",
            "^bb0(%d0: index, %d1: index, %d2: index, %d3: index):",
            f"tensor.yield %nothing : {image}",
            f"}} : {self._image} to {padded}",
            f"%empty = tensor.empty({sizes}) : {result}",
            f"%zero = arith.constant {_zero(element)} : {element}",
            f"%start = linalg.fill ins(%zero : {element}) outs(%empty : {result}) -> {result}",
            f"%r = linalg.generic {{indexing_maps = [{', '.join(self._maps())}], "
            f"iterator_types = [{kinds}]}} "
            f"ins(%padded, %w : {padded}, {self._filter}) outs(%start : {result}) {{",
            f"^bb0(%a: {image}, %b: {self._filter.element_type}, %old: {element}):",
            *self._product(),
            f"linalg.yield %sum : {element}",
            f"}} -> {result}",
            f"return %r : {result}",
        ]

    def _product(self) -> list[str]:
        """Lines that define %sum of %a, %b and %old."""
        element = str(self._result.element_type)
        kind, extend = ("f", "arith.extf") if "f" in element else ("i", "arith.extsi")
        lines, names = [], []
        for name, type_ in (("a", self._image), ("b", self._filter)):
            own = str(type_.element_type)
            names.append(f"%{name}" if own == element else f"%{name}_w")
            if own != element:
                lines.append(f"%{name}_w = {extend} %{name} : {own} to {element}")
        return [
            *lines,
            f"%product = arith.mul{kind} {', '.join(names)} : {element}",
            f"%sum = arith.add{kind} %old, %product : {element}",
        ]

    def _maps(self) -> list[str]:
        images, filters, results = ([""] * _RANK for _ in range(3))
        images[self._batches[0]] = results[self._batches[1]] = "n"
        images[self._channels[0]] = "c" if self._groups == 1 else "f"
        filters[self._channels[1]] = results[self._channels[2]] = "f"
        filters[self._filter_channel] = "c"
        for i in range(2):
            moved = f"y{i} * {self._strides[i]} + k{i} * {self._dilations[i]}"
            images[self._spatial[i]] = moved
            filters[self._filter_spatial[i]] = f"k{i}"
            results[self._made_spatial[i]] = f"y{i}"
        loops = ", ".join(_LOOPS)
        return [
            f"affine_map<({loops}) -> ({', '.join(one)})>" for one in (images, filters, results)
        ]

    def _is_depthwise(self) -> bool:
        """Whether each channel of the image makes one of the result."""
        counts = [type_.get_dim_size(axis) for type_, axis in self._channel_dimensions]
        return all(count == self._groups for count in counts)

    def _size_of_filter(self, i: int) -> int:
        return int(self._filter.get_dim_size(self._filter_spatial[i]))

    def _integers(self, name: str) -> list[int]:
        """An attribute of a number for each spatial dimension, 1 by default."""
        if name not in self._operation.attributes:
            return [1, 1]
        return list(self._ir.DenseI64ArrayAttr(self._operation.attributes[name]))


def _zero(element: Any) -> str:
    return "0.0" if "f" in str(element) else "0"
