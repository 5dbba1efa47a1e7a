"""What an entry returns in memory → arrays, which free it when nobody has them any more."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from aotc.errors import InputError
from aotc.library.arrays import Array
from aotc.manifest import Dtype, Memory, Value

TYPE_STRINGS = {
    **{dtype: f"<{dtype.value[0]}{dtype.bytes}" for dtype in Dtype},
    Dtype.BOOL: "|b1",
    Dtype.I8: "|i1",
    Dtype.U8: "|u1",
    # Their bits: NumPy has none of these.
    Dtype.BF16: "<u2",
    Dtype.F8E4M3FN: "|u1",
    Dtype.F8E5M2: "|u1",
}


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
    value: Value, memref: Any, arguments: Sequence[Any], free: Callable[[int], None]
) -> Any:
    """A result in memory: the caller's own array where the result is an argument, a NumPy array
    where the host reaches it, else a `Buffer`."""
    if value.aliases is not None:
        argument = arguments[value.aliases]
        if isinstance(argument, Array) and argument.address == memref.aligned:
            return _handed_in(argument)
    buffer = Buffer(value, memref)
    if value.is_owned and memref.allocated:
        weakref.finalize(buffer, free, memref.allocated).atexit = False
    if value.memory is Memory.DEVICE:
        return buffer
    try:
        import numpy
    except ImportError:
        raise InputError(
            f"The result '{value.name}' is an array of the host.", hint="pip install numpy"
        ) from None
    array = numpy.asarray(buffer)
    if value.is_owned:
        return array
    return array.copy()


def _handed_in(argument: Array) -> Any:
    owner = argument.owner
    return owner[0] if isinstance(owner, tuple) else owner
