"""Lowers `tensor.gather` and `tensor.scatter` to loops that are parallel over the moved elements.

The moved tensor is the result of `gather` or the source of `scatter`. Its leading dimensions are
those of the coordinates without the last one, which has one coordinate for each dimension in
`gather_dims` or `scatter_dims`. Its trailing dimensions are those of the other tensor, where
dimensions in that list have size 1 or are dropped.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text


def expand_gathers(module: Any) -> None:
    """Changes `module` in place."""
    with module.context:
        for gather in ops.find(module.operation, "tensor.gather"):
            replace_by_text(gather, _gather_text(gather))
        for scatter in ops.find(module.operation, "tensor.scatter"):
            replace_by_text(scatter, _scatter_text(scatter))


class _Move(Struct, frozen=True):
    """The types of the moved tensor, of the whole tensor, and of the coordinates along dimensions
    `named`."""

    moved: Any
    whole: Any
    coordinates: Any
    named: list[int]

    @property
    def leading(self) -> int:
        return int(self.coordinates.rank) - 1

    @property
    def trailing(self) -> dict[int, int]:
        """Dimension of the whole tensor → the corresponding dimension of the moved one."""
        keeps_rank = self.moved.rank - self.leading == self.whole.rank
        kept = [i for i in range(self.whole.rank) if keeps_rank or i not in self.named]
        return {dimension: self.leading + i for i, dimension in enumerate(kept)}

    def variables(self) -> list[str]:
        """The names of the loop variables, one for each dimension of the moved tensor."""
        return [f"%d{i}" for i in range(self.moved.rank)]

    def read_coordinates(self) -> list[str]:
        """Lines of IR that load the coordinates at the loop variables into `%at0`, ...."""
        type_ = self.coordinates
        is_index = isinstance(type_.element_type, ir.IndexType)
        lines = []
        for i in range(len(self.named)):
            indices = ", ".join([*self.variables()[: self.leading], f"%k{i}"])
            lines.append(f"%k{i} = arith.constant {i} : index")
            read = f"tensor.extract %coordinates[{indices}] : {type_}"
            if is_index:
                lines.append(f"%at{i} = {read}")
            else:
                lines.append(f"%number{i} = {read}")
                cast = f"arith.index_cast %number{i} : {type_.element_type} to index"
                lines.append(f"%at{i} = {cast}")
        return lines

    def size_source(self, dimension: int) -> tuple[str, Any, int]:
        """The tensor that determines the moved tensor's size along a dimension: its name, type and
        dimension."""
        if dimension < self.leading:
            return "%coordinates", self.coordinates, dimension
        of = next(d for d, position in self.trailing.items() if position == dimension)
        return "%whole", self.whole, of

    def indices(self) -> str:
        """The indices in the whole tensor of the element at the loop variables."""
        return ", ".join(
            f"%at{self.named.index(i)}" if i in self.named else self.variables()[self.trailing[i]]
            for i in range(self.whole.rank)
        )


def _gather_text(gather: Any) -> str:
    """The text of a function that gathers from the tensor at the coordinates."""
    source, coordinates = (value.type for value in gather.operands)
    result = gather.results[0].type
    named = list(ir.DenseI64ArrayAttr(gather.attributes["gather_dims"]))
    move = _Move(result, source, coordinates, named)
    dynamic = [i for i in range(result.rank) if result.is_dynamic_dim(i)]
    dimensions = ", ".join(f"d{i}" for i in range(result.rank))
    identity = f"affine_map<({dimensions}) -> ({dimensions})>"
    kinds = ", ".join(['"parallel"'] * result.rank)
    return "\n".join(
        [
            f"func.func @gather(%whole: {source}, %coordinates: {coordinates}) -> {result} {{",
            *(line for i in dynamic for line in _read_size(i, *move.size_source(i))),
            f"%empty = tensor.empty({', '.join(f'%n{i}' for i in dynamic)}) : {result}",
            f"%r = linalg.generic {{indexing_maps = [{identity}], iterator_types = [{kinds}]}} "
            f"outs(%empty : {result}) {{",
            f"^bb0(%unused: {result.element_type}):",
            *(f"{name} = linalg.index {i} : index" for i, name in enumerate(move.variables())),
            *move.read_coordinates(),
            f"%v = tensor.extract %whole[{move.indices()}] : {source}",
            f"linalg.yield %v : {result.element_type}\n}} -> {result}",
            f"return %r : {result}\n}}",
        ]
    )


def _scatter_text(scatter: Any) -> str:
    """The text of a function that scatters the source into the tensor at the coordinates. The
    operation guarantees that no two coordinates are equal."""
    source, dest, coordinates = (value.type for value in scatter.operands)
    named = list(ir.DenseI64ArrayAttr(scatter.attributes["scatter_dims"]))
    move = _Move(source, dest, coordinates, named)
    ones = ", ".join(["1"] * source.rank)
    ones_of_dest = ", ".join(["1"] * dest.rank)
    element = f"tensor<{'1x' * (source.rank - move.leading)}{source.element_type}>"
    sizes = ", ".join(f"%n{i}" for i in range(source.rank))
    variables = ", ".join(move.variables())
    return "\n".join(
        [
            f"func.func @scatter(%source: {source}, %whole: {dest}, %coordinates: {coordinates}) "
            f"-> {dest} {{",
            *(line for i in range(source.rank) for line in _read_size(i, "%source", source, i)),
            *(
                line
                for i in range(source.rank)
                if source.is_dynamic_dim(i)
                for line in _check_size(i, *move.size_source(i))
            ),
            f"%r = scf.forall ({variables}) in ({sizes}) shared_outs(%all = %whole) -> ({dest}) {{",
            *move.read_coordinates(),
            f"%v = tensor.extract_slice %source[{variables}] [{ones}] [{ones}] "
            f": {source} to {element}",
            "scf.forall.in_parallel {",
            f"tensor.parallel_insert_slice %v into %all[{move.indices()}] [{ones_of_dest}] "
            f"[{ones_of_dest}] : {element} into {dest}\n}}\n}}",
            f"return %r : {dest}\n}}",
        ]
    )


def _check_size(number: int, name: str, type_: Any, dimension: int) -> list[str]:
    """Lines of IR that assert that `%nNUMBER`, a size of the source, is that of another tensor."""
    what = {"%whole": "destination", "%coordinates": "tensor of coordinates"}[name]
    return [
        *_read_size(number, name, type_, dimension, "other"),
        f"%same{number} = arith.cmpi eq, %n{number}, %other{number} : index",
        f'cf.assert %same{number}, "tensor.scatter: dimension {number} of the source and '
        f'{dimension} of the {what} have different sizes"',
    ]


def _read_size(number: int, name: str, type_: Any, dimension: int, size: str = "n") -> list[str]:
    """Lines of IR that define `%nNUMBER` as a size of the tensor `name`."""
    return [
        f"%of_{size}{number} = arith.constant {dimension} : index",
        f"%{size}{number} = tensor.dim {name}, %of_{size}{number} : {type_}",
    ]
