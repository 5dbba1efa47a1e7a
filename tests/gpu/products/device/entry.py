"""Entries of libraries, and what they are called with: random operands, guarded results."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "i32": torch.int32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}
GUARD = 64  # elements before and behind a result


class Entry:
    """The entry of a library. `types`: of each argument the sizes that its type says, 0 for those
    that it does not; None: no size is known. `is_strided`: arguments are described."""

    def __init__(
        self, name: str, types: Sequence[Sequence[int]] | None, *, is_strided: bool
    ) -> None:
        loaded = ctypes.CDLL(str(HERE / name / "lib" / f"lib{name}.so"))
        self.name, self.types, self.is_strided = name, types, is_strided
        self._message = getattr(loaded, f"{name}_last_error")
        self._message.restype = ctypes.c_char_p
        self._function = getattr(loaded, f"{name}_memref" if is_strided else f"{name}_async")

    def __call__(self, *tensors: Any) -> None:
        if self.is_strided:
            torch.cuda.synchronize()
            status = self._function(*(ctypes.byref(_described(x)) for x in tensors))
        else:
            arguments: list[Any] = []
            types = self.types or [[0] * x.ndim for x in tensors]
            for x, known in zip(tensors, types, strict=True):
                arguments.append(ctypes.c_void_p(x.data_ptr()))
                sizes = zip(x.shape, known, strict=True)
                arguments += [ctypes.c_int64(size) for size, said in sizes if not said]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            status = self._function(*arguments, stream)
        if status != 0:
            raise RuntimeError(f"{self.name}: {self._message().decode()}")


def _described(x: Any) -> Any:
    """A descriptor, as the library's header has it."""

    class Memref(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * x.ndim),
            ("strides", ctypes.c_int64 * x.ndim),
        )

    return Memref(x.data_ptr(), x.data_ptr(), 0, tuple(x.shape), tuple(x.stride()))


class Draw:
    """Random operands. In every second trial all begin at multiples of 16 bytes, with rows that do,
    as the kernels with TMA need it; in others every second operand, and the rest anywhere."""

    def __init__(self, rng: Any, *, is_strided: bool) -> None:
        self.rng, self.is_strided = rng, is_strided
        self.is_aligned = rng.random() < 0.5

    def _place(self, element: str) -> tuple[int, int]:
        """Elements in front, and between two rows."""
        aligned = max(1, 16 // DTYPES[element].itemsize)
        unit = aligned if self.is_aligned else self.rng.choice((1, aligned))
        return unit * self.rng.randint(0, 2), unit * self.rng.randint(0, 3) * self.is_strided

    def operand(self, shape: Sequence[int], element: str, *, normal: float = 0.0) -> Any:
        """Uniform from -1 to 1, integers of all values; `normal`: a deviation."""
        offset, more = self._place(element)
        dtype = DTYPES[element]
        *outer, columns = shape
        count = math.prod(outer) * (columns + more)
        # What has no elements has an address for all that.
        flat = max(1, count + offset)
        if not dtype.is_floating_point:
            values = torch.randint(-128, 128, (flat,), device="cuda", dtype=dtype)
        elif normal:
            values = (torch.randn(flat, device="cuda") * normal).to(dtype)
        else:
            values = (torch.rand(flat, device="cuda") * 2 - 1).to(dtype)
        return values[offset : offset + count].view(*outer, columns + more)[..., :columns]

    def result(self, shape: Sequence[int], element: str, *, adds: bool = False) -> Result:
        """`adds`: it is to be added to."""
        before = self.operand(shape, element) if adds else None
        return Result(shape, element, *self._place(element), before)


class Result:
    """What an entry writes, between guards: `values`, in the memory `whole`. `before`: what they
    are to be before that; None if it is of no meaning."""

    def __init__(
        self, shape: Sequence[int], element: str, offset: int, more: int, before: Any | None
    ) -> None:
        *outer, columns = shape
        count = math.prod(outer) * (columns + more)
        self.before = before
        self.is_integer = element.startswith("i")
        self.whole = torch.empty(count + 2 * GUARD + offset, device="cuda", dtype=DTYPES[element])
        inner = self.whole[GUARD + offset : GUARD + offset + count]
        self.values = inner.view(*outer, columns + more)[..., :columns]

    def poison(self, number: int) -> None:
        """Of two kinds, so that no result can have both by chance."""
        poisons = (-1, 77) if self.is_integer else (math.nan, 77.0)
        self.whole.fill_(poisons[number])
        if self.before is not None:
            self.values.copy_(self.before)
        self._poison = self.whole.clone()

    def bits(self) -> Any:
        return self.values.contiguous().view(torch.uint8)

    def is_guard_whole(self) -> bool:
        """Whether nothing but the result was written since; the result is lost."""
        stay = self._poison.as_strided(
            self.values.shape, self.values.stride(), self.values.storage_offset()
        )
        self.values.copy_(stay)
        return torch.equal(self.whole.view(torch.uint8), self._poison.view(torch.uint8))
