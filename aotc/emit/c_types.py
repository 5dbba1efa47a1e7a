"""The C types of the arguments and results of entries, and their definitions in headers.

A program may include several generated headers: the first one that needs a type defines it.
"""

from __future__ import annotations

from collections.abc import Iterable

from aotc.manifest import Dtype, Entry, Value

# f16, bf16 and f8 are their bits, complex numbers two numbers: C11 and C++17 both have these types.
_ELEMENT_TYPES = {
    Dtype.BOOL: "uint8_t",
    Dtype.I8: "int8_t",
    Dtype.I16: "int16_t",
    Dtype.I32: "int32_t",
    Dtype.I64: "int64_t",
    Dtype.U8: "uint8_t",
    Dtype.U16: "uint16_t",
    Dtype.U32: "uint32_t",
    Dtype.U64: "uint64_t",
    Dtype.F16: "uint16_t",
    Dtype.BF16: "uint16_t",
    Dtype.F32: "float",
    Dtype.F64: "double",
    Dtype.C64: "aotc_c64",
    Dtype.C128: "aotc_c128",
    Dtype.F8E4M3FN: "uint8_t",
    Dtype.F8E5M2: "uint8_t",
}
_PARTS = {Dtype.C64: "float", Dtype.C128: "double"}
# Types that C passes by value in another way than LLVM.
NO_C_SCALAR = (Dtype.F16, Dtype.BF16, Dtype.C64, Dtype.C128, Dtype.F8E4M3FN, Dtype.F8E5M2)


def element_type(dtype: Dtype) -> str:
    return _ELEMENT_TYPES[dtype]


def scalar_type(dtype: Dtype) -> str:
    """The C type of a scalar. A bool is C's bool, so that it is 0 or 1."""
    return "bool" if dtype is Dtype.BOOL else _ELEMENT_TYPES[dtype]


def memref_type(value: Value) -> str:
    assert value.shape is not None
    return f"aotc_memref_{value.dtype.value}_{len(value.shape)}"


def result_type(value: Value) -> str:
    """The C type that a result is stored to."""
    return scalar_type(value.dtype) if value.is_scalar else memref_type(value)


def define_types(entries: Iterable[Entry]) -> list[str]:
    """The definitions of the structs that the entries need, each with a guard."""
    values = [value for entry in entries for value in (*entry.arguments, *entry.results)]
    found = {value.dtype for value in values}
    complexes = [
        _guarded(_ELEMENT_TYPES[dtype], f"  {part} real, imaginary;\n")
        for dtype, part in _PARTS.items()
        if dtype in found
    ]
    memrefs = {memref_type(value): value for value in values if value.shape is not None}
    return [*complexes, *(_memref(name, value) for name, value in memrefs.items())]


def _memref(name: str, value: Value) -> str:
    assert value.shape is not None
    rank = len(value.shape)
    arrays = f"  int64_t sizes[{rank}], strides[{rank}];\n" if rank else ""
    element = _ELEMENT_TYPES[value.dtype]
    return _guarded(
        name,
        f"  {element} *allocated, *aligned;\n  int64_t offset;\n{arrays}",
        "// MLIR's memref descriptor: element i, j is aligned[offset + i * strides[0] + j * ..].\n",
    )


def _guarded(name: str, fields: str, comment: str = "") -> str:
    guard = name.upper()
    return (
        f"#ifndef {guard}\n#define {guard}\n{comment}"
        f"typedef struct {name} {{\n{fields}}} {name};\n#endif\n"
    )
