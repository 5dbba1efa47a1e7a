"""Lowers reductions of windows of a tensor of dynamic shape. The pass to linalg lowers those of
images, with windows of a known size and without padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.frontends.row_scan import RowScan
from aotc.frontends.stablehlo.emitter import GE, Emitter, integers_of
from aotc.frontends.stablehlo.sizes import Expression, folded, integer_pairs

Pairs = Sequence[tuple[Expression, Expression]]

# Operations of regions, and those of arith on floats and on integers.
_COMBINATIONS = {
    "stablehlo.add": ("arith.addf", "arith.addi"),
    "stablehlo.and": ("", "arith.andi"),
    "stablehlo.maximum": ("arith.maximumf", "arith.maxsi"),
    "stablehlo.minimum": ("arith.minimumf", "arith.minsi"),
    "stablehlo.multiply": ("arith.mulf", "arith.muli"),
    "stablehlo.or": ("", "arith.ori"),
}
# An operation that is replaced.
_STAND_IN = "stand_in.operation"
_FLOATS = ("f16", "bf16", "f32", "f64")
_RANKS_OF_IMAGES = (4, 5)
# The initial value of a scan, which changes no element.
_NEUTRAL = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.addi": 0, "arith.muli": 1}


def combination_of(ir: Any, block: Any, element: Any) -> str | None:
    """The operation of arith that the region of a reduction is, on elements of this type."""
    body = ops.operations_in(block)
    if len(body) != 2 or body[0].name not in _COMBINATIONS:  # with the terminator
        return None
    if {*body[0].operands} != {*block.arguments}:
        return None
    names = _COMBINATIONS[body[0].name]
    if str(element) in _FLOATS:
        return names[0] or None
    is_number = isinstance(element, ir.IntegerType) and element.is_signless and element.width > 1
    return names[1] if is_number else None


class Windows:
    """A reduction of the windows of one tensor. All numbers have one element a dimension."""

    def __init__(
        self,
        sizes: Sequence[Expression],
        windows: Sequence[Expression],
        strides: Sequence[int],
        dilations: Sequence[int],
        padding: Pairs,
    ) -> None:
        self._sizes, self._windows = sizes, windows
        self._strides, self._dilations, self.padding = strides, dilations, padding

    def is_of_an_image(self) -> bool:
        """Whether the pass lowers it, if its padding is an operation before."""
        is_known = all(isinstance(size, int) for size in self._windows)
        return (
            is_known
            and self.scanned() is None
            and len(self._sizes) in _RANKS_OF_IMAGES
            and all(isinstance(width, int) for pair in self.padding for width in pair)
        )

    def scanned(self) -> tuple[int, bool] | None:
        """The dimension along which the results are those of a scan, and whether it begins at the
        end; None if they are not."""
        [*axes] = [i for i, size in enumerate(self._windows) if size != 1]
        if len(axes) != 1 or {*self._strides, *self._dilations} != {1}:
            return None
        (axis,) = axes
        size = self._sizes[axis]
        before = (folded("arith.addi", size, -1), folded("arith.subi", size, 1))
        others = [pair for i, pair in enumerate(self.padding) if i != axis]
        if size != self._windows[axis] or any(pair != (0, 0) for pair in others):
            return None
        low, high = self.padding[axis]
        if low in before and high == 0:
            return axis, False
        return (axis, True) if high in before and low == 0 else None

    def set_padded(self, sizes: Sequence[Expression]) -> None:
        """Sets the sizes of the tensor, which is padded."""
        self._sizes, self.padding = sizes, [(0, 0)] * len(sizes)

    def made(self) -> list[Expression]:
        """The sizes of the result."""
        made = []
        for i, size in enumerate(self._sizes):
            low, high = self.padding[i]
            reach = folded(
                "arith.muli", folded("arith.subi", self._windows[i], 1), self._dilations[i]
            )
            room = folded("arith.addi", folded("arith.addi", size, low), high)
            room = folded("arith.addi", folded("arith.subi", room, reach), self._strides[i] - 1)
            if not isinstance(room, int) and (reach != 0 or low != 0 or high != 0):
                # A tensor that is smaller than the window has no result.
                room = folded("arith.maxsi", room, 0)
            made.append(folded("arith.divsi", room, self._strides[i]))
        return made

    def names(self) -> dict[str, Expression]:
        """The sizes that `lines` take: %l0, %h0, ... of padding, and %w0, ... of windows."""
        names: dict[str, Expression] = {}
        for i, (low, high) in enumerate(self.padding):
            names |= {f"%l{i}": low, f"%h{i}": high, f"%w{i}": self._windows[i]}
        return {name: size for name, size in names.items() if not isinstance(size, int)}

    def lines(self, ir: Any, read: Any, result: Any, combination: str) -> list[str]:
        """The lines of a function of %x and %v, what the reduction begins with, of %s0, ...,
        dynamic sizes of the result, and of `names`."""
        rank, element = read.rank, read.element_type
        dynamic = ir.ShapedType.get_dynamic_size()
        axes = [i for i, size in enumerate(self._windows) if size != 1]
        low, high = (
            ", ".join(self._name("lh"[side], i, pair[side]) for i, pair in enumerate(self.padding))
            for side in range(2)
        )
        known = [
            size + sum(pair) if all(isinstance(one, int) for one in (size, *pair)) else dynamic
            for size, pair in zip(self._sizes, self.padding, strict=True)
        ]
        padded = ir.RankedTensorType.get(known, element)
        sizes = [self._windows[i] for i in axes]
        shape = ir.RankedTensorType.get(
            [size if isinstance(size, int) else dynamic for size in sizes], element
        )
        window = ", ".join(f"%w{i}" for i in axes if not isinstance(self._windows[i], int))
        parallel = [f"d{i}" for i in range(rank)]
        reduced = [f"k{i}" for i in axes]
        loops = ", ".join([*parallel, *reduced])
        places = ", ".join(
            f"d{i} * {self._strides[i]}" + (f" + k{i} * {self._dilations[i]}" if i in axes else "")
            for i in range(rank)
        )
        maps = ", ".join(
            f"affine_map<({loops}) -> ({one})>"
            for one in (places, ", ".join(reduced), ", ".join(parallel))
        )
        kinds = ", ".join([*['"parallel"'] * rank, *['"reduction"'] * len(axes)])
        made = ", ".join(f"%s{i}" for i in range(rank) if result.is_dynamic_dim(i))
        return [
            f"%e = tensor.extract %v[] : tensor<{element}>",
            f"%padded = tensor.pad %x low[{low}] high[{high}] {{",
            f"^bb0({', '.join(f'%d{i}: index' for i in range(rank))}):",
            f"tensor.yield %e : {element}",
            f"}} : {read} to {padded}",
            f"%window = tensor.empty({window}) : {shape}",
            f"%empty = tensor.empty({made}) : {result}",
            f"%start = linalg.fill ins(%e : {element}) outs(%empty : {result}) -> {result}",
            f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins(%padded, %window : {padded}, {shape}) outs(%start : {result}) {{",
            f"^bb0(%a: {element}, %none: {element}, %old: {element}):",
            f"%new = {combination} %old, %a : {element}",
            f"linalg.yield %new : {element}",
            f"}} -> {result}",
            f"return %r : {result}",
        ]

    def _name(self, kind: str, i: int, width: Expression) -> str:
        return str(width) if isinstance(width, int) else f"%{kind}{i}"


class WindowLowering(Emitter):
    """Lowers `stablehlo.reduce_window`, and JAX's call of such a reduction whose windows or padding
    are computed. `reducers` are the functions that the calls name."""

    def __init__(self, ir: Any) -> None:
        super().__init__(ir)
        self.reducers: list[Any] = []

    def _window(self, operation: Any) -> bool:
        """Padding of an operand of dynamic shape becomes an operation: the pass to linalg lowers
        such a reduction of an image without padding."""
        ir, read = self._ir, operation.operands[0]
        if len(operation.operands) != 2 or read.type.has_static_shape:
            return False
        rank = read.type.rank
        names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
        windows, strides, bases, dilations = (
            integers_of(ir, operation, name) or [1] * rank for name in names
        )
        padding = integer_pairs(ir, operation, "padding", rank)
        one = Windows(self._sizes.all_of(read), windows, strides, dilations, padding)
        if not one.is_of_an_image():
            return self._reduce(operation, operation.regions[0].blocks[0], one, bases)
        if bases == [1] * rank and any(map(any, padding)):
            low, high = ([pair[k] for pair in padding] for k in range(2))
            operation.operands[0] = self._padded(read, operation.operands[1], low, high, [0] * rank)
            del operation.attributes["padding"]
        return False

    def _computed_window(self, operation: Any) -> bool:
        if len(operation.operands) != 7:  # one tensor, its initial value, and the numbers below
            return False
        read, _, *numbers, widths = operation.operands
        rank = read.type.rank
        windows, strides, bases, dilations = (
            [self._sizes.element(one, (i,)) for i in range(rank)] for one in numbers
        )
        if not all(isinstance(one, int) for one in (*strides, *bases, *dilations)):
            return False
        padding = [
            (self._sizes.element(widths, (i, 0)), self._sizes.element(widths, (i, 1)))
            for i in range(rank)
        ]
        (callee,) = self._ir.ArrayAttr(operation.attributes["called_computations"])
        name = self._ir.FlatSymbolRefAttr(callee).value
        functions = ops.find([*ops.ancestors(operation)][-1], "func.func")
        function = next(one for one in functions if ops.symbol_of(one) == name)
        self.reducers.append(function)
        one = Windows(self._sizes.all_of(read), windows, strides, dilations, padding)
        return self._reduce(operation, function.regions[0].blocks[0], one, bases)

    def _reduce(self, operation: Any, block: Any, one: Windows, bases: Sequence[int]) -> bool:
        read, initial = list(operation.operands)[:2]
        combination = combination_of(self._ir, block, read.type.element_type)
        if combination is None:
            return False
        along = one.scanned() if {*bases} == {1} else None
        if along is not None and self._is_neutral(initial, combination):
            self._scan(operation, *along, combination)
            return True
        widths = [width for pair in one.padding for width in pair]
        if all(isinstance(width, int) for width in widths):
            if any(widths) or {*bases} != {1}:
                low, high = ([pair[side] for pair in one.padding] for side in range(2))
                read = self._padded(read, initial, low, high, [base - 1 for base in bases])
                one.set_padded(self._sizes.all_of(read))
        elif {*bases} != {1}:
            return False
        for width in widths:
            if not isinstance(width, int):
                self._assert(("arith.cmpi", GE, width, 0), "a padding is negative")
        values = {"%x": read, "%v": initial}
        values |= {name: self._sizes.emit(size) for name, size in one.names().items()}
        lines = one.lines(self._ir, read.type, operation.results[0].type, combination)
        self._put(operation, one.made(), values, lines)
        return True

    def _is_neutral(self, initial: Any, combination: str) -> bool:
        """Whether a constant is the initial value of a scan."""
        owner = ops.defining(initial)
        while owner is not None and owner.name == "stablehlo.broadcast_in_dim":
            owner = ops.defining(owner.operands[0])
        if owner is None or owner.name != "stablehlo.constant" or combination not in _NEUTRAL:
            return False
        said = str(owner.attributes["value"]).partition("<")[2].partition(">")[0]
        return not said.startswith("0x") and float(said) == _NEUTRAL[combination]

    def _scan(self, operation: Any, axis: int, is_reversed: bool, combination: str) -> None:
        """Scans the last dimension of a tensor whose dimension `axis` is moved there."""
        ir, read = self._ir, operation.operands[0]
        rank = read.type.rank
        order = [*(i for i in range(rank) if i != axis), axis]
        back = [order.index(i) for i in range(rank)]
        moved = self._transposed(self._reversed(read, axis) if is_reversed else read, order)
        sizes = [self._sizes.of(read, i) for i in order]
        open_ = [self._sizes.emit(sizes[i]) for i in range(rank) if moved.type.is_dynamic_dim(i)]
        empty = self._create("tensor.empty", open_, moved.type)
        scan = ir.Operation.create(_STAND_IN, results=[moved.type] * 2, operands=[moved])
        self._sizes.known[scan.results[0]] = sizes
        made = self._transposed(scan.results[0], back)
        self._sizes.known[made] = self._sizes.all_of(read)
        made = self._reversed(made, axis) if is_reversed else made
        operation.results[0].replace_all_uses_with(made)
        neutral = str(_NEUTRAL[combination])
        text = RowScan(ir, [moved.type] * 3, neutral, "row", combination).text()
        parsed = ir.Module.parse(text)
        body = ops.terminator(parsed.body).regions[0].blocks[0]
        ops.replace_by_body(scan, body, [moved, empty, empty])
        ops.erase(scan)

    def _transposed(self, value: Any, order: Sequence[int]) -> Any:
        if list(order) == sorted(order):
            return value
        shape = [value.type.shape[i] for i in order]
        type_ = self._ir.RankedTensorType.get(shape, value.type.element_type)
        permutation = {"permutation": self._ir.DenseI64ArrayAttr.get([*order])}
        return self._ir.Operation.create(
            "stablehlo.transpose", results=[type_], operands=[value], attributes=permutation
        ).result

    def _reversed(self, value: Any, axis: int) -> Any:
        dimensions = {"dimensions": self._ir.DenseI64ArrayAttr.get([axis])}
        operation = self._ir.Operation.create(
            "stablehlo.reverse", results=[value.type], operands=[value], attributes=dimensions
        )
        user = self._ir.Operation.create(_STAND_IN, operands=[operation.result])
        with self._ir.InsertionPoint(operation):
            self._reverse(operation)
        ops.erase(operation)
        made = user.operands[0]
        ops.erase(user)
        return made

    def _reverse(self, operation: Any) -> bool:
        """Only of dynamic shape."""
        read = operation.operands[0]
        if read.type.has_static_shape:
            return False
        reversed_ = list(self._ir.DenseI64ArrayAttr(operation.attributes["dimensions"]))
        sizes = self._sizes.all_of(read)
        lines = []
        for i in range(read.type.rank):
            lines.append(f"%i{i} = linalg.index {i} : index")
            if i in reversed_:
                lines += [
                    f"%c{i} = arith.constant {i} : index",
                    f"%n{i} = tensor.dim %x, %c{i} : {read.type}",
                    f"%m{i} = arith.subi %n{i}, %i{i} : index",
                    f"%one{i} = arith.constant 1 : index",
                    f"%p{i} = arith.subi %m{i}, %one{i} : index",
                ]
        places = ", ".join(f"%p{i}" if i in reversed_ else f"%i{i}" for i in range(read.type.rank))
        lines.append(f"%a = tensor.extract %x[{places}] : {read.type}")
        self._generic(operation, sizes, [], [], "\n".join(lines), {"%x": read})
        return True
