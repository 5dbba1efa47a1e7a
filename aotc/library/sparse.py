"""Conversion between sparse tensors of entries and objects of scipy.sparse or cupyx.scipy.sparse.

Neither package is imported unless a call has one of its objects, or returns such a tensor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aotc.errors import InputError
from aotc.manifest import Entry, SparseTensor, Value

_PACKAGES = {"numpy": "scipy.sparse", "cupy": "cupyx.scipy.sparse"}
_OF_SPARSE = ("scipy", "cupyx")
# NumPy's letters of the element types that scipy.sparse supports.
_ELEMENTS = "?bBhHiIlLqQfdFD"


class LevelArrays(NamedTuple):
    """A sparse result without a SciPy object: SciPy does not have its format, or is not installed.
    `arrays` maps the names of the positions, coordinates and values (`positions1`) to the arrays.
    `type` is MLIR's text."""

    shape: tuple[int, ...]
    type: str
    arrays: dict[str, Any]


def is_sparse(thing: Any) -> bool:
    """Whether it is a sparse array or matrix of SciPy or CuPy."""
    package = type(thing).__module__.partition(".")[0]
    return package in _OF_SPARSE and hasattr(thing, "format") and hasattr(thing, "tocoo")


def spread(
    entry: Entry, positional: Sequence[Any], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with each sparse object replaced by its arrays."""
    tensors = {entry.arguments[t.first].name: t for t in entry.sparse if not t.is_result}
    values = {tensor.name: tensor for tensor in tensors.values()}
    names = [value.name for value in entry.given]
    given: list[Any] = []
    for thing in positional:
        place = names[len(given)] if len(given) < len(names) else ""
        if is_sparse(thing) and place in tensors:
            given += _arrays_of(entry, tensors[place], thing)
        else:
            given.append(thing)
    spread_names: dict[str, Any] = {}
    for name, thing in named.items():
        tensor = values.get(name)
        if tensor is None or name in names:
            spread_names[name] = thing
            continue
        if not is_sparse(thing):
            raise InputError(
                f"{entry.name}: argument '{name}' is a sparse tensor, and was given "
                f"{type(thing).__name__}: give an object of scipy.sparse, or "
                f"{', '.join(f'{name}_{field}' for field in tensor.arrays)}."
            )
        arrays = _arrays_of(entry, tensor, thing)
        fields = entry.arguments[tensor.first : tensor.first + len(arrays)]
        spread_names.update((f.name, one) for f, one in zip(fields, arrays, strict=True))
    return tuple(given), spread_names


def gather(entry: Entry, results: Sequence[Any]) -> list[Any]:
    """The results of a call, with the arrays of each sparse tensor replaced by an object."""
    made: list[Any] = []
    first = {tensor.first: tensor for tensor in entry.sparse if tensor.is_result}
    place = 0
    while place < len(results):
        tensor = first.get(place)
        if tensor is None:
            made.append(results[place])
            place += 1
            continue
        made.append(_object_of(tensor, results[place : place + len(tensor.arrays)]))
        place += len(tensor.arrays)
    return made


def _arrays_of(entry: Entry, tensor: SparseTensor, thing: Any) -> list[Any]:
    """The arrays of a sparse object, for the entry. Raises InputError for another format or shape
    than the entry's, and for coordinates that do not fit its integers."""
    what = f"{entry.name}: argument '{tensor.name}'"
    wanted = _wanted(tensor)
    if tensor.format is None:
        raise InputError(
            f"{what} has levels that no format of SciPy has ({tensor.type}): give its arrays, "
            f"{', '.join(f'{tensor.name}_{field}' for field in tensor.arrays)}."
        )
    shape = tuple(thing.shape)
    if thing.format != tensor.format or (
        tensor.block is not None and thing.blocksize != tensor.block
    ):
        given = thing.format.upper()
        if thing.format == "bsr":
            given += f" with blocks of {thing.blocksize[0]}x{thing.blocksize[1]}"
        raise InputError(f"{what} must be {wanted[0]}, and is {given}: give {wanted[1]}.")
    if len(shape) != len(tensor.shape) or any(
        known not in (None, size) for size, known in zip(shape, tensor.shape, strict=True)
    ):
        sizes = "x".join("?" if size is None else str(size) for size in tensor.shape)
        raise InputError(f"{what} must have the shape {sizes}, and has {shape}.")
    fields = _FIELDS[tensor.format](tensor, thing)
    values = entry.arguments[tensor.first : tensor.first + len(tensor.arrays)]
    made: list[Any] = []
    for field, value in zip(tensor.arrays, values, strict=True):
        if field.startswith("size"):
            made.append(shape[int(field.removeprefix("size"))])
        elif field == "values":
            made.append(fields[field])
        else:
            made.append(_as_coordinates(what, value, fields[field]))
    return made


def _wanted(tensor: SparseTensor) -> tuple[str, str]:
    """The name of a tensor's format, and the expression that converts to it."""
    if tensor.block is not None:
        rows, columns = tensor.block
        blocks = f"BSR with blocks of {rows}x{columns}"
        return blocks, f"{tensor.name}.tobsr(blocksize=({rows}, {columns}))"
    format_ = tensor.format or ""
    return format_.upper(), f"{tensor.name}.to{format_}()"


def _compressed(tensor: SparseTensor, thing: Any) -> dict[str, Any]:
    """The arrays of CSR, CSC or BSR. If coordinates are unordered or repeated, which the tensor's
    type excludes, they are those of a sorted copy."""
    if not thing.has_canonical_format:
        thing = thing.copy()
        thing.sum_duplicates()
    count = thing.indptr[-1]
    values = thing.data[:count]
    return {
        "positions1": thing.indptr,
        "coordinates1": thing.indices[:count],
        "values": values.reshape(-1),
    }


def _coordinates(tensor: SparseTensor, thing: Any) -> dict[str, Any]:
    """The arrays of COO, in the order of the levels, with duplicates summed."""
    numpy = importlib.import_module(type(thing.data).__module__.partition(".")[0])
    coords = thing.coords if hasattr(thing, "coords") else (thing.row, thing.col)
    levels = [coords[dimension] for dimension in tensor.order]
    values = thing.data
    order = numpy.lexsort(numpy.stack(levels[::-1]))
    levels = [level[order] for level in levels]
    is_new = numpy.ones(len(order), bool)
    is_new[1:] = sum(level[1:] != level[:-1] for level in levels)
    values = values[order]
    if not is_new.all():
        (starts,) = numpy.nonzero(is_new)
        values = numpy.add.reduceat(values, starts, dtype=values.dtype)
        levels = [level[starts] for level in levels]
    arrays = {f"coordinates{i}": level for i, level in enumerate(levels)}
    return {"positions0": numpy.array([0, len(values)]), **arrays, "values": values}


_FIELDS: dict[str, Callable[[SparseTensor, Any], dict[str, Any]]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _compressed,
    "coo": _coordinates,
}


def _as_coordinates(what: str, value: Value, array: Any) -> Any:
    """Positions or coordinates as integers of the entry's width. (SciPy chooses its own width.)"""
    bits = 8 * value.dtype.bytes
    if array.dtype.itemsize == value.dtype.bytes:
        return array
    # All are unsigned, as in MLIR.
    largest = int(array.max()) if array.size else 0
    if largest >> bits:
        raise InputError(f"{what}: {largest} has more than the {bits} bits of its indices.")
    return array.astype(f"u{value.dtype.bytes}")


def _object_of(tensor: SparseTensor, results: Sequence[Any]) -> Any:
    arrays = dict(zip(tensor.arrays, results, strict=True))
    shape = tuple(
        int(arrays.pop(f"size{i}")) if size is None else size for i, size in enumerate(tensor.shape)
    )
    values = arrays["values"]
    package = _package_of(values)
    if package is None or tensor.format is None:
        return LevelArrays(shape, tensor.type, arrays)
    if tensor.format == "coo":
        levels = [arrays[f"coordinates{i}"] for i in range(len(tensor.order))]
        coords = tuple(levels[tensor.order.index(d)] for d in range(len(levels)))
        return _class_of(package, "coo")((values, coords), shape=shape)
    if tensor.block is not None:
        values = values.reshape(-1, *tensor.block)
    parts = (values, arrays["coordinates1"], arrays["positions1"])
    return _class_of(package, tensor.format)(parts, shape=shape)


def _package_of(values: Any) -> Any:
    """The sparse package for such values; None if there is none."""
    name = _PACKAGES.get(type(values).__module__.partition(".")[0])
    if name is None or values.dtype.char not in _ELEMENTS:
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _class_of(package: Any, format_: str) -> Any:
    """The class of a format: SciPy's arrays; CuPy only has matrices."""
    return getattr(package, f"{format_}_array", None) or getattr(package, f"{format_}_matrix")
