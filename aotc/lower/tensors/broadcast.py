"""A `linalg.generic` that broadcasts, permutes or converts the elements of a tensor or scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops


def create_broadcast(
    source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = (), cast: str = ""
) -> Any:
    """Broadcasts `source`, a tensor or a scalar, to a tensor of `type_` by the indexing map `map_`.

    The operation is created at the insertion point. `sizes` are the dynamic sizes of the result.
    `cast` is the operation that converts each element if the element types differ.
    """

    def convert(element: Any) -> Any:
        return ops.unary(cast, element, type_.element_type) if cast else element

    return ops.create_elementwise([source], type_, sizes, convert, [map_])
