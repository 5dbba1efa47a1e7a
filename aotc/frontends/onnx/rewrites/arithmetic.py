"""Rewrites of arithmetic: unsigned 64-bit integers, determinants, MatMul of a vector and a batch,
Range."""

from __future__ import annotations

from itertools import combinations

from aotc.frontends.onnx.elements import BFLOAT16, DOUBLE, FLOAT, FLOAT16, FLOATS, INT64, UINT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, scalar

# The rank of a matrix.
_MATRIX = 2
# The first opset in which the axes of Squeeze and Unsqueeze are an input.
_FIRST_AXES_INPUT = 13
# The first opset that has BitwiseAnd.
_FIRST_BITWISE_AND = 18
# The first opset in which the axes of ReduceProd are an input.
_FIRST_PRODUCT_INPUT = 18
# The most rows of a matrix whose determinant is computed by minors.
_LARGEST_DETERMINANT = 6


def _vector_product(node: Node) -> str | None:
    """torch-mlir does not lower the product of a vector and a batch of matrices."""
    left, right = node.shape(0), node.shape(1)
    if left is None or right is None or node.opset < _FIRST_AXES_INPUT:
        return None
    ranks = len(left), len(right)
    if min(ranks) != 1 or max(ranks) <= _MATRIX:
        return None
    body = Body(node.opset)
    one, other, axis = "a", "b", -2
    if len(left) == 1:
        one = body.unsqueeze("a", 0)
    else:
        other, axis = body.unsqueeze("b", 1), -1
    made = body("MatMul", one, other)
    return body.end(y=body.squeeze(made, axis))


def _range(node: Node) -> str | None:
    """torch-mlir does not return an empty tensor if the step leads away from the limit."""
    if all(node.constant(index) is not None for index in range(3)):
        return None
    return "\n".join(
        [
            scalar("zero", 0, node.element(0)),
            "is_up = Less (start, limit)",
            "steps_up = Less (zero, delta)",
            "is_down = Less (limit, start)",
            "steps_down = Less (delta, zero)",
            "goes_up = And (is_up, steps_up)",
            "goes_down = And (is_down, steps_down)",
            "goes = Or (goes_up, goes_down)",
            "end = Where (goes, limit, start)",
            "y = Range (start, end, delta)",
        ]
    )


def _narrow_range(node: Node) -> str | None:
    """Computes a Range of 16-bit floats in f32."""
    made = known_result(node)
    if made is None or node.element(0) not in (FLOAT16, BFLOAT16):
        return None
    body = Body(node.opset)
    start, limit, delta = (body.cast(name, FLOAT) for name in ("start", "limit", "delta"))
    count = body("Ceil", body("Div", body("Sub", limit, start), delta))
    size = body("Max", count, body.numbers(0.0))
    body.expect(
        body("Equal", size, body.numbers(float(made[0]))),
        "the limits do not lead to the result's size",
    )
    steps = body.numbers([float(step) for step in range(made[0])])
    return body.end(y=body.cast(body("Add", start, body("Mul", steps, delta)), node.element(0)))


def _is_uint64(node: Node) -> bool:
    return node.element(0) == UINT64


def _quotient(body: Body) -> tuple[str, str]:
    """The quotient and the remainder of `a` and `b`, unsigned 64-bit integers, as signed integers
    with the same bits."""
    one, two, zero = (body.integer(value) for value in (1, 2, 0))
    a, b = body.cast("a", INT64), body.cast("b", INT64)
    # Half of the dividend is not negative as a signed integer, even if the dividend is.
    half = body("Div", body("Sub", a, body("Mod", a, two)), two)
    quarter = body.integer(1 << 62)
    is_large = body("Less", a, zero)
    half = body("Where", is_large, body("Add", body("Add", half, quarter), quarter), half)
    is_huge = body("Less", b, zero)
    # A divisor of 0 is kept, and is an error of the call.
    divisor = body("Where", is_huge, one, b)
    quotient = body("Mul", body("Div", half, divisor), two)
    rest = body("Sub", a, body("Mul", quotient, divisor))
    is_more = body("Or", body("Less", rest, zero), body("GreaterOrEqual", rest, divisor))
    quotient = body("Add", quotient, body.cast(is_more, INT64))
    # The quotient by a divisor with the highest bit set is 0 or 1.
    is_once = body("And", is_large, body("GreaterOrEqual", a, b))
    quotient = body("Where", is_huge, body.cast(is_once, INT64), quotient)
    return quotient, body("Sub", a, body("Mul", quotient, b))


def _divided(node: Node) -> str | None:
    if not _is_uint64(node):
        return None
    body = Body(node.opset)
    return body.end(y=body.cast(_quotient(body)[0], UINT64))


def _remainder(node: Node) -> str | None:
    if not _is_uint64(node):
        return None
    body = Body(node.opset)
    return body.end(y=body.cast(_quotient(body)[1], UINT64))


def _signed_remainder(node: Node) -> str | None:
    """The remainder of floats with the sign of the dividend: torch-mlir's a - trunc(a / b) * b has
    rounding errors, and is NaN where b is infinite."""
    if not node.attribute("fmod") or node.element(0) not in FLOATS:
        return None
    body = Body(node.opset)
    made = body("Mod", body("Abs", "a"), body("Abs", "b"))
    is_negative = body("Less", "a", body.numbers(0.0, node.element(0)))
    return body.end(y=body("Where", is_negative, body("Neg", made), made))


