"""`aotc.load`: a generated library, opened with its manifest, with its entries as functions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from aotc.errors import AotcError, InputError
from aotc.library.allocators import Allocators
from aotc.library.arrays import Array, array_of, wait_for
from aotc.library.descriptors import from_scalar, memref_type, to_scalar, value_type
from aotc.library.direct import Direct, direct_call
from aotc.library.frameworks import Framework
from aotc.library.outputs import MADE, Outputs, check_overlaps
from aotc.library.results import Place, give_back
from aotc.library.sparse import gather, spread
from aotc.library.state import State
from aotc.library.weights import Weights
from aotc.manifest import RESULT_SHAPES, Entry, Manifest, Memory, Value, read_manifest

# The names of the statuses in the header.
_STATUSES = (
    *("OK", "INVALID_ARGUMENT", "NO_DEVICE", "NO_IMAGE", "NO_CPU_KERNEL", "OUT_OF_MEMORY"),
    *("LAUNCH_FAILED", "DRIVER_FAILED", "UNSUPPORTED", "ASSERTION_FAILED"),
    "NO_WEIGHTS",
)


class LibraryError(AotcError):
    """A call into a library failed. The message is the library's. `status` is its number, `name` is
    its name in the header."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        self.name = f"AOTC_{_STATUSES[status]}" if status < len(_STATUSES) else str(status)


