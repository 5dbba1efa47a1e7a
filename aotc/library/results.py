"""What an entry returns in memory → arrays, which free it when nobody has them any more."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from aotc.library.arrays import TYPE_STRINGS, Array
from aotc.manifest import Memory, Value


class Buffer:
    """Memory that a library returned, for `numpy.asarray` or, on a GPU, CuPy and PyTorch."""

    def __init__(self, value: Value, memref: Any) -> None:
        assert value.shape is not None
        rank = len(value.shape)
        item = value.dtype.bytes
        interface = {
            "version": 3,
            "typestr": TYPE_STRINGS[value.dtype],
            "shape": tuple(memref.sizes) if rank else (),
            "strides": tuple(stride * item for stride in memref.strides) if rank else (),
            "data": ((memref.aligned or 0) + memref.offset * item, False),
        }
        if value.memory is not Memory.HOST:
            # The call has waited for its work: there is no stream to wait for.
            self.__cuda_array_interface__ = {**interface, "stream": None}
        if value.memory is not Memory.DEVICE:
            self.__array_interface__ = interface


def give_back(
    value: Value,
    memref: Any,
    arguments: Sequence[Any],
    free: Callable[[int], None],
    adopt: Callable[[Value, Buffer], Any],
) -> Any:
    """A result in memory: the caller's own array where the result is an argument, else what `adopt`
    makes of a `Buffer`."""
    if value.aliases is not None:
        argument = arguments[value.aliases]
        if isinstance(argument, Array) and _is_whole(argument, memref):
            return _handed_in(argument)
    buffer = Buffer(value, memref)
    if value.is_owned and memref.allocated:
        weakref.finalize(buffer, free, memref.allocated).atexit = False
    return adopt(value, buffer)


def _is_whole(argument: Array, memref: Any) -> bool:
    """Whether a result is the argument, and no view of it."""
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
