"""The families of decode attention, and their variants."""

from __future__ import annotations

from aotc.builder import WIDEST_ACCESS
from aotc.chips import H100, WARP
from aotc.kernels.attention.decode.kernel import Kernel, Variant, shared_bytes
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.problem import Attention
from aotc.kernels.family import ANY_GPU, SM_90A
from aotc.kernels.matmul.problem import ELEMENT_BYTES

_ELEMENTS = ("f16", "bf16", "f32")
# The limit of registers: a thread has one for each of its columns of each query.
_MOST_QUERIES = 8
_WARPS = 4
_KEYS_OF_16_BITS, _KEYS_OF_F32 = 64, 32


class Decode(AttentionFamily):
    """Decode attention on every GPU."""

    name = "one query, split over keys,"
    mnemonic = "decode"
    target = ANY_GPU
    kernel_type = Kernel
    concurrent_tiles = H100.multiprocessors
    takes_one_row = True
    overlaps_previous = False

    def can_implement(self, problem: Attention, variant: Variant) -> bool:
        head_dim = problem.head_dim
        matrices = (problem.q, problem.k, problem.v)
        element = problem.q.element
        if head_dim is None or element not in _ELEMENTS or not problem.group:
            return False
        lanes, rest = divmod(head_dim * ELEMENT_BYTES[element], WIDEST_ACCESS)
        return (
            rest == 0
            and lanes in (1, 2, 4, 8, 16, WARP)
            and all(one.element == element and not one.transposed for one in matrices)
            and problem.o.element in (element, "f32")
            and problem.q.sizes[0] == 1
            and not problem.heads[0]
            and not problem.heads[3]
            and not problem.causal
            and problem.scale > 0
            and problem.group % variant.m == 0
            and variant.keys % WARP == 0
            and variant.keys % (variant.warps * WARP // lanes) == 0
        )

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        divisors = (m for m in range(_MOST_QUERIES, 0, -1) if problem.group % m == 0)
        keys = _KEYS_OF_F32 if problem.q.element == "f32" else _KEYS_OF_16_BITS
        lanes = (problem.head_dim or 0) * ELEMENT_BYTES.get(problem.q.element, 1) // WIDEST_ACCESS
        # Each of the block's threads has at least one key.
        keys = max(keys, _WARPS * WARP // max(lanes, 1))
        variant = Variant(next(divisors), keys, _WARPS, self.overlaps_previous)
        return (variant,) if self.can_implement(problem, variant) else ()

    def shared_bytes(self, problem: Attention, variant: Variant) -> int:
        return shared_bytes(variant, problem.head_dim or 0)


class DecodeOnHopper(Decode):
    """The same kernels with programmatic dependent launch: each starts while the previous one
    ends."""

    target = SM_90A
    overlaps_previous = True


DECODE = Decode()
DECODE_ON_HOPPER = DecodeOnHopper()
