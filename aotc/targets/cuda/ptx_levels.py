"""PTX levels: the chip for which PTX is compiled that later chips share.

PTX for a chip is valid for every later one. LLVM's NVPTX back end emits the same instructions for
all chips from sm_80 on, except for those in `_LATER`. For later chips its optimizer may take much
longer: fifteen times as long for a large unrolled body for sm_100 as for sm_80. So clang runs once
for all chips of a level. The PTX of each chip differs only in its `.target`, which ptxas and the
driver use.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aotc.request import Chip
from aotc.targets.cuda.requirements import Need

_FIRST = 80
# Compute capability → a pattern of LLVM IR for which LLVM emits other instructions from that
# capability on: conversions of f8; arithmetic of bf16 and of pairs of 16-bit integers, and atomics
# of 16-bit floats.
_LATER = {
    89: re.compile(r"e4m3|e5m2"),
    90: re.compile(r"\bbfloat\b|<2 x i16>|atomicrmw [^\n]*\bhalf\b"),
}
_TARGET = re.compile(rb"^\.target [^\n,]+", re.MULTILINE)


def level_of(chip: Chip, llvm_ir: str, needs: Collection[Need]) -> Chip:
    """The chip whose PTX is used for `chip`: `chip` itself, or an earlier one for which LLVM emits
    the same instructions. `needs` are the requirements of the code."""
    if chip.capability < _FIRST or any(need.only for need in needs):
        return chip
    least = max([_FIRST, *(need.least for need in needs)])
    levels = [least, *(one for one, sign in _LATER.items() if sign.search(llvm_ir))]
    level = max(one for one in levels if one <= max(chip.capability, least))
    return chip if level >= chip.capability and chip.name[-1] != "a" else Chip(f"sm_{level}")


def retarget(ptx: bytes, chip: Chip) -> bytes:
    """PTX of an earlier chip, with `chip` as its target."""
    text, count = _TARGET.subn(b".target " + chip.name.encode(), ptx, count=1)
    assert count == 1
    return text
