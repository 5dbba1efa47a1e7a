"""The operations on f32 and f64, and the conversions between all types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from property.arithmetic import DTYPES, Array, Table, unsigned
from property.program import FLOATS

# What a NaN is replaced by where its bits would be seen.
_NO_NAN = 77.0
# What is converted to an integer is clamped to this; it fits into i32, and is exact in f32.
_LARGEST = float(2**24)


def add_floats(table: Table) -> None:
    for type_ in FLOATS:
        _add_floats(table, type_)
    _add_conversions(table)


def _add_floats(table: Table, t: str) -> None:
    def binary(name: str, evaluate: Callable[..., Array]) -> None:
        table.add(f"{name} {t}", t, (t, t), f"arith.{name} {{0}}, {{1}} : {t}", evaluate)

    def unary(name: str, evaluate: Callable[[Array], Array], dialect: str = "math") -> None:
        table.add(f"{name} {t}", t, (t,), f"{dialect}.{name} {{0}} : {t}", evaluate)

    binary("addf", np.add)
    binary("subf", np.subtract)
    binary("mulf", np.multiply)
    binary("divf", np.divide)
    binary("minimumf", _minimum)
    binary("maximumf", _maximum)
    for name, evaluate in (("minnumf", np.fmin), ("maxnumf", np.fmax)):
        # Which zero of two it is, is open: adding 0 makes both the positive one.
        table.add(
            f"{name} {t}",
            t,
            (t, t),
            (
                f"$zero = arith.constant 0.0 : {t}",
                f"$found = arith.{name} {{0}}, {{1}} : {t}",
                f"arith.addf $found, $zero : {t}",
            ),
            lambda a, b, evaluate=evaluate: evaluate(a, b) + DTYPES[t](0),
        )
    unary("negf", np.negative, "arith")
    unary("absf", np.abs)
    unary("sqrt", np.sqrt)
    unary("floor", np.floor)
    unary("ceil", np.ceil)
    unary("trunc", np.trunc)
    unary("roundeven", np.rint)
    table.add(f"select {t}", t, ("i1", t, t), f"arith.select {{0}}, {{1}}, {{2}} : {t}", np.where)
    for name, compare in _FLOAT_COMPARISONS.items():
        table.add(
            f"cmpf {name} {t}", "i1", (t, t), f"arith.cmpf {name}, {{0}}, {{1}} : {t}", compare
        )

    no_nan = (
        f"$nan = arith.cmpf uno, {{0}}, {{0}} : {t}",
        f"$instead = arith.constant {_NO_NAN} : {t}",
        f"$number = arith.select $nan, $instead, {{0}} : {t}",
    )
    for to in ("i8", "i32", "i64"):
        largest = min(_LARGEST, 127.0) if to == "i8" else _LARGEST
        for name, smallest in (("fptosi", -largest), ("fptoui", 0.0)):
            table.add(
                f"{name} {t} to {to}",
                to,
                (t,),
                (
                    *no_nan,
                    f"$largest = arith.constant {largest} : {t}",
                    f"$smallest = arith.constant {smallest} : {t}",
                    f"$below = arith.minimumf $number, $largest : {t}",
                    f"$within = arith.maximumf $below, $smallest : {t}",
                    f"arith.{name} $within : {t} to {to}",
                ),
                lambda a, to=to, smallest=smallest, largest=largest: np.trunc(
                    np.clip(without_nan(a), smallest, largest)
                ).astype(DTYPES[to]),
            )
            back = name.replace("fpto", "").replace("i", "itofp")
            from_unsigned = name == "fptoui"
            table.add(
                f"{back} {to} to {t}",
                t,
                (to,),
                f"arith.{back} {{0}} : {to} to {t}",
                lambda a, to=to, from_unsigned=from_unsigned: (
                    unsigned(a, to) if from_unsigned else a
                ).astype(DTYPES[t]),
            )
    bits = "i32" if t == "f32" else "i64"
    table.add(
        f"bits of {t}",
        bits,
        (t,),
        (*no_nan, f"arith.bitcast $number : {t} to {bits}"),
        lambda a: without_nan(a).view(DTYPES[bits]),
    )


def without_nan(array: Array) -> Array:
    """A NaN's bits depend on the machine; this number's do not."""
    return np.where(np.isnan(array), array.dtype.type(_NO_NAN), array)


def _minimum(a: Array, b: Array) -> Array:
    are_zero = (a == 0) & (b == 0)
    return np.where(are_zero, np.where(np.signbit(a), a, b), np.minimum(a, b))


def _maximum(a: Array, b: Array) -> Array:
    are_zero = (a == 0) & (b == 0)
    return np.where(are_zero, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


_FLOAT_COMPARISONS: dict[str, Callable[..., Array]] = {
    "oeq": np.equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "one": lambda a, b: (a != b) & ~_unordered(a, b),
    "ord": lambda a, b: ~_unordered(a, b),
    "ueq": lambda a, b: (a == b) | _unordered(a, b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": np.not_equal,
    "uno": _unordered,
}


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of f32, rounded once."""
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 48 bits
    wide = c.astype(np.float64)
    total = product + wide
    # Rounded to odd: where the sum is not exact its last bit is set, so that rounding it to f32
    # sees on which side of the middle it is.
    rest = total - product
    error = (product - (total - rest)) + (wide - rest)
    is_odd = (total.view(np.int64) & 1) != 0
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    toward = np.where(error > 0, np.inf, -np.inf)
    odd = np.where(inexact & ~is_odd, np.nextafter(total, toward), total)
    return odd.astype(np.float32)


