"""The levels of the CPU's instruction set: what a kernel may do on a processor that has more than
the oldest one of its architecture. Each level has what those below it have.

The number of a level is that of x86-64's levels in its psABI, and goes on behind the last of them:
processors with AVX512_BF16 have AVX512_VNNI. (See `runtime_c/src/cpu/level.c`, which finds the
level, and `targets/cpu/levels.py`, which makes a copy of the kernel for each one that it has code
for.) Other architectures have level 0.
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.module_names import CPU_LEVEL
from aotc.numbers import Condition, compare

AVX2, AVX512, VNNI, BF16 = 3, 4, 5, 6


def has_level(b: Builder, level: int) -> Condition:
    """Whether the processor has the level, which each copy of the kernel knows."""
    return compare("sge", b.op("vector.vscale", [], "index", **{CPU_LEVEL: "unit"}), level)
