"""Memory that an entry returns → arrays, which free it when they are garbage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from aotc.library.allocators import Allocators
from aotc.library.arrays import TYPE_STRINGS, Array
from aotc.manifest import Memory, Value


class Owner(Protocol):
    """The library that returned memory."""

    allocators: Allocators

    def free(self, address: int) -> None:
        """Frees memory that an entry returned."""

    def copy_bytes(self, to: int, source: int, size: int) -> None:
        """Copies bytes between addresses of any kind of memory."""


class Buffer:
    """Memory that a library returned, for `numpy.asarray` or, on a GPU, CuPy and PyTorch.

    `place` says where it is. `owner` keeps it alive if the library does not own it; otherwise
    `free_by`, if it is set, frees it with this object (`weakref.finalize` would take longer than a
    small kernel)."""

    free_by: Callable[[int], None] | None = None

    def __init__(self, value: Value, memref: Any, place: Place, owner: Any) -> None:
        assert value.shape is not None
        rank, item = len(value.shape), value.dtype.bytes
        self.owner = owner
        self.shape = tuple(memref.sizes[:]) if rank else ()
        self.strides = tuple(memref.strides[:]) if rank else ()  # in elements
        self.address = (memref.aligned or 0) + memref.offset * item
        self.begin = self.address - (memref.allocated or 0)  # in bytes
        self.is_on_device = value.memory is Memory.DEVICE or (
            value.memory is Memory.CALLER and place.is_on_device
        )
        self.is_enqueued = place.stream is not None
        self._value = value
        self._place = place

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.is_on_device:
            raise AttributeError("__array_interface__")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._value.memory is Memory.HOST:
            raise AttributeError("__cuda_array_interface__")
        # A call without a stream has waited for its work.
        return {**self._interface(), "stream": self._place.stream or None}

    def _interface(self) -> dict[str, Any]:
        dtype = self._value.dtype
        return {
            "version": 3,
            "typestr": TYPE_STRINGS[dtype],
            "shape": self.shape,
            "strides": tuple([stride * dtype.bytes for stride in self.strides]),
            "data": (self.address, False),
        }

    def __del__(self) -> None:
        # When the interpreter ends, the process returns its memory, and drivers may be gone.
        if self.free_by is not None and not sys.is_finalizing():
            self.free_by(self.address - self.begin)

    def as_host_array(self, numpy: Any, dtype: str) -> Any:
        """A NumPy array on the memory; if the host cannot access it, on a copy, in row-major
        order."""
        if not self.is_on_device:
            return numpy.asarray(self)
        array = numpy.empty(self.shape, dtype)
        if array.nbytes:
            self._place.copy(array.ctypes.data, self.address, array.nbytes)
        return array


class Place(NamedTuple):
    """Where the results of a call are. `is_on_device` is for results whose memory depends on the
    call. `stream` is the stream that the call was enqueued on; None if it has waited.
    `copy(to, from, bytes)` copies from there."""

    is_on_device: bool
    stream: int | None
    copy: Callable[[int, int, int], None]


def give_back(
    value: Value,
    memref: Any,
    arguments: Sequence[Any],
    library: Owner,
    place: Place,
    adopt: Callable[[Value, Buffer], Any],
) -> Any:
    """A result in memory: the caller's own array if the result is an argument, else what `adopt`
    makes of a `Buffer`."""
    if value.aliases is not None:
        argument = arguments[value.aliases]
        if isinstance(argument, Array) and _is_whole(argument, memref):
            return _handed_in(argument)
    owner = library.allocators.take(memref.allocated, library.free) if value.is_owned else None
    buffer = Buffer(value, memref, place, owner)
    if owner is None and value.is_owned and memref.allocated:
        buffer.free_by = library.free
    return adopt(value, buffer)


def _is_whole(argument: Array, memref: Any) -> bool:
    """Whether a result is the argument itself, and not a view of a part of it."""
    found = (argument.address, 0)
    if not argument.shape:
        return found == (memref.aligned, memref.offset)
    return (*found, argument.shape, argument.strides) == (
        *(memref.aligned, memref.offset),
        *(tuple(memref.sizes), tuple(memref.strides)),
    )


def _handed_in(argument: Array) -> Any:
    owner = argument.owner
    return owner[0] if isinstance(owner, tuple) else owner
