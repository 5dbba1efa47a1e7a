"""The replaceable weights of a generated library, by their names."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

from aotc.errors import InputError, near_names
from aotc.library.arrays import empty_array, filling_array
from aotc.library.state import Library
from aotc.manifest import NamedWeight

_MOST_SHOWN = 8


class Weights(Mapping[str, NamedWeight]):
    """`library.weights`: the replaceable weights by name, each with its type and shape. A build
    names them with `replaceable=`.

    While a weight is set or restored, no call may read it; wait for streams first.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._weights = {one.name: one for one in library.manifest.replaceable}

    def __getitem__(self, name: str) -> NamedWeight:
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __repr__(self) -> str:
        weights = ", ".join(f"{one.name}: {one.type}" for one in self._weights.values())
        return f"<weights of {self._library.path}: {weights}>"

    def set(self, name: str, array: Any) -> None:
        """Replaces a weight by a contiguous array of its type and shape, in host or GPU memory,
        whose elements are copied, until `restore`."""
        weight = self._find(name)
        given = filling_array(f"weight '{name}'", weight.shape, weight.dtype, array)
        shape = (ctypes.c_int64 * len(weight.shape))(*weight.shape)
        self._call(
            "set_weight",
            name.encode(),
            weight.dtype.value.encode(),
            ctypes.c_int32(len(shape)),
            shape,
            ctypes.c_void_p(given.address),
        )

    def read(self, name: str) -> Any:
        """The current value of a weight, as a new NumPy array."""
        weight = self._find(name)
        array = empty_array("weight", weight.shape, weight.dtype)
        address = ctypes.c_void_p(array.ctypes.data)
        self._call("read_weight", name.encode(), address, ctypes.c_uint64(weight.bytes))
        return array

    def set_budget(self, size: int) -> None:
        """Sets the bytes that weights may take on each GPU; 0 means as many as they need. It must
        be called before the first call that uses a weight. Weights that do not fit are copied from
        the host in parts, while kernels run."""
        if "set_weights_budget" not in self._library.manifest.functions:
            raise InputError("The library's weights are not in a file, and have no budget.")
        self._call("set_weights_budget", ctypes.c_uint64(size))

    def restore(self, name: str | None = None) -> None:
        """Restores the weight, or all weights, to the value in the weights file."""
        for one in self if name is None else [name]:
            self._call("restore_weight", self._find(one).name.encode())

    def _find(self, name: str) -> NamedWeight:
        if name in self._weights:
            return self._weights[name]
        if not self._weights:
            raise InputError(
                f"'{self._library.path}' has no weight that can be replaced.",
                hint="build it with --weights FILE --replaceable NAME.",
            )
        near = near_names(name, self._weights, most=_MOST_SHOWN, cutoff=0.5)
        shown = near or list(self._weights)[:_MOST_SHOWN]
        more = len(self._weights) - len(shown)
        raise InputError(
            f"No weight '{name}' can be replaced here; there are: {', '.join(shown)}"
            + (f" and {more} more." if more else ".")
        )

    def _call(self, function: str, *arguments: Any) -> None:
        library = self._library
        library.check(library.function(library.manifest.functions[function])(*arguments))
