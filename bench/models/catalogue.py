"""All that can be measured: the models, and the layers."""

from __future__ import annotations

from typing import Any

from bench.models.layers import LAYERS
from bench.models.models import MODELS

ALL = {**MODELS, **LAYERS}


def make(name: str, batch: int) -> tuple[Any, dict[str, Any]]:
    """The module with random weights, which are the same in every process, and its inputs."""
    # Its folder is in the path by now.
    from frontends.zoo.catalogue import made  # type: ignore[import-not-found, unused-ignore]

    case = made(ALL[name])
    return case.module, case.inputs(batch, 0)
