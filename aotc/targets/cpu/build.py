"""Helpers that create operations of the LLVM dialect at the current insertion point.

Integers are i64 and addresses are in bytes unless stated otherwise. (The bindings cannot set the
nsw, nuw and inbounds flags of sums and addresses; LLVM optimizes well enough without them.)
"""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir
from aotc.ops import body_of_module, create, unary
from aotc.targets.cpu.sizes import size_of

# llvm.icmp's predicates.
EQ, NE, SLT, SLE, SGT, SGE, ULT = range(7)

_WIDEST_ALIGNMENT = 32


def i64() -> Any:
    return ir.IntegerType.get_signless(64)


def i32() -> Any:
    return ir.IntegerType.get_signless(32)


def pointer_type() -> Any:
    return ir.Type.parse("!llvm.ptr")


def declare_function(module: Any, symbol: str, arguments: str, result: str | None = None) -> Any:
    """Appends an llvm.func without a body. The argument types and the result type are text."""
    escaped = symbol.replace("\\", "\\\\").replace('"', '\\"')
    arrow = "" if result is None else f" -> {result}"
    function = ir.Operation.parse(f'llvm.func @"{escaped}"({arguments}){arrow}')
    body_of_module(module).append(function)
    return function


def bytes_global(symbol: str, content: bytes) -> Any:
    """An internal constant with these bytes, which is not in a module yet."""
    return ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": ir.StringAttr.get(symbol),
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{len(content)} x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "constant": ir.UnitAttr.get(),
            "value": ir.StringAttr.get(content),
            "addr_space": ir.IntegerAttr.get(i32(), 0),
        },
        regions=1,
        ip=False,
    )


def keep_internal(function: Any) -> None:
    """Gives a function that has a body internal linkage."""
    function.operation.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def number(value: int, type_: Any = None) -> Any:
    type_ = type_ or i64()
    return create(
        "llvm.mlir.constant",
        results=[type_],
        attributes={"value": ir.IntegerAttr.get(type_, value)},
    ).result


def known_number(value: Any) -> int | None:
    """The value of a constant that `number` made, or None."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "llvm.mlir.constant":
        return None
    attribute = owner.operation.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def add(left: Any, right: Any) -> Any:
    return _folded("llvm.add", left, right, lambda a, b: a + b, 0)


def multiply(left: Any, right: Any) -> Any:
    return _folded("llvm.mul", left, right, lambda a, b: a * b, 1)


def _folded(name: str, left: Any, right: Any, compute: Any, neutral: int) -> Any:
    a, b = known_number(left), known_number(right)
    if a is not None and b is not None:
        return number(compute(a, b))
    if a == neutral:
        return right
    if b == neutral:
        return left
    return create(name, [left, right], [left.type]).result


def integer_op(name: str, left: Any, right: Any) -> Any:
    """`llvm.<name>` of two integers, with wrap-around."""
    return create(f"llvm.{name}", [left, right], [left.type]).result


def divide(left: Any, right: Any) -> Any:
    a, b = known_number(left), known_number(right)
    if a is not None and b is not None:
        return number(a // b)
    return left if b == 1 else integer_op("udiv", left, right)


def remainder(left: Any, right: Any) -> Any:
    a, b = known_number(left), known_number(right)
    if a is not None and b is not None:
        return number(a % b)
    return number(0) if b == 1 else integer_op("urem", left, right)


def smaller(left: Any, right: Any) -> Any:
    """The minimum of two signed integers."""
    a, b = known_number(left), known_number(right)
    if a is not None and b is not None:
        return number(min(a, b))
    return create("llvm.intr.smin", [left, right], [left.type]).result


def compare(predicate: int, left: Any, right: Any) -> Any:
    return create(
        "llvm.icmp",
        [left, right],
        [ir.IntegerType.get_signless(1)],
        {"predicate": ir.IntegerAttr.get(i64(), predicate)},
    ).result


def at(pointer: Any, offset: Any) -> Any:
    """The address `offset` bytes after `pointer`. `offset` is an int or an i64 value."""
    known = offset if isinstance(offset, int) else known_number(offset)
    if known == 0:
        return pointer
    dynamic = -(2**31)
    fits = known is not None and 0 <= known < 2**31
    operands = (
        [pointer] if fits else [pointer, number(offset) if isinstance(offset, int) else offset]
    )
    return create(
        "llvm.getelementptr",
        operands,
        [pointer_type()],
        {
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([known if fits else dynamic]),
            "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        },
    ).result


def load(address: Any, type_: Any, *, group: Any = None, alignment: int | None = None) -> Any:
    """A load. `group` is the array attribute of an access group."""
    return create("llvm.load", [address], [type_], _access(group, alignment)).result


def store(value: Any, address: Any, *, group: Any = None, alignment: int | None = None) -> None:
    create("llvm.store", [value, address], attributes=_access(group, alignment))


def _access(group: Any, alignment: int | None) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if group is not None:
        attributes["access_groups"] = group
    if alignment is not None:
        attributes["alignment"] = ir.IntegerAttr.get(i64(), alignment)
    return attributes


def allocate(type_: Any, count: int, alignment: int) -> Any:
    """`llvm.alloca` of `count` elements."""
    return create(
        "llvm.alloca",
        [number(count)],
        [pointer_type()],
        {
            "elem_type": ir.TypeAttr.get(type_),
            "alignment": ir.IntegerAttr.get(i64(), alignment),
        },
    ).result


def jump(target: Any, values: Any = (), *, annotation: Any = None) -> None:
    """`llvm.br`. `annotation` is the loop annotation, for the branch that ends a loop."""
    ir.Operation.create(
        "llvm.br",
        operands=list(values),
        successors=[target],
        attributes={} if annotation is None else {"loop_annotation": annotation},
    )


def branch(condition: Any, then: Any, other: Any, values: Any = (), other_values: Any = ()) -> Any:
    """`llvm.cond_br`."""
    sizes = [1, len(values), len(other_values)]
    return ir.Operation.create(
        "llvm.cond_br",
        operands=[condition, *values, *other_values],
        successors=[then, other],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes)},
    )


def unreachable() -> None:
    create("llvm.unreachable")


def return_values(*values: Any) -> None:
    create("llvm.return", list(values))


# An i1 is stored as a byte.


def memory_type(type_: Any) -> Any:
    """The type as which `store_value` stores a value of `type_`."""
    byte = ir.IntegerType.get_signless(8)
    if isinstance(type_, ir.IntegerType) and type_.width == 1:
        return byte
    if isinstance(type_, ir.VectorType) and str(type_.element_type) == "i1":
        return ir.VectorType.get(list(type_.shape), byte)
    return type_


def store_value(value: Any, address: Any, *, group: Any = None) -> None:
    """Stores a value of any type. `load_value` loads it again."""
    stored = memory_type(value.type)
    if stored != value.type:
        value = unary("llvm.zext", value, stored)
    store(value, address, group=group, alignment=slot_alignment(stored))


def load_value(address: Any, type_: Any, *, group: Any = None) -> Any:
    stored = memory_type(type_)
    value = load(address, stored, group=group, alignment=slot_alignment(stored))
    return value if stored == type_ else unary("llvm.trunc", value, type_)


def slot_alignment(type_: Any) -> int:
    """The alignment of a slot for values of `type_`, at most 32 bytes."""
    return min(size_of(type_).alignment, _WIDEST_ALIGNMENT)
