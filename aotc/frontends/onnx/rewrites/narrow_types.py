"""Represents elements of less than 8 bits, and 8-bit floats, by 8-bit integers.

Integers of 4 and 2 bits become int8 and uint8 with the same value. Floats of 8 and 4 bits become
uint8 with the same bits, also in the arguments and results of an entry. E4M3FN and E5M2 inputs of a
model keep their types, because aotc can read these; only values of these types that the model
computes are uint8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct

from aotc.frontends.onnx.elements import (
    DOUBLE,
    FLOAT,
    FLOAT4E2M1,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    INT2,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT2,
    UINT4,
    UINT8,
    UINT16,
)
from aotc.frontends.onnx.nodes import Node, walk
from aotc.frontends.onnx.rewrites.body import Rewrite, constant


class Integers(Struct, frozen=True):
    """An integer type: its least and its greatest value."""

    least: int
    most: int

    @property
    def storage(self) -> int:
        """The element type that represents them."""
        return INT8 if self.least else UINT8


class Floats(Struct, frozen=True):
    """A float type: its name in ml_dtypes, the code of the largest finite number, that of larger
    numbers, and that of NaN; and the sign bit, 0 if there is none."""

    name: str
    last: int
    beyond: int
    nan: int
    sign: int
    # Whether it has no negative zero.
    has_one_zero: bool = False

    storage = UINT8

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """The value of each code, in f64."""
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]

        count = 16 if self.sign == 8 else 256
        codes = np.arange(count, dtype=np.uint8)
        numbers: np.ndarray[Any, Any] = codes.view(getattr(ml_dtypes, self.name)).astype(np.float64)
        return numbers


KINDS: dict[int, Integers | Floats] = {
    FLOAT8E4M3FN: Floats("float8_e4m3fn", 0x7E, 0x7F, 0x7F, 0x80),
    FLOAT8E4M3FNUZ: Floats("float8_e4m3fnuz", 0x7F, 0x80, 0x80, 0x80, has_one_zero=True),
    FLOAT8E5M2: Floats("float8_e5m2", 0x7B, 0x7C, 0x7E, 0x80),
    FLOAT8E5M2FNUZ: Floats("float8_e5m2fnuz", 0x7F, 0x80, 0x80, 0x80, has_one_zero=True),
    UINT4: Integers(0, 15),
    INT4: Integers(-8, 7),
    FLOAT4E2M1: Floats("float4_e2m1fn", 0x7, 0x7, 0x8, 0x8),
    FLOAT8E8M0: Floats("float8_e8m0fnu", 0xFE, 0xFF, 0xFF, 0),
    UINT2: Integers(0, 3),
    INT2: Integers(-2, 1),
}
# The sign bit of 4-bit floats.
_F4_SIGN = 8
# torch-mlir does not dequantize these.
_SIXTEEN = (UINT16, INT16)
# The float types that aotc can read.
_READ = (FLOAT8E4M3FN, FLOAT8E5M2)
# Operators that move elements without interpreting them.
_MOVED = frozenset(
    "Concat Expand Flatten Gather Identity Reshape Shape Size Slice Split Squeeze Transpose "
    "Unsqueeze".split()
)
_COMPUTED = frozenset(("Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"))


def widened(model: Any, rewrite: Any) -> Any:
    """Returns the model with narrow elements represented by 8-bit integers. The model is not
    changed if it has none, or if an operator has no lowering for them. `rewrite` applies
    rewrites."""
    replaced = _replaced(model)
    if replaced is None:
        return model
    model = rewrite(model, _rewrites(replaced))
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        element = value.type.tensor_type.elem_type
        if element in KINDS and (value.name in replaced or element not in _READ):
            value.type.tensor_type.elem_type = KINDS[element].storage
    for tensor in _tensors(model):
        kind = KINDS.get(tensor.data_type)
        if kind is not None and tensor.data_type not in _READ:
            tensor.CopyFrom(_stored(tensor, kind))
    return model


def _given(model: Any) -> set[str]:
    return {value.name for value in (*model.graph.input, *model.graph.initializer)}


def _tensors(model: Any) -> Iterator[Any]:
    yield from model.graph.initializer
    for proto in model.graph.node:
        for attribute in proto.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def _stored(tensor: Any, kind: Integers | Floats) -> Any:
    """The constant as the integers that represent it."""
    from onnx import numpy_helper

    array = numpy_helper.to_array(tensor)
    if isinstance(kind, Integers):
        stored = array.astype(np.int8 if kind.least else np.uint8)
    else:
        stored = array.view(np.uint8)
    return numpy_helper.from_array(stored, tensor.name)


def _replaced(model: Any) -> frozenset[str] | None:
    """The names of the values that integers represent. None if there are none, or if an operator
    that has no lowering for such a value reads it."""
    replaced: set[str] = set()
    kept: set[str] = set()
    has_narrow = False
    for name, type_ in _types(model).items():
        if type_ in KINDS:
            has_narrow = True
            if name in _given(model) and type_ not in _READ:
                replaced.add(name)
    if not has_narrow:
        return None
    for node in walk(model):
        narrow = [
            name
            for name in (*node.proto.input, *node.proto.output)
            if name and _element(node, name) in KINDS
        ]
        if not narrow:
            continue
        if node.operator not in (*_MOVED, *_COMPUTED, "Constant") or node.proto.domain:
            return None
        for name in node.proto.output:
            element = _element(node, name)
            if element not in KINDS:
                continue
            if node.operator in _COMPUTED or element not in _READ:
                replaced.add(name)
            elif replaced & set(node.proto.input):
                replaced.add(name)
                kept.update(one for one in node.proto.input if _element(node, one) == element)
    return None if kept - replaced else frozenset(replaced)


def _types(model: Any) -> dict[str, int]:
    graph = model.graph
    return {
        **{tensor.name: tensor.data_type for tensor in graph.initializer},
        **{
            value.name: value.type.tensor_type.elem_type
            for value in (*graph.value_info, *graph.input, *graph.output)
        },
    }


def _element(node: Node, name: str) -> int:
    tensor = node.tensor(name)
    return 0 if tensor is None else int(tensor.elem_type)


def _rewrites(replaced: frozenset[str]) -> Sequence[Rewrite]:
    """The rewrites of operators that compute with the values that integers represent."""

    def with_stored(body: Callable[[Node, frozenset[int]], str | None]) -> Any:
        return lambda node: body(
            node,
            frozenset(i for i, name in enumerate(node.proto.input) if name in replaced),
        )

    return (
        Rewrite("Cast", "(x) => (y)", with_stored(_cast)),
        Rewrite("CastLike", "(x, like) => (y)", with_stored(_cast)),
        Rewrite("QuantizeLinear", "(x, y_scale, y_zero_point) => (y)", with_stored(_quantize)),
        Rewrite("DequantizeLinear", "(x, x_scale, x_zero_point) => (y)", with_stored(_dequantize)),
    )


def _cast(node: Node, stored: frozenset[int]) -> str | None:
    source, target = node.element(0), _element(node, node.proto.output[0])
    if 0 not in stored and target not in KINDS:
        return None
    wide, lines = _decoded("x", source, 0 in stored)
    saturated, mode = bool(node.attribute("saturate", 1)), node.attribute("round_mode", "up")
    return "\n".join([*lines, *_encoded("y", wide, source, target, saturated, mode)])


def _quantize(node: Node, stored: frozenset[int]) -> str | None:
    target = _element(node, node.proto.output[0])
    lines = _scale_lines(node, "y_scale", 1)
    element = node.attribute("precision", 0) or node.element(0)
    is_wide = target in _SIXTEEN or node.attribute("block_size", 0)
    if lines is None or (target not in KINDS and not is_wide):
        return None
    lines += [
        f"x_wide = Cast <to: int = {element}> (x)",
        f"scale_wide = Cast <to: int = {element}> (scale)",
        "ratio = Div (x_wide, scale_wide)",
        f"scaled = Cast <to: int = {FLOAT}> (ratio)",
    ]
    kind = KINDS.get(target)
    if isinstance(kind, Floats):
        # The zero point of 8-bit floats is 0.
        moved = "scaled"
        if kind.sign == _F4_SIGN and node.has(2):
            zero = _zero_lines(node, "y_zero_point", stored)
            if zero is None:
                return None
            lines += [*zero, "moved = Add (scaled, zero_f)"]
            moved = "moved"
        saturated = bool(node.attribute("saturate", 1))
        return "\n".join([*lines, *_encoded("y", moved, FLOAT, target, saturated, "up")])
    least, most = _limits(target)
    lines += ["rounded = Round (scaled)"]
    if node.has(2):
        zero = _zero_lines(node, "y_zero_point", stored)
        if zero is None:
            return None
        lines += [*zero, "moved = Add (rounded, zero_f)"]
    else:
        lines += ["moved = Identity (rounded)"]
    return "\n".join(
        [
            *lines,
            f"least = Constant <value: tensor = float {{{least}}}> ()",
            f"most = Constant <value: tensor = float {{{most}}}> ()",
            "above = Max (moved, least)",
            "inside = Min (above, most)",
            # torch-mlir does not lower the conversion of floats to unsigned 16-bit integers.
            f"whole = Cast <to: int = {INT32}> (inside)",
            f"y = Cast <to: int = {kind.storage if kind else target}> (whole)",
        ]
    )


def _dequantize(node: Node, stored: frozenset[int]) -> str | None:
    source = node.element(0)
    lines = _scale_lines(node, "x_scale", 1)
    is_wide = source in (*_SIXTEEN, *_READ) or node.attribute("block_size", 0)
    if lines is None or (0 not in stored and not is_wide):
        return None
    value, decoded = _decoded("x", source, 0 in stored)
    lines += [*decoded, f"wide = Cast <to: int = {FLOAT}> ({value})"]
    if node.has(2):
        zero = _zero_lines(node, "x_zero_point", stored)
        if zero is None:
            return None
        lines += [*zero, "moved = Sub (wide, zero_f)"]
    else:
        lines += ["moved = Identity (wide)"]
    element = node.attribute("output_dtype", 0) or node.element(1)
    return "\n".join(
        [
            *lines,
            f"scale_f = Cast <to: int = {FLOAT}> (scale)",
            "scaled = Mul (moved, scale_f)",
            f"y = Cast <to: int = {element}> (scaled)",
        ]
    )


def _zero_lines(node: Node, name: str, stored: frozenset[int]) -> list[str] | None:
    """Lines that define `zero_f`, the zero points as f32, broadcastable to the shape of the values.
    None if they cannot be broadcast."""
    zero, decoded = _decoded(name, node.element(2), 2 in stored)
    spread = _spread(node, 2, zero, "zero")
    if spread is None:
        return None
    return [*decoded, *spread, f"zero_f = Cast <to: int = {FLOAT}> (zero)"]


def _limits(element: int) -> tuple[int, int]:
    from onnx import helper

    kind = KINDS.get(element)
    if isinstance(kind, Integers):
        return kind.least, kind.most
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(element))
    return int(limits.min), int(limits.max)


def _scale_lines(node: Node, name: str, index: int) -> list[str] | None:
    """Lines that define `scale`, the scales, broadcastable to the shape of the values. None if they
    cannot be broadcast."""
    if node.element(index) in KINDS:
        return None
    return _spread(node, index, name, "scale")


def _spread(node: Node, index: int, value: str, name: str) -> list[str] | None:
    """Lines that reshape or repeat the scales or zero points, along an axis or by blocks, so that
    they can be broadcast. None if this is not supported."""
    shape, own = node.shape(0), node.shape(index)
    if shape is None or own is None:
        return None
    if own in ((), (1,)) and len(shape) != 1:
        return [constant(f"{name}_none", []), f"{name} = Reshape ({value}, {name}_none)"]
    if own == ():
        return [f"{name} = Identity ({value})"]
    axis = node.attribute("axis", 1)
    axis += len(shape) if axis < 0 else 0
    block = node.attribute("block_size", 0)
    if axis >= len(shape) and len(own) == 1 and own[0] == 1:
        return [constant(f"{name}_none", []), f"{name} = Reshape ({value}, {name}_none)"]
    if not block and len(own) == 1:
        sizes = [-1 if place == axis else 1 for place in range(len(shape))]
        return [constant(f"{name}_c", sizes), f"{name} = Reshape ({value}, {name}_c)"]
    if not block or None in shape or None in own or len(own) != len(shape) or axis >= len(shape):
        return None
    size, parts = shape[axis], own[axis]
    if size is None or -(-size // block) != parts:
        return None
    places = [place // block for place in range(size)]
    return [
        constant(f"{name}_p", places),
        f"{name} = Gather <axis: int = {axis}> ({value}, {name}_p)",
    ]


def _decoded(name: str, element: int, is_stored: bool) -> tuple[str, list[str]]:
    """The name of the value of a tensor in a type that other operators support, and the lines that
    define it."""
    kind = KINDS.get(element) if is_stored else None
    if isinstance(kind, Floats):
        return f"{name}_v", [
            f"{name}_i = Cast <to: int = {INT64}> ({name})",
            _table(f"{name}_t", kind.values, "float"),
            f"{name}_v = Gather ({name}_t, {name}_i)",
        ]
    if element in _READ:
        return f"{name}_v", [f"{name}_v = Cast <to: int = {FLOAT}> ({name})"]
    return name, []


def _table(name: str, values: Any, element: str) -> str:
    text = ", ".join(map(str, values))
    return f"{name} = Constant <value: tensor = {element}[{len(values)}] {{{text}}}> ()"


def _encoded(
    name: str, value: str, source: int, target: int, is_saturated: bool, round_mode: str
) -> list[str]:
    """Lines that convert a value to the type `target`. `source` is the type that it had before
    `_decoded`."""
    kind = KINDS.get(target)
    if kind is None:
        return [f"{name} = Cast <to: int = {target}> ({value})"]
    if isinstance(kind, Integers):
        bits = kind.most - kind.least + 1
        return [
            f"{name}_i = Cast <to: int = {INT32}> ({value})",
            f"{name}_o = Constant <value: tensor = int32 {{{-kind.least}}}> ()",
            f"{name}_b = Constant <value: tensor = int32 {{{bits}}}> ()",
            f"{name}_a = Add ({name}_i, {name}_o)",
            f"{name}_m = Mod ({name}_a, {name}_b)",
            f"{name}_w = Sub ({name}_m, {name}_o)",
            f"{name} = Cast <to: int = {kind.storage}> ({name}_w)",
        ]
    element = "double" if source == DOUBLE else "float"
    number = DOUBLE if source == DOUBLE else FLOAT
    starts = _starts(target, element, round_mode)
    last = kind.last if is_saturated else kind.last + 1
    lines = [
        f"{name}_f = Cast <to: int = {number}> ({value})",
        f"{name}_abs = Abs ({name}_f)",
        _table(f"{name}_t", starts, element),
        f"{name}_z = Constant <value: tensor = int64 {{0}}> ()",
        # The code is found by a bitwise binary search: it is the last one whose least number is at
        # most this number.
        f"{name}_is = IsNaN ({name}_abs)",
        f"{name}_is_i = Cast <to: int = {INT64}> ({name}_is)",
        f"{name}_code_0 = Mul ({name}_is_i, {name}_z)",
    ]
    step, count = len(starts) // 2, 0
    while step:
        lines += [
            f"{name}_s{count} = Constant <value: tensor = int64 {{{step}}}> ()",
            f"{name}_try_{count} = Add ({name}_code_{count}, {name}_s{count})",
            f"{name}_at_{count} = Gather ({name}_t, {name}_try_{count})",
            f"{name}_ge_{count} = GreaterOrEqual ({name}_abs, {name}_at_{count})",
            f"{name}_code_{count + 1} = "
            f"Where ({name}_ge_{count}, {name}_try_{count}, {name}_code_{count})",
        ]
        step, count = step // 2, count + 1
    lines += [
        f"{name}_last = Constant <value: tensor = int64 {{{last}}}> ()",
        f"{name}_code = Min ({name}_code_{count}, {name}_last)",
        f"{name}_max = Constant <value: tensor = int64 {{{kind.last}}}> ()",
        f"{name}_beyond = Constant <value: tensor = int64 {{{kind.beyond}}}> ()",
        f"{name}_is_over = Greater ({name}_code, {name}_max)",
        f"{name}_finite = Where ({name}_is_over, {name}_beyond, {name}_code)",
    ]
    if kind.sign:
        lines += [
            f"{name}_zero = CastLike ({name}_z, {name}_f)",
            f"{name}_is_0 = Equal ({name}_f, {name}_zero)",
            f"{name}_inv = Reciprocal ({name}_f)",
            f"{name}_side = Where ({name}_is_0, {name}_inv, {name}_f)",
            f"{name}_neg = Less ({name}_side, {name}_zero)",
        ]
        if kind.has_one_zero:
            # A number that is rounded to 0 has no sign, either; nor does a NaN.
            lines += [
                f"{name}_some = Greater ({name}_finite, {name}_z)",
                f"{name}_few = LessOrEqual ({name}_finite, {name}_max)",
                f"{name}_both = And ({name}_some, {name}_few)",
                f"{name}_minus = And ({name}_neg, {name}_both)",
            ]
        else:
            lines += [f"{name}_minus = Identity ({name}_neg)"]
        lines += [
            f"{name}_sign = Constant <value: tensor = int64 {{{kind.sign}}}> ()",
            f"{name}_with = Add ({name}_finite, {name}_sign)",
            f"{name}_signed = Where ({name}_minus, {name}_with, {name}_finite)",
        ]
    else:
        lines += [f"{name}_signed = Identity ({name}_finite)"]
    nans = [f"{name}_no = Identity ({name}_is)"]
    if not kind.sign:
        nans = [
            f"{name}_inf = IsInf ({name}_f)",
            f"{name}_no = Or ({name}_is, {name}_inf)",
        ]
    return [
        *lines,
        *nans,
        f"{name}_nan = Constant <value: tensor = int64 {{{kind.nan}}}> ()",
        f"{name}_all = Where ({name}_no, {name}_nan, {name}_signed)",
        f"{name} = Cast <to: int = {UINT8}> ({name}_all)",
    ]


@cache
def _starts(target: int, element: str, round_mode: str) -> list[Any]:
    """For each code, the least number that is rounded to it, padded with infinities to a power of
    two. A number halfway between two is rounded to the even code."""
    kind = KINDS[target]
    assert isinstance(kind, Floats)
    dtype = np.float64 if element == "double" else np.float32
    infinite = dtype(np.inf)
    if not kind.sign:
        starts = _powers(dtype, round_mode)
    else:
        values = kind.values[: kind.last + 1]
        # The number that would follow the largest one.
        beyond = 2 * values[-1] - values[-2]
        ends = np.array([*values[1:], beyond])
        middles = ((values + ends) / 2).astype(dtype)
        starts = [dtype(0)]
        for code, middle in enumerate(middles, 1):
            starts.append(middle if code % 2 == 0 else np.nextafter(middle, infinite))
    length = 1 << (len(starts) - 1).bit_length()
    return [*starts, *[infinite] * (length - len(starts))]


def _powers(dtype: Any, round_mode: str) -> list[Any]:
    """The same for E8M0, whose codes are powers of two from 2^-127."""
    infinite = dtype(np.inf)
    powers = [dtype(2.0) ** dtype(code - 127) for code in range(255)]
    if round_mode == "down":
        return [dtype(0), *powers[1:], infinite]
    if round_mode == "nearest":
        middles = [dtype(1.5) * power for power in powers[1:]]
        return [dtype(0), np.nextafter(powers[0], infinite), *middles]
    after = [np.nextafter(power, infinite) for power in powers[1:]]
    return [dtype(0), np.nextafter(dtype(0), infinite), *after]


def _matmul(node: Node) -> str | None:
    """Lowers a quantized matmul of narrow elements in terms of the operators above."""
    elements = {node.element(index) for index in (0, 3, 7)}
    ranks = [len(node.shape(index) or ()) for index in (0, 3)]
    if not elements & set(KINDS) or min(ranks) < 1:
        return None
    # The first operand has a scale for each row, and the second one for each column.
    axes = [max(0, ranks[0] - 2), ranks[1] - 1]
    return "\n".join(
        [
            f"a_f = DequantizeLinear <axis: int = {axes[0]}> (a, a_scale, a_zero)",
            f"b_f = DequantizeLinear <axis: int = {axes[1]}> (b, b_scale, b_zero)",
            "product = MatMul (a_f, b_f)",
            "y = QuantizeLinear (product, y_scale, y_zero)",
        ]
    )


NARROW_REWRITES = (
    Rewrite(
        "QLinearMatMul", "(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero) => (y)", _matmul
    ),
)
# The rewrites for other integers that torch-mlir does not lower: 16 bits, and blocked scales.
QUANTIZED_REWRITES = _rewrites(frozenset())[2:]
