"""The line of a Python program at which PyTorch's graph has an operator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_OWN = Path(__file__).parents[2]


def place_of_node(node: Any) -> str:
    """What stands in front of a message: `FILE:LINE: error: `, or nothing if that is not known."""
    return _place(node.meta.get("stack_trace"))


def place_of_tracing() -> str:
    """That of the operator which PyTorch decomposes."""
    from torch.fx import traceback  # type: ignore[import-not-found, unused-ignore]

    return _place(traceback.get_current_meta().get("stack_trace"))


def keep_user_frames(program: Any) -> None:
    """Changes what the nodes of a `torch.export.ExportedProgram` say of their places, of which the
    importer makes locations. A node that PyTorch or aotc added, such as an assertion, is where the
    first of its operands is."""
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
    """The files and lines of a program that called PyTorch; those of PyTorch's modules where a
    module of its own is the program."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    library = Path(torch.__file__).parent
    # PyTorch writes some of its own from where it lies.
    frames = [
        (str(library.parent / file) if file.startswith("torch/") else file, line)
        for file, line in re.findall(r'File "(.*)", line (\d+)', trace or "")
    ]
    others = [one for one in frames if not {library, _OWN} & {*Path(one[0]).parents}]
    return others or [one for one in frames if library / "nn" in Path(one[0]).parents]
