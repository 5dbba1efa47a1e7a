"""The levels of the CPU's instruction set: what a kernel may do on a processor that has more than
the oldest one of its architecture. Each level has what those below it have.

The number of a level is that of x86-64's levels in its psABI, and goes on behind the last of them:
processors with AVX512_BF16 have AVX512_VNNI. (See `runtime_c/src/cpu/level.c`, which finds the
level, and `targets/cpu/levels.py`, which makes a copy of the kernel for each one that it has code
for.) A kernel without copies, and other architectures, have level 0.
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.module_names import CPU_LEVEL
from aotc.numbers import Condition, Scalar, compare

SSE2, AVX2, AVX512, VNNI, BF16 = 1, 3, 4, 5, 6


def has_level(b: Builder, level: int) -> Condition:
    """Whether the processor has the level, which each copy of the kernel knows."""
    return compare("sge", _level(b), level)


def is_for_level(b: Builder, level: int) -> Condition:
    """Whether this copy of the kernel is the one for the level."""
    return compare("eq", _level(b), level)


def _level(b: Builder) -> Scalar:
    level: Scalar = b.op("vector.vscale", [], "index", **{CPU_LEVEL: "unit"})
    return level
