"""Results as arrays of other packages: new arrays that an entry writes, and memory that an entry
returned.

A package is only imported if a call has one of its arrays. `FRAMEWORKS` is the table of packages.
For arrays of all others, and for calls without arrays, results are NumPy arrays.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from aotc.errors import InputError
from aotc.library.allocators import Allocator
from aotc.library.arrays import TORCH_DTYPES, TYPE_STRINGS
from aotc.library.kept import is_kept, kept_array
from aotc.library.results import Buffer
from aotc.manifest import Dtype, Memory, Value


class Framework(Protocol):
    """Makes the results of one call."""

    def empty(self, value: Value, stream: int | None) -> Any:
        """A new array with the type and size of `value`, which the entry can write. It is allocated
        in the order of `stream`, if necessary."""

    def finished(self, array: Any) -> Any:
        """The array to return for an array from `empty`, after the entry has written it."""

    def adopted(self, value: Value, buffer: Buffer) -> Any:
        """Memory that the entry returned, as an array that keeps the buffer alive; a copy, if the
        caller does not own it."""

    @property
    def allocator(self) -> Allocator | None:
        """The allocator for GPU memory where the results are, if the package has one."""


def framework_of(arrays: Sequence[Any]) -> Framework:
    """The framework of the first array that has one. The results are on its device."""
    for array in arrays:
        class_: Any = type(array)
        make = _maker_for(class_)
        if make is not None:
            return make(array, arrays)
    return NumPy(arrays[0] if arrays else None, arrays)


@functools.cache
def _maker_for(class_: type) -> Callable[[Any, Sequence[Any]], Framework] | None:
    packages = [base.__module__.partition(".")[0] for base in class_.__mro__]
    return next((FRAMEWORKS[name] for name in packages if name in FRAMEWORKS), None)


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(size for size in value.shape or () if size is not None)


class NumPy:
    """NumPy. bf16 and f8 are those of ml_dtypes if an argument uses it, else their bits."""

    def __init__(self, array: Any, arrays: Sequence[Any]) -> None:
        dtypes = [getattr(one, "dtype", None) for one in arrays]
        self._has_ml_dtypes = any(
            getattr(getattr(dtype, "type", None), "__module__", "") == "ml_dtypes"
            for dtype in dtypes
        )

    def empty(self, value: Value, stream: int | None) -> Any:
        numpy = _numpy(value)
        if is_kept(value):
            return self._viewed(value, kept_array(numpy, value))
        return self._viewed(value, numpy.empty(_shape(value), TYPE_STRINGS[value.dtype]))

    def finished(self, array: Any) -> Any:
        return array

    def adopted(self, value: Value, buffer: Buffer) -> Any:
        if value.memory is Memory.DEVICE or buffer.is_enqueued:
            return buffer
        array = buffer.as_host_array(_numpy(value), TYPE_STRINGS[value.dtype])
        if not value.is_owned:
            array = array.copy()
        return self._viewed(value, array)

    @property
    def allocator(self) -> Allocator | None:
        return None

    def _viewed(self, value: Value, array: Any) -> Any:
        name = _ML_DTYPES.get(value.dtype)
        if name is None or not self._has_ml_dtypes:
            return array
        return array.view(getattr(sys.modules["ml_dtypes"], name))


_ML_DTYPES = {
    Dtype.BF16: "bfloat16",
    Dtype.F8E4M3FN: "float8_e4m3fn",
    Dtype.F8E5M2: "float8_e5m2",
}


def _numpy(value: Value) -> Any:
    try:
        import numpy
    except ImportError:
        raise InputError(
            f"The result '{value.name}' is an array of the host.", hint="pip install numpy"
        ) from None
    return numpy


@functools.cache
def _has_numpy() -> bool:
    """PyTorch works without it."""
    return importlib.util.find_spec("numpy") is not None


class Torch:
    """PyTorch. Results are on the GPU of the first tensor that is on a GPU, else on the CPU."""

    def __init__(self, array: Any, arrays: Sequence[Any]) -> None:
        import torch

        self._torch = torch
        devices = [one.device for one in arrays if isinstance(one, torch.Tensor)]
        devices.append(torch.device("cpu"))
        self._device = next((one for one in devices if one.type == "cuda"), devices[0])

    def empty(self, value: Value, stream: int | None) -> Any:
        if self._device.type == "cpu" and _has_numpy() and is_kept(value):
            array = kept_array(_numpy(value), value)
            return self._torch.from_numpy(array).view(self._dtype(value))
        with self._on(stream):
            return self._torch.empty(_shape(value), dtype=self._dtype(value), device=self._device)

    def finished(self, array: Any) -> Any:
        return array

    def adopted(self, value: Value, buffer: Buffer) -> Any:
        dtype = self._dtype(value)
        if buffer.owner is not None and self._device.type == "cuda":
            first = buffer.begin // value.dtype.bytes
            made = self._torch.empty(0, dtype=dtype, device=self._device)
            return made.set_(buffer.owner.untyped_storage(), first, buffer.shape, buffer.strides)
        if value.memory is not Memory.HOST and self._device.type == "cuda":
            tensor = self._torch.as_tensor(buffer, device=self._device).view(dtype)
            return tensor if value.is_owned else tensor.clone()
        array = buffer.as_host_array(_numpy(value), TYPE_STRINGS[value.dtype])
        if not value.is_owned or any(stride < 0 for stride in array.strides):
            array = array.copy()
        return self._torch.from_numpy(array).view(dtype).to(self._device)

    @property
    def allocator(self) -> Allocator | None:
        return self if self._device.type == "cuda" else None

    def allocate(self, size: int, stream: int | None) -> tuple[int, Any]:
        with self._on(stream):
            owner = self._torch.empty(size, dtype=self._torch.uint8, device=self._device)
        return owner.data_ptr(), owner

    def _on(self, stream: int | None) -> AbstractContextManager[Any]:
        """A context in which PyTorch's allocator allocates in the order of a stream."""
        if stream is None or self._device.type != "cuda":
            return nullcontext()
        cuda = self._torch.cuda
        if stream == cuda.current_stream(self._device).cuda_stream:
            return nullcontext()
        made: AbstractContextManager[Any] = cuda.stream(
            cuda.ExternalStream(stream, self._device) if stream else cuda.default_stream()
        )
        return made

    def _dtype(self, value: Value) -> Any:
        return getattr(self._torch, TORCH_DTYPES[value.dtype])


