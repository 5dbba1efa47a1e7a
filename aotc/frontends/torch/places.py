"""Finds the line of a Python program that an operator of PyTorch's graph comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_OWN = Path(__file__).parents[2]


def place_of_node(node: Any) -> str:
    """The prefix of a message, `FILE:LINE: error: `, or an empty string if the place is not
    known."""
    return _place(node.meta.get("stack_trace"))


def place_of_tracing() -> str:
    """The same prefix for the operator that PyTorch is decomposing."""
    from torch.fx import traceback

    return _place(traceback.get_current_meta().get("stack_trace"))


def keep_user_frames(program: Any) -> None:
    """Reduces the stack traces of a `torch.export.ExportedProgram`'s nodes to the user's frames.
    The importer makes locations of them. A node that PyTorch or aotc added, such as an assertion,
    gets the stack trace of its first operand that has one."""
    for node in program.graph.nodes:
        frames = _user_frames(node.meta.pop("stack_trace", None))
        texts = [f'File "{file}", line {line}, in forward' for file, line in frames]
        given = (
            one.meta["stack_trace"] for one in node.all_input_nodes if "stack_trace" in one.meta
        )
        trace = "\n".join(texts) or next(given, None)
        if trace is not None:
            node.meta["stack_trace"] = trace


def _place(trace: str | None) -> str:
    frames = _user_frames(trace)
    return "{}:{}: error: ".format(*frames[-1]) if frames else ""


def _user_frames(trace: str | None) -> list[tuple[str, str]]:
    """The frames (file, line) outside of PyTorch and aotc. If there are none, because the program
    is one of PyTorch's own modules, the frames in `torch.nn`."""
    import torch

    library = Path(torch.__file__).parent
    # PyTorch prints some of its own paths relative to the folder that it is installed in.
    frames = [
        (str(library.parent / file) if file.startswith("torch/") else file, line)
        for file, line in re.findall(r'File "(.*)", line (\d+)', trace or "")
    ]
    others = [one for one in frames if not {library, _OWN} & {*Path(one[0]).parents}]
    return others or [one for one in frames if library / "nn" in Path(one[0]).parents]
