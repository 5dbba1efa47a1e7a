"""The text of a convolution of images of dynamic shape as a linalg.generic. The pass to linalg
lowers some orders of their dimensions, of one group of channels and known height and width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.frontends.stablehlo.sizes import Expression, folded, integer_pairs

_RANKS_OF_THE_PASS = range(3, 6)


class Convolution:
    """A `stablehlo.convolution`, or a `stablehlo.dynamic_conv`, whose padding is computed.

    `feature_group_count` divides the channels of the image into groups, `batch_group_count` the
    images: each group makes some channels of the result. The operands then have a dimension more.
    """

    def __init__(
        self, ir: Any, operation: Any, padding: Sequence[tuple[Expression, Expression]] | None
    ) -> None:
        """`padding` is what is computed, before and after each spatial dimension."""
        from torch_mlir._mlir_libs._stablehlo import ConvDimensionNumbers

        self._ir, self._operation = ir, operation
        self._image, self._filter = (value.type for value in list(operation.operands)[:2])
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
        self._strides = self._integers("window_strides")
        self._dilations = self._integers("rhs_dilation")
        self._base_dilations = self._integers("lhs_dilation")
        self._is_computed = padding is not None
        self.padding = [*(padding or integer_pairs(ir, operation, "padding", len(self._spatial)))]
        features, batches = (
            ir.IntegerAttr(operation.attributes[f"{name}_group_count"]).value
            for name in ("feature", "batch")
        )
        # The number of groups, and the dimension of the image that is divided. Where each channel
        # of the image makes one of the result, it is a loop of both.
        self._is_depthwise = features > 1 and all(
            type_.shape[axis] == features
            for type_, axis in zip((self._image, self._result), self._channels[::2], strict=True)
        )
        self._groups = 1 if self._is_depthwise else features * batches
        self._divided = self._batches[0] if batches > 1 else self._channels[0]

    def is_supported(self) -> bool:
        ir = self._ir
        types = (self._image, self._filter, self._result)
        elements = [type_.element_type for type_ in types]
        integers = [isinstance(one, ir.IntegerType) and one.is_signless for one in elements]
        floats = [str(one) in ("f16", "bf16", "f32", "f64") for one in elements]
        windows = [self._filter.get_dim_size(axis) for axis in self._filter_spatial]
        divided = [self._image.shape[self._divided], self._filter.shape[self._channels[1]]]
        return (
            not all(type_.has_static_shape for type_ in types)
            and (all(integers) or all(floats))
            and "window_reversal" not in self._operation.attributes
            and all(size > 0 for size in windows)
            and (self._groups == 1 or all(size > 0 for size in divided))
            and not (self._is_computed and self.needs_dilation())
            and not self._is_left_to_the_pass()
        )

    def needs_dilation(self) -> bool:
        """Whether the image gets zeros between its elements, or loses elements at its ends."""
        widths = [width for pair in self.padding for width in pair]
        return any(one > 1 for one in self._base_dilations) or any(
            isinstance(width, int) and width < 0 for width in widths
        )

    def widths(self) -> tuple[list[int], list[int], list[int]]:
        """The widths before and after each dimension of the image, and between its elements."""
        low, high, inner = ([0] * self._image.rank for _ in range(3))
        pairs = zip(self._spatial, self._base_dilations, self.padding, strict=True)
        for axis, dilation, (before, after) in pairs:
            low[axis], high[axis], inner[axis] = before, after, dilation - 1
        return low, high, inner

    def replace_image(self, type_: Any) -> None:
        """Sets the type of the image, which is padded."""
        self._image = type_
        self.padding = [(0, 0)] * len(self._spatial)

    def made(self, given: list[Expression], kernel: list[Expression]) -> list[Expression]:
        """The sizes of the result, of those of the image and the filter."""
        sizes: list[Expression] = [0] * self._result.rank
        images = given[self._batches[0]]
        if self._divided == self._batches[0]:
            images = folded("arith.divsi", images, self._groups)
        sizes[self._batches[1]] = images
        sizes[self._channels[2]] = kernel[self._channels[1]]
        for i, (axis, at) in enumerate(zip(self._spatial, self._made_spatial, strict=True)):
            low, high = self.padding[i]
            window = self._dilations[i] * (kernel[self._filter_spatial[i]] - 1) + 1
            more = folded("arith.addi", folded("arith.addi", low, high), self._strides[i] - window)
            room = folded("arith.addi", given[axis], more)
            if not isinstance(more, int) or more < 0:
                # An image that is smaller than the window has no result.
                room = folded("arith.maxsi", room, 0)
            sizes[at] = folded("arith.divsi", room, self._strides[i])
        return [
            size if self._result.is_dynamic_dim(i) else self._result.get_dim_size(i)
            for i, size in enumerate(sizes)
        ]

    def lines(self) -> list[str]:
        """The lines of a function of %x and %w, of %s0, ..., dynamic sizes of the result, and of
        %l0, %h0, ..., widths of padding that are computed."""
        element, image = self._result.element_type, self._image.element_type
        rank = self._image.rank
        low, high = (
            ", ".join(self._width(axis, side) for axis in range(rank)) for side in range(2)
        )
        shape = [self._padded_size(axis) for axis in range(rank)]
        padded = self._ir.RankedTensorType.get(shape, image)
        arguments = ", ".join(f"%d{i}: index" for i in range(rank))
        lines = [
            f"%nothing = arith.constant {_zero(image)} : {image}",
            f"%padded = tensor.pad %x low[{low}] high[{high}] {{",
            f"^bb0({arguments}):",
            f"tensor.yield %nothing : {image}",
            f"}} : {self._image} to {padded}",
        ]
        reads = ["%padded", "%w"]
        types = [padded, self._filter]
        made = self._result
        if self._groups > 1:
            for i, axis in enumerate((self._divided, self._channels[1])):
                types[i], more = self._expand(reads[i], types[i], axis)
                reads[i] += "_g"
                lines += more
            made = self._divide(made, self._channels[2])
        sizes = ", ".join(f"%s{i}" for i in range(rank) if self._result.is_dynamic_dim(i))
        loops, parallel = self._loops()
        kinds = ["parallel"] * parallel + ["reduction"] * (len(loops) - parallel)
        kind = ", ".join(f'"{one}"' for one in kinds)
        lines += [
            f"%empty = tensor.empty({sizes}) : {made}",
            f"%zero = arith.constant {_zero(element)} : {element}",
            f"%start = linalg.fill ins(%zero : {element}) outs(%empty : {made}) -> {made}",
            f"%r = linalg.generic {{indexing_maps = [{', '.join(self._maps(loops))}], "
            f"iterator_types = [{kind}]}} "
            f"ins({', '.join(reads)} : {types[0]}, {types[1]}) outs(%start : {made}) {{",
            f"^bb0(%a: {image}, %b: {self._filter.element_type}, %old: {element}):",
            *self._product(),
            f"linalg.yield %sum : {element}",
            f"}} -> {made}",
        ]
        if self._groups == 1:
            return [*lines, f"return %r : {made}"]
        parts = self._parts(self._result, self._channels[2])
        return [
            *lines,
            f"%whole = tensor.collapse_shape %r {parts} : {made} into {self._result}",
            f"return %whole : {self._result}",
        ]

    def _padded_size(self, axis: int) -> int:
        """The size of a dimension of the padded image, if it is known."""
        pair = self.padding[self._spatial.index(axis)] if axis in self._spatial else (0, 0)
        if self._image.is_dynamic_dim(axis) or not all(isinstance(one, int) for one in pair):
            return int(self._ir.ShapedType.get_dynamic_size())
        return int(self._image.get_dim_size(axis)) + sum(pair)

    def _width(self, axis: int, side: int) -> str:
        if axis not in self._spatial:
            return "0"
        i = self._spatial.index(axis)
        width = self.padding[i][side]
        return str(width) if isinstance(width, int) else f"%{'lh'[side]}{i}"

    def _expand(self, value: str, type_: Any, axis: int) -> tuple[Any, list[str]]:
        """Divides a dimension of `value` into groups."""
        expanded = self._divide(type_, axis)
        lines, shape = [], []
        for i, size in enumerate(type_.shape):
            if type_.is_dynamic_dim(i):
                lines += [
                    f"{value}_c{i} = arith.constant {i} : index",
                    f"{value}_d{i} = tensor.dim {value}, {value}_c{i} : {type_}",
                ]
                shape.append(f"{value}_d{i}")
            else:
                sizes = (self._groups, size // self._groups) if i == axis else (size,)
                shape += map(str, sizes)
        parts = self._parts(type_, axis)
        lines.append(
            f"{value}_g = tensor.expand_shape {value} {parts} output_shape "
            f"[{', '.join(shape)}] : {type_} into {expanded}"
        )
        return expanded, lines

    def _divide(self, type_: Any, axis: int) -> Any:
        shape = list(type_.shape)
        shape[axis : axis + 1] = [self._groups, shape[axis] // self._groups]
        return self._ir.RankedTensorType.get(shape, type_.element_type)

    def _parts(self, type_: Any, axis: int) -> str:
        """The reassociation of the dimensions of a type whose dimension `axis` is divided."""
        after = [*range(axis + 2, type_.rank + 1)]
        return str([*([i] for i in range(axis)), [axis, axis + 1], *([i] for i in after)])

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

    def _loops(self) -> tuple[list[str], int]:
        """The loops: image, group, channel and place in the result, channel of the image, place in
        the filter; and how many of them are parallel."""
        count = range(len(self._spatial))
        parallel = ["n", *["g"] * (self._groups > 1), "f", *(f"y{i}" for i in count)]
        return [*parallel, "c", *(f"k{i}" for i in count)], len(parallel)

    def _maps(self, loops: list[str]) -> list[str]:
        images, filters, results = ([""] * self._image.rank for _ in range(3))
        images[self._batches[0]] = results[self._batches[1]] = "n"
        images[self._channels[0]] = "f" if self._is_depthwise else "c"
        filters[self._channels[1]] = results[self._channels[2]] = "f"
        filters[self._filter_channel] = "c"
        for i in range(len(self._spatial)):
            moved = f"y{i} * {self._strides[i]} + k{i} * {self._dilations[i]}"
            images[self._spatial[i]] = moved
            filters[self._filter_spatial[i]] = f"k{i}"
            results[self._made_spatial[i]] = f"y{i}"
        if self._groups > 1:
            for places, axis in (
                (images, self._divided),
                (filters, self._channels[1]),
                (results, self._channels[2]),
            ):
                places.insert(axis, "g")
        names = ", ".join(loops)
        return [
            f"affine_map<({names}) -> ({', '.join(one)})>" for one in (images, filters, results)
        ]

    def _is_left_to_the_pass(self) -> bool:
        """Whether the pass to linalg lowers it to an operation with a name. Images of two spatial
        dimensions without dilation are lowered here, nevertheless."""
        rank = self._image.rank
        middle, first = [*range(1, rank - 1)], [*range(rank - 2)]
        is_usual = (
            self._batches == (0, 0)
            and self._channels == (rank - 1, rank - 1, rank - 1)
            and self._spatial == self._made_spatial == middle
            and self._filter_spatial == first
        )
        is_known = not any(self._image.is_dynamic_dim(axis) for axis in self._spatial)
        is_plain = self._groups == 1 and not self._is_depthwise and not self._is_computed
        is_open = self._filter.has_static_shape and rank in _RANKS_OF_THE_PASS
        is_own = rank == 4 and not self.needs_dilation()
        return is_usual and is_known and is_plain and is_open and not is_own

    def _integers(self, name: str) -> list[int]:
        """An attribute of a number for each spatial dimension, 1 by default."""
        if name not in self._operation.attributes:
            return [1] * len(self._spatial)
        return list(self._ir.DenseI64ArrayAttr(self._operation.attributes[name]))


def _zero(element: Any) -> str:
    return "0.0" if "f" in str(element) else "0"
