"""`linalg.pack` and `linalg.unpack` of buffers → one loop over their destination.

(On tensors, MLIR lowers them to pads, reshapes and transposes, which are fused with other
operations.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir

_PACK, _UNPACK = "linalg.pack", "linalg.unpack"
_EQ, _SGE, _ULT = 0, 5, 6  # arith.cmpi's numbers


def expand_buffer_packs(module: Any) -> None:
    """Changes `module` in place."""
    with module.context:
        for operation in ops.find(module.operation, _PACK, _UNPACK):
            if not isinstance(operation.operands[0].type, ir.MemRefType):
                continue
            with operation.location, ir.InsertionPoint(operation):
                (_expand_pack if operation.name == _PACK else _expand_unpack)(operation)
            ops.erase(operation)


def _expand_pack(pack: Any) -> None:
    (source,), (target,), padding, _ = ops.operand_groups(pack)
    layout = _Layout(pack, rank=source.type.rank)
    layout.check(source, target, _EQ if not padding else _SGE)

    def body(indices: list[Any]) -> None:
        at = layout.plain(indices, target)

        def copy() -> None:
            value = ops.load(source, at)
            ops.create("memref.store", [value, target, *indices])

        def pad() -> None:
            if padding:
                ops.create("memref.store", [padding[0], target, *indices])

        # The last tiles may extend beyond the source.
        is_inside = None
        for dimension in layout.tiled:
            fits = ops.compare(_ULT, at[dimension], ops.size(source, dimension))
            is_inside = fits if is_inside is None else ops.binary("arith.andi", is_inside, fits)
        if is_inside is None:
            copy()
        else:
            ops.create_either(is_inside, copy, pad)

    ops.create_parallel([ops.size(target, i) for i in range(target.type.rank)], body)


def _expand_unpack(unpack: Any) -> None:
    source, target = list(unpack.operands)[:2]
    layout = _Layout(unpack, rank=target.type.rank)
    layout.check(target, source, _SGE)

    def body(indices: list[Any]) -> None:
        at = layout.packed(indices, source)
        value = ops.load(source, at)
        ops.create("memref.store", [value, target, *indices])

    ops.create_parallel([ops.size(target, i) for i in range(target.type.rank)], body)


class _Layout:
    """The layout of a packed buffer: its tiles are in the order of `outer`, and the elements of a
    tile in the order of the dimensions in `tiled`."""

    def __init__(self, operation: Any, *, rank: int) -> None:
        self._name = operation.name
        self._rank = rank
        self.tiled = _numbers(operation, "inner_dims_pos")
        self._outer = _numbers(operation, "outer_dims_perm") or list(range(rank))

    def check(self, plain: Any, packed: Any, predicate: int) -> None:
        """Asserts, for dynamic sizes, that along each dimension the tiles have as many elements as
        the plain buffer (`predicate` is eq), or at least as many (sge)."""
        for dimension in range(self._rank):
            number = self._outer.index(dimension)
            count = ops.size(packed, number)
            types = [(plain, dimension), (packed, number)]
            if dimension in self.tiled:
                tile = self._rank + self.tiled.index(dimension)
                count = ops.index_op("arith.muli", count, ops.size(packed, tile))
                types.append((packed, tile))
            if not any(buffer.type.is_dynamic_dim(i) for buffer, i in types):
                continue  # verified
            fits = ops.compare(predicate, count, ops.size(plain, dimension))
            said = f"{self._name}: the tiles along dimension {dimension} do not fit its size"
            ops.create_assert(fits, said)

    def plain(self, indices: Sequence[Any], packed: Any) -> list[Any]:
        """The indices in the plain buffer of an element of the packed buffer."""
        at = [indices[self._outer.index(dimension)] for dimension in range(self._rank)]
        for number, dimension in enumerate(self.tiled, self._rank):
            begin = ops.index_op("arith.muli", at[dimension], ops.size(packed, number))
            at[dimension] = ops.index_op("arith.addi", begin, indices[number])
        return at

    def packed(self, indices: Sequence[Any], packed: Any) -> list[Any]:
        """The indices in the packed buffer of an element of the plain buffer."""
        tiles, inside = list(indices), []
        for number, dimension in enumerate(self.tiled, self._rank):
            size = ops.size(packed, number)
            tiles[dimension] = ops.index_op("arith.divui", indices[dimension], size)
            inside.append(ops.index_op("arith.remui", indices[dimension], size))
        return [*(tiles[dimension] for dimension in self._outer), *inside]


def _numbers(operation: Any, name: str) -> list[int]:
    if name not in operation.attributes:
        return []
    return list(ir.DenseI64ArrayAttr(operation.attributes[name]))
