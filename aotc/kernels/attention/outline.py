"""Outlines attention in linalg on tensors to a private function with its operations.

The arguments of the function are Q, K, V, a tensor for the result, and the other values that its
operations use. The call passes through bufferization unchanged. `dispatch` then replaces it by
kernels, and keeps the call for all other devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.attributes import (
    ATTENTION_CAUSAL,
    ATTENTION_GROUP,
    ATTENTION_HEADS,
    ATTENTION_MASK,
    ATTENTION_MASK_REPLACES,
    ATTENTION_OPERANDS,
    ATTENTION_PAGES,
    ATTENTION_SCALE,
    ATTENTION_ZERO,
)
from aotc.input.entries import functions_of
from aotc.kernels.attention.choice import choose, choose_for_cpu
from aotc.kernels.attention.combined_mask import CombinedMask
from aotc.kernels.attention.elements import Place
from aotc.kernels.attention.factors import is_movable, multiply_q
from aotc.kernels.attention.layout import ALIGNMENT, Form, Layout, sizes_of
from aotc.kernels.attention.operands import has_adjacent_heads
from aotc.kernels.attention.pages import Pages
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.attention.recognition import Found, recognise_attention
from aotc.kernels.launches import PARALLEL, chips_of, functions_called_in_parallel
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest

_NAME = "aotc_attention"


def outline_attention(module: Any, request: BuildRequest) -> None:
    """Outlines the attentions of `module` that have kernels, in place. Its linalg operations are
    `linalg.generic` on tensors."""

    def has_kernel(problem: Attention) -> bool:
        on_gpus = choose(problem, chips_of(request), one_variant=request.is_for_trying)
        return bool(on_gpus) or (request.cpu_kernels and choose_for_cpu(problem) is not None)

    with module.context:
        inside = functions_called_in_parallel(module)
        number = 0
        for function in functions_of(module):
            if symbol_of(function) in inside:
                continue
            _part_empties(function)
            for generic in ops.find(function, "linalg.generic"):
                if ops.enclosing(generic, *PARALLEL) is not None:
                    continue
                candidate = _candidate(generic, has_kernel)
                if candidate is not None and (factor := candidate[0].factor) is not None:
                    candidate = _candidate(generic, has_kernel) if multiply_q(factor) else None
                if candidate is not None and candidate[0].factor is None:
                    number += _outline(module, function, *candidate, number)


def _candidate(
    product: Any, has_kernel: Callable[[Attention], bool]
) -> tuple[Found, CombinedMask] | None:
    """The attention whose second matmul is `product`, if it has a kernel, and what it adds to
    scores."""
    found = recognise_attention(product)
    if found is None:
        return None
    with product.location:
        added = CombinedMask.of(found.masks, found.replacements)
    problem = None if added is None else _problem(found, added)
    if added is None or problem is None or not has_kernel(problem):
        return None
    return found, added


def problem_of(
    types: Sequence[Any],
    scale: float,
    places: tuple[str, ...],
    forms: Sequence[Form],
    *,
    causal: bool,
    masked_rows_are_zero: bool,
    group: int,
    pages: Pages | None,
    mask_replaces: bool,
) -> Attention | None:
    """The problem for the types of Q, K, V, O and, if there is one, a mask: tensors or buffers.
    None if their sizes do not match. `forms`: the forms of Q, K, V and O."""
    layouts = layouts_of(types[:4], forms, group)
    q, k, v, o = layouts
    if q.columns is None or any(one.columns != q.columns for one in layouts) or k.rows == 0:
        return None
    if (o.batch, o.rows) != (q.batch, q.rows):
        return None
    if group and pages is None and not _shares_k_and_v(q, k, v, group):
        return None
    return Attention(
        q=q.matrix,
        k=k.matrix,
        v=v.matrix,
        o=o.matrix,
        scale=scale,
        batch=q.batch,
        causal=causal,
        masked_rows_are_zero=masked_rows_are_zero,
        mask=_mask(types[4], places, replaces=mask_replaces) if places else None,
        heads=(q.heads, k.heads, v.heads, o.heads),
        group=group,
        pages=pages,
    )


def layouts_of(types: Sequence[Any], forms: Sequence[Form], group: int) -> list[Layout]:
    """The layouts of Q, K, V and O. With a group, matrices of Q and O have one row."""
    has_one_row = (bool(group), False, False, bool(group))
    return [
        Layout.of(type_, form, has_one_row=one)
        for type_, form, one in zip(types, forms, has_one_row, strict=True)
    ]


def _shares_k_and_v(q: Layout, k: Layout, v: Layout, group: int) -> bool:
    """Whether K and V have a matrix for each `group` of Q, as far as sizes are known."""
    if q.batch is None:
        # Whole groups: the heads, which are known, are a multiple.
        *_, heads, _ = [1, *sizes_of(q.type)]
        return group == 1 or (heads is not None and heads % group == 0)
    return all(one.batch is not None and one.batch * group == q.batch for one in (k, v))


def _problem(found: Found, added: CombinedMask) -> Attention | None:
    operands = (found.q, found.k, found.v, found.result)
    return problem_of(
        [*(one.tensor.type for one in operands), added.type],
        found.scale,
        _places(added),
        [one.form for one in operands],
        causal=found.causal,
        masked_rows_are_zero=found.masked_rows_are_zero,
        group=found.group,
        pages=found.k.pages,
        mask_replaces=bool(found.replacements),
    )


def _places(added: CombinedMask) -> tuple[str, ...]:
    return tuple(map(_place_text, added.places))


def _place_text(place: Place) -> str:
    if not isinstance(place, tuple):
        return str(place)
    part, of, number = place
    return f"{_place_text(of)}{'/' if part == 'high' else '%'}{number}"


def _mask(type_: Any, places: tuple[str, ...], *, replaces: bool) -> Mask:
    element = str(type_.element_type)
    sizes = sizes_of(type_)
    shape = "x".join("?" if size is None else str(size) for size in sizes)
    row = 0 if sizes[-1] is None else sizes[-1] * ELEMENT_BYTES[element]
    alignment = math.gcd(row, ALIGNMENT) if row else ELEMENT_BYTES[element]
    return Mask(f"memref<{shape}x{element}>", element, places, alignment, replaces)


def _outline(module: Any, function: Any, found: Found, added: CombinedMask, number: int) -> bool:
    """Outlines an attention. Returns False, without any change, if the scores have other uses."""
    root: Any = ops.defining(found.result.tensor)
    sizes = _sizes(root)
    read = [one.tensor for one in (found.q, found.k, found.v)]
    with root.location, ir.InsertionPoint(root):
        # The tables are built before `_alone`, as they use some of the same values.
        tables = [
            one.gather.build_table(*one.table_dimensions)
            for one in (found.k, found.v)
            if one.gather is not None
        ]
    moved = _alone(root, (*read, *tables, *added.read, *sizes))
    if not _is_made_by(found.scores, moved):
        return False
    with root.location, ir.InsertionPoint(root):
        result = ops.create("tensor.empty", sizes, [found.result.tensor.type]).result
        masks = [added.build()] if added.places else []
        leading = [*read, result, *masks, *tables]
    arguments = [*leading, *_others(moved, leading)]
    name = _free_name(module, number)
    with root.location, ir.InsertionPoint(root):
        attributes = {"callee": ir.FlatSymbolRefAttr.get(name)}
        call = ops.create("func.call", arguments, [result.type], attributes)
    found.result.tensor.replace_all_uses_with(call.results[0])
    with root.location, ir.InsertionPoint(function):
        outlined = _function(name, found, added, arguments)
        _move(moved, outlined, arguments)
    return True


def _part_empties(function: Any) -> None:
    """Gives each use its own `tensor.empty`. A shared one would be an argument of the outlined
    function, and so a buffer that a kernel does not need."""
    for empty in ops.find(function, "tensor.empty"):
        _, *others = list(empty.results[0].uses) or [None]
        for use in others:
            copy = empty.clone(ir.InsertionPoint(empty))
            use.owner.operands[use.operand_number] = copy.results[0]


def _is_made_by(value: Any, operations: list[Any]) -> bool:
    maker = ops.defining(value)
    return maker is not None and maker in operations


def _sizes(root: Any) -> list[Any]:
    """The dynamic sizes of the operation's result."""
    _, (out,) = ops.operand_groups(root)
    maker = ops.defining(out)
    while maker is not None and maker.name == "linalg.generic":
        _, outs = ops.operand_groups(maker)
        maker = ops.defining(outs[0])
    if maker is not None and maker.name == "tensor.empty":
        return list(maker.operands)
    with root.location, ir.InsertionPoint(root):
        return ops.dynamic_sizes(out)


