"""The ctypes types of an entry's values: scalars, memref descriptors, results."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import struct
from typing import Any

from aotc.errors import InputError
from aotc.library.arrays import is_masked
from aotc.manifest import Dtype, Value

# As in emit/c_types.py: f16, bf16 and f8 are their bits.
_C_TYPES: dict[Dtype, Any] = {
    Dtype.BOOL: ctypes.c_bool,
    Dtype.I8: ctypes.c_int8,
    Dtype.I16: ctypes.c_int16,
    Dtype.I32: ctypes.c_int32,
    Dtype.I64: ctypes.c_int64,
    Dtype.U8: ctypes.c_uint8,
    Dtype.U16: ctypes.c_uint16,
    Dtype.U32: ctypes.c_uint32,
    Dtype.U64: ctypes.c_uint64,
    Dtype.F16: ctypes.c_uint16,
    Dtype.BF16: ctypes.c_uint16,
    Dtype.F32: ctypes.c_float,
    Dtype.F64: ctypes.c_double,
    Dtype.F8E4M3FN: ctypes.c_uint8,
    Dtype.F8E5M2: ctypes.c_uint8,
}
_COMPLEX_PARTS = {Dtype.C64: ctypes.c_float, Dtype.C128: ctypes.c_double}


@functools.cache
def scalar_type(dtype: Dtype) -> Any:
    """The ctypes type of a scalar."""
    if dtype in _C_TYPES:
        return _C_TYPES[dtype]
    part = _COMPLEX_PARTS[dtype]

    class Complex(ctypes.Structure):
        _fields_ = (("real", part), ("imaginary", part))

    return Complex


@functools.cache
def memref_type(rank: int) -> Any:
    """MLIR's memref descriptor for a rank."""
    sizes = (("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank))

    class Memref(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            *(sizes if rank else ()),
        )

    return Memref


def value_type(value: Value) -> Any:
    """The ctypes type of an argument or a result."""
    return scalar_type(value.dtype) if value.shape is None else memref_type(len(value.shape))


def to_scalar(value: Value, number: Any) -> Any:
    """Converts a Python number to the C function's argument. Raises InputError for any other
    value, and for a number that does not fit."""
    type_ = scalar_type(value.dtype)
    try:
        if type(number) not in (int, float, bool):
            _check_number(value, number)
        if value.dtype is Dtype.F16:
            return type_(struct.unpack("<H", struct.pack("<e", float(number)))[0])
        if value.dtype is Dtype.BF16:
            real = float(number)
            bits = _bfloat_bits(real)
            _check_finite(value, real, from_scalar(value, bits))
            return type_(bits)
        if value.dtype in (Dtype.F32, Dtype.F64):
            real = float(number)
            made = type_(real)
            _check_finite(value, real, made.value)
            return made
        if value.dtype in _COMPLEX_PARTS:
            whole = complex(number)
            pair = type_(whole.real, whole.imag)
            _check_finite(value, whole.real, pair.real)
            _check_finite(value, whole.imag, pair.imaginary)
            return pair
        return _to_integer(value, type_, number)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(f"'{value.name}' ({value.type}) cannot be {number!r}: {error}.") from None


def _check_number(value: Value, number: Any) -> None:
    """Refuses what Python's conversions would accept: text and, of NumPy, masked elements and the
    real part of a complex number."""
    kind = getattr(getattr(number, "dtype", None), "kind", "")
    if isinstance(number, (str, bytes, bytearray, memoryview)) or kind in ("S", "U"):
        raise TypeError("expected a number")
    if is_masked(number):
        raise ValueError("it is masked")
    if kind == "c" and value.dtype not in _COMPLEX_PARTS:
        raise TypeError("expected a real number")


def _check_finite(value: Value, number: float, made: float) -> None:
    """Refuses a number that ctypes would silently round to infinity."""
    if math.isinf(made) and not math.isinf(number):
        raise OverflowError(f"it does not fit {value.dtype.value}")


def _to_integer(value: Value, type_: Any, number: Any) -> Any:
    # A boolean of NumPy or PyTorch has no `__index__`.
    is_flag = str(getattr(number, "dtype", "")) in ("bool", "torch.bool") and number.shape == ()
    whole = int(bool(number)) if is_flag else operator.index(number)
    if value.dtype is Dtype.BOOL:
        if whole not in (0, 1):
            raise ValueError("expected True or False")
        return type_(bool(whole))
    made = type_(whole)
    # The number may be in the signed or in the unsigned range of the type.
    if made.value != whole and whole % (1 << (8 * value.dtype.bytes)) != whole:
        raise OverflowError(f"it does not fit {value.dtype.value}")
    return made


def _bfloat_bits(number: float) -> int:
    """The upper half of a float, rounded to nearest, ties to even."""
    bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    if math.isnan(number):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF


def from_scalar(value: Value, content: Any) -> Any:
    """Converts a C function's result to a Python number."""
    if value.dtype in _COMPLEX_PARTS:
        return complex(content.real, content.imaginary)
    if value.dtype is Dtype.F16:
        return struct.unpack("<e", struct.pack("<H", content))[0]
    if value.dtype is Dtype.BF16:
        return struct.unpack("<f", struct.pack("<I", content << 16))[0]
    return content
