"""Programmatic dependent launch of kernels that say nothing of it: waits in their PTX.

From sm_90 on, each kernel of aotc begins with `griddepcontrol.wait`, so that it may be launched
while the one before it ends (see `pdl_kernels`), and then lets the next one begin: of the kernels
of a stream one works, and one waits (see `wait_for_previous` of `kernels/matmul/scalar.py`). A
gpu.module is lowered once for all chips, and so is LLVM IR, and earlier chips have no such
instruction: it goes into the PTX for chips that have it. The runtime asks the driver which PTX a
kernel comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aotc.request import Chip

FIRST_WITH_WAITS = 90
_BEGIN = b"\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"
# A kernel up to what is no declaration: the first label, comment or instruction.
_HEAD = re.compile(
    rb"\.entry (?P<name>[^\s(]+)[^{]*\{\n(?:[ \t]*(?:\.[^\n]*)?\n)*",
)


def add_waits(ptx: bytes, chip: Chip, kernels: Collection[str]) -> bytes:
    """PTX in which those kernels begin with a wait, if the chip has it. They are launched as such:
    whatever else is in their code, what they call and what is inlined in them, they have one."""
    if chip.capability < FIRST_WITH_WAITS:
        return ptx
    left = set(kernels)

    def with_wait(found: re.Match[bytes]) -> bytes:
        name = found["name"].decode()
        if name not in left:
            return found[0]
        left.remove(name)
        is_there = ptx.startswith(_BEGIN, found.end())
        return found[0] + (b"" if is_there else _BEGIN)

    waiting = _HEAD.sub(with_wait, ptx)
    assert not left, left
    return waiting
