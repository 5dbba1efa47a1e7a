"""Memory of PyTorch's and CuPy's for the calls of a library: their allocators, by callbacks."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

_ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
)
_RELEASE = ctypes.CFUNCTYPE(
    None, *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
)


class Allocator(Protocol):
    """A package of arrays that has an allocator for the GPU."""

    def allocate(self, size: int, stream: int | None) -> tuple[int, Any]:
        """The address of so many bytes, and the object that keeps them, in the order of `stream`;
        without one, of the package's own current stream. Raises RuntimeError or MemoryError."""


class _Thread(threading.local):
    """The call under way on a thread: whose memory it gets, and what it has freed already."""

    allocator: Allocator | None = None
    stream: int | None = None
    freed: list[Any] | None = None


class Allocators:
    """Gives a library memory of other packages. `set_allocator` is its C function."""

    def __init__(self, set_allocator: Any) -> None:
        self._set = set_allocator
        self._thread = _Thread()
        # By address; results stay until the library frees them.
        self._owners: dict[int, Any] = {}
        self._functions = (_ALLOCATE(self._allocate), _RELEASE(self._release))
        self._nothing = (_ALLOCATE(), _RELEASE())

    @contextmanager
    def given(self, allocator: Allocator, stream: int | None) -> Iterator[None]:
        """Within, calls of this thread get the memory of `allocator`."""
        thread = self._thread
        thread.allocator, thread.stream, thread.freed = allocator, stream, []
        self._set(*self._functions, None)
        try:
            yield
        finally:
            self._set(*self._nothing, None)
            thread.allocator = thread.freed = None

    def take(self, address: int | None, free: Callable[[int], None]) -> Any:
        """The object that keeps a result at the address, which is no more the library's; None for
        memory of the library's own."""
        owner = self._owners.get(address or 0)
        if owner is not None and address is not None:
            free(address)
        return owner

    def _allocate(self, size: int, device: int, stream: int | None, data: int | None) -> int | None:
        thread = self._thread
        assert thread.allocator is not None
        try:
            address, owner = thread.allocator.allocate(size, thread.stream)
        except (RuntimeError, MemoryError):
            return None  # told by the library
        self._owners[address] = owner
        return address

    def _release(
        self, address: int, size: int, device: int, stream: int | None, data: int | None
    ) -> None:
        owner = self._owners.pop(address)
        # A call without a stream of the package's works on one of the library's: only its end is
        # known to come before what the package does next.
        if self._thread.stream is None and self._thread.freed is not None:
            self._thread.freed.append(owner)
