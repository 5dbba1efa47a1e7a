"""PTX text: its version and target, its kernels and their launch bounds.

Source: the PTX ISA (https://docs.nvidia.com/cuda/parallel-thread-execution): module-level
directives, kernel directives, performance-tuning directives.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct

from aotc.images.view import View

_START = re.compile(rb"\.version[ \t]+(\d{1,3}\.\d{1,3})\s{1,64}\.target[ \t]+([A-Za-z0-9_]{1,64})")
_LONGEST_START = 1 << 14
_ENTRY = b".entry"
# The size of a kernel's parameters and directives.
_LONGEST_HEAD = 1 << 20
_NAME = re.compile(rb"\s{1,64}([A-Za-z_$%][\w$]{0,65535})")
_BOUNDS = re.compile(
    rb"\.(maxntid|reqntid)\s{1,64}(\d{1,10})(?:\s{0,64},\s{0,64}(\d{1,10}))?"
    rb"(?:\s{0,64},\s{0,64}(\d{1,10}))?"
)
_MOST_KERNELS = 1 << 17


class PtxKernel(Struct, frozen=True):
    """An `.entry`: the maximum number of threads of a block, and the required block size, if the
    PTX has them."""

    name: str
    max_threads: int | None
    required_block: tuple[int, int, int] | None


class Ptx(Struct, frozen=True):
    """PTX `version` (8.8) for `target` (sm_80)."""

    version: str
    target: str
    kernels: tuple[PtxKernel, ...]


def is_ptx(view: View, most: int = _LONGEST_START) -> bool:
    """Whether a text begins as PTX: with `.version`, after at most `most` bytes of comments and
    blanks."""
    return _start(view, most) is not None


def _start(view: View, most: int = _LONGEST_START) -> re.Match[bytes] | None:
    head = view.read(0, min(view.size, most), "PTX")
    at = 0
    while at < len(head):
        if head[at : at + 1].isspace():
            at += 1
        elif head.startswith(b"//", at):
            at = head.find(b"\n", at) % (len(head) + 1)
        elif head.startswith(b"/*", at):
            at = (head.find(b"*/", at + 2) + 2) % (len(head) + 1) or len(head)
        else:
            return _START.match(head, at)
    return None


def read_ptx(view: View) -> Ptx:
    """Reads PTX. Raises InputError if it is not PTX."""
    start = _start(view)
    if start is None:
        raise view.damaged("it does not begin as PTX does, with .version and .target")
    kernels: list[PtxKernel] = []
    at = view.find(_ENTRY)
    while at >= 0 and len(kernels) < _MOST_KERNELS:
        following = view.find(_ENTRY, at + 1)
        end = following if following >= 0 else view.size
        at += len(_ENTRY)
        head = view.read(at, min(end - at, _LONGEST_HEAD), "a kernel's head")
        kernel = _kernel(head)
        if kernel is not None:
            kernels.append(kernel)
        at = following
    return Ptx(start[1].decode(), start[2].decode(), tuple(kernels))


def _kernel(head: bytes) -> PtxKernel | None:
    name = _NAME.match(head)
    if name is None:
        return None  # `.entry` is in a comment or a string
    # Directives are between the parameters and the body.
    bounds = head.partition(b"{")[0].partition(b")")[2]
    most, required = None, None
    for found in _BOUNDS.finditer(bounds):
        x, y, z = (int(number) if number else 1 for number in found.groups()[1:])
        if found[1] == b"reqntid":
            required = (x, y, z)
        most = math.prod((x, y, z))
    return PtxKernel(name[1].decode(), most, required)


def text_of(view: View) -> str:
    """The text without padding."""
    return view.all().rstrip(b"\0").decode("utf-8", "backslashreplace")
