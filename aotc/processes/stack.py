"""The stack that MLIR and LLVM have for their recursion over the nesting of a module."""

from __future__ import annotations

import ctypes
import resource

# The usual limit on Linux, to which a lower one is raised if it may be.
_USUAL = 8 << 20
# The size that builds need: 256 nested loops (`aotc.input.depth`) take 0.7 MiB, an empty module
# half a MiB. A part of a stack is not for use: of 1 MiB, a main thread has 1016 KiB.
_LEAST = 1000 << 10
_MOST_BYTES_OF_ATTRIBUTES = 256  # pthread_attr_t has 56 bytes on x86-64, 64 on AArch64


def raise_stack_limit() -> bool:
    """Raises the limit of the stack to the usual one, as far as this process may. Returns whether
    it was raised: threads have the limit with which the process was started, so the caller
    restarts it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = _USUAL if hard == resource.RLIM_INFINITY else min(_USUAL, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return False
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    return True


def check_stack() -> None:
    """Raises InputError if the stack of this thread is too small for a build, which would end in a
    crash."""
    size = _stack_size()
    if size is not None and size < _LEAST:
        from aotc.errors import InputError

        raise InputError(
            f"The stack of this thread has {size >> 10} KiB; a build needs {_LEAST >> 10} KiB.",
            hint="The limit of a process is that of 'ulimit -s', and of a thread of Python that of "
            "threading.stack_size.",
        )


def _stack_size() -> int | None:
    """The bytes of this thread's stack. None if the C library does not say."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "pthread_getattr_np"):
        return None
    attributes = ctypes.create_string_buffer(_MOST_BYTES_OF_ATTRIBUTES)
    library.pthread_self.restype = ctypes.c_void_p
    if library.pthread_getattr_np(ctypes.c_void_p(library.pthread_self()), attributes) != 0:
        return None
    size = ctypes.c_size_t()
    library.pthread_attr_getstacksize(attributes, ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return size.value
