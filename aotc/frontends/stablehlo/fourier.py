"""Expands `stablehlo.fft` to matmuls with DFT matrices and multiplications by twiddle factors.

A length n = n1 * n2 is n2 transforms of n1 points, a multiplication, and n1 transforms of n2 points
(Cooley and Tukey). A short row is one matmul. A length that has no small divisor is a convolution
of a length that is a power of two (Bluestein).

https://en.wikipedia.org/wiki/Cooley-Tukey_FFT_algorithm,
https://en.wikipedia.org/wiki/Chirp_Z-transform
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aotc import ops
from aotc.frontends.fourier_numbers import chirp_and_filter, dft_blocks, roots_of_unity

# The longest row that one matmul transforms.
_LONGEST = 64


def expand_transforms(ir: Any, module: Any) -> None:
    """Replaces the transforms of tensors of static sizes, in place."""
    for operation in ops.find(module.operation, "stablehlo.fft"):
        type_ = operation.operands[0].type
        if type_.has_static_shape and 0 not in type_.shape:
            with operation.location, ir.InsertionPoint(operation):
                result = _Transform(ir, operation).expand()
            ops.replace(operation, [result])


class _Transform:
    """One `stablehlo.fft`. Complex tensors are pairs of real ones, or, for rows of n numbers, a
    tensor [rows, 2n]: the real parts of each row, then the imaginary ones."""

    def __init__(self, ir: Any, operation: Any) -> None:
        self._ir, self._operation = ir, operation
        self._element = operation.results[0].type.element_type
        if isinstance(self._element, ir.ComplexType):
            self._element = self._element.element_type
        self._numpy = np.float64 if str(self._element) == "f64" else np.float32

    def expand(self) -> Any:
        operation = self._operation
        x, rank = operation.operands[0], operation.operands[0].type.rank
        lengths = list(self._ir.DenseI64ArrayAttr(operation.attributes["fft_length"]))
        kind = str(operation.attributes["fft_type"])
        *others, last = range(rank - len(lengths), rank)
        if "RFFT" in kind and "IRFFT" not in kind:
            pair = x, self._filled(x.type.shape, 0.0)
            pair = self._along(pair, last, -1)
            count = lengths[-1] // 2 + 1
            pair = tuple(self._part(one, last, 0, count) for one in pair)
            for dimension in others:
                pair = self._along(pair, dimension, -1)
        else:
            sign = 1 if "IFFT" in kind or "IRFFT" in kind else -1
            pair = tuple(self._make(name, [x], x.type.shape) for name in ("real", "imag"))
            for dimension in others:
                pair = self._along(pair, dimension, sign)
            if "IRFFT" in kind:
                pair = self._with_conjugates(pair, last, lengths[-1])
            pair = self._along(pair, last, sign)
            if sign == 1:
                scale = self._filled(pair[0].type.shape, 1 / math.prod(lengths))
                pair = tuple(self._binary("multiply", one, scale) for one in pair)
        if "IRFFT" in kind:
            return pair[0]
        return self._create("complex", list(pair), operation.results[0].type)

    def _with_conjugates(self, pair: Any, dimension: int, length: int) -> Any:
        """The points of a transform of real numbers, from the first half of them."""
        start = 1
        stop = 1 + length - (length // 2 + 1)
        rest = [self._part(one, dimension, start, stop) for one in pair]
        dimensions = self._ir.DenseI64ArrayAttr.get([dimension])
        mirrored = [
            self._make("reverse", [one], one.type.shape, dimensions=dimensions) for one in rest
        ]
        mirrored[1] = self._make("negate", [mirrored[1]], mirrored[1].type.shape)
        return tuple(
            self._concatenated(list(both), dimension) for both in zip(pair, mirrored, strict=True)
        )

    def _along(self, pair: Any, dimension: int, sign: int) -> Any:
        """The transform along a dimension, without normalization."""
        shape = list(pair[0].type.shape)
        order = [i for i in range(len(shape)) if i != dimension] + [dimension]
        length = shape[dimension]
        count = math.prod(shape) // length
        moved = [self._transposed(one, order) for one in pair]
        rows = [self._reshaped(one, [count, length]) for one in moved]
        done = self._rows(self._concatenated(rows, 1), length, sign)
        back = sorted(range(len(order)), key=order.__getitem__)
        return tuple(
            self._transposed(
                self._reshaped(
                    self._part(done, 1, i * length, (i + 1) * length), moved[0].type.shape
                ),
                back,
            )
            for i in range(2)
        )

    def _rows(self, x: Any, n: int, sign: int) -> Any:
        """[rows, 2n]: the transform of each row of `x`."""
        if n <= _LONGEST:
            return self._product(x, dft_blocks(n, sign).transpose(0, 2, 1, 3).reshape(2 * n, 2 * n))
        first = max((d for d in range(2, _LONGEST + 1) if n % d == 0), default=n)
        return self._convolved(x, n, sign) if first == n else self._split(x, first, n, sign)

    def _split(self, x: Any, n1: int, n: int, sign: int) -> Any:
        """Cooley and Tukey's: the input's index is j1 * n2 + j2, the result's k2 * n1 + k1."""
        rows, n2 = x.type.shape[0], n // n1
        apart = self._transposed(self._reshaped(x, [rows, 2, n1, n2]), [0, 3, 1, 2])
        short = self._rows(self._reshaped(apart, [rows * n2, 2 * n1]), n1, sign)
        twiddles = roots_of_unity(n, sign * np.outer(np.arange(n2), np.arange(n1)))
        turned = self._scaled(self._reshaped(short, [rows, n2, 2, n1]), twiddles)
        columns = self._reshaped(self._transposed(turned, [0, 3, 2, 1]), [rows * n1, 2 * n2])
        long = self._rows(columns, n2, sign)
        points = self._transposed(self._reshaped(long, [rows, n1, 2, n2]), [0, 2, 3, 1])
        return self._reshaped(points, [rows, 2 * n])

    def _convolved(self, x: Any, n: int, sign: int) -> Any:
        """Bluestein's algorithm."""
        chirp, filter_ = chirp_and_filter(n, sign)
        m = len(filter_)
        rows = x.type.shape[0]
        scaled = self._scaled(self._reshaped(x, [rows, 1, 2, n]), chirp[None])
        padded = self._padded(scaled, m)
        there = self._rows(self._reshaped(padded, [rows, 2 * m]), m, -1)
        filtered = self._scaled(self._reshaped(there, [rows, 1, 2, m]), filter_[None])
        back = self._rows(self._reshaped(filtered, [rows, 2 * m]), m, 1)
        kept = self._part(self._reshaped(back, [rows, 1, 2, m]), 3, 0, n)
        return self._reshaped(self._scaled(kept, chirp[None]), [rows, 2 * n])

    def _scaled(self, x: Any, factors: Any) -> Any:
        """[rows, a, 2, b], multiplied by the complex `factors` [a, b]."""
        rows, a, _, b = shape = list(x.type.shape)
        parts = [self._part(x, 2, i, i + 1) for i in range(2)]
        dimensions = self._ir.DenseI64ArrayAttr.get([1, 2, 3])
        real, imaginary = (
            self._make(
                "broadcast_in_dim",
                [self._constant(one[:, None, :])],
                [rows, a, 1, b],
                broadcast_dimensions=dimensions,
            )
            for one in (factors.real, factors.imag)
        )

        def sum_of(name: str, one: Any, other: Any) -> Any:
            products = [
                self._binary("multiply", x, y) for x, y in zip(parts, (one, other), strict=True)
            ]
            return self._binary(name, *products)

        both = [sum_of("subtract", real, imaginary), sum_of("add", imaginary, real)]
        made = self._concatenated(both, 2)
        assert list(made.type.shape) == shape
        return made

    def _product(self, x: Any, matrix: Any) -> Any:
        numbers = self._ir.Attribute.parse(
            "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
        )
        shape = [x.type.shape[0], matrix.shape[1]]
        return self._make(
            "dot_general", [x, self._constant(matrix)], shape, dot_dimension_numbers=numbers
        )

    def _padded(self, x: Any, length: int) -> Any:
        """[rows, 1, 2, length]: zeros behind each row."""
        *outer, own = x.type.shape
        return self._concatenated([x, self._filled([*outer, length - own], 0.0)], 3)

    def _part(self, x: Any, dimension: int, start: int, stop: int) -> Any:
        starts, limits = [0] * x.type.rank, list(x.type.shape)
        starts[dimension], limits[dimension] = start, stop
        shape = [limit - first for first, limit in zip(starts, limits, strict=True)]
        array = self._ir.DenseI64ArrayAttr.get
        return self._make(
            "slice",
            [x],
            shape,
            start_indices=array(starts),
            limit_indices=array(limits),
            strides=array([1] * len(shape)),
        )

    def _transposed(self, x: Any, order: Sequence[int]) -> Any:
        shape = [x.type.shape[i] for i in order]
        permutation = self._ir.DenseI64ArrayAttr.get(list(order))
        return self._make("transpose", [x], shape, permutation=permutation)

    def _reshaped(self, x: Any, shape: Sequence[int]) -> Any:
        return self._make("reshape", [x], shape)

    def _concatenated(self, parts: Sequence[Any], dimension: int) -> Any:
        shape = list(parts[0].type.shape)
        shape[dimension] = sum(part.type.shape[dimension] for part in parts)
        number = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(64), dimension)
        return self._make("concatenate", list(parts), shape, dimension=number)

    def _filled(self, shape: Sequence[int], number: float) -> Any:
        type_ = self._ir.RankedTensorType.get(list(shape), self._element)
        value = self._ir.FloatAttr.get(self._element, number)
        return self._create(
            "constant", [], type_, value=self._ir.DenseElementsAttr.get_splat(type_, value)
        )

    def _constant(self, numbers: Any) -> Any:
        value = self._ir.DenseElementsAttr.get(np.ascontiguousarray(numbers, self._numpy))
        return self._create("constant", [], value.type, value=value)

    def _binary(self, name: str, one: Any, other: Any) -> Any:
        return self._make(name, [one, other], one.type.shape)

    def _make(self, name: str, operands: list[Any], shape: Sequence[int], **attributes: Any) -> Any:
        type_ = self._ir.RankedTensorType.get(list(shape), self._element)
        return self._create(name, operands, type_, **attributes)

    def _create(self, name: str, operands: list[Any], type_: Any, **attributes: Any) -> Any:
        return self._ir.Operation.create(
            f"stablehlo.{name}", results=[type_], operands=operands, attributes=attributes
        ).result
