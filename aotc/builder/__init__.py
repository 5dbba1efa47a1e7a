"""The builder that kernels are written with. It inserts operations at an insertion point.

Numbers are Python ints or values (see `numbers`). The operators of both create operations only
for numbers that are not known while the kernel is built:

    with b.launch(blocks, 256) as launch:
        with b.loop(launch.thread, size, 256) as loop:
            b.store(b.load(source, [loop.index]), target, [loop.index])

Types are given as text ("f32", "vector<4xf16>") or as the bindings' types.

`operations` has constants and arithmetic, `regions` loops, branches and launches, `memory` buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aotc.builder.memory import SHARED_MEMORY, WIDEST_ACCESS, Buffer, Memory
from aotc.builder.numbers import Value, wrap
from aotc.builder.operations import FLOAT8, Type
from aotc.builder.regions import Branch, Launch, Loop, Regions
from aotc.mlir import ir
from aotc.ops import create, text_of

__all__ = [
    "FLOAT8",
    "SHARED_MEMORY",
    "WIDEST_ACCESS",
    "Branch",
    "Buffer",
    "Builder",
    "Launch",
    "Loop",
    "Type",
    "function_text",
]


class Builder(Regions, Memory):
    """See the module's docstring. Operations are inserted at the current insertion point of the
    bindings, with the current location."""

    def barrier(self) -> None:
        """Inserts a barrier for all threads of the block."""
        create("gpu.barrier")

    def shuffle_xor(self, value: Value, distance: int) -> Value:
        """The value of the lane whose number is this lane's number XOR `distance`."""
        operands = [value, self.constant(distance, "i32"), self.constant(32, "i32")]
        mode = {"mode": self.attribute("#gpu<shuffle_mode xor>")}
        made = create("gpu.shuffle", operands, [value.type, self.type("i1")], mode)
        return wrap(made.results[0])


def function_text(
    name: str, arguments: Mapping[str, str], body: Callable[[Builder, list[Value]], None]
) -> str:
    """The text of `func.func @name`. `arguments` maps the names of its arguments to their types;
    `body` builds the body from their values."""
    with ir.Context(), ir.Location.unknown():
        b = Builder()
        types = [b.type(type_) for type_ in arguments.values()]
        type_ = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        attributes = {"sym_name": ir.StringAttr.get(name), "function_type": type_}
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = create("func.func", attributes=attributes, regions=1)
        places = [ir.Location.name(argument) for argument in arguments]
        block = function.regions[0].blocks.append(*types, arg_locs=places)
        with ir.InsertionPoint(block):
            body(b, list(block.arguments))
            create("func.return")
        module.operation.verify()
        return text_of(function, use_name_loc_as_prefix=True) + "\n"
