"""`newer`: a model of an older opset, converted to the one that torch-mlir covers best.

onnx's converter changes the opset of these operators without regard to their other meaning:

* Hardmax, before opset 13: all dimensions from the axis on are one.
* Resize and Upsample, before opset 11: an element comes from its place divided by the scale,
  rounded down if the mode is nearest.
"""

from __future__ import annotations

from typing import Any

from aotc.frontends.onnx.functions import all_nodes
from aotc.frontends.onnx.nodes import opset_of
from aotc.frontends.onnx.rewrites.apply import rewrite
from aotc.frontends.onnx.rewrites.normalizations import HARDMAX

# The opset that torch-mlir's importer covers best.
_OPSET = 17
# That of the first onnx with this opset.
_IR_VERSION = 8
_FIRST_WITH_COORDINATES = 11


def newer(model: Any) -> Any:
    """The converted model. None if its opset is not older, or if onnx cannot convert it."""
    import onnx.version_converter  # type: ignore[import-not-found, unused-ignore]

    opset = opset_of(model)
    if opset >= _OPSET:
        return None
    try:
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        converted = onnx.version_converter.convert_version(rewrite(typed, [HARDMAX]), _OPSET)
    except Exception:  # of many types; the model cannot be converted
        return None
    # Before, an initializer was an input, too: the rewrites add some that are not.
    converted.ir_version = max(converted.ir_version, _IR_VERSION)
    if opset < _FIRST_WITH_COORDINATES:
        for proto in all_nodes(converted.graph.node):
            if proto.op_type == "Resize":
                _put_coordinates(proto)
    return converted


def _put_coordinates(resize: Any) -> None:
    from onnx import helper

    resize.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
    resize.attribute.append(helper.make_attribute("nearest_mode", "floor"))
