"""Arrays of other packages, by the protocols that they share: where their elements are.

* `__array_interface__` (NumPy): host memory.
* `__dlpack__` (PyTorch, JAX, CuPy, NumPy, ...): host, pinned, managed or GPU memory.
  https://dmlc.github.io/dlpack/latest/
* `__cuda_array_interface__` (CuPy, Numba, PyTorch): GPU memory.
  https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html

For PyTorch tensors, their own methods are used if these give the same: making a DLPack capsule of
one takes as long as a small kernel.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from aotc.errors import InputError
from aotc.manifest import Dtype

# DLPack's DLDataTypeCode, and the letters of NumPy's type strings.
_DL_CODES = {0: "i", 1: "u", 2: "f", 5: "c", 6: "bool"}
_DTYPES = {
    **{f"i{dtype.bytes}": dtype for dtype in (Dtype.I8, Dtype.I16, Dtype.I32, Dtype.I64)},
    **{f"u{dtype.bytes}": dtype for dtype in (Dtype.U8, Dtype.U16, Dtype.U32, Dtype.U64)},
    **{f"f{dtype.bytes}": dtype for dtype in (Dtype.F16, Dtype.F32, Dtype.F64)},
    "c8": Dtype.C64,
    "c16": Dtype.C128,
    "b1": Dtype.BOOL,
    "bool1": Dtype.BOOL,
}
# (DLPack's code, bits) → type.
_DL_TYPES = {
    **{
        (code, 8 * size): _DTYPES[f"{letter}{size}"]
        for code, letter in _DL_CODES.items()
        for size in (1, 2, 4, 8, 16)
        if f"{letter}{size}" in _DTYPES
    },
    (4, 16): Dtype.BF16,
    (10, 8): Dtype.F8E4M3FN,
    (12, 8): Dtype.F8E5M2,
}
# The names in ml_dtypes of types that NumPy does not have.
_NAMED = {
    "bfloat16": Dtype.BF16,
    "float8_e4m3fn": Dtype.F8E4M3FN,
    "float8_e5m2": Dtype.F8E5M2,
}
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_DEVICES = (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED)
# PyTorch's names for element types.
_TORCH = {
    **{f"int{8 * dtype.bytes}": dtype for dtype in (Dtype.I8, Dtype.I16, Dtype.I32, Dtype.I64)},
    **{f"uint{8 * dtype.bytes}": dtype for dtype in (Dtype.U8, Dtype.U16, Dtype.U32, Dtype.U64)},
    **{f"float{8 * dtype.bytes}": dtype for dtype in (Dtype.F16, Dtype.F32, Dtype.F64)},
    **_NAMED,
    "bool": Dtype.BOOL,
    "complex64": Dtype.C64,
    "complex128": Dtype.C128,
}
TORCH_DTYPES = {dtype: name for name, dtype in _TORCH.items()}
# NumPy's type strings. bf16 and f8, which NumPy does not have, are their bits.
TYPE_STRINGS = {
    **{dtype: f"<{dtype.value[0]}{dtype.bytes}" for dtype in Dtype},
    Dtype.BOOL: "|b1",
    Dtype.I8: "|i1",
    Dtype.U8: "|u1",
    Dtype.BF16: "<u2",
    Dtype.F8E4M3FN: "|u1",
    Dtype.F8E5M2: "|u1",
}
# The packages whose arrays are immutable.
_IMMUTABLE = ("jax", "jaxlib")
_SAME_BITS = {
    *(("u16", "bf16"), ("u8", "bool"), ("bool", "i8")),
    *(("u8", "f8e4m3fn"), ("u8", "f8e5m2")),
}
# The value in `__dlpack__(stream=...)` for CUDA's legacy default stream.
_LEGACY_STREAM = 1


class Array(NamedTuple):
    """Elements in memory. `strides` are in elements. `owner` keeps them alive. `produced_on` is a
    stream that still works on them, if it is not the caller's. `is_on_gpu` says that they are in
    GPU memory."""

    address: int
    dtype: Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_read_only: bool
    owner: Any
    produced_on: int | None = None
    is_on_gpu: bool = False

    @property
    def extent(self) -> tuple[int, int]:
        """The begin and the end of its memory, in bytes; equal if it has no elements."""
        if 0 in self.shape:
            return (self.address, self.address)
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        first = sum(step for step in steps if step < 0)
        last = sum(step for step in steps if step > 0) + 1
        item = self.dtype.bytes
        return (self.address + first * item, self.address + last * item)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous, in row-major order."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size > 1 and stride != expected:
                return False
            expected *= max(size, 1)
        return True

    def has_bits_of(self, dtype: Dtype) -> bool:
        """Whether the elements have a type, or another type for the same bits: MLIR's operations
        decide about signedness, and packages without bf16 or f8 use integers."""
        theirs, ours = self.dtype.value, dtype.value
        return (
            theirs == ours
            or (theirs[0] in "iu" and ours[0] in "iu" and theirs[1:] == ours[1:])
            or (theirs, ours) in _SAME_BITS
        )


def empty_array(what: str, shape: Sequence[int], dtype: Dtype) -> Any:
    """A NumPy array into which a part of a library is read. `what` is the part's name."""
    try:
        import numpy
    except ImportError:
        raise InputError(f"A {what} is read as an array.", hint="pip install numpy") from None
    return numpy.empty(shape, numpy.dtype(TYPE_STRINGS[dtype]))


