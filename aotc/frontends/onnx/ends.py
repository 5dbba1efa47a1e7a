"""The declared sizes of a model's results that contradict its nodes.

Some converters declare one element where there is one for each row of an input of unknown size
(LightGBM's labels). ONNX Runtime only warns of it. onnx merges declared sizes with those that it
infers, so a second inference without them shows which are another size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def drop_wrong_sizes(model: Any, infer: Callable[[Any], Any]) -> None:
    """Removes the declared sizes of results that are a size of an input that is not known, in
    place. Other sizes that onnx does not infer are kept, except for that of a vector of one element
    (labels are reshaped to a vector of any length)."""
    declared = [value for value in model.graph.output if any(_known(value))]
    if not declared or all(dim.HasField("dim_value") for dim in _input_sizes(model)):
        return
    copy = type(model).FromString(model.SerializeToString())
    copy.graph.ClearField("value_info")
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    open_ = set()
    for number, dim in enumerate(_input_sizes(copy)):
        if not dim.HasField("dim_value"):
            dim.dim_param = dim.dim_param or f"open_{number}"
            open_.add(dim.dim_param)
    inferred = {value.name: value.type.tensor_type.shape.dim for value in infer(copy).graph.output}
    is_changed = False
    for value in declared:
        own = value.type.tensor_type.shape.dim
        if len(own) != len(inferred[value.name]):
            continue
        for dim, other in zip(own, inferred[value.name], strict=True):
            is_one = len(own) == 1 and dim.dim_value == 1 and not other.HasField("dim_value")
            if dim.HasField("dim_value") and (other.dim_param in open_ or is_one):
                dim.ClearField("dim_value")
                is_changed = True
    if is_changed:
        # These may have been inferred from the wrong sizes.
        model.graph.ClearField("value_info")


def _input_sizes(model: Any) -> Iterator[Any]:
    weights = {one.name for one in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            yield from value.type.tensor_type.shape.dim


def _known(value: Any) -> list[bool]:
    return [dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim]
