"""Generics that become values: one Python function, an entry for each combination of parameters.

    @generic(m=(64, 128), n=(64, 128), k=(8,), element=("f32", "f64"))
    def gemm(name, a, b, c, *, m, n, k, element): ...

is eight entries of a module, `gemm_m64n64k8_f32` and so on: numbers stand behind the letters of
their parameters, types come last. What templates do in C++, here a function does that is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aotc.mlir import dialect
from ladder.expressions import Array, Scalar, either
from ladder.module import entry

func = dialect("func")

Parameters = dict[str, Any]
# Whether an entry is the one to call, made of m, n and k and its parameters.
Rule = Callable[[Scalar, Scalar, Scalar, Parameters], Scalar]


@dataclass(frozen=True)
class Generic:
    """A function with lists of what its parameters may be."""

    make: Callable[..., None]
    choices: dict[str, tuple[Any, ...]]
    where: Callable[[Parameters], bool]

    def combinations(self) -> Iterator[Parameters]:
        """Those that are possible, the first parameter's values in the outermost loop."""
        for values in itertools.product(*self.choices.values()):
            parameters = dict(zip(self.choices, values, strict=True))
            if self.where(parameters):
                yield parameters

    def name(self, parameters: Parameters) -> str:
        numbers = "".join(f"{k}{v}" for k, v in parameters.items() if isinstance(v, int))
        types = [v for v in parameters.values() if isinstance(v, str)]
        return "_".join([self.make.__name__, numbers, *types])

    def entries(self) -> list[str]:
        """Makes them all, in a module. Returns their names."""
        names = []
        for parameters in self.combinations():
            name = self.name(parameters)
            with entry(name, parameters["element"]) as arrays:
                self.make(f"{name}_kernel", *arrays, **parameters)
            names.append(name)
        return names

    def dispatcher(self, element: str, fits: Rule) -> str:
        """Makes the entry that calls the first one of this element type that `fits` the shapes, the
        last one if none does. Returns its name, `gemm_f32`."""
        name = f"{self.make.__name__}_{element}"
        candidates = [p for p in self.combinations() if p["element"] == element]
        with entry(name, element) as arrays:
            self._call_first(candidates, arrays, fits)
        return name

    def _call_first(self, candidates: list[Parameters], arrays: list[Array], fits: Rule) -> None:
        first, *others = candidates

        def call() -> None:
            func.call([], self.name(first), [array.value for array in arrays])

        if not others:
            call()
            return
        a, _, c = arrays
        m, n = c.shape
        is_first = fits(m, n, a.shape[1], first)
        either(is_first, call, lambda: self._call_first(others, arrays, fits))


def generic(
    where: Callable[[Parameters], bool] = lambda _: True, **choices: Sequence[Any]
) -> Callable[[Callable[..., None]], Generic]:
    """The decorator: the values of each parameter, `element` among them, and which combinations
    are possible."""
    lists = {name: tuple(values) for name, values in choices.items()}
    return lambda make: Generic(make, lists, where)
