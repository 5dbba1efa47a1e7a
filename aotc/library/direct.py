"""The fast path of a call: entries called by pointers alone.

It is for arrays that are exactly of the entry's types, in row-major order, so that nothing is
converted, and only the results that the entry allocates are described. All arrays are in host
memory; or, for modules of PyTorch, on the current GPU, where the call is enqueued on the current
stream.

A call of a small model takes a few microseconds, as would a complete check of its arguments. All
other cases, including errors, are left to the general path.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aotc.library.allocators import Allocator
from aotc.library.arrays import TORCH_DTYPES, TYPE_STRINGS
from aotc.library.descriptors import memref_type, to_scalar, value_type
from aotc.library.frameworks import Framework, NumPy, Torch
from aotc.library.outputs import MADE
from aotc.library.results import Owner, Place, give_back
from aotc.manifest import Entry, Memory, Value

_Shape = tuple[int | None, ...]


class _Package(NamedTuple):
    """The functions of a package of arrays.

    `address` is the address of an array's elements, or None if the array does not have the type and
    shape, or cannot be used directly. `framework` makes arrays of host memory that the entry
    returns. On a GPU, `stream` is the stream on which the call is enqueued, and `allocator` is the
    allocator of an array's device."""

    dtype: Callable[[Value], Any]
    address: Callable[[Any, Any, _Shape, bool], int | None]
    empty: Callable[[_Shape, Any], Any]
    framework: Framework
    stream: Callable[[], int] | None = None
    allocator: Callable[[Any], Allocator] | None = None


class _Parameter(NamedTuple):
    value: Value
    dtype: Any
    shape: _Shape | None
    dynamic: tuple[int, ...]  # the dimensions whose sizes are arguments of the C function
    is_written: bool
    is_result: bool


class Direct:
    """The calls of one entry with arrays of one package."""

    def __init__(self, call: Any, entry: Entry, package: _Package, library: Owner) -> None:
        """`call` is the entry's C function that takes pointers."""
        self._call = call
        self._package = package
        self._library = library
        self._allocates = entry.workspace_bytes != 0
        # An argument that is an array of the package.
        self._array = next(
            i for i, value in enumerate(entry.given) if not value.is_scalar and value.result is None
        )
        self._results = [(value, memref_type(len(value.shape or ()))) for value in entry.results]
        self._place = Place(is_on_device=False, stream=None, copy=library.copy_bytes)
        self._parameters = [
            _Parameter(
                value,
                None if value.is_scalar else package.dtype(value),
                None if value.shape is None else tuple(value.shape),
                _dynamic(value),
                value.is_written,
                value.result is not None,
            )
            for value in entry.given
        ]

    def __call__(self, state: Sequence[Any], given: Sequence[Any]) -> tuple[int, list[Any]] | None:
        """Calls the entry; returns the status, and the results in order. None means that it was not
        called, because the arguments need the general path."""
        arguments: list[Any] = [*state]
        made: list[tuple[int, Any]] = []
        if not self._describe(given, arguments, made):
            return None
        returned = [(value, type_()) for value, type_ in self._results]
        for _, memref in returned:
            arguments.append(ctypes.byref(memref))
        _, _, _, framework, current, allocator = self._package
        stream = None if current is None else current()
        if stream is not None:
            arguments.append(stream)
        status: int
        if allocator is None or not self._allocates:
            status = self._call(*arguments)
        else:
            with self._library.allocators.given(allocator(given[self._array]), stream):
                status = self._call(*arguments)
        if status != 0:
            return status, []
        for value, memref in returned:
            result = give_back(value, memref, (), self._library, self._place, framework.adopted)
            made.append((value.result or 0, result))
        if len(made) > 1:
            made.sort(key=lambda item: item[0])
        return status, [thing for _, thing in made]

    def _describe(
        self, given: Sequence[Any], arguments: list[Any], made: list[tuple[int, Any]]
    ) -> bool:
        """Appends the C function's arguments, and the results that are made for it. False if an
        argument needs the general path."""
        _, address, empty, *_ = self._package
        for (value, dtype, shape, dynamic, is_written, is_result), thing in zip(
            self._parameters, given, strict=True
        ):
            if shape is None:
                if type(thing) not in (int, float):
                    return False
                arguments.append(to_scalar(value, thing))
                continue
            if is_result:
                if thing is not MADE:
                    return False
                thing = empty(shape, dtype)
                made.append((value.result or 0, thing))
            place = address(thing, dtype, shape, is_written)
            if place is None:
                return False
            arguments.append(place)
            for i in dynamic:
                arguments.append(thing.shape[i])
        return True


