"""All that can be measured: the models, the layers, and other models by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.models import others
from bench.models.layers import LAYERS
from bench.models.models import MODELS

ALL = {**MODELS, **LAYERS}


def find(name: str) -> Callable[[], Any] | None:
    """What makes the model of this name; None if there is none."""
    return ALL.get(name) or others.find(name)


def make(name: str, batch: int) -> tuple[Any, dict[str, Any]]:
    """The module with random weights, which are the same in every process, and its inputs."""
    # Its folder is in the path by now.
    from frontends.zoo.catalogue import made  # type: ignore[import-not-found, unused-ignore]

    maker = find(name)
    assert maker is not None, name
    case = made(maker)
    return case.module, case.inputs(batch, 0)
