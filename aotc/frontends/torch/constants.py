"""Arrays that decompositions compute with, as constants of a program's graph.

PyTorch's tracer loses the elements of tensors that are created during tracing. Therefore a
decomposition calls an operator of aotc's own, with the array's number. After tracing,
`put_constants` replaces the operator by the constant.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

# The arrays of the program that is being decomposed, by the number that the operator has. Only one
# program is decomposed at a time.
_ARRAYS: list[Any] = []


def constant(array: Any, dtype: Any) -> Any:
    """The array as a tensor of this dtype, for use in a traced function."""
    _ARRAYS.append(array)
    return _operator()(len(_ARRAYS) - 1, list(np.shape(array)), dtype)


def put_constants(program: Any) -> None:
    """Replaces the operators in the graph of a `torch.export.ExportedProgram` by the constants."""
    import torch

    graph = program.graph
    names: dict[Any, str] = {}
    for node in graph.find_nodes(op="call_function", target=_operator()):
        number, _, dtype = node.args
        tensor = torch.from_numpy(np.array(_ARRAYS[number])).to(dtype)
        # Equal arrays, such as those of layers with the same transform, share one constant.
        content = (dtype, tensor.shape, tensor.numpy().tobytes())
        if content not in names:
            names[content] = f"constant_of_aotc_{len(names)}"
            program.graph_module.register_buffer(names[content], tensor)
        with graph.inserting_before(node):
            made = graph.get_attr(names[content])
        made.meta = node.meta
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    _ARRAYS.clear()


def _operator() -> Any:
    _, operator = _library()
    return operator


@functools.cache
def _library() -> tuple[Any, Any]:
    """The operator, and PyTorch's library that defines it and must stay alive as long as the
    operator."""
    import torch

    module: Any = torch.library
    library = module.Library("aotc", "FRAGMENT")
    library.define(
        "constant(int number, SymInt[] shape, ScalarType dtype, *, Device? device=None) -> Tensor"
    )
    library.impl("constant", _unknown, "CompositeExplicitAutograd")
    return library, torch.ops.aotc.constant.default


def _unknown(number: int, shape: Any, dtype: Any, *, device: Any = None) -> Any:
    import torch

    del number
    return torch.empty(shape, dtype=dtype, device=device)
