"""Memory of PyTorch and CuPy for the calls of a library, by callbacks to their allocators."""

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
    """A package of arrays that has a GPU allocator."""

    def allocate(self, size: int, stream: int | None) -> tuple[int, Any]:
        """Allocates `size` bytes in the order of `stream`, by default of the package's current
        stream. Returns the address, and the object that owns the memory. Raises RuntimeError or
        MemoryError."""


class _Thread(threading.local):
    """The current call of a thread: the allocator that it uses, and the memory it has freed."""

    allocator: Allocator | None = None
    stream: int | None = None
    freed: list[Any] | None = None


class Allocators:
    """Gives a library memory of other packages. `set_allocator` is the library's C function."""

    def __init__(self, set_allocator: Any) -> None:
        self._set = set_allocator
        self._thread = _Thread()
        # Address → owner. Results stay in it until the library frees them.
        self._owners: dict[int, Any] = {}
        self._functions = (_ALLOCATE(self._allocate), _RELEASE(self._release))
        self._nothing = (_ALLOCATE(), _RELEASE())

    @contextmanager
    def given(self, allocator: Allocator, stream: int | None) -> Iterator[None]:
        """While active, calls of this thread get memory from `allocator`."""
        thread = self._thread
        thread.allocator, thread.stream, thread.freed = allocator, stream, []
        self._set(*self._functions, None)
        try:
            yield
        finally:
            self._set(*self._nothing, None)
            thread.allocator = thread.freed = None

    def take(self, address: int | None, free: Callable[[int], None]) -> Any:
        """The object that owns a result at the address, which is removed from the library; None
        for memory of the library's own."""
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
            return None  # the library reports the error
        self._owners[address] = owner
        return address

    def _release(
        self, address: int, size: int, device: int, stream: int | None, data: int | None
    ) -> None:
        owner = self._owners.pop(address)
        # Without a stream of the package, the call works on a stream of the library. Only the end
        # of the call is then known to come before what the package does next.
        if self._thread.stream is None and self._thread.freed is not None:
            self._thread.freed.append(owner)
