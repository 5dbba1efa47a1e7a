"""Exchanges between the lanes of a warp → shuffles of 32-bit words (`nvvm.shfl.sync`).

Values of any type are moved word by word: narrow ones are widened, wide ones split, and vectors
packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc.chips import WARP
from aotc.llvm_ops import extract_value
from aotc.mlir import ir
from aotc.ops import (
    binary,
    compare,
    constant,
    create,
    enumerator,
    extract,
    integer,
    is_pointer,
    known_index,
    select,
    unary,
)

ALL_LANES = 0xFFFFFFFF

# A predicate of arith.cmpi.
_ULT = 6
_WORD = 32
_PACKED_WIDTHS = (8, 16, 32, 64)


def i32(value: int) -> Any:
    return constant(integer(_WORD), value)


def lane_id() -> Any:
    return create("nvvm.read.ptx.sreg.laneid", results=[integer(_WORD)]).result


def can_move(type_: Any) -> bool:
    """Whether `move` can split a value of this type into words."""
    if isinstance(type_, ir.VectorType):
        return not type_.scalable and can_move(type_.element_type)
    if isinstance(type_, ir.ComplexType):
        return can_move(type_.element_type)
    if isinstance(type_, ir.FloatType):
        # LLVM has no type for tf32.
        return not isinstance(type_, ir.FloatTF32Type)
    return isinstance(type_, (ir.IntegerType, ir.IndexType)) or is_pointer(type_)


def move(value: Any, move_word: Callable[[Any], Any]) -> Any:
    """`value` with each of its words (i32) replaced by the result of `move_word`."""
    type_ = value.type
    if isinstance(type_, ir.VectorType):
        return _move_vector(value, move_word)
    if isinstance(type_, ir.ComplexType):
        parts = [unary(name, value, type_.element_type) for name in ("complex.re", "complex.im")]
        return create("complex.create", [move(part, move_word) for part in parts], [type_]).result
    if isinstance(type_, ir.FloatType):
        bits = unary("arith.bitcast", value, integer(type_.width))
        return unary("arith.bitcast", _move_integer(bits, move_word), type_)
    if isinstance(type_, ir.IndexType):
        number = unary("arith.index_cast", value, integer(64))
        return unary("arith.index_cast", _move_integer(number, move_word), type_)
    if is_pointer(type_):
        address = unary("llvm.ptrtoint", value, integer(64))
        return unary("llvm.inttoptr", _move_integer(address, move_word), type_)
    return _move_integer(value, move_word)


def _move_integer(value: Any, move_word: Callable[[Any], Any]) -> Any:
    type_ = value.type
    if type_.width <= _WORD:
        return _narrow(move_word(_widen(value, integer(_WORD))), type_)
    count = -(-type_.width // _WORD)
    wide = integer(count * _WORD)
    bits = _widen(value, wide)
    moved = None
    for number in range(count):
        by = constant(wide, number * _WORD)
        word = _narrow(binary("arith.shrui", bits, by), integer(_WORD))
        part = binary("arith.shli", _widen(move_word(word), wide), by)
        moved = part if moved is None else binary("arith.ori", moved, part)
    return _narrow(moved, type_)


def _widen(value: Any, type_: Any) -> Any:
    return value if value.type == type_ else unary("arith.extui", value, type_)


def _narrow(value: Any, type_: Any) -> Any:
    return value if value.type == type_ else unary("arith.trunci", value, type_)


def _move_vector(vector: Any, move_word: Callable[[Any], Any]) -> Any:
    type_ = vector.type
    element = type_.element_type
    count = 1
    for size in type_.shape:
        count *= size
    flat = ir.VectorType.get([count], element)
    if type_ != flat:
        moved = _move_vector(unary("vector.shape_cast", vector, flat), move_word)
        return unary("vector.shape_cast", moved, type_)
    width = element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 0
    words, rest = divmod(count * width, _WORD)
    if width in _PACKED_WIDTHS and rest == 0 and element != integer(_WORD):
        packed = ir.VectorType.get([words], integer(_WORD))
        moved = _move_vector(unary("vector.bitcast", vector, packed), move_word)
        return unary("vector.bitcast", moved, flat)
    moved = [move(extract(vector, number), move_word) for number in range(count)]
    return create("vector.from_elements", moved, [flat]).result


def shuffle(kind: str, word: Any, operand: Any, *, mask: Any = None) -> Any:
    """`nvvm.shfl.sync` over whole warps. `kind` is bfly, up, down or idx.

    `mask` are the lanes that synchronize; by default, all lanes that have not ended.
    """
    clamp = i32(0 if kind == "up" else WARP - 1)
    return _shfl(kind, word, operand, mask, clamp, [integer(_WORD)], {}).result


def _shfl(
    kind: str,
    word: Any,
    operand: Any,
    mask: Any,
    clamp: Any,
    results: list[Any],
    attributes: dict[str, Any],
) -> Any:
    return create(
        "nvvm.shfl.sync",
        [i32(ALL_LANES) if mask is None else mask, word, operand, clamp],
        results,
        {"kind": ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>"), **attributes},
    )


_SHUFFLES = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}


def expand_shuffle(operation: Any) -> Sequence[Any] | None:
    """Expands a gpu.shuffle that upstream does not lower, or lowers wrongly.

    For a width below 32, upstream's lowering lets lanes outside of the mask take part, which is
    undefined in PTX, and its `up` finds no valid source.
    """
    value, offset, width = operation.operands
    whole = known_index(width) == WARP
    if (whole and _upstream_moves(value.type)) or not can_move(value.type):
        return None
    kind = _SHUFFLES[enumerator(operation.attributes["mode"])]
    mask = None if whole else _first_lanes_or_others(width)
    last = binary("arith.subi", width, i32(1))
    pair = ir.Type.parse("!llvm.struct<(i32, i1)>")
    valid: list[Any] = []

    def move_word(word: Any) -> Any:
        found = _shfl(
            kind,
            word,
            offset,
            mask,
            i32(0) if kind == "up" else last,
            [pair],
            {"return_value_and_is_valid": ir.UnitAttr.get()},
        ).result
        valid.append(extract_value(found, integer(1), 1))
        return extract_value(found, integer(_WORD), 0)

    moved = move(value, move_word)
    if whole:
        return [moved, valid[0]]
    return [moved, binary("arith.andi", valid[0], compare(_ULT, lane_id(), width))]


def _upstream_moves(type_: Any) -> bool:
    if isinstance(type_, ir.VectorType):
        return False
    return isinstance(type_, (ir.F32Type, ir.F64Type)) or type_ in (integer(32), integer(64))


def _first_lanes_or_others(width: Any) -> Any:
    """The first `width` lanes in these lanes, the others in the others: each group synchronizes on
    its own."""
    first = binary("arith.shrui", i32(ALL_LANES), binary("arith.subi", i32(WARP), width))
    others = binary("arith.xori", first, i32(ALL_LANES))
    return select(compare(_ULT, lane_id(), width), first, others)


def expand_rotate(operation: Any) -> Sequence[Any] | None:
    """Expands gpu.rotate: each group of `width` lanes rotates, and synchronizes, on its own."""
    value = operation.operands[0]
    if not can_move(value.type):
        return None
    offset, width = (
        int(ir.IntegerAttr(operation.attributes[name]).value) for name in ("offset", "width")
    )
    lane = lane_id()
    first = binary("arith.andi", lane, i32(ALL_LANES & ~(width - 1)))
    turned = binary("arith.andi", binary("arith.addi", lane, i32(offset)), i32(width - 1))
    source = binary("arith.ori", first, turned)
    mask = binary("arith.shli", i32((1 << width) - 1), first)
    moved = move(value, lambda word: shuffle("idx", word, source, mask=mask))
    return [moved, compare(_ULT, lane, i32(width))]


def expand_broadcast(operation: Any) -> Sequence[Any] | None:
    """Expands gpu.subgroup_broadcast among the lanes that execute it together."""
    value, *lane = operation.operands
    if not can_move(value.type):
        return None
    mask = _executing_lanes(operation)
    source = lane[0] if lane else _first_of(mask)
    return [move(value, lambda word: shuffle("idx", word, source, mask=mask))]


def _first_of(mask: Any) -> Any:
    """The lowest lane of a mask, which is not 0."""
    attributes = {"is_zero_poison": ir.BoolAttr.get(True)}
    return create("llvm.intr.cttz", [mask], [mask.type], attributes).result


def _executing_lanes(operation: Any) -> Any:
    """The mask of the lanes that execute `operation`.

    In a kernel's entry block these are all lanes that have not ended; a ballot makes them converge.
    Behind branches, only the hardware knows the mask.
    """
    kernel = operation.parent
    if kernel.name == "gpu.func" and operation.block == kernel.regions[0].blocks[0]:
        return unary("gpu.ballot", constant(integer(1), 1), integer(_WORD))
    return create(
        "llvm.call_intrinsic",
        results=[integer(_WORD)],
        attributes={
            "intrin": ir.StringAttr.get("llvm.nvvm.activemask"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    ).result


def expand_ballot(operation: Any) -> Sequence[Any] | None:
    """Expands a gpu.ballot of another width than upstream's lowering supports."""
    type_ = operation.results[0].type
    if type_.width in (32, 64):
        return None
    votes = create("gpu.ballot", list(operation.operands), [integer(_WORD)]).result
    return [_widen(votes, type_) if type_.width > _WORD else _narrow(votes, type_)]