def direct_call(library: Any, entry: Entry, class_: type, *, is_enqueued: bool) -> Direct | None:
    """The fast path for calls whose first array has this class, in host memory or enqueued on the
    GPU's current stream. None if the entry or the package always needs the general path."""
    package = _PACKAGES.get((class_.__module__, class_.__name__, is_enqueued))
    name = "async" if is_enqueued else "call"
    if package is None or name not in entry.functions:
        return None
    if not all(map(_is_simple, entry.given)) or (entry.results and is_enqueued):
        return None
    if not all(map(_is_adopted, entry.results)):
        return None
    call = library.function(entry.functions[name])
    types: list[Any] = [ctypes.c_void_p] * (entry.state is not None)
    for value in entry.given:
        types.append(value_type(value) if value.is_scalar else ctypes.c_void_p)
        types += [ctypes.c_int64] * len(_dynamic(value))
    call.argtypes = [*types, *[ctypes.c_void_p] * (len(entry.results) + is_enqueued)]
    return Direct(call, entry, package(), library)


def _dynamic(value: Value) -> tuple[int, ...]:
    return tuple(i for i, size in enumerate(value.shape or ()) if size is None)


def _is_simple(value: Value) -> bool:
    """Whether an argument is described by its pointer and its sizes: no static size is 0, and it is
    contiguous in row-major order. An array that is made for a result has static sizes."""
    return value.shape is None or (
        value.strides is None
        and not value.offset
        and 0 not in value.shape
        and (value.result is None or None not in value.shape)
    )


def _is_adopted(value: Value) -> bool:
    """Whether a result is memory that the caller owns, on the host if the arguments are there."""
    return (
        value.shape is not None
        and value.is_owned
        and value.aliases is None
        and value.memory is not Memory.DEVICE
    )


def _fits(shape: tuple[int, ...], expected: _Shape) -> bool:
    """Whether an array has a shape. Arrays without elements take the general path."""
    if shape == expected:
        return True
    if None not in expected or len(shape) != len(expected) or 0 in shape:
        return False
    return all(known in (None, size) for size, known in zip(shape, expected, strict=True))


def _torch() -> _Package:
    return _tensors("cpu", lambda thing: bool(thing.is_cpu))


def _torch_cuda() -> _Package:
    torch: Any = sys.modules["torch"]
    current = torch.cuda.current_device
    package = _tensors("cuda", lambda thing: thing.is_cuda and thing.get_device() == current())
    return package._replace(
        stream=lambda: torch.cuda.current_stream().cuda_stream,
        allocator=lambda array: Torch(array, [array]),
    )


def _tensors(kind: str, is_there: Callable[[Any], bool]) -> _Package:
    """The functions of PyTorch, for a kind of device."""
    torch: Any = sys.modules["torch"]
    tensor, strided, device = torch.Tensor, torch.strided, torch.device(kind)

    def address(thing: Any, dtype: Any, shape: _Shape, is_written: bool) -> int | None:
        is_simple = (
            type(thing) is tensor
            and thing.dtype is dtype
            and _fits(thing.shape, shape)
            and thing.layout is strided
            and is_there(thing)
            and thing.is_contiguous()
            and not (thing.requires_grad or thing.is_conj() or thing.is_neg())
        )
        found: int | None = thing.data_ptr() if is_simple else None
        return found

    return _Package(
        dtype=lambda value: getattr(torch, TORCH_DTYPES.get(value.dtype, ""), None),
        address=address,
        empty=lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device),
        framework=Torch(None, []),
    )


def _numpy() -> _Package:
    numpy: Any = sys.modules["numpy"]

    def address(thing: Any, dtype: Any, shape: _Shape, is_written: bool) -> int | None:
        is_simple = type(thing) is numpy.ndarray and thing.dtype is dtype
        if not is_simple or not _fits(thing.shape, shape) or not thing.flags.c_contiguous:
            return None
        place: int
        place, is_read_only = thing.__array_interface__["data"]
        return None if is_written and is_read_only else place

    return _Package(
        dtype=lambda value: numpy.dtype(TYPE_STRINGS[value.dtype]),
        address=address,
        empty=lambda shape, dtype: numpy.empty(shape, dtype),
        framework=NumPy(None, []),
    )


# (package, class, whether the call is enqueued on a GPU) → the functions of the package.
_PACKAGES: dict[tuple[str, str, bool], Callable[[], _Package]] = {
    ("torch", "Tensor", False): _torch,
    ("torch", "Tensor", True): _torch_cuda,
    ("numpy", "ndarray", False): _numpy,
}
