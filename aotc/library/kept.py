"""Host memory of results, kept for the next call.

The system clears each page of new memory, which takes longer than it takes to write results there.
A step of a decoder returns caches of megabytes in each call, while those of the call before become
garbage."""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any, NamedTuple

from aotc.library.arrays import TYPE_STRINGS
from aotc.manifest import Value

# Smaller arrays are allocated as any other.
_LEAST_BYTES = 64 << 10
_ALIGNMENT = 64


class _Memory(NamedTuple):
    size: int
    address: int
    owner: Any


# (limit of a block's bytes, the blocks that no array uses). The oldest is freed if there are too
# many. Their operations are atomic, as an array may become garbage anywhere.
_KEPT: tuple[tuple[int, deque[_Memory]], ...] = (
    (2 << 20, deque(maxlen=64)),
    (8 << 20, deque(maxlen=16)),
    (64 << 20, deque(maxlen=2)),
)


class _Block:
    """Memory that one array uses, as its base. It is kept when the array is garbage."""

    __slots__ = ("__array_interface__", "_kept", "_memory")

    def __init__(self, interface: dict[str, Any], kept: deque[_Memory], memory: _Memory) -> None:
        self.__array_interface__ = interface
        self._kept, self._memory = kept, memory

    def __del__(self) -> None:
        # When the interpreter ends, the process returns its memory.
        if not sys.is_finalizing():
            self._kept.append(self._memory)


def is_kept(value: Value) -> bool:
    """Whether memory of results like this one is kept. Their size is static."""
    size = math.prod(n or 0 for n in value.shape or ()) * value.dtype.bytes
    return _LEAST_BYTES <= size < _KEPT[-1][0]


def kept_array(numpy: Any, value: Value) -> Any:
    """A new NumPy array for a result for which `is_kept` holds. Its elements are arbitrary."""
    shape = tuple(n or 0 for n in value.shape or ())
    size = math.prod(shape) * value.dtype.bytes
    kept = next(blocks for limit, blocks in _KEPT if size < limit)
    memory = _take(kept, size)
    if memory is None:
        owner = numpy.empty(size + _ALIGNMENT, numpy.uint8)
        address = -(-owner.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        memory = _Memory(size, address, owner)
    interface = {
        "version": 3,
        "typestr": TYPE_STRINGS[value.dtype],
        "shape": shape,
        "data": (memory.address, False),
    }
    return numpy.asarray(_Block(interface, kept, memory))


def _take(kept: deque[_Memory], size: int) -> _Memory | None:
    """Memory of this size. If there is none, the oldest memory is freed, so that results of many
    sizes do not accumulate it."""
    try:
        for _ in range(len(kept)):
            memory = kept.popleft()
            if memory.size == size:
                return memory
            kept.append(memory)
        kept.popleft()
    except IndexError:
        pass  # there is none, or another thread took the last one
    return None