def _add_conversions(table: Table) -> None:
    for narrow, wide in (("i8", "i32"), ("i8", "i64"), ("i32", "i64")):
        for name in ("extsi", "extui"):
            table.add(
                f"{name} {narrow} to {wide}",
                wide,
                (narrow,),
                f"arith.{name} {{0}} : {narrow} to {wide}",
                lambda a, name=name, narrow=narrow, wide=wide: (
                    unsigned(a, narrow) if name == "extui" else a
                ).astype(DTYPES[wide]),
            )
        table.add(
            f"trunci {wide} to {narrow}",
            narrow,
            (wide,),
            f"arith.trunci {{0}} : {wide} to {narrow}",
            lambda a, narrow=narrow: a.astype(DTYPES[narrow]),
        )
    for t in ("i8", "i32", "i64"):
        table.add(
            f"extui i1 to {t}",
            t,
            ("i1",),
            f"arith.extui {{0}} : i1 to {t}",
            lambda a, t=t: a.astype(DTYPES[t]),
        )
        table.add(
            f"extsi i1 to {t}",
            t,
            ("i1",),
            f"arith.extsi {{0}} : i1 to {t}",
            lambda a, t=t: -a.astype(DTYPES[t]),
        )
        table.add(
            f"trunci {t} to i1",
            "i1",
            (t,),
            f"arith.trunci {{0}} : {t} to i1",
            lambda a: (a & 1).astype(np.bool_),
        )
        table.add(
            f"index_cast {t} to index",
            "index",
            (t,),
            f"arith.index_cast {{0}} : {t} to index",
            lambda a: a.astype(np.int64),
        )
        table.add(
            f"index_castui {t} to index",
            "index",
            (t,),
            f"arith.index_castui {{0}} : {t} to index",
            lambda a, t=t: unsigned(a, t).astype(np.int64),
        )
        table.add(
            f"index_cast index to {t}",
            t,
            ("index",),
            f"arith.index_cast {{0}} : index to {t}",
            lambda a, t=t: a.astype(DTYPES[t]),
        )
    table.add(
        "extf f32 to f64",
        "f64",
        ("f32",),
        "arith.extf {0} : f32 to f64",
        lambda a: a.astype(np.float64),
    )
    table.add(
        "truncf f64 to f32",
        "f32",
        ("f64",),
        "arith.truncf {0} : f64 to f32",
        lambda a: a.astype(np.float32),
    )
    table.add("fma f32", "f32", ("f32",) * 3, "math.fma {0}, {1}, {2} : f32", _fused)