def filling_array(what: str, shape: Sequence[int], dtype: Dtype, array: Any) -> Array:
    """An array whose elements are copied to a part of a library: contiguous, of this type and
    shape, and ready."""
    given = array_of(array, None)
    fits = given.shape == shape and given.has_bits_of(dtype)
    if not fits or not given.is_contiguous:
        raise InputError(
            f"The {what} takes a contiguous array of {dtype.value} of shape {shape}, and was "
            f"given one of {given.dtype.value} of shape {given.shape}"
            + (", which is not contiguous." if fits else ".")
        )
    if given.produced_on is not None:
        wait_for(given.produced_on)
    return given


def array_of(thing: Any, stream: int | None) -> Array:
    """The elements of `thing`, ready for work on `stream` (None is CUDA's default stream). Raises
    InputError if it is not an array, or for an element type that aotc does not support."""
    if type(thing).__module__ == "torch" and (found := _of_torch(thing, stream)) is not None:
        return found
    if hasattr(thing, "__array_interface__"):
        if is_masked(thing):
            raise InputError("some of its elements are masked: give .filled(...) or .data")
        if hasattr(thing, "__array__") and not hasattr(thing, "__setitem__"):
            # A NumPy scalar, whose interface refers to a temporary copy.
            thing = thing.__array__()
            thing.flags.writeable = False
        return _of_interface(thing, thing.__array_interface__, None, is_on_gpu=False)
    if hasattr(thing, "__dlpack__") and hasattr(thing, "__dlpack_device__"):
        return _of_dlpack(thing, stream)
    if hasattr(thing, "__cuda_array_interface__"):
        return _of_interface(thing, thing.__cuda_array_interface__, stream, is_on_gpu=True)
    raise InputError(
        f"{type(thing).__name__} is no array: it has none of __array_interface__, __dlpack__ and "
        "__cuda_array_interface__"
    )


def is_masked(thing: Any) -> bool:
    """Whether it is a NumPy array with masked elements. Its interface and its conversions to
    numbers ignore the mask."""
    masked: Any = sys.modules.get("numpy.ma")
    return (
        masked is not None
        and isinstance(thing, masked.MaskedArray)
        and bool(masked.is_masked(thing))
    )


