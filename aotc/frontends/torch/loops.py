"""Prepares `torch.while_loop` for torch-mlir's importer and passes."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch.operators import Definition, call_declared
from aotc.frontends.torch.places import place_of_node

_NAME = "while_loop_condition"


def carry_inputs(program: Any) -> None:
    """Makes each value that a while loop reads from outside a loop-carried value that does not
    change, and duplicates a value that is carried alone. The importer supports no other loops.
    Changes the graph of a `torch.export.ExportedProgram` in place.

    Raises InputError for loops that carry Python numbers.
    """
    _carry_inputs_of(program.graph_module)


def _carry_inputs_of(graph_module: Any) -> None:
    import torch

    loop_of = torch.ops.higher_order.while_loop
    for loop in graph_module.graph.find_nodes(op="call_function", target=loop_of):
        condition, body, carried, read = loop.args
        for value in (*carried, *read):
            held = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
            if not isinstance(held, torch.Tensor):
                raise InputError(
                    f"{place_of_node(loop)}torch.while_loop has a number as an input.",
                    hint="make it a tensor: torch.tensor(number).",
                )
        more = list(read) if len(carried) + len(read) > 1 else list(carried)
        for function in (condition, body):
            inner = getattr(graph_module, function.target)
            _carry_inputs_of(inner)
            if more and not read:
                first = next(node for node in inner.graph.nodes if node.op == "placeholder")
                with inner.graph.inserting_after(first):
                    inner.graph.placeholder(f"{first.name}_again").meta = dict(first.meta)
            if function is body and more:
                output = inner.graph.output_node()
                (results,) = output.args
                placeholders = inner.graph.find_nodes(op="placeholder")
                unchanged = placeholders[len(carried) :] if read else results
                output.args = ((*results, *unchanged),)
            inner.recompile()
        loop.args = (condition, body, (*carried, *more), ())
        loop.meta = {**loop.meta, "val": (*loop.meta["val"], *(one.meta["val"] for one in more))}


def keep_conditions(module: Any) -> list[Definition]:
    """Passes each loop's first condition through a function that is only declared, and returns the
    definitions of these functions.

    If torch-mlir can fold the first condition to true, it treats the loop as one without a
    condition. The definitions replace the declarations later.
    """
    made: list[Definition] = []
    for loop in ops.find(module.operation, "torch.prim.Loop"):
        condition = loop.operands[1]
        if getattr(condition.owner, "name", "") == "torch.constant.bool":
            continue
        name = f"{_NAME}_{len(made)}"
        (result,) = call_declared(module, loop, name, [condition], [condition.type])
        loop.operands[1] = result
        text = f"func.func private @{name}(%holds: i1) -> i1 {{ return %holds : i1 }}"
        made.append(Definition("torch.while_loop", name, text, (("i1",), ("i1",))))
    return made