def _alone(root: Any, ends: Sequence[Any]) -> list[Any]:
    """The operations in the block of `root` whose results are only used to compute `root`, in
    order, with `root` as the last one. The operations that define `ends` are excluded."""
    makers = {maker for end in ends if (maker := ops.defining(end)) is not None}
    found, pending = {root}, [root]
    while pending:
        for inner in ops.walk(pending.pop()):
            for value in inner.operands:
                maker = ops.defining(value)
                if maker is None or maker in found or maker in makers:
                    continue
                if is_movable(maker, root) and _is_used_by(maker, found):
                    found.add(maker)
                    pending.append(maker)
    in_order = []
    for operation in root.block.operations:
        if operation.operation in found:
            in_order.append(operation.operation)
        if operation.operation == root:
            break
    return in_order


def _is_used_by(operation: Any, users: set[Any]) -> bool:
    """Whether all uses of the operation's results are in `users`."""
    return all(
        use.owner.operation in users or any(up in users for up in ops.ancestors(use.owner))
        for result in operation.results
        for use in result.uses
    )


def _others(moved: list[Any], leading: list[Any]) -> list[Any]:
    """The other values from outside that the operations use, without constants, which are
    copied."""
    found: list[Any] = []
    for operation in moved:
        for inner in ops.walk(operation):
            for value in inner.operands:
                owner = ops.defining(value)
                if (
                    all(ops.is_made_outside(value, one) for one in moved)
                    and not _is_constant(owner)
                    and value not in leading
                    and value not in found
                ):
                    found.append(value)
    return found


