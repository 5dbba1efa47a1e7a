"""torchvision without its C++ operators, which are built for one build of PyTorch each."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

_KEPT: list[Any] = []


def import_torchvision() -> Any:
    """torchvision; where its operators cannot be loaded, they are declared, and `nms` alone
    can be called."""
    if _KEPT:
        return _KEPT[-1]
    declared = _declare()
    import torchvision

    if declared is not None:
        torchvision.extension._has_ops = lambda: True
    _KEPT.extend([declared, torchvision])
    return torchvision


def _declare() -> Any:
    import torch

    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("torchvision is not installed", name="torchvision")
    root = Path(spec.submodule_search_locations[0])
    try:
        for file in root.glob("_C*.so"):
            torch.ops.load_library(file)
    except OSError:
        pass
    else:
        return None
    library = torch.library.Library("torchvision", "DEF")
    pattern = re.compile(r'register_fake\("torchvision::(\w+)"')
    names = {name for path in root.rglob("*.py") for name in pattern.findall(path.read_text())}
    for name in sorted(names):
        library.define(_SCHEMAS.get(name, f"{name}(Tensor a) -> Tensor"))
    library.impl("nms", _nms, "CPU")
    return library


def _nms(boxes: Any, scores: Any, most: float) -> Any:
    """The boxes, best first, that no better one covers by more than `most` of their union."""
    import torch

    kept: list[Any] = []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for i in scores.argsort(descending=True, stable=True):
        others = torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)
        corner = torch.maximum(boxes[i, :2], boxes[others, :2])
        size = (torch.minimum(boxes[i, 2:], boxes[others, 2:]) - corner).clamp(min=0)
        common = size.prod(1)
        if not bool((common / (areas[i] + areas[others] - common) > most).any()):
            kept.append(i)
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)


_SCHEMAS = {"nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"}
