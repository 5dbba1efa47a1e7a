"""The levels of the CPU's instruction set, beyond the baseline of the architecture. Each level
includes the levels below it.

Levels up to 4 are the microarchitecture levels of the x86-64 psABI (x86-64-v3, x86-64-v4). Levels 5
to 7 are aotc's own: AVX512_VNNI, AVX512_BF16 (processors that have it have AVX512_VNNI), and AMX
with products of bf16 and of bytes.
`runtime_c/src/cpu/level.c` detects the level, and `targets/cpu/levels.py` makes a copy of the
kernel for each level that the kernel has code for; on x86-64, the copy for the baseline has level
1. A kernel without copies, and kernels for other architectures, have level 0.
"""

from __future__ import annotations

from aotc.attributes import CPU_LEVEL
from aotc.builder import Builder
from aotc.builder.numbers import Condition, Scalar, compare

SSE2, AVX2, AVX512, VNNI, BF16, AMX = 1, 3, 4, 5, 6, 7


def has_level(b: Builder, level: int) -> Condition:
    """Whether the processor has the level: a constant in each copy of the kernel."""
    return compare("sge", _level(b), level)


def is_for_level(b: Builder, level: int) -> Condition:
    """Whether this copy of the kernel is the one for the level."""
    return compare("eq", _level(b), level)


def _level(b: Builder) -> Scalar:
    level: Scalar = b.op("vector.vscale", [], "index", **{CPU_LEVEL: "unit"})
    return level
