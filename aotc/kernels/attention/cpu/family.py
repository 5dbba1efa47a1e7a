"""The family of attention kernels for the CPU device, and its variants."""

from __future__ import annotations

from aotc.kernels.attention.cpu.kernel import ELEMENTS, Kernel, Memory, Variant
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.problem import Attention
from aotc.kernels.family import CPU

_MOST_COLUMNS = 512
# The limit for K's and V's tiles to stay in a second-level cache of 512 KiB, with the scores.
_TILE_ELEMENTS = 16 << 10
_MOST_KEYS, _LEAST_KEYS = 256, 64


class Cpu(AttentionFamily):
    """Attention for the CPU device: see `kernel`."""

    name = "blocks"
    mnemonic = "cpu"
    target = CPU
    kernel_type = Kernel
    concurrent_tiles = 1

    def can_implement(self, problem: Attention, variant: Variant) -> bool:
        head_dim = problem.head_dim
        matrices = (problem.q, problem.k, problem.v, problem.o)
        return (
            head_dim is not None
            and 0 < head_dim <= _MOST_COLUMNS
            and all(matrix.element in ELEMENTS for matrix in matrices)
            and not any(matrix.transposed for matrix in matrices)
            and (problem.mask is None or problem.mask.element in ELEMENTS)
            and problem.scale > 0
        )

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        keys = _MOST_KEYS
        while keys > _LEAST_KEYS and keys * (problem.head_dim or 0) > _TILE_ELEMENTS:
            keys //= 2
        found = Variant(keys=keys)
        return (found,) if self.can_implement(problem, found) else ()

    def shared_bytes(self, problem: Attention, variant: Variant) -> int:
        return Memory.of(problem, variant).bytes


CPU_ATTENTION = Cpu()
