"""Overloads of PyTorch's operators that torch.export does not decompose, as those that it does.

Programs that make_fx traced have them. torch-mlir does not know some, and takes each ratio of sizes
for a whole number.
"""

from __future__ import annotations

import copy
from typing import Any

_NEAREST = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
)


def with_known_overloads(program: Any) -> Any:
    """The `torch.export.ExportedProgram` with them. The given program stays as it is."""
    import torch  # type: ignore[import-not-found, unused-ignore]

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