def _is_constant(operation: Any | None) -> bool:
    return operation is not None and operation.name == "arith.constant"


def _free_name(module: Any, number: int) -> str:
    taken = {symbol_of(function) for function in functions_of(module)}
    name = f"{_NAME}_{number}"
    while name in taken:
        name += "_"
    return name


def _function(name: str, found: Found, added: CombinedMask, arguments: list[Any]) -> Any:
    """Creates an outlined function with an empty body at the insertion point."""
    types = [argument.type for argument in arguments]
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [found.result.tensor.type])),
        ATTENTION_SCALE: ir.FloatAttr.get(ir.F64Type.get(), found.scale),
        ATTENTION_CAUSAL: ir.BoolAttr.get(found.causal),
        ATTENTION_ZERO: ir.BoolAttr.get(found.masked_rows_are_zero),
        ATTENTION_HEADS: ir.DenseI64ArrayAttr.get(
            [
                number
                for one in (found.q, found.k, found.v, found.result)
                for number in one.form.numbers
            ]
        ),
        "arg_attrs": ir.ArrayAttr.get(_layouts(found, arguments)),
        ATTENTION_MASK: ir.ArrayAttr.get([ir.StringAttr.get(place) for place in _places(added)]),
        ATTENTION_MASK_REPLACES: ir.BoolAttr.get(bool(found.replacements)),
        ATTENTION_GROUP: ir.IntegerAttr.get(ir.IndexType.get(), found.group),
        **({} if found.k.pages is None else {ATTENTION_PAGES: _encoded(found.k.pages)}),
        ATTENTION_OPERANDS: ir.IntegerAttr.get(ir.IndexType.get(), len(arguments)),
    }
    function = ops.create("func.func", [], [], attributes, regions=1)
    function.regions[0].blocks.append(*types)
    return function


def _encoded(pages: Pages) -> Any:
    count = -1 if pages.count is None else pages.count
    return ir.DenseI64ArrayAttr.get([pages.rows, pages.heads, int(pages.has_head_rows), count])


def pages_of(function: Any) -> Pages | None:
    """The pages of an outlined function's K and V; None if they are not paged."""
    if ATTENTION_PAGES not in function.attributes:
        return None
    rows, heads, has_head_rows, count = ir.DenseI64ArrayAttr(function.attributes[ATTENTION_PAGES])
    return Pages(rows, heads, bool(has_head_rows), None if count < 0 else count)


def _layouts(found: Found, arguments: list[Any]) -> list[Any]:
    """The layout attributes of the arguments. Q, K or V with heads in rows may be a slice of a
    larger tensor, which a strided layout passes without a copy. Operands whose heads are not
    adjacent in their row are copied."""
    attributes = [ir.DictAttr.get({}) for _ in arguments]
    for i, operand in enumerate((found.q, found.k, found.v)):
        if operand.form.heads and has_adjacent_heads(operand):
            strides = ", ".join(["?"] * (operand.tensor.type.rank - 1))
            layout = ir.Attribute.parse(f"strided<[{strides}, 1], offset: ?>")
            attributes[i] = ir.DictAttr.get({"bufferization.buffer_layout": layout})
    return attributes


def _move(moved: list[Any], function: Any, arguments: list[Any]) -> None:
    """Moves the operations into the function, which writes the result of the last one to its fourth
    argument, and returns it."""
    block = function.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        # Without this operation, nothing would place the result in the argument: the destination of
        # elementwise operations is only a hint.
        made, to = moved[-1].results[0], block.arguments[3]
        written = ops.create("bufferization.materialize_in_destination", [made, to], [to.type])
        ops.create("func.return", [written.result])
    given = list(zip(arguments, block.arguments, strict=True))
    for operation in moved:
        operation.move_before(written)
    for operation in moved:
        for inner in ops.walk(operation):
            for i, value in enumerate(inner.operands):
                if not ops.is_made_outside(value, function):
                    continue
                owner: Any = ops.defining(value)
                if _is_constant(owner) and all(value != argument for argument in arguments):
                    copy = owner.clone(ir.InsertionPoint.at_block_begin(block))
                    inner.operands[i] = copy.results[0]
                else:
                    inner.operands[i] = next(to for one, to in given if one == value)
