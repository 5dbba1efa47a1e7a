"""`gpu.func` and `gpu.launch_func` as one `with`: the kernel's body stands where it is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aotc.mlir import dialect, ir
from ladder.expressions import Array, Scalar, to_value, where

gpu = dialect("gpu")

# Accesses of 16 bytes, the widest, need it of a tile in workgroup memory.
_TILE_ALIGNMENT = 16


@dataclass(frozen=True)
class Kernel:
    """What a kernel's body sees: its place in the grid and the block (x, y), what it was given, and
    its tiles in workgroup memory."""

    block: tuple[Scalar, Scalar]
    thread: tuple[Scalar, Scalar]
    arrays: list[Array]
    tiles: list[Array]


@contextmanager
def launch(
    name: str,
    grid: Sequence[Scalar],
    block: Sequence[int],
    arrays: Sequence[Array],
    tiles: Sequence[tuple[int, ...]] = (),
    blocks_at_once: int = 1,
) -> Iterator[Kernel]:
    """Launches the kernel `name` over `arrays`; its body is made under the `with`.

    `grid` and `block` count in x and y; `tiles` are the shapes of tiles in workgroup memory, of the
    arrays' element type. `blocks_at_once`: how many blocks a multiprocessor is to hold at a time,
    which bounds the registers of a thread.
    """
    types = [array.value.type for array in arrays]
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    element = arrays[0].element
    tile_types = [ir.MemRefType.get(shape, element, memory_space=space) for shape in tiles]
    kernels = f"{name.removesuffix('_kernel')}_kernels"
    function = _make_function(kernels, name, types, tile_types)
    function.attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(_three(block, 1))
    function.attributes["nvvm.minctasm"] = _integer(32, blocks_at_once)
    with ir.InsertionPoint(function.body.blocks[0]):
        given = [Array(argument) for argument in function.body.blocks[0].arguments]
        x, y = gpu.Dimension.x, gpu.Dimension.y
        yield Kernel(
            (Scalar(gpu.block_id(x)), Scalar(gpu.block_id(y))),
            (Scalar(gpu.thread_id(x)), Scalar(gpu.thread_id(y))),
            given[: len(types)],
            given[len(types) :],
        )
        gpu.return_([])
    none = Scalar.index(0)

    # C may have no rows or columns, and a grid must have blocks.
    @where((none < grid[0]) & (none < grid[1]))
    def _() -> None:
        sizes = [[to_value(size) for size in _three(counts, 1)] for counts in (grid, block)]
        gpu.launch_func([kernels, name], *sizes, [array.value for array in arrays])


def _make_function(kernels: str, name: str, types: list[Any], tile_types: list[Any]) -> Any:
    """A kernel with a block that has no operations yet, in a `gpu.module` of its own."""
    module = ir.InsertionPoint.current.block.owner
    while module.operation.name != "builtin.module":
        module = module.operation.parent
    with ir.InsertionPoint(module.regions[0].blocks[0]):
        body = gpu.GPUModuleOp(kernels).bodyRegion.blocks.append()
    alignment = {"llvm.align": _integer(64, _TILE_ALIGNMENT)}
    with ir.InsertionPoint(body):
        function = gpu.GPUFuncOp(
            ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            name,
            kernel=True,
            workgroup_attrib_attrs=[alignment for _ in tile_types] or None,
        )
    function.attributes["workgroup_attributions"] = _integer(64, len(tile_types))
    arguments = [*types, *tile_types]
    function.body.blocks.append(*arguments, arg_locs=[ir.Location.current] * len(arguments))
    return function


def _integer(bits: int, number: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), number)


def _three(sizes: Sequence[Any], rest: Any) -> list[Any]:
    return [*sizes, rest, rest][:3]
