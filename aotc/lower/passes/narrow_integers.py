"""`aotc-narrow-integers`: integers of products and sums are as narrow as their values."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.narrow_integers import narrow_integers


class NarrowIntegers(OwnPass, frozen=True):
    """Runs where named operations are `linalg.generic`."""

    name = "aotc-narrow-integers"
    reason: str = "products of quantized matrices are of bytes, and add 32 bits"

    def run(self, lowering: Lowering) -> None:
        narrow_integers(lowering.module)