def _of_interface(
    thing: Any, interface: dict[str, Any], stream: int | None, *, is_on_gpu: bool
) -> Array:
    if not isinstance(interface.get("data"), tuple):
        raise InputError("it does not tell where its elements are: numpy.asarray(...) does")
    address, is_read_only = interface["data"]
    shape = tuple(interface["shape"])
    text = interface["typestr"]
    dtype = _DTYPES.get(text[1:])
    if dtype is None:
        dtype = _NAMED.get(str(getattr(thing, "dtype", text)))
    if dtype is None or (text[0] == ">" and dtype.bytes > 1):
        name = getattr(thing, "dtype", text)
        raise InputError(f"its elements are {name}, which no entry takes")
    item = dtype.bytes
    strides = interface.get("strides")
    if strides is None:
        elements = _packed(shape)
    elif any(stride % item for stride in strides):
        raise InputError("its elements do not lie at multiples of their size")
    else:
        elements = tuple(stride // item for stride in strides)
    produced_on = interface.get("stream")
    waits = produced_on is not None and produced_on != (stream or _LEGACY_STREAM)
    stream_of_it = produced_on if waits else None
    return Array(
        address, dtype, shape, elements, bool(is_read_only), thing, stream_of_it, is_on_gpu
    )


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _of_torch(thing: Any, stream: int | None) -> Array | None:
    """The elements of a PyTorch tensor; None if DLPack must be used: it refuses some tensors, and
    synchronizes with another stream."""
    import torch

    if type(thing) is not torch.Tensor or thing.layout is not torch.strided:
        return None
    if thing.requires_grad or thing.is_conj() or thing.is_neg():
        return None
    dtype = _torch_dtype(thing.dtype)
    if dtype is None:
        return None
    if thing.is_cuda:
        own = 0 if stream in (None, _LEGACY_STREAM) else stream
        device = torch.cuda.current_device()
        if thing.get_device() != device or torch.cuda.current_stream().cuda_stream != own:
            return None
    elif not thing.is_cpu:
        return None
    return Array(
        *(thing.data_ptr(), dtype, tuple(thing.shape), thing.stride(), False, thing),
        is_on_gpu=thing.is_cuda,
    )


@functools.cache
def _torch_dtype(dtype: Any) -> Dtype | None:
    return _TORCH.get(str(dtype).removeprefix("torch."))


def wait_for(stream: int) -> None:
    """Waits for the stream that produced an array, if another stream will use it."""
    from cuda.bindings import driver

    (error,) = driver.cuStreamSynchronize(driver.CUstream(stream))
    if error != driver.CUresult.CUDA_SUCCESS:
        raise InputError(f"Waiting for the stream of an array failed: {error.name}.")


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _of_dlpack(thing: Any, stream: int | None) -> Array:
    capsule = _capsule(thing, stream)
    # The capsule is not consumed, so it frees its tensor when it is destroyed.
    pointer = _capsule_pointer(ctypes.py_object(capsule), b"dltensor")
    tensor = ctypes.cast(pointer, ctypes.POINTER(_DLTensor)).contents
    dtype = _DL_TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise InputError(
            f"its elements are {getattr(thing, 'dtype', 'of another type')}, which no entry takes"
        )
    shape = tuple(tensor.shape[: tensor.rank])
    strides = tuple(tensor.strides[: tensor.rank]) if tensor.strides else _packed(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    # This version of DLPack has no flag for it.
    is_read_only = type(thing).__module__.partition(".")[0] in _IMMUTABLE
    return Array(
        *(address, dtype, shape, strides, is_read_only, (thing, capsule)),
        is_on_gpu=tensor.device_type == _CUDA,
    )


def _capsule(thing: Any, stream: int | None) -> Any:
    """The DLPack capsule. Raises InputError if the package refuses it, for example PyTorch for
    tensors that require gradients, or have no memory."""
    # PyTorch's default stream is 0, but its `__dlpack__` accepts only 1 for it.
    own = stream or _LEGACY_STREAM
    try:
        device, _ = thing.__dlpack_device__()
        if device not in _DEVICES:
            raise InputError(f"it is on a device of another kind (DLPack's {int(device)})")
        # The package makes work on `own` wait for the elements.
        is_on_gpu = device in (_CUDA, _CUDA_MANAGED)
        return thing.__dlpack__(stream=own) if is_on_gpu else thing.__dlpack__()
    except InputError:
        raise
    except Exception as error:
        raise InputError(str(error).rstrip(".")) from None


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
