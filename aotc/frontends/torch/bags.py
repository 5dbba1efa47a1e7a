"""PyTorch's embedding bags: sums, means and maxima of selected rows of a table."""

from __future__ import annotations

import copy
import operator
from typing import Any

Tensor = Any

_SUM, _MEAN, _MAX = 0, 1, 2  # PyTorch's numbers of the modes


def bag_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten._embedding_bag.default: _embedding_bag,
        aten._embedding_bag_forward_only.default: _embedding_bag,
    }


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns (bags, bag of each index, number of indices in each bag, an unused tensor).

    Bag i has the indices from offset i up to the next offset. The result of an empty bag is 0. Only
    gradients use the results after the first.
    """
    import torch

    del scale_grad_by_freq, sparse
    count = offsets.shape[0] - 1 if include_last_offset else offsets.shape[0]
    offsets = offsets[:count]
    positions = torch.arange(indices.shape[0], dtype=offsets.dtype)
    bags = (offsets.unsqueeze(0) <= positions.unsqueeze(1)).sum(1) - 1
    rows = weight.index_select(0, indices)
    is_there = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices) != 0
    width = weight.shape[1]
    sizes = torch.zeros(count, dtype=torch.int64).index_add(0, bags, is_there.long())
    wide = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    if per_sample_weights is not None:
        wide = wide * per_sample_weights.to(wide.dtype).unsqueeze(1)
    if mode == _MAX:
        start = wide.new_full((count, width), float("-inf"))
        wide = torch.where(is_there.unsqueeze(1), wide, float("-inf"))
        places = bags.unsqueeze(1).expand(-1, width)
        found = start.scatter_reduce(0, places, wide, "amax", include_self=True)
        found = torch.where(sizes.unsqueeze(1) == 0, 0.0, found)
    else:
        wide = torch.where(is_there.unsqueeze(1), wide, 0.0)
        found = wide.new_zeros((count, width)).index_add(0, bags, wide)
        if mode == _MEAN:
            found = found / sizes.clamp(min=1).unsqueeze(1)
    return found.to(weight.dtype), bags, sizes, torch.zeros_like(sizes)


def sum_equal_bags(program: Any) -> Any:
    """Returns a copy of the `torch.export.ExportedProgram` in which bags of equal length are
    reductions of one dimension, or the program itself if it has none.

    An `nn.EmbeddingBag` called with a matrix has such bags. For bags of different lengths, the bag
    of each index must be computed.
    """
    if not any(_length_of_bags(node) for node in program.graph.nodes):
        return program
    module = copy.deepcopy(program.graph_module)
    for node in list(module.graph.nodes):
        length = _length_of_bags(node)
        if length:
            _reduce(module.graph, node, length)
    return program._update(module, program.graph_signature)


def _length_of_bags(node: Any) -> int | None:
    """The number of indices in each bag of a node. None if bags may have different lengths, or if
    some indices are left out."""
    import torch

    aten = torch.ops.aten
    if node.op != "call_function" or node.target is not aten.embedding_bag.padding_idx:
        return None
    indices, offsets, *options = node.args[1:]
    mode, weights, has_last, padding = (
        options[i] if i < len(options) else None for i in (1, 3, 4, 5)
    )
    is_plain = weights is None and not has_last and padding is None and mode in (_SUM, _MEAN, None)
    if not is_plain or offsets.op != "call_function":
        return None
    if offsets.target is not aten.arange.start_step:
        return None
    start, end, step = (*offsets.args, 1)[:3]
    is_all = start == 0 and isinstance(step, int) and step > 0
    sizes = (getattr(end, "meta", {}).get("val", end), *indices.meta["val"].shape)
    # Symbolic sizes are compared by their expressions.
    is_all = is_all and len({str(size) for size in sizes}) == 1
    return step if is_all and offsets.meta["val"].shape[0] * step == sizes[0] else None


def _reduce(graph: Any, bags: Any, length: int) -> None:
    import torch

    aten = torch.ops.aten
    weight, indices, _, _, *options = bags.args
    dtype = weight.meta["val"].dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype

    def call(target: Any, *args: Any, **kwargs: Any) -> Any:
        node = graph.call_function(target, args, kwargs)
        known = torch.fx.node.map_arg(args, lambda one: one.meta["val"])
        node.meta = {**bags.meta, "val": target(*known, **kwargs)}
        return node

    with graph.inserting_before(bags):
        rows = call(aten.embedding.default, weight, call(aten.view.default, indices, [-1, length]))
        reduction = aten.mean.dim if options[:1] == [_MEAN] else aten.sum.dim_IntList
        sums = call(reduction, rows, [1], False, dtype=wide)
    for user in list(bags.users):
        if user.target is operator.getitem and user.args[1] == 0:
            # The node itself stays, because the program's results may refer to its name.
            user.target, user.args, user.kwargs = aten._to_copy.default, (sums,), {"dtype": dtype}
        else:
            graph.erase_node(user)
    graph.erase_node(bags)
