"""Products of one vector and weights of 4 or 2 bits that a DequantizeLinear reads become
MatMulNBits, as in ONNX Runtime: the weights stay packed, in the order in which one pass over them
computes the product. Constant zero points of MatMulNBits become floats, which no call unpacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from aotc.frontends.onnx.elements import INT2, INT4, UINT2, UINT4
from aotc.frontends.onnx.nodes import Node, walk
from aotc.frontends.onnx.preparation import infer
from aotc.frontends.onnx.rewrites.microsoft import DOMAIN

_Array = np.ndarray[Any, Any]
_PACKED = "MatMulNBits"
# Element type → its bits, and what is added to a value so that it is not negative.
_TYPES = {UINT4: (4, 0), INT4: (4, 8), UINT2: (2, 0), INT2: (2, 2)}


class _Weights(Struct, frozen=True):
    """The integers of B (N x K) and their zero points (N x blocks), without signs; the scales; and
    the elements of a block."""

    bits: int
    integers: _Array
    zeros: _Array
    scales: _Array
    size: int

    def inputs(self) -> list[_Array]:
        """The inputs of MatMulNBits after A."""
        n, blocks = self.scales.shape
        packed = _packed(self.integers, self.bits).reshape(n, blocks, -1)
        inputs = [packed, np.ascontiguousarray(self.scales).reshape(-1)]
        # Without zero points, MatMulNBits subtracts half of the range.
        if (self.zeros != 1 << self.bits - 1).any():
            inputs.append(self.zeros.astype(self.scales.dtype).reshape(-1))
        return inputs


def pack_narrow_weights(model: Any, weights: Mapping[str, bytes]) -> None:
    """Changes the main graph of the model in place. `weights` has the data that was removed from
    it."""
    from onnx import TensorProto, numpy_helper

    tensors = {one.name: one for one in model.graph.initializer}
    given = {value.name for value in model.graph.input}

    def constant(name: str) -> _Array | None:
        if name not in tensors or name in given:
            return None
        tensor = TensorProto.FromString(tensors[name].SerializeToString())
        if name in weights:
            tensor.raw_data = weights[name]
            tensor.ClearField("data_location")
        array: _Array = numpy_helper.to_array(tensor)
        return array

    for proto in model.graph.node:
        if (proto.domain, proto.op_type) == (DOMAIN, _PACKED):
            _unpack_zeros(model, proto, constant)
    if any(one.data_type in _TYPES for one in tensors.values()):
        _pack(model, constant)


def _unpack_zeros(model: Any, proto: Any, constant: Callable[[str], _Array | None]) -> None:
    """Does nothing for a node that is not valid: it is refused later."""
    if len(proto.input) < 4 or not proto.output:
        return
    zeros, scales = constant(proto.input[3]), constant(proto.input[2])
    numbers = {one.name: one.i for one in proto.attribute}
    n, k, size = (numbers.get(one, 0) for one in ("N", "K", "block_size"))
    bits = numbers.get("bits", 4)
    if zeros is None or scales is None or zeros.dtype != np.uint8:
        return
    if bits not in (2, 4, 8) or min(n, k, size) < 1:
        return
    blocks = -(-k // size)
    row_bytes = -(-blocks * bits // 8)
    if zeros.size != n * row_bytes:
        return
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    unpacked = zeros.reshape(n, row_bytes, 1) >> shifts & np.uint8((1 << bits) - 1)
    floats = unpacked.reshape(n, -1)[:, :blocks].astype(scales.dtype).reshape(-1)
    proto.input[3] = _add_constant(model, f"{proto.output[0]}_zeros", floats)


def _add_constant(model: Any, name: str, array: _Array) -> str:
    from onnx import numpy_helper

    model.graph.initializer.append(numpy_helper.from_array(array, f"{name}_aotc"))
    return f"{name}_aotc"


def _pack(model: Any, constant: Callable[[str], _Array | None]) -> None:
    from onnx import helper

    nodes = list(walk(infer(model, strict=False)))
    types = {one.name: one.data_type for one in model.graph.initializer}
    results = {value.name for value in model.graph.output}
    readers: dict[str, list[Node]] = {name: [] for name in results}
    for node in nodes:
        for name in node.proto.input:
            readers.setdefault(name, []).append(node)
    own = {proto.output[0]: proto for proto in model.graph.node}
    replaced: dict[str, list[Any]] = {}
    for node in nodes:
        dequantized = node.proto.output[0] if node.proto.output else ""
        if node.operator != "DequantizeLinear" or dequantized in results:
            continue
        users = readers.get(dequantized, [])
        if not users or not all(_is_product_of_vector(one, dequantized) for one in users):
            continue
        if any(one.proto.output[0] not in own for one in users) or dequantized not in own:
            continue
        transposed = {bool(one.attribute("transB", 0)) for one in users}
        bits = types.get(node.proto.input[0], 0)
        arrays = [constant(name) for name in node.proto.input]
        if len(transposed) != 1 or bits not in _TYPES or any(one is None for one in arrays):
            continue
        weights = _weights(node, bits, arrays, is_transposed=transposed.pop())
        if weights is None or {_length(one) for one in users} != {weights.integers.shape[1]}:
            continue
        inputs = [
            _add_constant(model, f"{dequantized}_{number}", array)
            for number, array in enumerate(weights.inputs())
        ]
        replaced[dequantized] = []
        for user in users:
            proto = own[user.proto.output[0]]
            replaced[proto.output[0]] = _product(proto, inputs, weights)
    if not replaced:
        return
    protos = [
        one
        for proto in model.graph.node
        for one in replaced.get(proto.output[0] if proto.output else "", [proto])
    ]
    copies = [type(one).FromString(one.SerializeToString()) for one in protos]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    if all(one.domain != DOMAIN for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def _is_product_of_vector(node: Node, matrix: str) -> bool:
    """Whether the node multiplies one vector by the matrix."""
    if [one == matrix for one in node.proto.input[:3]] not in ([False, True], [False, True, False]):
        return False
    factors = [node.attribute("alpha", 1.0), node.attribute("beta", 1.0)]
    is_gemm = node.operator == "Gemm" and factors == [1, 1] and not node.attribute("transA", 0)
    shape = node.shape(0)
    if shape is None or None in shape or not (is_gemm or node.operator == "MatMul"):
        return False
    return len(shape) > 1 and math.prod(size or 0 for size in shape[:-1]) == 1


def _length(node: Node) -> int | None:
    """The length of the vector that the node multiplies."""
    shape = node.shape(0)
    return shape[-1] if shape else None


def _product(proto: Any, inputs: list[str], weights: _Weights) -> list[Any]:
    """The nodes in place of a product."""
    from onnx import helper

    n, k = weights.integers.shape
    attributes = {"N": n, "K": k, "bits": weights.bits, "block_size": weights.size}
    bias = proto.input[2] if len(proto.input) > 2 else ""
    (result,) = proto.output
    product = f"{result}_aotc" if bias else result
    names = [proto.input[0], *inputs]
    made = [helper.make_node(_PACKED, names, [product], proto.name, domain=DOMAIN, **attributes)]
    if bias:
        made.append(helper.make_node("Add", [product, bias], [result], proto.name))
    return made


def _weights(
    node: Node, element: int, arrays: list[Any], *, is_transposed: bool
) -> _Weights | None:
    """The weights of a DequantizeLinear with these constants; None if they cannot be packed."""
    values, scales, *zero = arrays
    bits, offset = _TYPES[element]
    if values.ndim != 2 or values.size == 0 or node.attribute("output_dtype", 0):
        return None
    integers = (values.astype(np.int8) + offset).astype(np.uint8)
    zeros = np.full(scales.shape, offset, np.uint8)
    if zero:
        zeros = (zero[0].astype(np.int8) + offset).astype(np.uint8)
    along_k = 1 if is_transposed else 0
    axis, size = node.attribute("axis", 1), node.attribute("block_size", 0)
    if axis not in range(-2, 2):
        return None
    axis %= 2
    if zeros.shape != scales.shape or (size and (axis != along_k or scales.ndim != 2)):
        return None
    if not size:
        # One block for each column.
        size, columns = integers.shape[along_k], integers.shape[1 - along_k]
        if scales.size != 1 and (scales.shape != (columns,) or axis == along_k):
            return None
        scales, zeros = (
            np.expand_dims(np.broadcast_to(one.reshape(-1), columns), along_k)
            for one in (scales, zeros)
        )
    if not is_transposed:
        integers, zeros, scales = integers.T, zeros.T, scales.T
    n, k = integers.shape
    # A last block with fewer elements would need a slice of the unpacked matrix.
    if not size or size % (8 // bits) or scales.shape != (n, k / size):
        return None
    return _Weights(bits, integers, zeros, scales, size)


def _packed(values: _Array, bits: int) -> _Array:
    """Integers packed into bytes along the last dimension, the first one in the low bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    grouped = values.reshape(*values.shape[:-1], -1, len(shifts))
    packed: _Array = np.bitwise_or.reduce(grouped << shifts, axis=-1)
    return packed
