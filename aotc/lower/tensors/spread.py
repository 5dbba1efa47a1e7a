"""A `linalg.generic` that copies elements to where a map says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops


def create_spread(
    source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = (), cast: str = ""
) -> Any:
    """A tensor of `type_`, and of `sizes` where that does not say them, with the elements of
    `source`, a tensor or a scalar, that `map_` says, at the insertion point. `cast`: the operation
    that converts each element, where they have another type."""

    def convert(element: Any) -> Any:
        return ops.unary(cast, element, type_.element_type) if cast else element

    return ops.create_elementwise([source], type_, sizes, convert, [map_])
