"""Rewrites of operators whose axes, sizes or pads are known only at run time, but whose result has
known sizes. The sizes determine the values, or restrict them to a few choices, which is checked
when the entry is called."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from aotc.frontends.onnx.elements import BOOL, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result, result_sizes
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, constant, is_true

REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
).split()
# The most sets of axes among which the call chooses. Each is a reduction.
_MOST_CHOICES = 8


def _reduction(node: Node) -> str | None:
    """Chooses among the reductions that give the sizes of the result."""
    given, made, listed = known_input(node, 0), known_result(node), known_input(node, 1)
    if given is None or made is None or listed is None or node.constant(1) is not None:
        return None
    options = f"<keepdims: int = {node.attribute('keepdims', 1)}>"
    if listed == (0,):
        if node.attribute("noop_with_empty_axes", 0):
            options = options.replace(">", ", noop_with_empty_axes: int = 1>")
        return f"y = {node.operator} {options} (x)"
    choices = [
        axes
        for axes in combinations(range(len(given)), listed[0])
        if _reduced(given, axes, bool(node.attribute("keepdims", 1))) == made
    ]
    if not 1 <= len(choices) <= _MOST_CHOICES:
        return None
    rank = len(given)
    lines = [
        constant("zero", []).replace("int64[0] {}", "int64 {0}"),
        f"rank = Constant <value: tensor = int64 {{{rank}}}> ()",
        "is_negative = Less (axes, zero)",
        "wrapped = Add (axes, rank)",
        "places = Where (is_negative, wrapped, axes)",
        constant("all", range(rank)),
        constant("column", [rank, 1]),
        "all_c = Reshape (all, column)",
        "hits = Equal (all_c, places)",
        f"counts = Cast <to: int = {INT64}> (hits)",
        constant("last", [1]),
        *_summed("mask", "counts", node.opset),
    ]
    for number, axes in enumerate(choices):
        lines += [
            constant(f"mask_{number}", [int(axis in axes) for axis in range(rank)]),
            f"same_{number} = Equal (mask, mask_{number})",
            f"same_i_{number} = Cast <to: int = {INT64}> (same_{number})",
            f"is_i_{number} = ReduceMin <keepdims: int = 0> (same_i_{number})",
            f"is_{number} = Cast <to: int = {BOOL}> (is_i_{number})",
            constant(f"axes_{number}", axes),
            f"y_{number} = {node.operator} {options} (x, axes_{number})",
        ]
    lines += ["known_0 = Identity (is_0)", "chosen_0 = Identity (y_0)"]
    for number in range(1, len(choices)):
        lines += [
            f"known_{number} = Or (known_{number - 1}, is_{number})",
            f"chosen_{number} = Where (is_{number}, y_{number}, chosen_{number - 1})",
        ]
    last = len(choices) - 1
    lines += is_true("fits", f"known_{last}", "the axes do not lead to the sizes of the result")
    return "\n".join([*lines, f"y = Identity (chosen_{last})"])


def _summed(name: str, value: str, opset: int) -> list[str]:
    """Lines that sum a matrix along its last dimension."""
    if opset < 13:
        return [f"{name} = ReduceSum <axes: ints = [1], keepdims: int = 0> ({value})"]
    return [f"{name} = ReduceSum <keepdims: int = 0> ({value}, last)"]


def _reduced(given: tuple[int, ...], axes: tuple[int, ...], keeps: bool) -> tuple[int, ...]:
    """The sizes of the result of a reduction along axes."""
    if keeps:
        return tuple(1 if place in axes else size for place, size in enumerate(given))
    return tuple(size for place, size in enumerate(given) if place not in axes)


def _split(node: Node) -> str | None:
    """Parts with the sizes of the results."""
    if not node.has(1) or node.constant(1) is not None or node.shape(0) is None:
        return None
    axis = node.attribute("axis", 0)
    parts = [known_result(node, index) for index in range(len(node.proto.output))]
    if any(part is None for part in parts):
        return None
    results = ", ".join(f"y{i}" for i in range(len(parts)))
    return "\n".join(
        [
            constant("parts", [part[axis] for part in parts if part is not None]),
            "is_equal = Equal (split, parts)",
            *is_true("fits", "is_equal", "the parts do not have the sizes of the results"),
            f"{results} = Split <axis: int = {axis}> (x, parts)",
        ]
    )


def _affine_grid(node: Node) -> str | None:
    """The size of the image, except for its channels, on which nothing depends."""
    made, count = known_result(node), known_input(node, 1)
    if made is None or count is None or node.constant(1) is not None:
        return None
    size = [made[0], 1, *made[1:-1]]
    kept = [0, *range(2, len(size))]
    return "\n".join(
        [
            constant("places", kept),
            constant("known", [size[place] for place in kept]),
            constant("size_c", size),
            "given = Gather (size, places)",
            "is_equal = Equal (given, known)",
            *is_true("fits", "is_equal", "the size does not lead to that of the grid"),
            f"y = AffineGrid <align_corners: int = {node.attribute('align_corners', 0)}> "
            "(theta, size_c)",
        ]
    )


def _by_axis(rank: int) -> list[str]:
    """Lines that define `hits`: for each axis of a tensor, which of the given axes equal it."""
    return [
        constant("column", [rank, 1]),
        constant("all", range(rank)),
        "all_c = Reshape (all, column)",
        f"rank = Constant <value: tensor = int64 {{{rank}}}> ()",
        f"axes_l = Cast <to: int = {INT64}> (along)",
        "zero = Constant <value: tensor = int64 {0}> ()",
        "one = Constant <value: tensor = int64 {1}> ()",
        "is_negative = Less (axes_l, zero)",
        "wrapped = Add (axes_l, rank)",
        "places = Where (is_negative, wrapped, axes_l)",
        "hits = Equal (all_c, places)",
        constant("last", [1]),
    ]


def _size(given: tuple[int | None, ...]) -> str:
    """The line that defines `size`, the sizes of the input `x`."""
    known = [size for size in given if size is not None]
    return constant("size", known) if len(known) == len(given) else "size = Shape (x)"


def _compared(made: tuple[int | None, ...]) -> list[str]:
    """Lines that define `is_equal`: whether `length` equals the known sizes of the result."""
    places = [axis for axis, size in enumerate(made) if size is not None]
    return [
        constant("places_m", places),
        constant("made", [size for size in made if size is not None]),
        "length_m = Gather (length, places_m)",
        "is_equal = Equal (length_m, made)",
    ]


def _chosen(name: str, values: str, default: str, opset: int) -> list[str]:
    """Lines that define, for each axis, the value that is given for it, or the default."""
    return [
        f"{name}_more = Sub ({values}, {default})",
        f"{name}_hit = Where (hits, {name}_more, zero)",
        *_summed(f"{name}_sum", f"{name}_hit", opset),
        f"{name} = Add ({name}_sum, {default})",
    ]


def _slice_checks(node: Node) -> list[str] | None:
    """Lines that define `start` and `step` for each axis, and check that they give the sizes of the
    result. None if these are not known."""
    given, made = node.shape(0), result_sizes(node)
    count = known_input(node, 1)
    if not given or made is None or count is None:
        return None
    rank, (number,) = len(given), count
    lines = ["along = Identity (axes)" if node.has(3) else constant("along", range(number))]
    return [
        *lines,
        "by = Identity (steps)" if node.has(4) else constant("by", [1] * number),
        *_by_axis(rank),
        _size(given),
        *(f"{name}_l = Cast <to: int = {INT64}> ({name})" for name in ("starts", "ends", "by")),
        *_chosen("start_a", "starts_l", "zero", node.opset),
        *_chosen("step_a", "by_l", "one", node.opset),
        # The default of an end is the size of its axis. A large number stands for it, which is
        # clamped below.
        "least = Constant <value: tensor = int64 {-4611686018427387904}> ()",
        "most = Constant <value: tensor = int64 {4611686018427387904}> ()",
        "ends_low = Max (ends_l, least)",
        "ends_in = Min (ends_low, most)",
        *_chosen("end_a", "ends_in", "most", node.opset),
        "limit = Add (size, one)",
        "limit_n = Neg (limit)",
        "step_low = Max (step_a, limit_n)",
        "step = Min (step_low, limit)",
        "is_up = Greater (step, zero)",
        "last_place = Sub (size, one)",
        "most_start = Where (is_up, size, last_place)",
        "before = Constant <value: tensor = int64 {-1}> ()",
        "least_end = Where (is_up, zero, before)",
        *(
            line
            for name, low in (("start", "zero"), ("end", "least_end"))
            for line in (
                f"{name}_is_n = Less ({name}_a, zero)",
                f"{name}_w = Add ({name}_a, size)",
                f"{name}_p = Where ({name}_is_n, {name}_w, {name}_a)",
                f"{name}_low = Max ({name}_p, {low})",
                f"{name} = Min ({name}_low, most_start)",
            )
        ),
        "up = Sub (end, start)",
        "down = Sub (start, end)",
        "span = Where (is_up, up, down)",
        "stride = Abs (step)",
        "more = Add (span, stride)",
        "less = Sub (more, one)",
        "parts = Div (less, stride)",
        "length = Max (parts, zero)",
        *_compared(made),
        *is_true("fits", "is_equal", "the slice does not have the sizes of the result"),
    ]


def checked_starts(node: Node) -> str | None:
    """The starts of a Slice with positive steps, whose length is checked."""
    steps = node.constant(4)
    if node.has(3) and node.constant(3) is None:
        return None
    if node.has(4) and (steps is None or (steps < 0).any()):
        return None
    made = result_sizes(node)
    axes = node.constant(3) if node.has(3) else range(len(made or ()))
    if made is None or all(made[axis] is None for axis in axes):
        return None
    lines = _slice_checks(node)
    return None if lines is None else "\n".join([*lines, "y = Identity (starts)"])


def slice_by_indices(node: Node) -> str | None:
    """Lowers a Slice with steps of any sign to a Gather for each dimension."""
    given, made = known_input(node, 0), known_result(node)
    lines = _slice_checks(node)
    if given is None or made is None or lines is None:
        return None
    rank = len(made)
    if 0 in made:
        lines += [constant("none", [0] * rank)]
        return "\n".join([*lines, "y = Slice (x, none, made, all)"])
    for axis, size in enumerate(made):
        lines += [
            constant(f"axis_{axis}", [axis]),
            f"start_{axis} = Gather (start, axis_{axis})",
            f"step_{axis} = Gather (step, axis_{axis})",
            constant(f"steps_{axis}", range(size)),
            f"way_{axis} = Mul (steps_{axis}, step_{axis})",
            f"index_{axis} = Add (way_{axis}, start_{axis})",
            f"y_{axis} = Gather <axis: int = {axis}> "
            f"({f'y_{axis - 1}' if axis else 'x'}, index_{axis})",
        ]
    return "\n".join([*lines, f"y = Identity (y_{rank - 1})"])


def _pad(node: Node) -> str | None:
    """Lowers padding by elements of the tensor to a Gather for each dimension."""
    mode = node.attribute("mode", "constant")
    given, made, count = known_input(node, 0), known_result(node), known_input(node, 1)
    if mode == "constant" or given is None or made is None or count is None or 0 in given:
        return None
    if not _is_looked_up(node, mode, given):
        return None
    rank, lines = len(given), _pad_checks(node, given, made, count[0] // 2)
    for axis, size in enumerate(made):
        name = f"index_{axis}"
        lines += [
            constant(f"axis_{axis}", [axis]),
            f"begin_{axis} = Gather (begin, axis_{axis})",
            constant(f"steps_{axis}", range(size)),
            f"at_{axis} = Sub (steps_{axis}, begin_{axis})",
            *_PLACES[mode](name, f"at_{axis}", given[axis]),
            f"y_{axis} = Gather <axis: int = {axis}> ({f'y_{axis - 1}' if axis else 'x'}, {name})",
        ]
    return "\n".join([*lines, f"y = Identity (y_{rank - 1})"])


def _cut_pads(node: Node) -> str | None:
    """Lowers negative pads, which torch-mlir lowers wrongly or not at all, to a Slice before the
    other pads."""
    pads, axes, shape = node.constant(1), node.constant(3), node.shape(0)
    if pads is None or shape is None or (node.has(3) and axes is None) or (pads >= 0).all():
        return None
    along = list(range(len(shape)) if axes is None else axes)
    begins, ends = np.split(np.minimum(pads, 0), 2)
    sizes = [shape[axis] for axis in along]
    cut = zip(sizes, begins, ends, strict=True)
    if any(size is not None and size + begin + end < 0 for size, begin, end in cut):
        return None
    inputs = ["part", "widths", "value" if node.has(2) else "", "along"]
    given = ", ".join(inputs if node.has(3) else filter(None, inputs[:3]))
    return "\n".join(
        [
            constant("first", [-begin for begin in begins]),
            constant("last", [end or np.iinfo(np.int64).max for end in ends]),
            constant("along", along),
            "part = Slice (x, first, last, along)",
            constant("widths", np.maximum(pads, 0)),
            f'y = Pad <mode: string = "{node.attribute("mode", "constant")}"> ({given})',
        ]
    )


def _cut_attribute_pads(node: Node) -> str | None:
    """The same for opsets before 11, in which the pads are an attribute."""
    pads, shape = node.attribute("pads"), node.shape(0)
    if pads is None or shape is None or min(pads, default=0) >= 0:
        return None
    body, part = Body(node.opset), "x"
    for axis, size in enumerate(shape):
        begin, end = (min(one, 0) for one in (pads[axis], pads[len(shape) + axis]))
        if size is not None and size + begin + end < 0:
            return None
        if begin or end:
            part = body.part(part, -begin, end or np.iinfo(np.int64).max, axis)
    widths = [max(one, 0) for one in pads]
    mode, value = node.attribute("mode", "constant"), float(node.attribute("value", 0))
    return body.end(y=body("Pad", part, mode=mode, pads=widths, value=value))


def checked_pads(node: Node) -> str | None:
    """The pads of a Pad with a constant, whose sums are checked."""
    given, made, count = node.shape(0), result_sizes(node), known_input(node, 1)
    mode = node.attribute("mode", "constant")
    if mode != "constant" or not given or made is None or count is None:
        return None
    axes = node.constant(3) if node.has(3) else range(len(made))
    if axes is not None and all(made[axis] is None for axis in axes):
        return None
    lines = _pad_checks(node, given, made, count[0] // 2)
    return "\n".join([*lines, "y = Identity (pads)"])


def _pad_checks(
    node: Node, given: tuple[int | None, ...], made: tuple[int | None, ...], number: int
) -> list[str]:
    """Lines that define `begin` for each axis, and check the padding of `number` axes."""
    rank = len(given)
    lines = ["along = Identity (axes)" if node.has(3) else constant("along", range(number))]
    return [
        *lines,
        *_by_axis(rank),
        constant("begins_at", range(number)),
        constant("ends_at", range(number, 2 * number)),
        "begins = Gather (pads, begins_at)",
        "ends = Gather (pads, ends_at)",
        *_chosen("begin", "begins", "zero", node.opset),
        *_chosen("end", "ends", "zero", node.opset),
        _size(given),
        "padding = Add (begin, end)",
        "length = Add (padding, size)",
        *_compared(made),
        *is_true("fits", "is_equal", "the padding does not lead to the sizes of the result"),
    ]


def _is_looked_up(node: Node, mode: str, given: tuple[int, ...]) -> bool:
    """Whether torch-mlir does not lower the padding: for pads that are values of the call, or are
    larger than the tensor."""
    pads = node.constant(1)
    if pads is None or mode == "wrap" or node.has(3):
        return True
    # torch-mlir pads only the last one or two dimensions, by less than their size.
    padded = [axis for axis, pair in enumerate(pads.reshape(2, -1).T) if pair.any()]
    if padded and (len(given) not in (3, 4) or padded[0] < len(given) - 2):
        return True
    return mode == "reflect" and any(
        pad >= size for pad, size in zip(pads, [*given, *given], strict=False)
    )


def _number(name: str, value: int) -> str:
    return f"{name} = Constant <value: tensor = int64 {{{value}}}> ()"


def _nearest_place(name: str, place: str, size: int) -> list[str]:
    return [
        _number(f"{name}_last", size - 1),
        f"{name}_low = Max ({place}, zero)",
        f"{name} = Min ({name}_low, {name}_last)",
    ]


def _wrapped_place(name: str, place: str, size: int) -> list[str]:
    return [_number(f"{name}_size", size), f"{name} = Mod ({place}, {name}_size)"]


def _reflected_place(name: str, place: str, size: int) -> list[str]:
    period = max(1, 2 * (size - 1))
    return [
        _number(f"{name}_period", period),
        f"{name}_in = Mod ({place}, {name}_period)",
        f"{name}_back = Sub ({name}_period, {name}_in)",
        f"{name} = Min ({name}_in, {name}_back)" if size > 1 else f"{name} = Mul ({name}_in, zero)",
    ]


_PLACES = {"edge": _nearest_place, "reflect": _reflected_place, "wrap": _wrapped_place}

EARLY_REWRITES = (
    Rewrite("AffineGrid", "(theta, size) => (y)", _affine_grid),
    Rewrite("Split", "(x, split) => (...)", _split),
    Rewrite("Pad", "(x, pads, value, axes) => (y)", _cut_pads),
    Rewrite("Pad", "(x) => (y)", _cut_attribute_pads),
)
RUNTIME_REWRITES = (
    *(Rewrite(name, "(x, axes) => (y)", _reduction) for name in REDUCTIONS),
    Rewrite("Pad", "(x, pads, value, axes) => (y)", _pad),
)
