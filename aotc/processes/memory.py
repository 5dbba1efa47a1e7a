"""The available memory, the memory and processor time of processes, the stack of a thread (sizes
in bytes), and how often Python collects garbage during a build."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
# Allocations between collections. Most objects of a build live until its end: a collection frees
# little, and each one visits all objects, including PyTorch's.
COLLECTION_THRESHOLD = 200_000
# The size that builds need: 256 nested loops (`aotc.input.depth`) take 0.7 MiB, an empty module
# half a MiB. A part of a stack is not for use: of 1 MiB, a main thread has 1016 KiB.
_LEAST_STACK = 1000 << 10
_MOST_BYTES_OF_ATTRIBUTES = 256  # pthread_attr_t has 56 bytes on x86-64, 64 on AArch64

_collections_lock = threading.Lock()
_builds = 0
_caller_thresholds = (0, 0, 0)


def available_memory() -> int:
    """The memory that new processes may use: the smaller of what the system reports as available
    (proc(5), MemAvailable) and what the control groups of this process leave (cgroup v2)."""
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    with contextlib.suppress(OSError):
        group = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
        place = _CONTROL_GROUPS / group
        while place.is_relative_to(_CONTROL_GROUPS):
            with contextlib.suppress(OSError, ValueError):  # "max", or no such file at the root
                limit = int((place / "memory.max").read_text())
                free.append(limit - int((place / "memory.current").read_text()))
            place = place.parent
    return max(0, min(free))


def resident_memory(pid: int) -> int:
    """The resident memory of the process (proc(5), statm); 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(pid: int) -> float:
    """The processor time of all threads of the process, in seconds; 0 if it has ended."""
    try:
        # The name may contain spaces; after it come: state, ..., utime, stime (proc(5), stat).
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(words[11]) + int(words[12])
    except (OSError, IndexError, ValueError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


def gibibytes(size: int) -> str:
    """`12.5 GiB`."""
    return f"{size / (1 << 30):.1f} GiB"


def collect_rarely() -> None:
    """Makes collections rare from now on. A caller that has turned them off keeps that."""
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, COLLECTION_THRESHOLD) if first else 0, *others)


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Makes collections rare while at least one thread is inside; afterwards the caller's
    thresholds apply again."""
    global _builds, _caller_thresholds
    with _collections_lock:
        _builds += 1
        if _builds == 1:
            _caller_thresholds = gc.get_threshold()
            collect_rarely()
    try:
        yield
    finally:
        with _collections_lock:
            _builds -= 1
            if _builds == 0:
                gc.set_threshold(*_caller_thresholds)


def check_stack() -> None:
    """Raises InputError if the stack of this thread is too small for a build, which would end in a
    crash."""
    size = _stack_size()
    if size is not None and size < _LEAST_STACK:
        from aotc.errors import InputError

        raise InputError(
            f"The stack of this thread has {size >> 10} KiB; "
            f"a build needs {_LEAST_STACK >> 10} KiB.",
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
