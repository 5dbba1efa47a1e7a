"""Programmatic dependent launch of kernels without operations for it: waits in their PTX.

From sm_90 on, each kernel of aotc begins with `griddepcontrol.wait`, so that it may be launched
while the kernel before it ends (see `pdl_kernels`), and then allows the next one to begin. So one
kernel of a stream runs, and one waits (see `wait_for_previous` of `kernels/matmul/scalar.py`). A
gpu.module and its LLVM IR are made once for all chips, but earlier chips do not have the
instruction. So it is added to the PTX for chips that have it. The runtime queries the driver for
the PTX version that a kernel comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aotc.request import Chip

FIRST_WITH_WAITS = 90
_BEGIN = b"\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"
# The head of a kernel, up to its first label, comment or instruction, after the declarations.
_HEAD = re.compile(
    rb"\.entry (?P<name>[^\s(]+)[^{]*\{\n(?:[ \t]*(?:\.[^\n]*)?\n)*",
)


def add_waits(ptx: bytes, chip: Chip, kernels: Collection[str]) -> bytes:
    """PTX in which these kernels begin with a wait, if the chip has it. They are launched with PDL,
    so each of them gets one, whatever its code is."""
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