def _shifted(node: Node) -> str | None:
    """torch-mlir's right shift is that of signed integers, which copies the sign bit."""
    if not _is_uint64(node) or node.opset < _FIRST_BITWISE_AND:
        return None
    body = Body(node.opset)
    bits = body.cast("bits", INT64)
    direction = node.attribute("direction")
    made = body("BitShift", body.cast("x", INT64), bits, direction=direction)
    if direction == "RIGHT":
        width = body.integer(64)
        limit = body("BitShift", body.integer(1), body("Sub", width, bits), direction="LEFT")
        made = body("BitwiseAnd", made, body("Sub", limit, body.integer(1)))
        none = body("Or", body("Less", bits, body.integer(0)), body("GreaterOrEqual", bits, width))
        made = body("Where", none, body.integer(0), made)
    return body.end(y=body.cast(made, UINT64))


def _power(node: Node) -> str | None:
    """Computes powers of integers, and those with an unsigned 64-bit exponent, in f64."""
    if node.element(0) not in FLOATS and node.element(1) != UINT64:
        body = Body(node.opset)
        made = body("Pow", body.cast("a", DOUBLE), body.cast("b", DOUBLE))
        return body.end(y=body.cast(made, node.element(0)))
    if node.element(1) != UINT64 or node.element(0) not in FLOATS:
        return None
    body = Body(node.opset)
    exponent = body.cast("b", INT64)
    wide = body.cast(exponent, DOUBLE)
    above = body("Add", wide, body.numbers(2.0**64, DOUBLE))
    wide = body("Where", body("Less", exponent, body.integer(0)), above, wide)
    made = body("Pow", body.cast("a", DOUBLE), wide)
    return body.end(y=body.cast(made, node.element(0)))


def _determinant(node: Node) -> str | None:
    """Computes determinants of small matrices by minors, in f64."""
    given = known_input(node, 0)
    if given is None or not 1 <= given[-1] <= _LARGEST_DETERMINANT:
        return None
    body = Body(node.opset)
    size, value = given[-1], body.cast("x", DOUBLE)
    rank = len(given)
    columns = [body.part(value, place, place + 1, rank - 1) for place in range(size)]
    element = {
        (i, j): body.part(columns[j], i, i + 1, rank - 2) for i in range(size) for j in range(size)
    }
    # The minors of the last rows, by their sets of columns.
    minors: dict[tuple[int, ...], str] = {(j,): element[size - 1, j] for j in range(size)}
    for count in range(2, size + 1):
        row = size - count
        larger = {}
        for chosen in combinations(range(size), count):
            total = ""
            for place, j in enumerate(chosen):
                rest = tuple(other for other in chosen if other != j)
                term = body("Mul", element[row, j], minors[rest])
                operator = "Sub" if place % 2 else "Add"
                total = body(operator, total, term) if total else term
            larger[chosen] = total
        minors = larger
    made = body.reshape(minors[tuple(range(size))], given[:-2])
    return body.end(y=body.cast(made, node.element(0)))


def _scalar_einsum(node: Node) -> str | None:
    """Lowers an Einsum of scalars, which is their product."""
    if any(node.shape(place) != () for place in range(len(node.proto.input))):
        return None
    body = Body(node.opset)
    made = "i0"
    for place in range(1, len(node.proto.input)):
        made = body("Mul", made, f"i{place}")
    return body.end(y=made)


def _product(node: Node) -> str | None:
    """Of dimensions of known sizes beside unknown ones: half of a dimension times the other half,
    until one element is left."""
    given = node.shape(0)
    axes = node.attribute("axes", None) if node.opset < _FIRST_PRODUCT_INPUT else node.constant(1)
    if given is None or (axes is None and node.has(1)):
        return None
    is_none = axes is None or len(axes) == 0
    chosen = range(len(given)) if is_none else [int(axis) % len(given) for axis in axes]
    if is_none and node.attribute("noop_with_empty_axes", 0):
        chosen = []
    body, made = Body(node.opset), "x"
    for axis in chosen:
        size = given[axis]
        if not size:
            return None
        while size > 1:
            half = size // 2
            parts = [body.part(made, start, start + half, axis) for start in (0, half)]
            product = body("Mul", *parts)
            if size % 2:
                rest = body.part(made, size - 1, size, axis)
                product = body("Concat", product, rest, axis=axis)
            made, size = product, half + size % 2
    if not node.attribute("keepdims", 1):
        for axis in sorted(chosen, reverse=True):
            made = body.squeeze(made, axis)
    return body.end(y=made)


ARITHMETIC_REWRITES = (
    Rewrite("BitShift", "(x, bits) => (y)", _shifted, is_last=True),
    Rewrite("Det", "(x) => (y)", _determinant, is_last=True),
    Rewrite("Div", "(a, b) => (y)", _divided, is_last=True),
    Rewrite("Einsum", "(***) => (y)", _scalar_einsum, is_last=True),
    Rewrite("Mod", "(a, b) => (y)", _signed_remainder),
    Rewrite("Mod", "(a, b) => (y)", _remainder, is_last=True),
    Rewrite("Pow", "(a, b) => (y)", _power, is_last=True),
    Rewrite("MatMul", "(a, b) => (y)", _vector_product, is_last=True),
    Rewrite("ReduceProd", "(x, axes) => (y)", _product, is_last=True),
    Rewrite("Range", "(start, limit, delta) => (y)", _narrow_range, is_last=True),
    Rewrite("Range", "(start, limit, delta) => (y)", _range),
)
