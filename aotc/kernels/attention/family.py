"""What a family of kernels for attention says of itself: `choice` asks nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.kernels.attention.problem import Attention
from aotc.request import Chip


class Candidate(Struct, frozen=True):
    """A variant of a family's kernel, and what one of its tiles costs beside those of the family's
    other variants. A variant has `m`, the rows of Q of a tile, and `keys`, of a block of K."""

    variant: Any
    cost: int


class Family(Struct, frozen=True):
    """`chip`: what its kernels run on; None for every GPU that has kernels for products of matrices
    (`LEAST_CAPABILITY`). `at_once`: how many tiles a large GPU makes at the same time.

    `candidates`: the variants for a problem whose matrices are aligned as it says; all are right,
    and none at all means that the family has none. `function(problem, variant, name)`: the text of
    `func.func @name(%q, %k, %v, %c, %m)`, which launches the kernel; C is O, and M the mask.
    """

    name: str
    chip: Chip | None
    at_once: int
    candidates: Callable[[Attention], list[Candidate]]
    function: Callable[[Attention, Any, str], str]
