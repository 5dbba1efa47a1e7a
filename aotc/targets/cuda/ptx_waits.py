"""Programmatic dependent launch of kernels that say nothing of it: waits in their PTX.

From sm_90 on, each kernel of aotc begins with `griddepcontrol.wait`, so that it may be launched
while the one before it ends (see `pdl_kernels`), and then lets the next one begin. A gpu.module is
lowered once for all chips, and so is LLVM IR, and earlier chips have no such instruction: it goes
into the PTX for chips that have it. The runtime asks the driver which PTX a kernel comes from.
"""

from __future__ import annotations

import re

from aotc.request import Chip

FIRST_WITH_WAITS = 90
_CONTROL = b"griddepcontrol."
_BEGIN = b"\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"
# A kernel up to what is no declaration: the first label, comment or instruction.
_KERNEL = re.compile(
    rb"(?P<head>\.entry [^{]*\{\n(?:[ \t]*(?:\.[^\n]*)?\n)*)(?P<rest>.*?^\})",
    re.MULTILINE | re.DOTALL,
)


def add_waits(ptx: bytes, chip: Chip) -> bytes:
    """PTX in which the kernels that have no `griddepcontrol` begin with a wait, if the chip has
    it."""
    if chip.capability < FIRST_WITH_WAITS:
        return ptx
    return _KERNEL.sub(_with_wait, ptx)


def _with_wait(found: re.Match[bytes]) -> bytes:
    begin = b"" if _CONTROL in found["rest"] else _BEGIN
    return found["head"] + begin + found["rest"]
