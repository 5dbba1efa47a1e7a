"""`nvgpu.device_async_*` → synchronous copies.

An asynchronous copy may be done at any time before a thread waits for it. Groups and tokens then
have no meaning: a token is a zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.mlir import ir
from aotc.ops import binary, constant, constant_index, create, index_op, integer, operand_groups
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import element_address, to_i64
from aotc.targets.cpu.expand.matmul import zeros
from aotc.targets.cpu.sizes import size_of

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def _copy(operation: Any, ids: Ids) -> None:
    (target,), target_indices, (source,), source_indices, known_count = operand_groups(operation)
    size = size_of(target.type.element_type).bytes
    count = int(ir.IntegerAttr(operation.attributes["dstElements"]).value)
    to = element_address(target, target_indices)
    start = element_address(source, source_indices)
    bytes_type = ir.VectorType.get([count * size], integer(8))
    if known_count:
        # The source has no more elements: the rest is not read, and becomes zero.
        build.store(zeros(bytes_type), to, alignment=size)
        copied = binary("arith.minui", known_count[0], constant_index(count))
        length = to_i64(index_op("arith.muli", copied, constant_index(size)))
        create(
            "llvm.intr.memcpy",
            [to, start, length],
            attributes={"isVolatile": ir.BoolAttr.get(False)},
        )
    else:
        build.store(build.load(start, bytes_type, alignment=size), to, alignment=size)
    _give_token(operation, ids)


def _give_token(operation: Any, _: Ids) -> None:
    token = operation.results[0]
    token.replace_all_uses_with(constant(token.type, 0))


def _wait(operation: Any, ids: Ids) -> None:
    """The copies are done: there is nothing to wait for."""


ASYNC_COPIES: dict[str, Callable[[Any, Ids], None]] = {
    "nvgpu.device_async_copy": _copy,
    "nvgpu.device_async_create_group": _give_token,
    "nvgpu.device_async_wait": _wait,
}
