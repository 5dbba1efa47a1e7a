"""Calls the operators of linear algebra that check their matrix where a program has its parts: the
operator that returns whether the matrix is singular, and the check of that. PyTorch's tracers
(`make_fx`, AOTAutograd) write programs like that."""

from __future__ import annotations

from typing import Any

# Operator → the operator that checks, or that returns no factors, and how many of its first results
# that one returns.
_CHECKED = {
    "linalg_cholesky_ex": ("linalg_cholesky", 1),
    "linalg_inv_ex": ("linalg_inv", 1),
    "linalg_solve_ex": ("linalg_solve", 1),
    "_linalg_solve_ex": ("linalg_solve", 1),
}
_WITHOUT_FACTORS = {
    "_linalg_det": ("linalg_det", 1),
    "_linalg_slogdet": ("linalg_slogdet", 2),
}


def join_factorizations(program: Any) -> None:
    """Changes the graph of a `torch.export.ExportedProgram` in place. Calls whose other results are
    used are kept, and so are those that nothing checks."""
    import torch

    aten = torch.ops.aten
    check = aten._linalg_check_errors.default
    for name, (replacement, count) in {**_CHECKED, **_WITHOUT_FACTORS}.items():
        target = getattr(aten, name).default
        for call in program.graph.find_nodes(op="call_function", target=target):
            others = [one for one in call.users if one.args[1] >= count]
            checks = [user for one in others for user in one.users]
            if any(user.target is not check for user in checks):
                continue
            if name in _CHECKED and not checks:
                continue
            for one in (*checks, *others):
                program.graph.erase_node(one)
            _replace(program.graph, call, getattr(aten, replacement).default, count)


def _replace(graph: Any, call: Any, target: Any, count: int) -> None:
    """Replaces the call by one of `target`, which has the first `count` of its results."""
    options = {name: value for name, value in call.kwargs.items() if name != "check_errors"}
    with graph.inserting_before(call):
        made = graph.call_function(target, call.args, options)
    made.meta = dict(call.meta)
    if count > 1:
        made.meta["val"] = tuple(call.meta["val"][:count])
        call.replace_all_uses_with(made)
    else:
        made.meta["val"] = call.meta["val"][0]
        for one in list(call.users):
            one.replace_all_uses_with(made)
            graph.erase_node(one)
    graph.erase_node(call)
