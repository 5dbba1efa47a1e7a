"""Rewrites of DFT and STFT as matmuls with matrices of sines and cosines, which are computed in
f64."""

from __future__ import annotations

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

# The most elements of a matrix of sines.
_MOST = 1 << 20
# The rank of a signal with real and imaginary parts, and the size of its last dimension.
_RANK, _COMPLEX = 3, 2


def _dft(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made:
        return None
    body = Body(node.opset)
    rank = len(given)
    if node.opset < 20 or not node.has(2):
        axis = node.attribute("axis", 1 if node.opset < 20 else -2) % rank
        return _ended(node, body, _dft_along(node, body, given, made, axis))
    constant = node.constant(2)
    if constant is not None:
        axis = int(constant.reshape(-1)[0]) % rank
        return _ended(node, body, _dft_along(node, body, given, made, axis))
    asked = body.reshape(body.cast("axis", INT64), [])
    wrapped = body("Add", asked, body.integer(rank))
    asked = body("Where", body("Less", asked, body.integer(0)), wrapped, asked)
    chosen = known = ""
    for axis in range(rank - 1):
        others = [place for place in range(rank - 1) if place != axis]
        if any(given[place] != made[place] for place in others):
            continue
        is_this = body("Equal", asked, body.integer(axis))
        value = _dft_along(node, body, given, made, axis, is_this)
        if value is None:
            continue
        chosen = body("Where", is_this, value, chosen) if chosen else value
        known = body("Or", known, is_this) if known else is_this
    if not chosen:
        return None
    body.expect(known, "the axis does not lead to the sizes of the result")
    return _ended(node, body, chosen)


def _ended(node: Node, body: Body, value: str | None) -> str | None:
    return None if value is None else body.end(y=body.cast(value, node.element(0)))


def _length(
    node: Node, body: Body, given: tuple[int, ...], made: tuple[int, ...], axis: int, chosen: str
) -> int | None:
    """The number of points of the transform. It is checked at run time if the axis is the chosen
    one."""
    if not node.has(1):
        if node.attribute("onesided", 0) and node.attribute("inverse", 0):
            return made[axis]
        return given[axis]
    constant = node.constant(1)
    if constant is not None:
        return int(constant.reshape(-1)[0])
    if node.attribute("onesided", 0) and not node.attribute("inverse", 0):
        return None
    length = made[axis]
    fits = body("Equal", body.cast("length", INT64), body.integer(length))
    if chosen:
        fits = body("Or", fits, body("Not", chosen))
    body.expect(fits, "the length does not lead to the sizes of the result")
    return length


def _dft_along(
    node: Node,
    body: Body,
    given: tuple[int, ...],
    made: tuple[int, ...],
    axis: int,
    chosen: str = "",
) -> str | None:
    """The transform along an axis. `chosen` is the value that tells at run time whether the call
    has this axis."""
    length = _length(node, body, given, made, axis, chosen)
    if length is None or given[axis] * made[axis] > _MOST:
        return None
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
    rank = len(given)
    inverse, onesided = node.attribute("inverse", 0), node.attribute("onesided", 0)
    is_real_result = bool(inverse and onesided)
    used = min(given[axis], length // 2 + 1 if is_real_result else length)
    value = body.part(body.cast("x", compute), 0, used, axis)
    # The transformed axis is the second to last, before that of the real and imaginary parts.
    order = [*(place for place in range(rank - 1) if place != axis), axis]
    value = body("Transpose", value, perm=[rank - 1, *order])
    angles = np.outer(np.arange(used), np.arange(made[axis])) % length * (2 * np.pi / length)
    cosines, sines = np.cos(angles), np.sin(angles)
    if inverse:
        cosines, sines = cosines / length, -sines / length
    if is_real_result:
        # Only half of the spectrum is given, so all points but the first and the middle one count
        # twice.
        factors = np.array([1 if 2 * k in (0, length) else 2 for k in range(used)])[:, None]
        cosines, sines = cosines * factors, sines * factors
    cosine, sine = body.numbers(cosines, compute), body.numbers(sines, compute)
    real = _part_of(body, value, 0)
    new_real = body("MatMul", real, cosine)
    new_imaginary = body("Neg", body("MatMul", real, sine))
    if given[-1] == 2:
        imaginary = _part_of(body, value, 1)
        new_real = body("Add", new_real, body("MatMul", imaginary, sine))
        new_imaginary = body("Add", new_imaginary, body("MatMul", imaginary, cosine))
    parts = [new_real] if made[-1] == 1 else [new_real, new_imaginary]
    parts = [body.unsqueeze(part, -1) for part in parts]
    joined = body("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]
    back = [order.index(place) for place in range(rank - 1)]
    return body("Transpose", joined, perm=[*back, rank - 1])


def _part_of(body: Body, value: str, index: int) -> str:
    return body.squeeze(body.part(value, index, index + 1, 0), 0)


def _stft(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made:
        return None
    if len(given) > _RANK - 1 and given[2] == _COMPLEX:
        return None
    lengths = [
        length
        for length in _frame_lengths(node, made[2])
        if length <= given[1] and length * made[2] <= _MOST
    ]
    if not lengths:
        return None
    body = Body(node.opset)
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
    signal = body.reshape(body.cast("signal", compute), [made[0], given[1]])
    step = body.reshape(body.cast("step", INT64), [])
    asked = body.reshape(body.cast("length", INT64), []) if node.has(3) else ""
    result = known = ""
    for length in lengths:
        count = body("Add", body("Div", body.integer(given[1] - length), step), body.integer(1))
        is_this = body("Equal", count, body.integer(made[1]))
        if asked:
            is_this = body("And", is_this, body("Equal", asked, body.integer(length)))
        starts = body("Mul", body.ints(range(made[1]), [made[1], 1]), step)
        places = body("Add", starts, body.ints(range(length), [1, length]))
        # If the call has another frame length, places may be out of bounds.
        places = body.clamp(places, 0, given[1] - 1)
        value = _framed(node, body, signal, places, (length, made[2]), compute)
        result = body("Where", is_this, value, result) if result else value
        known = body("Or", known, is_this) if known else is_this
    body.expect(known, "the step and the length do not lead to the sizes of the result")
    return body.end(y=body.cast(result, node.element(0)))


def _frame_lengths(node: Node, bins: int) -> list[int]:
    """The lengths of a frame that give this number of frequencies."""
    window, constant = known_input(node, 2), node.constant(3)
    if window is not None:
        return [window[0]]
    if constant is not None:
        return [int(constant.reshape(-1)[0])]
    if not node.attribute("onesided", 1):
        return [bins]
    return [2 * bins - 2, 2 * bins - 1] if bins > 1 else [1]


def _stft_of_any_size(node: Node) -> str | None:
    """The transform of signals whose number or length is known at run time alone. torch-mlir takes
    the number of frames for that of one signal."""
    given = node.shape(0)
    is_known = known_input(node, 0) is not None and known_result(node) is not None
    if given is None or is_known or (known_input(node, 2) is None and node.constant(3) is None):
        return None
    (length,) = _frame_lengths(node, 0)
    bins = length // 2 + 1 if node.attribute("onesided", 1) else length
    if given[2:] == (_COMPLEX,) or length * bins > _MOST:
        return None
    body = Body(node.opset)
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
    batch, whole = body.sizes("signal", given[:2])
    signal = body.reshape(body.cast("signal", compute), [batch, whole])
    step = body.reshape(body.cast("step", INT64), [])
    rest = body("Sub", body.whole(whole), body.integer(length))
    body.expect(body("GreaterOrEqual", rest, body.integer(0)), "a frame is longer than the signal")
    count = body("Add", body("Div", rest, step), body.integer(1))
    frames = body("Range", body.integer(0), count, body.integer(1))
    starts = body("Mul", body.unsqueeze(frames, 1), step)
    places = body("Add", starts, body.ints(range(length), [1, length]))
    result = _framed(node, body, signal, places, (length, bins), compute)
    return body.end(y=body.cast(result, node.element(0)))


def _framed(
    node: Node, body: Body, signal: str, places: str, sizes: tuple[int, int], compute: int
) -> str:
    """The transforms of the frames of a signal, whose elements are at `places`. `sizes` are the
    length of a frame and the number of frequencies."""
    length, bins = sizes
    framed = body("Gather", signal, places, axis=1)
    if node.has(2):
        framed = body("Mul", framed, body.cast("window", compute))
    angles = np.outer(np.arange(length), np.arange(bins)) % length * (2 * np.pi / length)
    parts = [
        body.unsqueeze(body("MatMul", framed, body.numbers(matrix, compute)), -1)
        for matrix in (np.cos(angles), -np.sin(angles))
    ]
    return body("Concat", *parts, axis=-1)


FOURIER_REWRITES = (
    Rewrite("DFT", "(x, length, axis) => (y)", _dft, is_last=True),
    Rewrite("STFT", "(signal, step, window, length) => (y)", _stft, is_last=True),
    Rewrite("STFT", "(signal, step, window, length) => (y)", _stft_of_any_size),
)
