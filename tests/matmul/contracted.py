"""Contractions to build and to run on the CPU device: operations, operands, what must come out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_implicit_gemm
from aotc.mlir import ir

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i8": np.int8,
}
# A place along a dimension: loops, each with how far its turns are from each other.
Place = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Contraction:
    """`a`, `b` and `c`: for each dimension the loops that move along it, as "n", or "h*2 + p".

    `sizes`: of the loops. `dynamic`: the operands' names and dimensions whose sizes the types do
    not say. `reversed`: the body multiplies the second operand's element by the first one's.
    """

    name: str
    sizes: dict[str, int]
    a: tuple[str, ...]
    b: tuple[str, ...]
    c: tuple[str, ...]
    element: str = "f32"
    result: str = "f32"
    adds: bool = False
    dynamic: tuple[tuple[str, int], ...] = ()
    reversed: bool = False
    allow_tf32: bool = False

    def places(self, name: str) -> list[Place]:
        found = []
        for text in getattr(self, name):
            words = [term.split("*") for term in text.split(" + ")]
            found.append(tuple((word[0], int(word[1]) if word[1:] else 1) for word in words))
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(
            sum((self.sizes[loop] - 1) * factor for loop, factor in place) + 1
            for place in self.places(name)
        )

    def type(self, name: str) -> str:
        element = self.result if name == "c" else self.element
        sizes = [
            "?" if (name, dimension) in self.dynamic else str(size)
            for dimension, size in enumerate(self.shape(name))
        ]
        return f"memref<{'x'.join(sizes)}x{element}>"

    @property
    def accumulator(self) -> str:
        return self.result if self.result in ("f64", "f32", "i32") else "f32"

    @property
    def operation(self) -> str:
        """The linalg.generic, of %a, %b and %c."""
        loops = ", ".join(self.sizes)
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(getattr(self, name))})>" for name in "abc"
        )
        used = {loop for place in self.places("c") for loop, _ in place}
        kinds = ", ".join(f'"{"parallel" if loop in used else "reduction"}"' for loop in self.sizes)
        letter = "i" if self.element.startswith("i") else "f"
        lines, factors = [], ["%x", "%y"]
        if self.element != self.result:
            widen = "extsi" if letter == "i" else "extf"
            for number, name in enumerate("xy"):
                lines.append(f"%w{name} = arith.{widen} %{name} : {self.element} to {self.result}")
                factors[number] = f"%w{name}"
        if self.reversed:
            factors.reverse()
        body = "\n".join(lines)
        return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins(%a, %b : {self.type("a")}, {self.type("b")}) outs(%c : {self.type("c")}) {{
^bb0(%x: {self.element}, %y: {self.element}, %z: {self.result}):
  {body}
  %p = arith.mul{letter} {factors[0]}, {factors[1]} : {self.result}
  %s = arith.add{letter} %z, %p : {self.result}
  linalg.yield %s : {self.result}
}}"""

    @property
    def module(self) -> str:
        zero = "0" if self.result.startswith("i") else "0.0"
        fill = f"""
  %zero = arith.constant {zero} : {self.result}
  linalg.generic {{indexing_maps = [{self._identity}], iterator_types = [{self._parallel}]}}
      outs(%c : {self.type("c")}) {{
  ^bb0(%old: {self.result}):
    linalg.yield %zero : {self.result}
  }}"""
        arguments = ", ".join(f"%{name}: {self.type(name)}" for name in "abc")
        return f"""func.func @{self.name}({arguments}) attributes {{llvm.emit_c_interface}} {{
  {"" if self.adds else fill}
  {self.operation}
  return
}}
"""

    @property
    def _identity(self) -> str:
        names = ", ".join(f"d{number}" for number in range(len(self.c)))
        return f"affine_map<({names}) -> ({names})>"

    @property
    def _parallel(self) -> str:
        return ", ".join(['"parallel"'] * len(self.c))

    @property
    def problem(self) -> ImplicitGemm | None:
        """As it is found in the module."""
        product = self.found(lambda product: product)
        return None if product is None else product.problem

    def found(self, change: Callable[[Any], Any]) -> Any:
        """What `change` makes of the implicit GEMM; None where there is none."""
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(self.module)
            roots = Roots(Functions(module))
            (function,) = module.body.operations
            operations = function.regions[0].blocks[0].operations
            *_, generic, _ = (op.operation for op in operations)
            product = recognise_implicit_gemm(
                generic, roots, allow_tf32=self.allow_tf32, needs_near=False
            )
            return None if product is None else change(product)

    def operands(self) -> list[NDArray[Any]]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made: list[NDArray[Any]] = []
        for name in "abc":
            dtype = DTYPES[self.result if name == "c" else self.element]
            if np.issubdtype(dtype, np.integer):
                made.append(rng.integers(-100, 100, self.shape(name)).astype(dtype))
            else:
                made.append(rng.uniform(-1, 1, self.shape(name)).astype(dtype))
        if not self.adds and not np.issubdtype(made[2].dtype, np.integer):
            made[2][...] = np.nan
        return made

    def expected(self, a: Any, b: Any, c: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """In f64, and the sums of absolute products."""
        letters = {loop: chr(ord("a") + number) for number, loop in enumerate(self.sizes)}
        views, words = [], []
        for name, array in (("a", a), ("b", b)):
            view, loops = self._view(name, array.astype(np.float64))
            views.append(view)
            words.append("".join(letters[loop] for loop in loops))
        result = "".join(letters[loop] for place in self.places("c") for loop, _ in place)
        equation = f"{','.join(words)}->{result}"
        total = np.einsum(equation, *views, optimize=True)
        size = np.einsum(equation, *map(np.abs, views), optimize=True)
        return (total + c.astype(np.float64), size + np.abs(c)) if self.adds else (total, size)

    def _view(self, name: str, array: NDArray[Any]) -> tuple[NDArray[Any], Sequence[str]]:
        strides: dict[str, int] = {}
        for place, stride in zip(self.places(name), array.strides, strict=True):
            for loop, factor in place:
                strides[loop] = strides.get(loop, 0) + factor * stride
        shape = [self.sizes[loop] for loop in strides]
        view = np.lib.stride_tricks.as_strided(array, shape, list(strides.values()))
        return view, list(strides)


def convolution(
    name: str,
    image: tuple[int, int, int, int],
    kernel: tuple[int, int, int],
    *,
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    layout: str = "nchw",
    **options: Any,
) -> Contraction:
    """`image`: images, channels, and the result's height and width; `kernel`: filters, height and
    width."""
    n, c, h, w = image
    f, p, q = kernel
    down, right = f"h*{strides[0]} + p*{dilations[0]}", f"w*{strides[1]} + q*{dilations[1]}"
    sizes = {"n": n, "f": f, "h": h, "w": w, "c": c, "p": p, "q": q}
    if layout == "nchw":
        operands = (("n", "c", down, right), ("f", "c", "p", "q"), ("n", "f", "h", "w"))
    else:
        sizes = {"n": n, "h": h, "w": w, "f": f, "p": p, "q": q, "c": c}
        operands = (("n", down, right, "c"), ("p", "q", "c", "f"), ("n", "h", "w", "f"))
    return Contraction(name, sizes, *operands, **options)
