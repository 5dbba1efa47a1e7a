"""Arrays behind which no memory is: to read there ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_NO_ACCESS = 0


def at_end_of_page(array: np.ndarray) -> np.ndarray:
    """A copy whose last byte is the last one of a page, in front of one that nobody may read."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mprotect(
        *(ctypes.c_void_p(address + size), ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS)
    )
    assert failed == 0
    made = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes)
    made = made.reshape(array.shape)
    made[...] = array
    return made
