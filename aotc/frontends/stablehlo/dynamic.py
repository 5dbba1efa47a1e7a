"""Lowers StableHLO's operations of dynamic shape, which `jax.export` writes for symbolic sizes, to
linalg and tensor. The pass to linalg does not lower them.

https://openxla.org/stablehlo/dynamism
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from aotc import ops
from aotc.frontends.stablehlo.convolutions import Convolution
from aotc.frontends.stablehlo.emitter import GE, integers_of
from aotc.frontends.stablehlo.sizes import (
    Expression,
    folded,
    product,
)
from aotc.frontends.stablehlo.windows import WindowLowering

_ASSERTION, _WINDOWS = "shape_assertion", "stablehlo.dynamic_reduce_window"
# The input dimensions and the output dimensions of a part of a reshape.
Segment = tuple[range, range]


def lower_dynamic(ir: Any, module: Any) -> None:
    """Changes the module in place. `ir` is the package of bindings that the module belongs to."""
    lowering = _Dynamic(ir)
    with module.context:
        for operation in ops.walk(module.operation):
            lower = lowering.by_name.get(operation.name)
            if lower is not None:
                with operation.location, ir.InsertionPoint(operation):
                    is_lowered = lower(operation)
                if is_lowered:
                    ops.erase(operation)
        # Sizes of operations above are found through these, so they are the last.
        for operation in ops.find(module.operation, "stablehlo.get_dimension_size"):
            with operation.location, ir.InsertionPoint(operation):
                lowering.read_size(operation)
        for reducer in {ops.symbol_of(one): one for one in lowering.reducers}.values():
            ops.erase(reducer)


class _Dynamic(WindowLowering):
    def __init__(self, ir: Any) -> None:
        super().__init__(ir)
        self.by_name = {
            "stablehlo.concatenate": self._concatenation,
            "stablehlo.convolution": self._convolution,
            "stablehlo.custom_call": self._call,
            "stablehlo.dynamic_conv": self._convolution,
            "stablehlo.dynamic_broadcast_in_dim": self._broadcast,
            "stablehlo.dynamic_gather": self._gather,
            "stablehlo.dynamic_iota": self._iota,
            "stablehlo.dynamic_pad": self._pad,
            "stablehlo.dynamic_reshape": self._reshape,
            "stablehlo.dynamic_update_slice": self._update,
            "stablehlo.pad": self._cut,
            "stablehlo.real_dynamic_slice": self._slice,
            "stablehlo.reduce_window": self._window,
            "stablehlo.reverse": self._reverse,
            "stablehlo.scatter": self._scatter,
            "stablehlo.sort": self._sort,
        }

    def read_size(self, operation: Any) -> None:
        """The size as a tensor."""
        type_ = operation.results[0].type
        size = self._sizes.emit(self._sizes.element(operation.results[0], ()))
        number = self._create("arith.index_cast", [size], type_.element_type)
        ops.replace(operation, [self._create("tensor.from_elements", [number], type_)])

    def _call(self, operation: Any) -> bool:
        """JAX's calls."""
        name = self._ir.StringAttr(operation.attributes["call_target_name"]).value
        if name == _WINDOWS:
            return self._computed_window(operation)
        return name == _ASSERTION and self._assertion(operation)

    def _assertion(self, operation: Any) -> bool:
        """A check of the sizes of the inputs. Values in the message are left out."""
        said = self._ir.StringAttr(operation.attributes["error_message"]).value
        said = re.sub(r" ?\{\d+\}", "", said.partition(" Obtained dimension variables")[0])
        self._assert(self._sizes.element(operation.operands[0], ()), said)
        return True

    def _broadcast(self, operation: Any) -> bool:
        """A dimension of size 1 is repeated if its type has the size. Others must fit: JAX knows of
        each size whether it is 1."""
        read, result = operation.operands[0], operation.results[0].type
        made = self._made(operation)
        along = list(self._ir.DenseI64ArrayAttr(operation.attributes["broadcast_dimensions"]))
        places = []
        for i, (at, size) in enumerate(zip(along, self._sizes.all_of(read), strict=True)):
            places.append("0" if size == 1 else f"d{at}")
            if size not in (1, made[at]):
                self._expect(size, made[at], f"dimension {i} is broadcast to another size")
        loops = ", ".join(f"d{i}" for i in range(result.rank))
        maps = [f"affine_map<({loops}) -> ({', '.join(places)})>"]
        self._generic(operation, made, [read], maps, "")
        return True

    def _convolution(self, operation: Any) -> bool:
        """Only of operands of dynamic shape."""
        image, kernel, *widths = operation.operands
        padding = None
        if widths:
            count = range(widths[0].type.shape[0])
            padding = [
                (self._sizes.element(widths[0], (i, 0)), self._sizes.element(widths[0], (i, 1)))
                for i in count
            ]
        one = Convolution(self._ir, operation, padding)
        if not one.is_supported():
            return False
        values = {"%x": image, "%w": kernel}
        if one.needs_dilation():
            values["%x"] = self._padded(image, self._zero(image.type.element_type), *one.widths())
            one.replace_image(values["%x"].type)
        for i, pair in enumerate(one.padding):
            for name, width in zip("lh", pair, strict=True):
                if not isinstance(width, int):
                    self._assert(("arith.cmpi", GE, width, 0), "a padding is negative")
                    values[f"%{name}{i}"] = self._sizes.emit(width)
        made = one.made(self._sizes.all_of(values["%x"]), self._sizes.all_of(kernel))
        self._put(operation, made, values, one.lines())
        return True

    def _iota(self, operation: Any) -> bool:
        element = operation.results[0].type.element_type
        axis = self._ir.IntegerAttr(operation.attributes["iota_dimension"]).value
        if isinstance(element, self._ir.IntegerType) and not element.is_signless:
            return False
        if isinstance(element, self._ir.IntegerType):
            convert = f"%a = arith.index_cast %i : index to {element}"
        elif str(element) in ("f16", "bf16", "f32", "f64"):
            convert = (
                f"%n = arith.index_cast %i : index to i64\n%a = arith.sitofp %n : i64 to {element}"
            )
        else:
            return False
        lines = f"%i = linalg.index {axis} : index\n{convert}"
        self._generic(operation, self._made(operation), [], [], lines)
        return True

    def _pad(self, operation: Any) -> bool:
        """Of no negative padding, and of a known one between elements."""
        read, value, *widths = operation.operands
        rank = read.type.rank
        low, high, inner = ([self._sizes.element(one, (i,)) for i in range(rank)] for one in widths)
        if not all(isinstance(one, int) for one in inner):
            return False
        if any(inner):
            read = self._padded(read, value, [0] * rank, [0] * rank, inner)
        for one in (*low, *high):
            if not isinstance(one, int) or one < 0:
                self._assert(("arith.cmpi", GE, one, 0), "a padding is negative")
        values = {"%x": read, "%v": value}
        names = []
        for side, sizes in (("l", low), ("h", high)):
            values.update({f"%{side}{i}": self._sizes.emit(one) for i, one in enumerate(sizes)})
            names.append(", ".join(f"%{side}{i}" for i in range(rank)))
        arguments = ", ".join(f"%d{i}: index" for i in range(rank))
        result = operation.results[0].type
        lines = [
            f"%r = tensor.pad %x low[{names[0]}] high[{names[1]}] {{",
            f"^bb0({arguments}):",
            f"%e = tensor.extract %v[] : {value.type}",
            f"tensor.yield %e : {value.type.element_type}",
            f"}} : {read.type} to {result}",
            f"return %r : {result}",
        ]
        sides = zip(self._sizes.all_of(read), low, high, strict=True)
        made = [folded("arith.addi", folded("arith.addi", a, b), c) for a, b, c in sides]
        self._put(operation, made, values, lines)
        return True

    def _cut(self, operation: Any) -> bool:
        """Of dynamic shape, where some padding is negative."""
        ir, (read, value) = self._ir, operation.operands
        low, high, inner = (
            integers_of(ir, operation, name) or [0] * read.type.rank
            for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
        )
        if read.type.has_static_shape or min(*low, *high, 0) == 0:
            return False
        ops.replace(operation, [self._padded(read, value, low, high, inner)])
        return False

    def _reshape(self, operation: Any) -> bool:
        read, result = operation.operands[0], operation.results[0].type
        if not read.type.rank or not result.rank:
            return False
        given, made = self._sizes.all_of(read), self._made(operation)
        segments = _segments(given, made)
        read_part, made_part = segments[-1]
        self._expect(
            product([given[i] for i in read_part]),
            product([made[i] for i in made_part]),
            "a reshape has another number of elements",
        )
        collapsed = self._folded_type(read.type, [part for part, _ in segments])
        expanded = self._folded_type(result, [part for _, part in segments])
        lines, value, type_ = [], "%x", read.type
        if collapsed.rank < type_.rank:
            groups = _groups(part for part, _ in segments)
            lines.append(f"%c = tensor.collapse_shape {value} {groups} : {type_} into {collapsed}")
            value, type_ = "%c", collapsed
        if type_ != expanded:
            lines.append(f"%t = tensor.cast {value} : {type_} to {expanded}")
            value, type_ = "%t", expanded
        if expanded.rank < result.rank:
            groups = _groups(part for _, part in segments)
            shape = ", ".join(self._size_names(result))
            lines.append(
                f"%e = tensor.expand_shape {value} {groups} output_shape [{shape}] : "
                f"{type_} into {result}"
            )
            value = "%e"
        self._put(operation, made, {"%x": read}, [*lines, f"return {value} : {result}"])
        return True

    def _folded_type(self, type_: Any, groups: list[range]) -> Any:
        """The type of a tensor whose dimensions in each group are one."""
        dynamic = self._ir.ShapedType.get_dynamic_size()
        sizes = []
        for group in groups:
            size = 1
            for i in group:
                is_open = type_.is_dynamic_dim(i) or size == dynamic
                size = dynamic if is_open else size * type_.get_dim_size(i)
            sizes.append(size)
        return self._ir.RankedTensorType.get(sizes, type_.element_type)

    def _gather(self, operation: Any) -> bool:
        """A single window is a slice that begins at the index."""
        from torch_mlir._mlir_libs._stablehlo import GatherDimensionNumbers

        read, index = operation.operands[:2]
        if not index.type.element_type.is_signless:
            return False
        numbers = GatherDimensionNumbers(operation.attributes["dimension_numbers"])
        sizes = [self._sizes.element(operation.operands[2], (i,)) for i in range(read.type.rank)]
        if index.type.rank > 1 or numbers.index_vector_dim:
            self._windows(operation, numbers, sizes)
            return True
        starts: list[Expression] = [0] * read.type.rank
        for number, axis in enumerate(numbers.start_index_map):
            start = self._sizes.element(index, (number,))
            starts[axis] = self._bounded(start, self._sizes.of(read, axis), sizes[axis])
        hidden = [*numbers.collapsed_slice_dims]
        self._part(operation, starts, sizes, [1] * read.type.rank, hidden)
        return True

    def _windows(self, operation: Any, numbers: Any, sizes: Sequence[Expression]) -> None:
        """Reads each element at the sum of its place in the window and of the window's start, which
        is moved so that the window is within the bounds."""
        read, index = operation.operands[:2]
        values = {"%x": read, "%at": index}
        offset_dims = [*numbers.offset_dims]
        rank = operation.results[0].type.rank
        batch = [i for i in range(rank) if i not in offset_dims]
        lines = [f"%d{i} = linalg.index {i} : index" for i in range(rank)]
        lines.append("%zero = arith.constant 0 : index")
        named, batching = [*numbers.start_index_map], [*numbers.operand_batching_dims]
        inner = iter(offset_dims)
        places = []
        for axis in range(read.type.rank):
            place = "%zero"
            if axis in batching:
                along = [*numbers.start_indices_batching_dims][batching.index(axis)]
                place = f"%d{batch[along - (along > numbers.index_vector_dim)]}"
            elif axis not in numbers.collapsed_slice_dims:
                place = f"%d{next(inner)}"
            if axis in named:
                at = [f"%d{i}" for i in batch]
                if numbers.index_vector_dim < index.type.rank:
                    lines.append(f"%k{axis} = arith.constant {named.index(axis)} : index")
                    at.insert(numbers.index_vector_dim, f"%k{axis}")
                last = folded("arith.subi", self._sizes.of(read, axis), sizes[axis])
                values[f"%last{axis}"] = self._sizes.emit(last)
                element = index.type.element_type
                lines += [
                    f"%e{axis} = tensor.extract %at[{', '.join(at)}] : {index.type}",
                    f"%i{axis} = arith.index_cast %e{axis} : {element} to index",
                    f"%m{axis} = arith.minsi %i{axis}, %last{axis} : index",
                    f"%s{axis}_b = arith.maxsi %m{axis}, %zero : index",
                    f"%p{axis} = arith.addi %s{axis}_b, {place} : index",
                ]
                place = f"%p{axis}"
            places.append(place)
        lines.append(f"%a = tensor.extract %x[{', '.join(places)}] : {read.type}")
        hidden = {*numbers.collapsed_slice_dims, *batching}
        window = iter([size for axis, size in enumerate(sizes) if axis not in hidden])
        points = iter(
            [
                self._sizes.of(index, i)
                for i in range(index.type.rank)
                if i != numbers.index_vector_dim
            ]
        )
        made = [next(window if i in offset_dims else points) for i in range(rank)]
        self._generic(operation, made, [], [], "\n".join(lines), values)

    def _slice(self, operation: Any) -> bool:
        """The bounds are valid, by the specification."""
        rank = operation.operands[0].type.rank
        starts, limits, steps = (
            [self._sizes.element(one, (i,)) for i in range(rank)] for one in operation.operands[1:]
        )
        if not all(isinstance(step, int) for step in steps):
            return False
        sizes = [
            _rounded_up(folded("arith.subi", limit, start), step)
            for start, limit, step in zip(starts, limits, steps, strict=True)
        ]
        self._part(operation, starts, sizes, steps, [])
        return True

    def _part(
        self,
        operation: Any,
        starts: Sequence[Expression],
        sizes: Sequence[Expression],
        steps: Sequence[int],
        hidden: Sequence[int],
    ) -> None:
        """A slice without the dimensions `hidden`."""
        read, result = operation.operands[0], operation.results[0].type
        kept = [i for i in range(read.type.rank) if i not in hidden]
        values = {"%x": read}
        offsets, counts = [], []
        for i, (offset, size) in enumerate(zip(starts, sizes, strict=True)):
            offsets.append(str(offset) if isinstance(offset, int) else f"%o{i}")
            is_open = i in kept and result.is_dynamic_dim(kept.index(i))
            known = result.get_dim_size(kept.index(i)) if i in kept and not is_open else 1
            counts.append(f"%n{i}" if is_open else str(known))
            if not isinstance(offset, int):
                values[f"%o{i}"] = self._sizes.emit(offset)
            if is_open:
                values[f"%n{i}"] = self._sizes.emit(size)
        line = (
            f"%s = tensor.extract_slice %x[{', '.join(offsets)}] [{', '.join(counts)}] "
            f"[{', '.join(map(str, steps))}] : {read.type} to {result}"
        )
        made = [sizes[i] for i in kept]
        self._put(operation, made, values, [line, f"return %s : {result}"])

    def _update(self, operation: Any) -> bool:
        """Only of dynamic shape."""
        whole, part, *indices = operation.operands
        if whole.type.has_static_shape and part.type.has_static_shape:
            return False
        values, offsets, counts = {"%x": whole, "%y": part}, [], []
        for i, index in enumerate(indices):
            size = self._sizes.of(part, i)
            start = self._sizes.element(index, ())
            offset = self._bounded(start, self._sizes.of(whole, i), size)
            values[f"%o{i}"] = self._sizes.emit(offset)
            offsets.append(f"%o{i}")
            counts.append(f"%n{i}" if part.type.is_dynamic_dim(i) else str(size))
            if part.type.is_dynamic_dim(i):
                values[f"%n{i}"] = self._sizes.emit(size)
        line = (
            f"%r = tensor.insert_slice %y into %x[{', '.join(offsets)}] [{', '.join(counts)}] "
            f"[{', '.join('1' for _ in indices)}] : {part.type} into {whole.type}"
        )
        self._put(operation, self._sizes.all_of(whole), values, [line, f"return %r : {whole.type}"])
        return True

    def _concatenation(self, operation: Any) -> bool:
        """Asserts the sizes, which the pass to linalg does not compare."""
        along = self._ir.IntegerAttr(operation.attributes["dimension"]).value
        result = operation.results[0].type
        given = [self._sizes.all_of(one) for one in operation.operands]
        for i, sizes in enumerate(zip(*given, strict=True)):
            is_open = result.is_dynamic_dim(i)
            made = sizes[0] if is_open else result.get_dim_size(i)
            if i == along:
                sizes = () if is_open else (reduce(partial(folded, "arith.addi"), sizes),)
            for size in sizes:
                self._expect(made, size, f"a concatenation has other sizes in dimension {i}")
        return False

    def _scatter(self, operation: Any) -> bool:
        """Asserts the sizes. Windows that are not within the result are left out."""
        from torch_mlir._mlir_libs._stablehlo import ScatterDimensionNumbers

        numbers = ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
        count = len(operation.results)
        indices, first, *others = list(operation.operands)[count:]
        self._expect_equal(list(operation.operands)[:count], "operands of a scatter")
        self._expect_equal([first, *others], "updates of a scatter")
        points = [i for i in range(first.type.rank) if i not in list(numbers.update_window_dims)]
        of_indices = self._sizes.all_of(indices)
        del of_indices[numbers.index_vector_dim : numbers.index_vector_dim + 1]
        for i, size in zip(points, of_indices, strict=True):
            self._expect(
                size, self._sizes.of(first, i), "a scatter has other numbers of indices and updates"
            )
        return False

    def _sort(self, operation: Any) -> bool:
        """Asserts the sizes."""
        self._expect_equal(operation.operands, "operands of a sort")
        return False

    def _expect_equal(self, tensors: Sequence[Any], what: str) -> None:
        first, *others = map(self._sizes.all_of, tensors)
        for sizes in others:
            for one, other in zip(first, sizes, strict=True):
                self._expect(one, other, f"{what} have different sizes")

    def _made(self, operation: Any) -> list[Expression]:
        """The sizes of the result, which the shape operand has."""
        return self._sizes.all_of(operation.results[0])

    def _bounded(self, start: Expression, size: Expression, part: Expression) -> Expression:
        """The start of a part, moved so that the part is within the size."""
        if start == 0:
            return 0
        if isinstance(start, int) and isinstance(size, int) and isinstance(part, int):
            return max(min(start, size - part), 0)
        last = ("arith.subi", size, part)
        return ("arith.maxsi", ("arith.minsi", start, last), 0)


def _rounded_up(size: Expression, step: int) -> Expression:
    """The number of steps that it takes to the end of the size."""
    return folded("arith.divsi", folded("arith.addi", size, step - 1), step)


def _groups(parts: Any) -> str:
    return f"[{', '.join(str(list(part)) for part in parts)}]"


def _segments(given: Sequence[Expression], made: Sequence[Expression]) -> list[Segment]:
    """The parts of a reshape: the shortest runs of dimensions of both sides that have the same
    product. The last part is what is left."""
    ends = [(0, 0)]
    for i in range(1, len(given)):
        first, begin = ends[-1]
        whole = product(given[first:i])
        for k in range(begin + 1, len(made)):
            if whole == product(made[begin:k]):
                ends.append((i, k))
                break
    ends.append((len(given), len(made)))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in pairwise(ends)]
