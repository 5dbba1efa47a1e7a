"""Replaces one-level sparse tensors that are read from files or sorted by matrices of one column.

MLIR's sparsifier supports neither operation for one level: its pass does not terminate. It supports
both for coordinate lists of two dimensions.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.analysis.sparse import is_sparse, levels_of
from aotc.mlir import ir

_WIDTH = re.compile(r"(posWidth|crdWidth) = (\d+)")
_GROUPS = "[[0, 1]]"


def make_matrices(module: Any) -> None:
    """Changes `module` in place, before the sparsifier."""
    for new in ops.find(module.operation, "sparse_tensor.new"):
        type_ = new.results[0].type
        if _has_one_level(type_):
            with new.location, ir.InsertionPoint(new):
                matrix = ops.create(new.name, [new.operands[0]], [_matrix_of(type_)]).result
                new.results[0].replace_all_uses_with(_as_vector(matrix, type_))
            ops.erase(new)
    for convert in ops.find(module.operation, "sparse_tensor.convert"):
        if _sorts(convert):
            with convert.location, ir.InsertionPoint(convert):
                made = _as_vector(_sorted(convert), convert.results[0].type)
                convert.results[0].replace_all_uses_with(made)
            ops.erase(convert)


def _has_one_level(type_: Any) -> bool:
    return is_sparse(type_) and len(levels_of(type_)) == 1


def _sorts(convert: Any) -> bool:
    """Whether the conversion is from an unordered to an ordered tensor, both of one level."""
    types = (convert.operands[0].type, convert.results[0].type)
    return all(map(_has_one_level, types)) and _is_ordered(types[1]) and not _is_ordered(types[0])


def _is_ordered(type_: Any) -> bool:
    return "nonordered" not in levels_of(type_)[0].properties


def _matrix_of(type_: Any, *, is_ordered: bool = True) -> Any:
    """The type of a coordinate list with one column and the vector's elements."""
    order = "" if is_ordered else "nonordered, "
    widths = "".join(f", {name} = {bits}" for name, bits in _WIDTH.findall(str(type_.encoding)))
    encoding = ir.Attribute.parse(
        f"#sparse_tensor.encoding<{{map = (i, j) -> (i : compressed({order}nonunique), "
        f"j : singleton({order}soa)){widths}}}>"
    )
    return ir.RankedTensorType.get([*type_.shape, 1], type_.element_type, encoding)


def _sorted(convert: Any) -> Any:
    """The conversion's result as a matrix."""
    vector, result = convert.operands[0], convert.results[0].type
    matrix = _matrix_of(vector.type, is_ordered=False)
    sizes = ops.dynamic_sizes(vector)
    attributes = {
        "reassociation": ir.Attribute.parse(_GROUPS),
        "static_output_shape": ir.DenseI64ArrayAttr.get([*vector.type.shape, 1]),
    }
    column = ops.create("tensor.expand_shape", [vector, *sizes], [matrix], attributes).result
    return ops.create(convert.name, [column], [_matrix_of(result)]).result


def _as_vector(matrix: Any, type_: Any) -> Any:
    attributes = {"reassociation": ir.Attribute.parse(_GROUPS)}
    return ops.create("tensor.collapse_shape", [matrix], [type_], attributes).result