class _CuPy:
    """CuPy. Results are on the current device. bf16 and f8, which it does not have, are bits."""

    def __init__(self, array: Any, arrays: Sequence[Any]) -> None:
        import cupy  # type: ignore[import-not-found, unused-ignore]

        self._cupy = cupy

    def empty(self, value: Value, stream: int | None) -> Any:
        return self._cupy.empty(_shape(value), TYPE_STRINGS[value.dtype])

    def finished(self, array: Any) -> Any:
        return array

    def adopted(self, value: Value, buffer: Buffer) -> Any:
        if buffer.owner is not None:
            item = value.dtype.bytes
            strides = tuple(stride * item for stride in buffer.strides)
            pointer = buffer.owner + buffer.begin
            return self._cupy.ndarray(buffer.shape, TYPE_STRINGS[value.dtype], pointer, strides)
        if value.memory is Memory.HOST:
            return self._cupy.array(_numpy(value).asarray(buffer))
        return self._cupy.array(buffer, copy=not value.is_owned)

    @property
    def allocator(self) -> Allocator | None:
        return self

    def allocate(self, size: int, stream: int | None) -> tuple[int, Any]:
        cuda = self._cupy.cuda
        with nullcontext() if stream is None else cuda.ExternalStream(stream):
            pointer = cuda.alloc(size)
        return pointer.ptr, pointer


def _no_stream(value: Value) -> InputError:
    return InputError(
        f"The result '{value.name}' cannot be an array of JAX if the call is enqueued on a stream.",
        hint="give an array that may be written as out=.",
    )


class _Jax:
    """JAX. Its arrays are immutable, so NumPy arrays are copied to the first argument's device."""

    def __init__(self, array: Any, arrays: Sequence[Any]) -> None:
        import jax  # type: ignore[import-not-found, unused-ignore]

        self._jax = jax
        self._device = next(iter(array.devices()))
        self._numpy = NumPy(array, arrays)

    def empty(self, value: Value, stream: int | None) -> Any:
        if stream is not None:
            raise _no_stream(value)
        self._check(value)
        return self._numpy.empty(value, stream)

    def finished(self, array: Any) -> Any:
        return self._jax.device_put(array, self._device)

    def adopted(self, value: Value, buffer: Buffer) -> Any:
        self._check(value)
        if buffer.is_enqueued:
            raise _no_stream(value)
        return self.finished(self._numpy.adopted(value, buffer).copy())

    @property
    def allocator(self) -> Allocator | None:
        return None

    def _check(self, value: Value) -> None:
        """Refuses types that JAX would silently make narrower."""
        config: Any = self._jax.config
        is_wide = value.dtype.value[1:] in ("64", "128") and value.dtype is not Dtype.C64
        if is_wide and not config.jax_enable_x64:
            raise InputError(
                f"The result '{value.name}' is {value.type}, and JAX has no {value.dtype.value}.",
                hint="jax.config.update('jax_enable_x64', True), or give an array as out=.",
            )


# The package of an array's class, or of one of its base classes → its framework.
FRAMEWORKS: dict[str, Callable[[Any, Sequence[Any]], Framework]] = {
    "torch": Torch,
    "cupy": _CuPy,
    "jax": _Jax,
    "jaxlib": _Jax,
}
