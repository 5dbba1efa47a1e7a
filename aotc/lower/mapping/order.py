"""The order of memory accesses by the threads of a row.

It determines where barriers are needed, which values a thread knows to be in memory, and which
stores are dead.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from aotc.analysis.effects import Access, Overlaps


class Use(Struct, frozen=True):
    """An access by the threads of a row.

    `pattern` is equal for two accesses in which a thread accesses the same elements, and no other
    thread does. It is None if other threads may access them.
    """

    memref: Any
    pattern: tuple[Any, ...] | None
    writes: bool


class AccessOrder(Struct):
    """The accesses so far. Those of one loop are collected together, as its iterations are
    unordered."""

    overlaps: Overlaps
    _since_barrier: list[Use] = field(default_factory=list)
    _of_this_loop: list[Use] = field(default_factory=list)
    # Element → its value and the pattern; element → a store that has not been loaded since.
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _unseen: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def needs_barrier(self, use: Use) -> bool:
        """Whether a barrier is needed before `use`. If so, the barrier is assumed to be
        inserted."""
        if any(self._conflicts(earlier, use) for earlier in self._since_barrier):
            self._since_barrier = []
            self._of_this_loop = []
            return True
        return False

    def _conflicts(self, earlier: Use, later: Use) -> bool:
        if not (earlier.writes or later.writes):
            return False
        if not self.overlaps.may_overlap(earlier.memref, later.memref):
            return False
        is_own = earlier.pattern is not None and earlier.memref == later.memref
        return not (is_own and earlier.pattern == later.pattern)

    def note(self, use: Use) -> None:
        """Records an access of the current loop."""
        self._of_this_loop.append(use)

    def end_loop(self) -> None:
        """Ends a loop: later accesses are ordered after its accesses."""
        for use in self._of_this_loop:
            if use not in self._since_barrier:
                self._since_barrier.append(use)
        self._of_this_loop = []

    def known(self, access: Access) -> Any | None:
        """The value that the element is known to have, for this thread; None if unknown."""
        value, _ = self._known.get(access.place, (None, None))
        return value

    def loaded(self, access: Access, use: Use, value: Any) -> None:
        """Records a load: `value` is the element's content from here on."""
        self.seen(access.memref)
        if use.pattern is not None:
            self._known[access.place] = (value, use.pattern)

    def seen(self, memref: Any) -> None:
        """Records a load from the memref, so that stores to it are not dead."""
        self._unseen = {
            place: operation
            for place, operation in self._unseen.items()
            if not self.overlaps.may_overlap(place[0], memref)
        }

    def stored(self, access: Access, use: Use, value: Any, operation: Any) -> Any | None:
        """Records a store. Returns the earlier store that it makes dead, or None."""
        self.forget(use)
        if use.pattern is None:
            return None
        useless = self._unseen.pop(access.place, None)
        self._known[access.place] = (value, use.pattern)
        self._unseen[access.place] = operation
        return useless

    def forget(self, use: Use) -> None:
        """Invalidates values that the store may have changed, except those with the same pattern in
        other columns."""
        self._known = {
            place: (value, pattern)
            for place, (value, pattern) in self._known.items()
            if (place[0] == use.memref and pattern == use.pattern)
            or not self.overlaps.may_overlap(place[0], use.memref)
        }
