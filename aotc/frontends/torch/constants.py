"""Arrays that decompositions compute with, as constants of a program's graph.

PyTorch's tracer loses the elements of tensors that are made while it traces. Here it sees an
operator of aotc's own in their place, with a number, which becomes the constant afterwards.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

# By their numbers, of programs that are being decomposed: one at a time.
_ARRAYS: list[Any] = []


def constant(array: Any, dtype: Any) -> Any:
    """The array as a tensor of this type, in a function that is traced."""
    _ARRAYS.append(array)
    return _operator()(len(_ARRAYS) - 1, list(np.shape(array)), dtype)


def put_constants(program: Any) -> None:
    """Replaces the operators in the graph of a `torch.export.ExportedProgram` by the constants."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    graph = program.graph
    names: dict[Any, str] = {}
    for node in graph.find_nodes(op="call_function", target=_operator()):
        number, _, dtype = node.args
        tensor = torch.from_numpy(np.array(_ARRAYS[number])).to(dtype)
        # Layers with the same transform have one constant.
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
    """PyTorch's library that has the operator, and lives as long, and it."""
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
