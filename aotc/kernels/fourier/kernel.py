"""The kernel of a Fourier transform: Stockham's algorithm, of radix 8.

A block transforms some rows, and a thread eight points of one row. A pass multiplies the thread's
points by roots of unity, transforms them in registers, and exchanges points through shared memory.
Thread t of T always reads the points t, t + T, ..., so that the first pass reads the operand and
the last pass writes the result. (N. K. Govindaraju et al., High Performance Discrete Fourier
Transforms on Graphics Processors, 2008.)

Real rows are transformed as complex rows of half as many points, each a pair of adjacent numbers. A
step before or after the transform, which reads point k together with point N - k, separates them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Condition, Number, Value, compare, divide_up, minimum, unravel
from aotc.kernels.fourier.problem import POINTS, Kind, Order, Transform

# Shared memory has one word of padding after each _BANKS words, as passes write with strides that
# are powers of two, which would be in the same banks.
_BANKS = 32


class Complex(Struct, frozen=True):
    """A complex number: its real and imaginary part, as values of a float type."""

    real: Value
    imag: Value


class Place(Struct, frozen=True):
    """A thread's part of a block: `own_row`, its row in the block, and `first`, its first point.
    `row`: the row in the matrix, clamped to the last one. `is_there`: whether the row is in
    bounds."""

    own_row: Number
    first: Number
    row: Number
    is_there: Condition


class Kernel:
    """Builds the launch and the kernel. `x` and `y` are the buffers [outer, rows, points] or
    [outer, points, rows], with a further dimension of 2 for complex elements. `roots` is [length,
    2]: exp(sign 2πi k / length) for each k."""

    def __init__(self, b: Builder, transform: Transform, x: Value, y: Value, roots: Value) -> None:
        self.b, self.transform = b, transform
        self.x, self.y, self.roots = Buffer(x), Buffer(y), Buffer(roots)
        self.stride = transform.points // POINTS
        self.pitch = self._padded(transform.points) | 1

    def build(self) -> None:
        b, transform = self.b, self.transform
        dimension = 1 if transform.source is Order.POINTS_LAST else 2
        outer = b.dim(self.x.value, 0)
        self.rows = b.dim(self.x.value, dimension) if transform.rows is None else transform.rows
        tiles = divide_up(self.rows, transform.block_rows)
        part = self.pitch * transform.block_rows * transform.element_bytes
        with b.launch_unless_empty(outer * tiles, transform.threads, 2 * part) as launch:
            self.outer, tile = unravel(launch.block, tiles)
            self.first_row = tile * transform.block_rows
            self.thread = launch.thread
            shared, shape = b.shared_memory(), (transform.block_rows, self.pitch)
            self.reals = b.shared_buffer(shared, 0, shape, transform.element)
            self.imags = b.shared_buffer(shared, part, shape, transform.element)
            self._transform()

    def _transform(self) -> None:
        transform = self.transform
        place = self._place(transform.source)
        done = 1
        for number, radix in enumerate(transform.radices):
            points = self._get_points(place) if number else self._read(place)
            points = self._pass(points, place, radix, done)
            is_last = done * radix == transform.points
            is_in_place = bool(number) or transform.source is transform.target
            if is_last and is_in_place and transform.kind is not Kind.R2C:
                break
            if number:
                # Other threads may still read the previous points.
                self.b.barrier()
            self._put(points, place, radix, done)
            self.b.barrier()
            place = self._place(transform.target)
            done *= radix
        else:
            points = self._get_points(place)
        self._write(points, place)

    def _place(self, order: Order) -> Place:
        """The thread's part of the block, such that consecutive threads access consecutive elements
        in this order."""
        transform = self.transform
        rows = transform.block_rows
        if order is Order.POINTS_LAST:
            own_row, first = unravel(self.thread, self.stride)
        else:
            first, own_row = unravel(self.thread, rows)
        row = self.first_row + own_row
        if isinstance(self.rows, int) and self.rows % rows == 0:
            return Place(own_row, first, row, True)
        is_there = compare("ult", row, self.rows)
        return Place(own_row, first, minimum(row, self.rows - 1), is_there)

    def _position(self, place: Place, number: int) -> Number:
        return place.first + number * self.stride

    # --- A pass --------------------------------------------------------------------------

    def _pass(self, points: list[Complex], place: Place, radix: int, done: int) -> list[Complex]:
        """One pass: combines transforms of `done` points to transforms of `radix` times as many."""
        count = POINTS // radix
        made = list(points)
        for butterfly in range(count):
            # Point q of the butterfly is the thread's point `butterfly + q * count`.
            numbers = range(butterfly, POINTS, count)
            own = [points[number] for number in numbers]
            if done > 1:
                position = self._position(place, butterfly) % done
                own = self._turn(own, position, self.transform.length // (done * radix))
            for number, point in zip(numbers, self._small(own), strict=True):
                made[number] = point
        return made

    def _turn(self, points: list[Complex], position: Number, step: int) -> list[Complex]:
        """Multiplies point q by the root of index `position * q * step`. The roots for powers of
        two are loaded, and the others are products of two or three of these."""
        roots: list[Complex] = []
        for q in range(1, len(points)):
            least = q & -q
            if q == least:
                roots.append(self._root(position * (q * step)))
            else:
                roots.append(self._times(roots[least - 1], roots[q - least - 1]))
        turned = [self._times(point, root) for point, root in zip(points[1:], roots, strict=True)]
        return [points[0], *turned]

    def _small(self, points: Sequence[Complex]) -> list[Complex]:
        """The transform of 1, 2, 4 or 8 points, in registers."""
        count = len(points)
        if count == 1:
            return list(points)
        even, odd = self._small(points[::2]), self._small(points[1::2])
        firsts, seconds = [], []
        for k, (e, o) in enumerate(zip(even, odd, strict=True)):
            turned = self._times_known(o, k, count)
            firsts.append(self._add(e, turned))
            seconds.append(self._subtract(e, turned))
        return [*firsts, *seconds]

    def _put(self, points: list[Complex], place: Place, radix: int, done: int) -> None:
        """Stores the points of a pass to shared memory, at their positions in the row."""
        count = POINTS // radix
        for butterfly in range(count):
            group, within = unravel(self._position(place, butterfly), done)
            for q in range(radix):
                position = group * (done * radix) + within + q * done
                point = points[butterfly + q * count]
                at = [place.own_row, self._padded(position)]
                self.b.store(point.real, self.reals, at)
                self.b.store(point.imag, self.imags, at)

    def _get_points(self, place: Place) -> list[Complex]:
        return [self._get(place, self._position(place, i)) for i in range(POINTS)]

    def _get(self, place: Place, position: Number) -> Complex:
        at = [place.own_row, self._padded(position)]
        return Complex(self.b.load(self.reals, at), self.b.load(self.imags, at))

    def _padded(self, position: Number) -> Number:
        return position + position // _BANKS

    # --- Loads and stores of rows --------------------------------------------------------

    def _read(self, place: Place) -> list[Complex]:
        return [self._read_point(place, i) for i in range(POINTS)]

    def _read_point(self, place: Place, number: int) -> Complex:
        b, transform = self.b, self.transform
        position = self._position(place, number)

        def load(at: Number, part: int | None) -> Value:
            return b.load(self.x, self._at(transform.source, place, at, part))

        if transform.kind is Kind.C2C:
            return Complex(load(position, 0), load(position, 1))
        if transform.kind is Kind.R2C:
            return Complex(load(position * 2, None), load(position * 2 + 1, None))
        # x[k] + conj(x[N - k]) + i root(k) (x[k] - conj(x[N - k])).
        other = transform.points - position
        near, far = (Complex(load(at, 0), load(at, 1)) for at in (position, other))
        if number == 0:
            is_first = compare("eq", position, 0)
            zero = b.zero(transform.element)
            near, far = (
                Complex(point.real, b.select(is_first, zero, point.imag)) for point in (near, far)
            )
        far = self._conjugate(far)
        odd = self._times(self._subtract(near, far), self._root(position))
        return self._add(self._add(near, far), self._times_i(odd, 1))

    def _write(self, points: list[Complex], place: Place) -> None:
        transform = self.transform

        def store(value: Value, at: Number, part: int | None) -> None:
            self.b.store(value, self.y, self._at(transform.target, place, at, part))

        made = points
        if transform.kind is Kind.R2C:
            made = [self._half_point(place, i) for i in range(POINTS)]
        with self.b.where(place.is_there):
            for number, point in enumerate(made):
                position = self._position(place, number)
                if transform.kind is Kind.C2R:
                    store(point.real, position * 2, None)
                    store(point.imag, position * 2 + 1, None)
                else:
                    store(point.real, position, 0)
                    store(point.imag, position, 1)
            if transform.kind is Kind.R2C:
                with self.b.where(compare("eq", place.first, 0)):
                    first = self._get(place, 0)
                    last = self.b.add(first.real, self._negate(first.imag))
                    store(last, transform.points, 0)
                    store(self.b.zero(transform.element), transform.points, 1)

    def _half_point(self, place: Place, number: int) -> Complex:
        """Half of z[k] + conj(z[N - k]) - i root(k) (z[k] - conj(z[N - k])), where z, in shared
        memory, is the transform of pairs."""
        transform = self.transform
        position = self._position(place, number)
        other = (transform.points - position) % transform.points
        near, far = self._get(place, position), self._conjugate(self._get(place, other))
        odd = self._times(self._subtract(near, far), self._root(position))
        whole = self._add(self._add(near, far), self._times_i(odd, -1))
        return self._scale(whole, 0.5)

    def _at(self, order: Order, place: Place, point: Number, part: int | None) -> list[Number]:
        last = [place.row, point] if order is Order.POINTS_LAST else [point, place.row]
        return [self.outer, *last] if part is None else [self.outer, *last, part]

    def _root(self, number: Number) -> Complex:
        return Complex(self.b.load(self.roots, [number, 0]), self.b.load(self.roots, [number, 1]))

    # --- Complex numbers -----------------------------------------------------------------

    def _times(self, x: Complex, y: Complex) -> Complex:
        b = self.b
        real = b.multiply_add(x.real, y.real, self._negate(b.multiply(x.imag, y.imag)))
        imag = b.multiply_add(x.real, y.imag, b.multiply(x.imag, y.real))
        return Complex(real, imag)

    def _times_known(self, point: Complex, number: int, count: int) -> Complex:
        """The point times exp(sign 2πi number / count), whose angle is a multiple of an eighth of a
        turn."""
        sign = self.transform.sign
        eighths = 8 * number // count
        if eighths % 2:
            turned = self._times_i(point, sign)
            if eighths == 1:
                return self._scale(self._add(point, turned), math.sqrt(0.5))
            return self._scale(self._subtract(turned, point), math.sqrt(0.5))
        return self._times_i(point, sign) if eighths else point

    def _times_i(self, point: Complex, sign: int) -> Complex:
        """The point times i, or times -i if `sign` is negative."""
        if sign > 0:
            return Complex(self._negate(point.imag), point.real)
        return Complex(point.imag, self._negate(point.real))

    def _add(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.b.add(x.real, y.real), self.b.add(x.imag, y.imag))

    def _subtract(self, x: Complex, y: Complex) -> Complex:
        return self._add(x, Complex(self._negate(y.real), self._negate(y.imag)))

    def _conjugate(self, point: Complex) -> Complex:
        return Complex(point.real, self._negate(point.imag))

    def _scale(self, point: Complex, factor: float) -> Complex:
        constant = self.b.constant(factor, self.transform.element)
        return Complex(self.b.multiply(point.real, constant), self.b.multiply(point.imag, constant))

    def _negate(self, value: Value) -> Value:
        return self.b.op("arith.negf", [value], self.transform.element)