class Function:
    """An entry of a library.

    It is called with an array for each memref and a number for each scalar, by position or by name.
    It returns the results for which no array was given: None, one value, or a tuple."""

    def __init__(self, library: Library, entry: Entry) -> None:
        self._library = library
        self.entry = entry
        self.__name__ = entry.name
        self._names = [value.name for value in entry.given]
        self._results = {value.name for value in entry.given if value.result is not None}
        # `MADE` for each result, if all follow the other arguments.
        made = [MADE] * len(self._results)
        self._made = (
            made
            if self._names[len(self._names) - len(made) :]
            == [value.name for value in entry.given if value.result is not None]
            else None
        )
        # The index of the first array that is not a result.
        self._first = next(
            (i for i, v in enumerate(entry.given) if not v.is_scalar and v.result is None), None
        )
        self._has_arrays = any(not value.is_scalar for value in entry.results)
        self._allocates = entry.workspace_bytes != 0 or any(
            value.memory is Memory.CALLER for value in entry.results
        )
        self.__doc__ = f"{self._signature()}\n\n{_MEANING}"
        memref_arguments = [
            value_type(value) if value.is_scalar else ctypes.c_void_p for value in entry.given
        ]
        if entry.state is not None:
            memref_arguments.insert(0, ctypes.c_void_p)
        self._by_memrefs = library.function(entry.functions["memref"])
        self._by_memrefs.argtypes = [*memref_arguments, *(ctypes.c_void_p for _ in entry.results)]
        self._enqueues = None
        if "async" in entry.functions:
            self._enqueues = library.function(entry.functions["async"])
        # (class of the first array, whether the call is enqueued) → the fast path.
        self._direct: dict[tuple[type, bool], Direct | None] = {}
        self._shapes = None
        if RESULT_SHAPES in entry.functions:
            self._shapes = library.function(entry.functions[RESULT_SHAPES])

    @property
    def library(self) -> Library:
        """The library that the entry is in."""
        return self._library

    def __repr__(self) -> str:
        return f"<entry {self._signature()}>"

    def _signature(self) -> str:
        given = [
            f"{value.name}: {value.type}{' (a result)' if value.result is not None else ''}"
            for value in self.entry.given
        ]
        arguments = ", ".join([*given, *(["state"] if self.entry.state is not None else [])])
        results = ", ".join(value.type for value in self.entry.results)
        return f"{self.entry.name}({arguments})" + (f" -> {results}" if results else "")

    def __call__(self, *positional: Any, stream: Any = None, **named: Any) -> Any:
        state = self._state(named)
        # The module may have an argument of this name.
        out = named.pop("out", None) if named and "out" not in self._names else None
        if self.entry.sparse:
            positional, named = spread(self.entry, positional, named)
        given = self._bind(positional, named)
        found = self.direct_results(given, state) if stream is None and out is None else None
        if found is None:
            found = self.results(given, state=state, stream=stream, out=out)
        if self.entry.sparse:
            found = gather(self.entry, found)
        if not found:
            return None
        return found[0] if len(found) == 1 else tuple(found)

    def result_shapes(self, *positional: Any, **named: Any) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results of a call with these arguments, in the order of the module. The
        shape of a number is (). An array may be given as its shape (a tuple or a list), and results
        and the state may be left out. Nothing is computed, and no element is read.

        A size is -1 if it depends on elements, or if the module does not give it before the call,
        for example the size of a memref that another function returns. Raises InputError for shapes
        that do not fit the types, and LibraryError for those that the entry would refuse.
        """
        if self.entry.state is not None:
            named.pop("state", None)
        if self.entry.sparse:
            positional, named = spread(self.entry, positional, named)
        given = self._bind(positional, named)
        values: list[Any] = []
        for value, thing in zip(self.entry.given, given, strict=True):
            if value.shape is None:
                values.append(to_scalar(value, thing))
            elif value.result is None or thing is not MADE:
                sizes = zip(self._shape(value, thing), value.shape, strict=True)
                values += [ctypes.c_int64(size) for size, known in sizes if known is None]
        returned = [value for value in self.entry.results if value.shape is not None]
        shapes = [(ctypes.c_int64 * len(value.shape or ()))() for value in returned]
        if self._shapes is not None:
            self._library.check(self._shapes(*values, *shapes))
            known = {id(one): tuple(shape) for one, shape in zip(returned, shapes, strict=True)}
        else:
            known = {}
        every = [
            value for value in (*self.entry.given, *self.entry.results) if value.result is not None
        ]
        return tuple(
            known.get(id(value), tuple(-1 if n is None else n for n in value.shape or ()))
            for value in sorted(every, key=lambda value: value.result or 0)
        )

    def _shape(self, value: Value, thing: Any) -> tuple[int, ...]:
        """The shape of an argument, which may be given as a shape."""
        shape = tuple(thing if isinstance(thing, tuple | list) else getattr(thing, "shape", ()))
        assert value.shape is not None
        if not all(hasattr(size, "__index__") for size in shape) or not _fits(shape, value.shape):
            raise InputError(
                f"{self.entry.name}: argument '{value.name}' ({value.type}): its shape is {shape}."
            )
        return tuple(size.__index__() for size in shape)

    def direct_results(
        self, given: Sequence[Any], state: Sequence[Any] = (), *, enqueues: bool = False
    ) -> list[Any] | None:
        """As `results`, by the fast path: for arrays that the entry can take directly, in host
        memory or, with `enqueues`, on PyTorch's current GPU, where the call is enqueued on the
        current stream. None for other arrays: nothing was called."""
        if self._first is None:
            return None
        first = given[self._first]
        kind = (type(first), enqueues and getattr(first, "is_cuda", False) is True)
        try:
            direct = self._direct[kind]
        except KeyError:
            class_, is_enqueued = kind
            direct = direct_call(self._library, self.entry, class_, is_enqueued=is_enqueued)
            self._direct[kind] = direct
        found = None if direct is None else direct(state, given)
        if found is None:
            return None
        status, results = found
        if status != 0:
            self._library.check(status)
        return results

    def results(
        self,
        given: Sequence[Any],
        *,
        state: Sequence[Any] = (),
        stream: Any = None,
        out: Any = None,
        framework: Framework | None = None,
    ) -> list[Any]:
        """Calls the entry with arguments in order; `MADE` stands for results that are not given.
        The other results are arrays of `framework`, by default that of the arguments. `state` has
        the handle of the state, if the entry takes one."""
        number = None if stream is None else _stream_number(stream)
        outputs = None
        is_made = self._has_arrays or self._allocates or any(thing is MADE for thing in given)
        if out is not None or is_made:
            outputs = Outputs(self.entry, given, out, number, framework)
            given = outputs.given
        values = [
            to_scalar(value, thing) if value.is_scalar else self._array(value, thing, number)
            for value, thing in zip(self.entry.given, given, strict=True)
        ]
        asked = self._results if outputs is None else outputs.asked
        if asked:
            check_overlaps(self.entry, values, asked)
        results = [value_type(value)() for value in self.entry.results]
        allocator = outputs.allocator if outputs is not None and self._allocates else None
        if allocator is None:
            self._run(state, values, results, number)
        else:
            with self._library.allocators.given(allocator, number):
                self._run(state, values, results, number)
        by_number = iter(values)
        every = [next(by_number) if one.state is None else None for one in self.entry.arguments]
        returned = self._returned(results, every, outputs, number)
        return returned if outputs is None else outputs.finish(returned)

    def _run(
        self,
        state: Sequence[Any],
        values: Sequence[Any],
        results: Sequence[Any],
        stream: int | None,
    ) -> None:
        if stream is not None:
            self._enqueue(state, values, results, stream)
            return
        arguments = [
            ctypes.byref(_memref(value)) if isinstance(value, Array) else value for value in values
        ]
        self._library.check(self._by_memrefs(*state, *arguments, *map(ctypes.byref, results)))

    def _state(self, named: dict[str, Any]) -> list[Any]:
        """The handle of the state, if the entry takes one; the state is removed from `named`."""
        if self.entry.state is None:
            return []
        state = named.pop("state", None)
        if not isinstance(state, State) or state.library is not self._library:
            raise InputError(
                f"{self.entry.name} takes a state of its library: give state=..., which "
                "library.state() makes."
            )
        return [state.handle]

    def _bind(self, positional: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """The arguments in order, with `MADE` for results that are not given."""
        names = self._names
        if not named and len(positional) == len(names):
            return list(positional)
        made = self._made
        if not named and made is not None and len(positional) + len(made) == len(names):
            return [*positional, *made]
        given = dict(zip(names, positional, strict=False))
        twice = [name for name in named if name in given]
        unknown = [name for name in named if name not in names]
        missing = [name for name in names if name not in {*given, *named, *self._results}]
        if len(positional) > len(names) or twice or unknown or missing:
            found = [f"{len(positional)} by position", *(f"'{name}'" for name in named)]
            problems = [
                *(f"'{name}' is missing" for name in missing),
                *(f"'{name}' is given twice" for name in twice),
                *(f"'{name}' is no argument" for name in unknown),
            ]
            if len(positional) > len(names):
                problems.append(f"it takes {len(names)}")
            raise InputError(
                f"{self._signature()} was given {', '.join(found)}: {', '.join(problems)}."
            )
        given = {**dict.fromkeys(names, MADE), **given, **named}
        return [given[name] for name in names]

    def _array(self, value: Value, thing: Any, stream: int | None) -> Array:
        assert value.shape is not None
        try:
            array = array_of(thing, stream)
            if not array.has_bits_of(value.dtype):
                raise InputError(f"its elements are {array.dtype.value}")
            if array.shape != value.shape and not _fits(array.shape, value.shape):
                raise InputError(f"its shape is {array.shape}")
            if value.is_written and array.is_read_only:
                raise InputError("it is read-only, and the entry writes it")
            if stream is not None and not array.is_contiguous:
                raise InputError("it must be contiguous to be enqueued on a stream")
        except InputError as error:
            raise InputError(
                f"{self.entry.name}: argument '{value.name}' ({value.type}): {error.message}."
            ) from None
        if array.produced_on is not None:
            wait_for(array.produced_on)
        return array

    def _enqueue(
        self, state: Sequence[Any], values: Sequence[Any], results: Sequence[Any], stream: int
    ) -> None:
        if self._enqueues is None:
            raise InputError(
                f"{self.entry.name} cannot be enqueued on a stream: {self.entry.why_not_async}."
            )
        plain: list[Any] = list(state)
        for description, value in zip(self.entry.given, values, strict=True):
            if not isinstance(value, Array):
                plain.append(value)
                continue
            plain.append(ctypes.c_void_p(value.address))
            assert description.shape is not None
            plain += [
                ctypes.c_int64(size)
                for size, known in zip(value.shape, description.shape, strict=True)
                if known is None
            ]
        numbers = map(ctypes.byref, results)
        self._library.check(self._enqueues(*plain, *numbers, ctypes.c_void_p(stream)))

    def _returned(
        self,
        results: Sequence[Any],
        values: Sequence[Any],
        outputs: Outputs | None,
        stream: int | None,
    ) -> list[Any]:
        has_gpu = any(isinstance(value, Array) and value.is_on_gpu for value in values)
        place = Place(has_gpu or stream is not None, stream, self._library.copy_bytes)
        return [
            from_scalar(value, result.value if hasattr(result, "value") else result)
            if outputs is None or value.is_scalar
            else give_back(value, result, values, self._library, place, outputs.adopt)
            for value, result in zip(self.entry.results, results, strict=True)
        ]


_MEANING = """\
Arrays are NumPy's, or objects with __dlpack__ or __cuda_array_interface__ (PyTorch, CuPy, JAX), in
host or GPU memory, in any combination. Arrays that the entry writes are modified in place. Results
without a given array are new arrays, of the same package as the first array argument; `out=` gives
arrays for them (a tuple with one item for each result, None for a new array). `stream=` enqueues
the work on a CUDA stream (a number, or a stream object) and returns. `state=` is the state, if the
entry takes one. An object of scipy.sparse stands for the arrays of a sparse tensor."""


# Path → the files (device, inode) that this process has opened there, in order.
_OPENED: dict[Path, list[tuple[int, int]]] = {}


def _spelling(path: Path) -> str:
    """A spelling of the path that was not used for another file at this path. For a name that it
    knows, the loader returns the file that it has loaded, even if it was replaced since."""
    found = path.stat()
    opened = _OPENED.setdefault(path, [])
    file = (found.st_dev, found.st_ino)
    if file not in opened:
        opened.append(file)
    return f"{path.parent}/{'./' * opened.index(file)}{path.name}"


class Library:
    """A generated library. Its entries are attributes and items: `library.matmul(A, B, C)`.

    Several threads may call it at the same time. The library stays open until the process ends.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        try:
            self._library = ctypes.CDLL(_spelling(path.resolve()))
        except OSError as error:
            raise InputError(f"Cannot open '{path}': {error}.") from None
        self._last_error = self.function(manifest.functions["last_error"], ctypes.c_char_p)
        self._set_device = self.function(manifest.functions["set_device"])
        self._free = self.function(manifest.functions["free"])
        self._free.argtypes = [ctypes.c_void_p]
        self._copy = self.function(manifest.functions["copy"])
        self._copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self.allocators = Allocators(self.function(manifest.functions["set_allocator"]))
        self._entries = {entry.name: Function(self, entry) for entry in manifest.entries}
        self._weights = Weights(self)

    def __repr__(self) -> str:
        return f"<library {self.path}: {', '.join(self._entries)}>"

    def __reduce__(self) -> NoReturn:
        # Its state (replaced weights, the device) belongs to the process, and would be lost.
        raise TypeError(
            f"A library cannot be copied or pickled: each process opens it, by "
            f"aotc.load({str(self.path)!r})."
        )

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__") or name not in self.__dict__.get("_entries", {}):
            entries = ", ".join(self.__dict__.get("_entries", {}))
            raise AttributeError(f"There is no entry '{name}'. This library has: {entries}.")
        return self._entries[name]

    def __getitem__(self, name: str) -> Function:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._entries]

    @property
    def weights(self) -> Weights:
        """The replaceable weights, by their names."""
        return self._weights

    def state(self) -> State:
        """A new state: the values that the library's entries keep from call to call."""
        return State(self)

    def set_device(self, device: str | int) -> None:
        """Sets the device that this thread's calls use if it has no current CUDA context: a GPU's
        number (`cuda` is 0), or `cpu`, which must be set before the first call of the process."""
        numbers = {"cpu": "-1", "cuda": "0"}
        try:
            number = int(numbers.get(str(device), str(device).removeprefix("cuda:")))
        except ValueError:
            raise InputError(f"Unknown device '{device}': expected cpu, cuda:0 or 0.") from None
        self.check(self._set_device(ctypes.c_int32(number)))

    def function(self, name: str, result: Any = ctypes.c_int32) -> Any:
        """A C function of the library."""
        found = self._library[name]
        found.restype = result
        return found

    def check(self, status: int) -> None:
        """Raises LibraryError, with the library's message, for a status that is not 0."""
        if status != 0:
            raise LibraryError(self._last_error().decode(errors="replace"), status)

    def free(self, address: int) -> None:
        """Frees memory that an entry returned."""
        self._free(address)

    def copy_bytes(self, to: int, source: int, size: int) -> None:
        """Copies bytes between addresses of any kind of memory, and waits for the copy."""
        self.check(self._copy(to, source, size))


