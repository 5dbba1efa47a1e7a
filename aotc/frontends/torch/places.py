"""The line of a Python program at which PyTorch's graph has an operator."""

from __future__ import annotations

import re
from typing import Any


def place_of_node(node: Any) -> str:
    """What stands in front of a message: `FILE:LINE: error: `, or nothing if that is not known."""
    return _place(node.meta.get("stack_trace"))


def place_of_tracing() -> str:
    """That of the operator which PyTorch decomposes."""
    from torch.fx import traceback  # type: ignore[import-not-found, unused-ignore]

    return _place(traceback.get_current_meta().get("stack_trace"))


def _place(trace: str | None) -> str:
    found = re.findall(r'File "(.*)", line (\d+)', trace or "")
    return "{}:{}: error: ".format(*found[-1]) if found else ""
