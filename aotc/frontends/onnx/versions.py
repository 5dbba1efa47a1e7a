"""`newer`: a model of an older opset, converted to the one that torch-mlir covers best.

onnx's converter changes the opset of these operators without regard to their other meaning:

* Hardmax, before opset 13: all dimensions from the axis on are one.
* Resize and Upsample, before opset 11: an element comes from its place divided by the scale. If the
  mode is nearest, that is rounded down along dimensions that grow, and up along those that shrink,
  as ONNX Runtime does: the text of the opset says nothing.
"""

from __future__ import annotations

from typing import Any

from aotc.errors import InputError
from aotc.frontends.onnx.nodes import Node, opset_of, walk
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
        for node in walk(converted):
            if node.operator == "Resize":
                _put_coordinates(node)
    return converted


def _put_coordinates(resize: Node) -> None:
    """Raises InputError for a Resize that rounds down along one dimension, and up along another."""
    from onnx import helper

    scales = resize.constant(2)
    shrinks = scales is not None and bool((scales < 1).any())
    grows = scales is not None and bool((scales > 1).any())
    if shrinks and grows and resize.attribute("mode", "nearest") == "nearest":
        raise InputError(
            f"Resize of an opset before {_FIRST_WITH_COORDINATES} has scales above 1 and below."
        )
    resize.proto.attribute.append(
        helper.make_attribute("coordinate_transformation_mode", "asymmetric")
    )
    mode = "ceil" if shrinks else "floor"
    resize.proto.attribute.append(helper.make_attribute("nearest_mode", mode))
