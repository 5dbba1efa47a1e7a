"""The results of one call: arrays that the caller gave for them, or new ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from aotc.errors import InputError
from aotc.library.allocators import Allocator
from aotc.library.arrays import Array, array_of
from aotc.library.frameworks import Framework, framework_of
from aotc.library.results import Buffer
from aotc.manifest import Entry, Value

# Stands for an argument that is a result and was not given.
MADE = object()


class Outputs:
    """The results of one call. `given` are the entry's arguments, with an array for each result
    among them."""

    def __init__(
        self,
        entry: Entry,
        given: Sequence[Any],
        out: Any,
        stream: int | None,
        framework: Framework | None,
    ) -> None:
        self._entry = entry
        self._framework = framework or framework_of(_arrays(entry, given))
        self._out = _by_result(entry, out)
        self._returned: dict[int, Any] = {}
        # The names of the arguments that are results and were given.
        self.asked: set[str] = set()
        self.given = list(given)
        for i, value in enumerate(entry.given):
            if value.result is None:
                continue
            is_made = given[i] is MADE and value.result not in self._out
            if not is_made:
                self.asked.add(value.name)
            asked = self._out.pop(value.result, None)
            if given[i] is MADE:
                self.given[i] = self._framework.empty(value, stream) if is_made else asked
                self._returned[value.result] = (is_made, self.given[i])
            elif asked is not None:
                raise InputError(f"{entry.name}: '{value.name}' is given twice, once in out=.")

    @property
    def allocator(self) -> Allocator | None:
        """The allocator of GPU memory for the call, if it is not the library's."""
        return self._framework.allocator

    def adopt(self, value: Value, buffer: Buffer) -> Any:
        """Memory that the entry returned, as an array of the caller's framework, or copied to the
        array that the caller gave."""
        asked = None if value.result is None else self._out.get(value.result)
        if asked is None:
            return self._framework.adopted(value, buffer)
        made = framework_of([asked]).adopted(value, buffer)
        _check_same(self._entry, value, array_of(asked, None), array_of(made, None))
        asked[...] = made
        return asked

    def finish(self, returned: Sequence[Any]) -> list[Any]:
        """All results for the caller, in the order of the module. `returned` are those that the
        entry returned."""
        for place, (value, thing) in enumerate(zip(self._entry.results, returned, strict=True)):
            self._returned[place if value.result is None else value.result] = (False, thing)
        return [
            self._framework.finished(thing) if made else thing
            for _, (made, thing) in sorted(self._returned.items(), key=lambda item: item[0])
        ]


def check_overlaps(entry: Entry, values: Sequence[Any], asked: Collection[str]) -> None:
    """Raises InputError if an argument in `asked`, which is a result, overlaps another argument: it
    is written while others are read."""
    for i, value in enumerate(entry.given):
        if value.name not in asked:
            continue
        first, last = values[i].extent
        for k, other in enumerate(values):
            if k == i or not isinstance(other, Array):
                continue
            start, end = other.extent
            if first < end and start < last:
                raise InputError(
                    f"{entry.name}: the array for '{value.name}' shares memory with "
                    f"'{entry.given[k].name}'."
                )


def _arrays(entry: Entry, given: Sequence[Any]) -> list[Any]:
    return [
        thing
        for value, thing in zip(entry.given, given, strict=True)
        if not value.is_scalar and thing is not MADE
    ]


def _by_result(entry: Entry, out: Any) -> dict[int, Any]:
    """Result number → the array for it in `out`."""
    if out is None:
        return {}
    values = [value for value in (*entry.given, *entry.results) if value.result is not None]
    values.sort(key=lambda value: value.result or 0)
    items = list(out) if isinstance(out, tuple | list) else [out]
    if len(items) != len(values):
        raise InputError(
            f"{entry.name} has {len(values)} results, and out= has {len(items)} arrays: give one "
            "for each, or None."
        )
    for value, item in zip(values, items, strict=True):
        if value.is_scalar and item is not None:
            raise InputError(f"{entry.name}: '{value.name}' is a number, which has no out=.")
    pairs = zip(values, items, strict=True)
    return {value.result: item for value, item in pairs if item is not None}  # type: ignore[misc]


def _check_same(entry: Entry, value: Value, asked: Array, made: Array) -> None:
    wrong = None
    if asked.is_read_only:
        wrong = "is read-only"
    elif asked.dtype is not made.dtype:
        wrong = f"has elements of {asked.dtype.value}, and the result of {made.dtype.value}"
    elif asked.shape != made.shape:
        wrong = f"has the shape {asked.shape}, and the result {made.shape}"
    if wrong is not None:
        raise InputError(f"{entry.name}: the array for '{value.name}' ({value.type}) {wrong}.")
