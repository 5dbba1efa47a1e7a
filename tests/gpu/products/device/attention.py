"""Attention in f64."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from entry import Draw
from rounding import ROUNDING, of_result

_LARGEST_BATCH = 5


class Trial:
    """Attention of random sizes and operands; what is not known of sizes is 0 in the case."""

    def __init__(self, case: dict[str, Any], rng: random.Random, largest: int) -> None:
        self.case = case
        self.batch = case["batch"] or rng.randint(1, _LARGEST_BATCH)
        queries, keys = (case[name] or _any_size(rng, largest) for name in ("queries", "keys"))
        if rng.random() < 0.3 and not case["keys"]:
            keys = queries
        depth, element = case["depth"], case["element"]
        self.shape = (self.batch, queries, keys)
        draw = Draw(rng, is_strided=case["strided"])
        # Scores are nearly equal, or the largest ones are all that counts.
        deviation = rng.choice((0.5, 1.0, 3.0))
        self.operands = [
            draw.operand((self.batch, rows, depth), element, normal=normal)
            for rows, normal in ((queries, deviation), (keys, deviation), (keys, 1.0))
        ]
        self.result = draw.result((self.batch, queries, depth), element)
        self.mask = None
        if case["mask"] in ("none", "causal"):
            return
        sizes = {"b": self.batch, "i": queries, "j": keys}
        shape = [sizes[place] for place in case["mask_places"]]
        if case["mask_element"] == "i8":
            mask = (torch.rand(shape, device="cuda") < 0.7).to(torch.int8)
            self.mask = torch.where(mask != 0, 0.0, -math.inf).double()
        else:
            mask = draw.operand(shape, case["mask_element"], normal=2.0)
            mask.masked_fill_(torch.rand(shape, device="cuda") < 0.2, -math.inf)
            self.mask = mask.double()
        self.operands.append(mask)

    def looked_at(self) -> Any:
        """What of the result `expected` has."""
        return self.result.values

    @staticmethod
    def types(case: dict[str, Any]) -> list[list[int]]:
        """Of each argument, the sizes that its type says."""
        b, i, j, d = (case[name] for name in ("batch", "queries", "keys", "depth"))
        found = [[b, i, d], [b, j, d], [b, j, d]]
        if case["mask"] not in ("none", "causal"):
            found.append([{"b": b, "i": i, "j": j}[place] for place in case["mask_places"]])
        return [*found, [b, i, d]]

    def expected(self) -> list[tuple[Any, Any]]:
        """Each element in f64, and how far the result's may be from it."""
        case = self.case
        q, k, v = (one.double() for one in self.operands[:3])
        scale = case["scale"]
        scores = q @ k.mT * scale
        # A score's error, of its sum and of the exponential's argument, is a factor of its weight.
        sums = (8 + case["depth"] / 4) * 2.0**-24
        off = sums * (q.abs() @ k.abs().mT) * scale
        if case["mask"] == "causal":
            hidden = torch.ones(scores.shape[-2:], device="cuda", dtype=torch.bool).triu(1)
            scores.masked_fill_(hidden, -math.inf)
        if self.mask is not None:
            mask = self.mask
            if case["mask_places"] == "bj":
                mask = mask[:, None]
            scores = scores + mask
        largest = scores.amax(-1, keepdim=True)
        off = off + 2.0**-22 * (scores.abs() + largest.abs()).nan_to_num(0.0, 0.0, 0.0)
        weights = (scores - largest).exp()
        total = weights.sum(-1, keepdim=True)
        weights /= total
        off.masked_fill_(weights == 0, 0.0)
        # The largest score's error is in each weight, and the sum's, too.
        relative = (
            off
            + (weights * off).sum(-1, keepdim=True)
            + (8 + scores.shape[-1] / 4) * 2.0**-24
            + 2.0**-20
        )
        element = case["element"]
        # Weights are rounded for the second product.
        if element != "f32":
            relative = relative + 1.01 * ROUNDING[element]
        bound = (weights * relative) @ v.abs()
        if element == "f16":
            # Where they are too small for that, by the least difference.
            bound += 2.0**-25 * v.abs().sum(-2, keepdim=True) / total
        exact = weights @ v
        # Rows that see nothing are NaN.
        return [(exact, (bound + of_result(element, exact) + 2.0**-126).nan_to_num(0.0))]


def _any_size(rng: random.Random, largest: int) -> int:
    """Of any magnitude, odd ones, and multiples of what tiles have."""
    size = rng.randint(1, largest)
    if rng.random() < 0.3:
        size = round(math.exp(rng.uniform(0, math.log(largest))))
    if rng.random() < 0.2:
        size = max(64, size // 64 * 64)
    return size
