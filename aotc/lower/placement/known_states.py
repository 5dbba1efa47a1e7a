"""KnownStates states of buffers at a point of the walk over a function: a lattice of must-facts.

A fact is (whole buffer, element of its state) → its value on all paths to this point. If an alias
class has merges, several of its values may be the same buffer. A change to one then invalidates
facts about the others, unless they agree with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aotc.lower.placement.device_mirrors import State


class KnownStates:
    """The facts at one point. `get` returns None for an unknown element."""

    def __init__(self, facts: dict[tuple[Any, State], bool] | None = None) -> None:
        self._facts = dict(facts or {})

    def copy(self) -> KnownStates:
        return KnownStates(self._facts)

    def get(self, root: Any, element: State) -> bool | None:
        """The value of an element of the buffer's state; None if it is not known."""
        return self._facts.get((root, element))

    def set(self, root: Any, element: State, value: bool | None, others: Iterable[Any]) -> None:
        """Sets an element's value, or None for unknown. `others` are values that may be the same
        buffer."""
        for other in others:
            if other != root and self._facts.get((other, element)) is not value:
                self._facts.pop((other, element), None)
        self._facts.pop((root, element), None)
        if value is not None:
            self._facts[root, element] = value

    def forget(self, roots: Iterable[Any]) -> None:
        """Removes all facts about these buffers."""
        for root in roots:
            for element in State:
                self._facts.pop((root, element), None)

    def meet(self, others: Iterable[KnownStates]) -> None:
        """Keeps the facts that hold in all."""
        for other in others:
            self._facts = {
                key: value for key, value in self._facts.items() if other._facts.get(key) is value
            }

    def finish_copies(self) -> None:
        """Records that all enqueued work is complete."""
        for root, element in list(self._facts):
            if element is State.COPYING:
                self._facts[root, element] = False
