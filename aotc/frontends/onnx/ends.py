"""The declared sizes of a model's results that contradict its nodes.

Some converters declare one element where there is one for each row of an input of unknown size
(LightGBM's labels), or another number of columns. ONNX Runtime only warns of it. onnx merges
declared sizes with those that it infers, so a second inference without them shows which differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def drop_wrong_sizes(model: Any, infer: Callable[[Any], Any]) -> None:
    """Replaces the declared sizes of results where onnx infers others, in place. Sizes that onnx
    does not infer are kept, except for that of a vector of one element (labels are reshaped to a
    vector of any length)."""
    declared = [value for value in model.graph.output if value.type.tensor_type.HasField("shape")]
    if not declared:
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
    inferred = {value.name: value.type.tensor_type for value in infer(copy).graph.output}
    changed = [_give(value.type.tensor_type, inferred[value.name], open_) for value in declared]
    if any(changed):
        # These may have been inferred from the wrong sizes.
        model.graph.ClearField("value_info")


def _give(declared: Any, inferred: Any, open_: set[str]) -> bool:
    """Replaces what differs in a declared type. Returns whether something did."""
    if not inferred.HasField("shape"):
        return False
    own, found = declared.shape.dim, inferred.shape.dim
    is_changed = len(own) != len(found)
    if is_changed:
        del own[:]
        own.extend(type(dim)() for dim in found)
    for dim, other in zip(own, found, strict=True):
        is_one = len(own) == 1 and dim.dim_value == 1 and not other.HasField("dim_value")
        if other.HasField("dim_value") and dim.dim_value != other.dim_value:
            is_changed |= dim.HasField("dim_value")
            dim.dim_value = other.dim_value
        elif dim.HasField("dim_value") and (other.dim_param in open_ or is_one):
            is_changed = True
            dim.ClearField("dim_value")
    return is_changed


def _input_sizes(model: Any) -> Iterator[Any]:
    weights = {one.name for one in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            yield from value.type.tensor_type.shape.dim
