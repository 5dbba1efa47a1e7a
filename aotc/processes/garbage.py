"""The frequency of Python's cyclic garbage collection during a build."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

# Allocations between collections. Most objects of a build live until its end: a collection frees
# little, and each one visits all objects, including PyTorch's.
# finds little, and each one visits all objects, of PyTorch too.
THRESHOLD = 200_000

_lock = threading.Lock()
_builds = 0
_before = (0, 0, 0)


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Makes collections rare while at least one thread is inside; afterwards the caller's
    thresholds apply again."""
    global _builds, _before
    with _lock:
        _builds += 1
        if _builds == 1:
            _before = gc.get_threshold()
            gc.set_threshold(max(_before[0], THRESHOLD) if _before[0] else 0, *_before[1:])
    try:
        yield
    finally:
        with _lock:
            _builds -= 1
            if _builds == 0:
                gc.set_threshold(*_before)