def load(path: str | os.PathLike[str]) -> Library:
    """Opens a library that `aotc build --emit shared` made.

    `path` is the result of `aotc.build`, the .so, its manifest, or the folder that contains both
    (`-o FOLDER/`).

    Raises InputError if the library or its manifest does not exist.
    """
    manifest = getattr(path, "manifest", None)
    if isinstance(manifest, Manifest):
        return Library(Path(path), manifest)
    return Library(*_find(Path(path)))


def _find(path: Path) -> tuple[Path, Manifest]:
    if path.suffix == ".json":
        manifest = read_manifest(path)
        return _beside(
            path, [path.parent / "lib", path.parent], f"lib{manifest.library}.so"
        ), manifest
    if path.is_dir():
        libraries = sorted([*path.glob("lib/lib*.so"), *path.glob("lib*.so")])
        found = [library for library in libraries if _manifest_of(library) is not None]
        if len(found) != 1:
            raise InputError(
                f"'{path}' has {len(found) or 'no'} libraries with a manifest: name the .so."
            )
        path = found[0]
    place = _manifest_of(path)
    if not path.exists():
        raise InputError(f"Cannot open '{path}': there is no such file.")
    if place is None:
        raise InputError(
            f"'{path}' has no manifest beside it.",
            hint="build it with --emit shared,manifest, or with -o FOLDER/.",
        )
    return path, read_manifest(place)


def _beside(path: Path, folders: Sequence[Path], name: str) -> Path:
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise InputError(f"There is no {name} beside '{path}'.")


def _manifest_of(library: Path) -> Path | None:
    """The manifest of a library, by its name: in the same folder, or in the folder above."""
    stem = library.name.removeprefix("lib").removesuffix(".so")
    places = [folder / f"{stem}.json" for folder in (library.parent, library.parent.parent)]
    return next((place for place in places if place.exists()), None)


def _memref(array: Array) -> Any:
    rank = len(array.shape)
    if not rank:
        return memref_type(0)(array.address, array.address, 0)
    return memref_type(rank)(array.address, array.address, 0, array.shape, array.strides)


def _fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(
        known in (None, size) for size, known in zip(shape, expected, strict=True)
    )


def _stream_number(stream: Any) -> int:
    """The handle of a stream: PyTorch's `cuda_stream`, CuPy's `ptr`, cuda-python's int(...)."""
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise InputError(f"{type(stream).__name__} is no CUDA stream.") from None
