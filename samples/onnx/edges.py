"""A model of ONNX, made by hand: where an image changes, by Sobel's filters.

python samples/onnx/edges.py      writes edges.onnx
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main() -> None:
    across = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    filters = np.stack([across, across.T])[:, None]  # 2 x 1 x 3 x 3
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["slopes"]),
        helper.make_node("Mul", ["slopes", "slopes"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "channels"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["edges"]),
    ]
    graph = helper.make_graph(
        nodes,
        "edges",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 4, 6])],
        [helper.make_tensor_value_info("edges", TensorProto.FLOAT, [1, 1, 2, 4])],
        [
            numpy_helper.from_array(filters, "filters"),
            numpy_helper.from_array(np.array([1], np.int64), "channels"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.checker.check_model(model)
    onnx.save(model, "edges.onnx")


if __name__ == "__main__":
    main()
