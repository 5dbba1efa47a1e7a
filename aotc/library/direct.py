"""The fast path of a call: entries called by pointers alone.

It is for arrays that are exactly of the entry's types, in row-major order, so that nothing is
described or converted. All arrays are in host memory; or, for modules of PyTorch, on the current
GPU, where the call is enqueued on the current stream.

A call of a small model takes a few microseconds, as would a complete check of its arguments. All
other cases, including errors, are left to the general path.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aotc.library.allocators import Allocator, Allocators
from aotc.library.arrays import TORCH_DTYPES, TYPE_STRINGS
from aotc.library.descriptors import to_scalar, value_type
from aotc.library.frameworks import Torch
from aotc.library.outputs import MADE
from aotc.manifest import Entry, Value


class _Package(NamedTuple):
    """The functions of a package of arrays.

    `address` is the address of an array's elements, or None if the array does not have the type and
    shape, or cannot be used directly. On a GPU, `stream` is the stream on which the call is
    enqueued, and `allocator` is the allocator of an array's device."""

    dtype: Callable[[Value], Any]
    address: Callable[[Any, Any, tuple[int, ...], bool], int | None]
    empty: Callable[[tuple[int, ...], Any], Any]
    stream: Callable[[], int] | None = None
    allocator: Callable[[Any], Allocator] | None = None


class _Parameter(NamedTuple):
    value: Value
    dtype: Any
    shape: tuple[int, ...] | None
    is_written: bool
    is_result: bool


class Direct:
    """The calls of one entry with arrays of one package."""

    def __init__(
        self, call: Any, entry: Entry, package: _Package, allocators: Allocators | None
    ) -> None:
        """`call` is the entry's C function that takes pointers. `allocators` are the library's, if
        a call uses memory of the package."""
        self._call = call
        self._package = package
        self._allocators = allocators
        self._parameters = [
            _Parameter(
                value,
                None if value.is_scalar else package.dtype(value),
                None if value.shape is None else tuple(size or 0 for size in value.shape),
                value.is_written,
                value.result is not None,
            )
            for value in entry.given
        ]

    def __call__(self, state: Sequence[Any], given: Sequence[Any]) -> tuple[int, list[Any]] | None:
        """Calls the entry; returns the status, and the results in order. None means that it was not
        called, because the arguments need the general path."""
        _, address, empty, current, allocator = self._package
        arguments: list[Any] = [*state]
        status: int
        made: list[tuple[int, Any]] = []
        for (value, dtype, shape, is_written, is_result), thing in zip(
            self._parameters, given, strict=True
        ):
            if shape is None:
                if type(thing) not in (int, float):
                    return None
                arguments.append(to_scalar(value, thing))
                continue
            if is_result:
                if thing is not MADE:
                    return None
                thing = empty(shape, dtype)
                made.append((value.result or 0, thing))
            place = address(thing, dtype, shape, is_written)
            if place is None:
                return None
            arguments.append(place)
        stream = None if current is None else current()
        if stream is not None:
            arguments.append(stream)
        if self._allocators is None or allocator is None:
            status = self._call(*arguments)
        else:
            with self._allocators.given(allocator(thing), stream):
                status = self._call(*arguments)
        if len(made) > 1:
            made.sort(key=lambda item: item[0])
        return status, [thing for _, thing in made]


def direct_call(library: Any, entry: Entry, class_: type, *, is_enqueued: bool) -> Direct | None:
    """The fast path for calls whose first array has this class, in host memory or enqueued on the
    GPU's current stream. None if the entry or the package always needs the general path: for
    results in memory that the entry allocates, and for dynamic sizes."""
    package = _PACKAGES.get((class_.__module__, class_.__name__, is_enqueued))
    name = "async" if is_enqueued else "call"
    if package is None or entry.results or name not in entry.functions:
        return None
    if not all(map(_is_simple, entry.given)):
        return None
    call = library.function(entry.functions[name])
    types = [value_type(v) if v.is_scalar else ctypes.c_void_p for v in entry.given]
    state, stream = ([ctypes.c_void_p] * there for there in (entry.state is not None, is_enqueued))
    call.argtypes = [*state, *types, *stream]
    return Direct(
        call, entry, package(), library.allocators if entry.workspace_bytes != 0 else None
    )


def _is_simple(value: Value) -> bool:
    """Whether an argument is described by its pointer: its sizes are static and not 0, and it is
    contiguous in row-major order."""
    return value.shape is None or (
        value.strides is None and not value.offset and all(value.shape) and None not in value.shape
    )


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

    def address(thing: Any, dtype: Any, shape: tuple[int, ...], is_written: bool) -> int | None:
        is_simple = (
            type(thing) is tensor
            and thing.dtype is dtype
            and thing.shape == shape
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
    )


def _numpy() -> _Package:
    numpy: Any = sys.modules["numpy"]

    def address(thing: Any, dtype: Any, shape: tuple[int, ...], is_written: bool) -> int | None:
        is_simple = type(thing) is numpy.ndarray and thing.dtype is dtype and thing.shape == shape
        if not is_simple or not thing.flags.c_contiguous:
            return None
        place: int
        place, is_read_only = thing.__array_interface__["data"]
        return None if is_written and is_read_only else place

    return _Package(
        dtype=lambda value: numpy.dtype(TYPE_STRINGS[value.dtype]),
        address=address,
        empty=lambda shape, dtype: numpy.empty(shape, dtype),
    )


# (package, class, whether the call is enqueued on a GPU) → the functions of the package.
_PACKAGES: dict[tuple[str, str, bool], Callable[[], _Package]] = {
    ("torch", "Tensor", False): _torch,
    ("torch", "Tensor", True): _torch_cuda,
    ("numpy", "ndarray", False): _numpy,
}
