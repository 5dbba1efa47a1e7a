"""`aotc-narrow-integers`: integer matmuls and sums use the narrowest types that hold their
values."""

from __future__ import annotations

from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.narrow_integers import narrow_integers


class NarrowIntegers(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-narrow-integers"
    reason: str = "matmuls of quantized matrices multiply bytes and accumulate in 32 bits"

    def run(self, lowering: Lowering) -> None:
        narrow_integers(lowering.module)
