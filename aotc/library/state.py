"""The state of a generated library: an object with tensors that entries read and write."""

from __future__ import annotations

import ctypes
import os
import weakref
from pathlib import Path
from typing import Any, Protocol

from aotc.errors import InputError
from aotc.library.arrays import empty_array, filling_array
from aotc.manifest import Field, Manifest


class Library(Protocol):
    """The library of a state: `aotc.library.opened.Library`."""

    path: Path
    manifest: Manifest

    def function(self, name: str, result: Any = ...) -> Any:
        """A C function of the library."""

    def check(self, status: int) -> None:
        """Raises LibraryError for a status that is not 0."""


class State:
    """The values that the entries of a library keep from call to call.

    `library.state()` makes it, and `state=` passes it to an entry. It has the module's initial
    values, and its memory is freed with the object. `fields` describes its tensors, by name. Calls
    with the same state must not overlap. Before any of the methods, wait for streams that use it.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.fields = {field.name: field for field in library.manifest.state}
        if not self.fields:
            raise InputError(f"The entries of '{library.path}' remember nothing: it has no state.")
        self.handle = ctypes.c_void_p()
        self._call("create", ctypes.byref(self.handle))
        free = library.function(library.manifest.functions["state_free"])
        weakref.finalize(self, free, self.handle).atexit = False

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}: {field.type}" for field in self.fields.values())
        return f"<state of {self.library.path}: {fields}>"

    def read(self, name: str) -> Any:
        """The elements of a field, as a new NumPy array."""
        field = self._field(name)
        array = empty_array("field", field.shape, field.dtype)
        address = ctypes.c_void_p(array.ctypes.data)
        self._call("read", self.handle, name.encode(), address, ctypes.c_uint64(field.bytes))
        return array

    def write(self, name: str, array: Any) -> None:
        """Copies a contiguous array of the field's type and shape into the field."""
        field = self._field(name)
        given = filling_array(f"field '{name}'", field.shape, field.dtype, array)
        address = ctypes.c_void_p(given.address)
        self._call("write", self.handle, name.encode(), address, ctypes.c_uint64(field.bytes))

    def reset(self) -> None:
        """Resets every field to its initial value."""
        self._call("reset", self.handle)

    def copy(self) -> State:
        """A new state with the same values."""
        other = State(self.library)
        self._call("copy", other.handle, self.handle)
        return other

    def truncate(self, name: str, dimension: int, length: int) -> None:
        """Resets the elements of a field whose index along a dimension is at least `length` to
        their initial values."""
        self._field(name)
        self._call(
            "truncate",
            self.handle,
            name.encode(),
            ctypes.c_int32(dimension),
            ctypes.c_int64(length),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes every field to a file."""
        self._call("save", self.handle, os.fsencode(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads a file that was saved from a state with the same fields."""
        self._call("load", self.handle, os.fsencode(path))

    def _field(self, name: str) -> Field:
        if name not in self.fields:
            raise InputError(f"The state has no field '{name}': {', '.join(self.fields)}.")
        return self.fields[name]

    def _call(self, does: str, *arguments: Any) -> None:
        library = self.library
        library.check(library.function(library.manifest.functions[f"state_{does}"])(*arguments))
