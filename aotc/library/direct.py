"""The fast path of a call: entries called by pointers alone.

It is for arrays that are exactly of the entry's types, in row-major order, so that nothing is
converted, and only the results that the entry allocates are described. All arrays are in host
memory; or, for modules of PyTorch, on the current GPU, where the call is enqueued on the current
stream.

A call of a small model takes a few microseconds, as would a complete check of its arguments. All
other cases, including errors, are left to the general path.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aotc.library.allocators import Allocator
from aotc.library.arrays import TORCH_DTYPES, TYPE_STRINGS
from aotc.library.descriptors import memref_type, to_scalar, value_type
from aotc.library.frameworks import Framework, NumPy, Torch
from aotc.library.kept import is_kept
from aotc.library.outputs import MADE
from aotc.library.results import Owner, Place, give_back
from aotc.manifest import Entry, Memory, Value

_Shape = tuple[int | None, ...]


class _Package(NamedTuple):
    """The functions of a package of arrays.

    `taker` makes a function for an array argument: it returns the address of an array's elements,
    or None if the array does not have the type and shape, or cannot be used directly. `maker` makes
    a function that makes arrays for a result, whose elements are at `address`. `framework` makes
    arrays of host memory that the entry returns. On a GPU, `stream` is the stream on which the call
    is enqueued, and `allocator` is the allocator of an array's device."""

    taker: Callable[[Value], Callable[[Any], int | None]]
    maker: Callable[[Value], Callable[[], Any]]
    address: Callable[[Any], int]
    framework: Framework
    stream: Callable[[], int] | None = None
    allocator: Callable[[Any], Allocator] | None = None


class _Parameter(NamedTuple):
    """An argument. `take` returns the C function's argument for it, None if it needs the general
    path. `make` makes the array of a result. `dynamic` are the dimensions whose sizes are arguments
    of the C function."""

    take: Callable[[Any], Any]
    make: Callable[[], Any] | None
    dynamic: tuple[int, ...]


class Direct:
    """The calls of one entry with arrays of one package."""

    def __init__(self, call: Any, entry: Entry, package: _Package, library: Owner) -> None:
        """`call` is the entry's C function that takes pointers."""
        self._call = call
        self._package = package
        self._library = library
        self._allocates = package.allocator is not None and entry.workspace_bytes != 0
        # An argument that is an array of the package.
        self._array = next(
            i for i, value in enumerate(entry.given) if not value.is_scalar and value.result is None
        )
        self._results = [(value, memref_type(len(value.shape or ()))) for value in entry.results]
        self._place = Place(is_on_device=False, stream=None, copy=library.copy_bytes)
        self._parameters = [_parameter(value, package) for value in entry.given]
        made = [value for value in entry.given if value.result is not None]
        numbers = [value.result or 0 for value in (*made, *entry.results)]
        # The places of the results, in the order of the module.
        self._order = sorted(range(len(numbers)), key=numbers.__getitem__)
        self._is_ordered = self._order == list(range(len(numbers)))

    def __call__(self, state: Sequence[Any], given: Sequence[Any]) -> tuple[int, list[Any]] | None:
        """Calls the entry; returns the status, and the results in order. None means that it was not
        called, because the arguments need the general path."""
        arguments: list[Any] = [*state]
        made: list[Any] = []
        if not self._describe(given, arguments, made):
            return None
        returned = [(value, type_()) for value, type_ in self._results]
        for _, memref in returned:
            arguments.append(ctypes.byref(memref))
        stream = None
        if self._package.stream is not None:
            stream = self._package.stream()
            arguments.append(stream)
        status: int
        if self._allocates:
            assert self._package.allocator is not None
            allocator = self._package.allocator(given[self._array])
            with self._library.allocators.given(allocator, stream):
                status = self._call(*arguments)
        else:
            status = self._call(*arguments)
        if status != 0:
            return status, []
        for value, memref in returned:
            adopt = self._package.framework.adopted
            made.append(give_back(value, memref, (), self._library, self._place, adopt))
        return status, made if self._is_ordered else [made[i] for i in self._order]

    def _describe(self, given: Sequence[Any], arguments: list[Any], made: list[Any]) -> bool:
        """Appends the C function's arguments, and the results that are made for it. False if an
        argument needs the general path."""
        for (take, make, dynamic), thing in zip(self._parameters, given, strict=True):
            if make is not None:
                if thing is not MADE:
                    return False
                thing = make()
                made.append(thing)
            taken = take(thing)
            if taken is None:
                return False
            arguments.append(taken)
            for i in dynamic:
                arguments.append(thing.shape[i])
        return True


def _parameter(value: Value, package: _Package) -> _Parameter:
    if value.shape is None:
        return _Parameter(lambda thing: _scalar(value, thing), None, ())
    if value.result is not None:
        return _Parameter(package.address, package.maker(value), ())
    return _Parameter(package.taker(value), None, _dynamic(value))


def _scalar(value: Value, thing: Any) -> Any:
    return to_scalar(value, thing) if type(thing) in (int, float) else None


