"""Contractions along any loops, and what is done with them, in f64."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import float8
import torch
from entry import Draw, Result
from rounding import of_result, of_sums

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Of gelu and silu: no slope is above it.
_STEEPEST = 1.13
# Of functions such as exp and erf in f32.
_OF_FUNCTIONS = 2.0**-20
# Of sizes: how many are 0.
_NONE = 0.02
# How often operands with strides have one of 0.
_SHARED = 0.3
# Of one operand or result: each is there in f64, too, and some of them several times.
_MOST_ELEMENTS = 2**26


def terms(place: str) -> list[tuple[str, int]]:
    """Loops, each with how many elements its turns are from each other."""
    found = []
    for term in place.split(" + "):
        loop, _, factor = term.partition("*")
        found.append((loop, int(factor or 1)))
    return found


class Trial:
    """A contraction of random sizes and operands."""

    def __init__(self, case: dict[str, Any], rng: random.Random, largest: int) -> None:
        self.case = case
        dynamic = [loop for loop, size in case["loops"].items() if not size]
        self.loops = self._drawn(rng, largest)
        while self._most_elements() > _MOST_ELEMENTS:
            largest = largest // 2
            self.loops = self._drawn(rng, largest)
        self.shape = {loop: self.loops[loop] for loop in dynamic}
        draw = Draw(rng, is_strided=case["strided"])
        self.operands = [
            draw.operand(self._shape(one["places"]), one["element"]) for one in case["operands"]
        ]
        if case["strided"] and rng.random() < _SHARED:
            # All along its first dimension are one, at a distance of 0.
            number = rng.randrange(2)
            one = self.operands[number]
            self.operands[number] = one[:1].expand(one.shape)
        result = case["result"]
        self.result: Result = draw.result(
            self._shape(result["places"]), result["element"], adds=case["begins"] == "adds"
        )

    def _drawn(self, rng: random.Random, largest: int) -> dict[str, int]:
        most = self.case["most"]
        return {
            loop: size or _any_size(rng, min(largest, most.get(loop, largest)))
            for loop, size in self.case["loops"].items()
        }

    def _most_elements(self) -> int:
        every = [*self.case["operands"], self.case["result"]]
        return max(math.prod(self._shape(one["places"])) for one in every)

    def looked_at(self) -> Any:
        """What of the result `expected` has."""
        return self.result.values

    @staticmethod
    def types(case: dict[str, Any]) -> list[list[int]]:
        """Of each argument, the sizes that its type says."""
        found = []
        for one in (*case["operands"], case["result"]):
            moves = [terms(place) for place in one["places"]]
            found.append([int(all(case["loops"][loop] for loop, _ in move)) for move in moves])
        return found

    def _shape(self, places: Sequence[str]) -> list[int]:
        return [
            0
            if any(not self.loops[loop] for loop, _ in terms(place))
            else sum((self.loops[loop] - 1) * factor for loop, factor in terms(place)) + 1
            for place in places
        ]

    def expected(self) -> list[tuple[Any, Any]]:
        """Each element in f64, and how far the result's may be from it; one of these must be. Sums
        of f8 are exact ones, or those of Hopper's tensor cores, as the kernel is."""
        is_f8 = self.case["operands"][0]["element"].startswith("f8")
        return [self._expected(of_f8=of_f8) for of_f8 in ((False, True) if is_f8 else (False,))]

    def _expected(self, *, of_f8: bool) -> tuple[Any, Any]:
        case = self.case
        self.of_f8 = of_f8
        value, bound = self._product(1)
        if case["begins"] == "adds":
            value, bound = self._plus(value, bound, self.result.before.double())
        elif case["begins"] == "row":
            value, bound = self._plus(value, bound, self._spread(2))
        for step in case["steps"]:
            value, bound = self._step(value, bound, *step)
        return value, bound + of_result(case["result"]["element"], value)

    def _product(self, right: int) -> tuple[Any, Any]:
        """As steps read it: in f32 or f64, of sums that are rounded to their own type first."""
        case = self.case
        letters = dict(zip(case["loops"], _LETTERS, strict=False))
        views, words = [], []
        for number in (0, right):
            view, loops = self._view(number)
            views.append(view)
            words.append("".join(letters[loop] for loop in loops))
        made = "".join(letters[loop] for loop in case["result"]["places"])
        equation = f"{','.join(words)}->{made}"
        k = math.prod(n for loop, n in self.loops.items() if letters[loop] not in made)
        part = of_sums(case, k, case["operands"][0]["element"], case["sums"])
        bound = part * torch.einsum(equation, *(view.abs() for view in views))
        value = torch.einsum(equation, *views)
        if self.of_f8:
            value = self._sums_of_f8(value, views, words, made, right)
        if case["steps"]:
            name = {"i32": "f32"}.get(case["sums"], case["sums"])
            bound = bound + of_result(name, value)
        return value, bound

    def _sums_of_f8(
        self, like: Any, views: Sequence[Any], words: Sequence[str], made: str, right: int
    ) -> Any:
        """As matrices: loops of both and the result in front, then those of one, and the rest."""
        left, other = words
        both = "".join(x for x in left if x in other and x in made)
        rows = "".join(x for x in left if x not in other)
        columns = "".join(x for x in other if x not in left)
        depth = "".join(x for x in left if x not in made)
        sizes = dict(zip(_LETTERS, self.loops.values(), strict=False))
        matrices = []
        for number, view, word, order in (
            (0, views[0], left, (both, rows, depth)),
            (right, views[1], other, (both, depth, columns)),
        ):
            turned = torch.einsum(f"{word}->{''.join(order)}", view)
            shape = [math.prod(sizes[x] for x in group) for group in order]
            dtype = self.operands[number].dtype
            matrices.append(turned.reshape(shape).to(dtype))
        sums = float8.sums(*matrices).double()
        sums = sums.reshape([sizes[x] for x in both + rows + columns])
        return torch.einsum(f"{both + rows + columns}->{made}", sums).reshape(like.shape)

    def _view(self, number: int) -> tuple[Any, list[str]]:
        """An operand with a dimension for each loop that moves in it."""
        operand = self.operands[number].double().contiguous()
        strides: dict[str, int] = {}
        places = self.case["operands"][number]["places"]
        for place, stride in zip(places, operand.stride(), strict=True):
            for loop, factor in terms(place):
                strides[loop] = strides.get(loop, 0) + factor * stride
        shape = [self.loops[loop] for loop in strides]
        return operand.as_strided(shape, list(strides.values())), list(strides)

    def _plus(self, value: Any, bound: Any, other: Any) -> tuple[Any, Any]:
        """What sums begin from is added to them, before they are rounded, or is one of them."""
        part = 2 * of_sums(self.case, 1, "f32", self.case["sums"])
        return value + other, bound + part * (value.abs() + other.abs()) * value.isfinite()

    def _step(self, value: Any, bound: Any, name: str, *numbers: Any) -> tuple[Any, Any]:
        rounding = 2.0**-52 if self.case["sums"] == "f64" else 2.0**-23
        if name in ("add", "times"):
            other, off = self._spread(numbers[0]), 0.0
        elif name == "product":
            other, off = self._product(numbers[0])
        if name == "add":
            exact = value + other
            return exact, bound + rounding * exact.abs()
        if name in ("times", "product"):
            exact = value * other
            off = bound * other.abs() + off * value.abs() + bound * off
            return exact, off + rounding * exact.abs()
        if name == "scale":
            return value * numbers[0], bound * numbers[0] + rounding * value.abs()
        if name == "relu":
            return value.clamp(min=0), bound
        if name == "round":
            return value, bound + of_result(numbers[0], value)
        functions = {"silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu}
        exact = functions[name](value)
        return exact, _STEEPEST * bound + _OF_FUNCTIONS * (value.abs() + exact.abs())

    def _spread(self, number: int) -> Any:
        """An operand along the result's dimensions."""
        places = self.case["operands"][number]["places"]
        result = self.case["result"]["places"]
        operand = self.operands[number].double()
        order = sorted(range(len(places)), key=lambda i: result.index(places[i]))
        shape = [self.loops[loop] if loop in places else 1 for loop in result]
        return operand.permute(order).reshape(shape)


def _any_size(rng: random.Random, largest: int) -> int:
    """Of any magnitude, every second one a multiple of 8, some of them few."""
    if rng.random() < _NONE:
        return 0
    size = rng.randint(1, largest)
    if rng.random() < 0.25:
        size = round(math.exp(rng.uniform(0, math.log(largest))))
    if rng.random() < 0.5 and largest >= 8:
        size = max(8, size // 8 * 8)
    return size
