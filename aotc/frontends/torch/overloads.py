"""Replaces overloads of PyTorch's operators that torch.export does not decompose by those that it
does.

Programs traced by make_fx have such overloads. torch-mlir does not support some of them, and
assumes that each ratio of sizes is an integer.
"""

from __future__ import annotations

import copy
from typing import Any

_NEAREST = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
)


def with_known_overloads(program: Any) -> Any:
    """Returns the `torch.export.ExportedProgram` with overloads that are decomposed. The given
    program is not changed."""
    import torch

    aten = torch.ops.aten
    known = {getattr(aten, name).default: getattr(aten, name).vec for name in _NEAREST}
    if not any(node.target in known for node in program.graph.nodes):
        return program
    module = copy.deepcopy(program.graph_module)
    for node in module.graph.nodes:
        if node.target in known:
            x, size, *scales = node.args
            is_by_scales = len(scales) == len(size) and None not in scales
            node.args = (x, None, scales) if is_by_scales else (x, size, None)
            node.target = known[node.target]
    return program._update(module, copy.deepcopy(program.graph_signature))