def direct_call(library: Any, entry: Entry, class_: type, *, is_enqueued: bool) -> Direct | None:
    """The fast path for calls whose first array has this class, in host memory or enqueued on the
    GPU's current stream. None if the entry or the package always needs the general path."""
    package = _PACKAGES.get((class_.__module__, class_.__name__, is_enqueued))
    name = "async" if is_enqueued else "call"
    if package is None or name not in entry.functions:
        return None
    if not all(map(_is_simple, entry.given)) or (entry.results and is_enqueued):
        return None
    if not all(map(_is_adopted, entry.results)):
        return None
    call = library.function(entry.functions[name])
    types: list[Any] = [ctypes.c_void_p] * (entry.state is not None)
    for value in entry.given:
        types.append(value_type(value) if value.is_scalar else ctypes.c_void_p)
        types += [ctypes.c_int64] * len(_dynamic(value))
    call.argtypes = [*types, *[ctypes.c_void_p] * (len(entry.results) + is_enqueued)]
    return Direct(call, entry, package(), library)


def _dynamic(value: Value) -> tuple[int, ...]:
    return tuple(i for i, size in enumerate(value.shape or ()) if size is None)


def _is_simple(value: Value) -> bool:
    """Whether an argument is described by its pointer and its sizes: no static size is 0, and it is
    contiguous in row-major order. An array that is made for a result has static sizes."""
    return value.shape is None or (
        value.strides is None
        and not value.offset
        and 0 not in value.shape
        and (value.result is None or None not in value.shape)
    )


def _is_adopted(value: Value) -> bool:
    """Whether a result is memory that the caller owns, on the host if the arguments are there."""
    return (
        value.shape is not None
        and value.is_owned
        and value.aliases is None
        and value.memory is not Memory.DEVICE
    )


def _fits(shape: tuple[int, ...], expected: _Shape) -> bool:
    """Whether an array has a shape. Arrays without elements take the general path."""
    if shape == expected:
        return True
    if None not in expected or len(shape) != len(expected) or 0 in shape:
        return False
    return all(known in (None, size) for size, known in zip(shape, expected, strict=True))


def _torch() -> _Package:
    return _tensors("cpu", lambda thing: bool(thing.is_cpu))


def _torch_cuda() -> _Package:
    torch: Any = sys.modules["torch"]
    current = torch.cuda.current_device
    package = _tensors("cuda", lambda thing: thing.is_cuda and thing.get_device() == current())
    return package._replace(
        stream=lambda: torch.cuda.current_stream().cuda_stream,
        allocator=lambda array: Torch(array, [array]),
    )


def _tensors(kind: str, is_there: Callable[[Any], bool]) -> _Package:
    """The functions of PyTorch, for a kind of device."""
    torch: Any = sys.modules["torch"]
    tensor, strided, device = torch.Tensor, torch.strided, torch.device(kind)
    framework = Torch(None, [])

    def dtype_of(value: Value) -> Any:
        return getattr(torch, TORCH_DTYPES.get(value.dtype, ""), None)

    def taker(value: Value) -> Callable[[Any], int | None]:
        dtype, shape = dtype_of(value), tuple(value.shape or ())

        def take(thing: Any) -> int | None:
            is_simple = (
                type(thing) is tensor
                and thing.dtype is dtype
                and _fits(thing.shape, shape)
                and thing.layout is strided
                and is_there(thing)
                and thing.is_contiguous()
                and not (thing.requires_grad or thing.is_conj() or thing.is_neg())
            )
            found: int | None = thing.data_ptr() if is_simple else None
            return found

        return take

    def maker(value: Value) -> Callable[[], Any]:
        if kind == "cpu" and is_kept(value):
            return lambda: framework.empty(value, None)
        dtype, shape = dtype_of(value), tuple(value.shape or ())
        return lambda: torch.empty(shape, dtype=dtype, device=device)

    return _Package(taker, maker, tensor.data_ptr, framework)


def _numpy() -> _Package:
    numpy: Any = sys.modules["numpy"]
    array = numpy.ndarray
    framework = NumPy(None, [])
    address = _array_address(numpy)

    def taker(value: Value) -> Callable[[Any], int | None]:
        dtype, shape = numpy.dtype(TYPE_STRINGS[value.dtype]), tuple(value.shape or ())
        is_written = value.is_written

        def take(thing: Any) -> int | None:
            is_simple = type(thing) is array and thing.dtype is dtype and _fits(thing.shape, shape)
            if not is_simple:
                return None
            flags = thing.flags
            if not flags.c_contiguous or (is_written and not flags.writeable):
                return None
            return address(thing)

        return take

    def maker(value: Value) -> Callable[[], Any]:
        if is_kept(value):
            return lambda: framework.empty(value, None)
        dtype, shape = numpy.dtype(TYPE_STRINGS[value.dtype]), tuple(value.shape or ())
        return lambda: numpy.empty(shape, dtype)

    return _Package(taker, maker, address, framework)


def _array_address(numpy: Any) -> Callable[[Any], int]:
    """A function that returns the address of a NumPy array's elements.

    It is the first field of the array's object (`PyArrayObject_fields` in NumPy's headers). NumPy's
    own attributes make other objects to tell it, which takes five times as long."""
    place = object.__basicsize__
    pointer = ctypes.c_void_p.from_address

    def read(array: Any) -> int:
        return pointer(id(array) + place).value or 0

    def ask(array: Any) -> int:
        address: int = array.__array_interface__["data"][0]
        return address

    probe = numpy.zeros(16)
    is_known = sys.implementation.name == "cpython" and all(
        read(view) == ask(view) for view in (probe, probe[3:])
    )
    return read if is_known else ask


# (package, class, whether the call is enqueued on a GPU) → the functions of the package.
_PACKAGES: dict[tuple[str, str, bool], Callable[[], _Package]] = {
    ("torch", "Tensor", False): _torch,
    ("torch", "Tensor", True): _torch_cuda,
    ("numpy", "ndarray", False): _numpy,
}
