"""Maxima and minima of floats of 16 bits that a loop carries are those of integers.

Few processors compare such floats: LLVM converts both operands of each operation to f32, and tests
for NaN and zeros of both signs, in twenty instructions for half of a vector. As integers with a
sign, the bits of numbers that are not negative have the order of the numbers. The others have it if
all bits but the sign are inverted, so -0 is less than 0. NaN becomes the integer that wins, or that
loses where the operation ignores NaN, and is NaN again behind the loop.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

# Operation → the operation on integers, and the integer for NaN.
_LEAST, _MOST = -(1 << 15), (1 << 15) - 1
_EXTREMA = {
    "arith.maximumf": ("arith.maxsi", _MOST),
    "arith.minimumf": ("arith.minsi", _LEAST),
    "arith.maxnumf": ("arith.maxsi", _LEAST),
    "arith.minnumf": ("arith.minsi", _MOST),
}
# Type → the bits of infinity.
_INFINITIES = {"f16": 0x7C00, "bf16": 0x7F80}
_SIGN = 15
_UGT = 8
_LOOP = "scf.for"
# The number of a loop's operands before its initial values, and of its arguments before these.
_BOUNDS, _INDICES = 3, 1

# An operation, and the number of the operand that is the carried value.
_Step = tuple[Any, int]


def carry_extrema_as_integers(root: Any) -> None:
    """Changes the loops under `root` in place."""
    for loop in ops.find(root, _LOOP):
        for number, result in enumerate(loop.results):
            names = _names(loop, number) if ops.element_name(result.type) in _INFINITIES else None
            if names is None or len(names) != 1:
                continue
            old, place = result.type, _BOUNDS + number
            with loop.location:
                with ir.InsertionPoint(loop):
                    loop.operands[place] = _key(loop.operands[place], *names)
                _carry(loop, number)
                users = list(result.uses)
                with ir.InsertionPoint.after(loop):
                    found = ops.unary("arith.bitcast", _inverted(result), old)
            for use in users:
                use.owner.operands[use.operand_number] = found


def _steps(loop: Any, number: int) -> list[_Step] | None:
    """The operations from the carried value `number` to its value in the next iteration. None if
    another operation reads one of these values."""
    value = loop.regions[0].blocks[0].arguments[_INDICES + number]
    steps, end = [], ops.content(loop)[-1].operands[number]
    while value != end:
        uses = list(value.uses)
        step, place = (uses[0].owner.operation, uses[0].operand_number) if uses else (loop, 0)
        is_loop = step.name == _LOOP and place >= _BOUNDS
        if len(uses) != 1 or step.parent != loop or not (is_loop or step.name in _EXTREMA):
            return None
        steps.append((step, place))
        value = step.results[place - _BOUNDS if is_loop else 0]
    return steps if len(list(end.uses)) == 1 else None


def _names(loop: Any, number: int) -> set[str] | None:
    """The names of the operations, also of those in inner loops, if there are only maxima and
    minima."""
    names: set[str] = set()
    steps = _steps(loop, number)
    for step, place in steps or ():
        inner = _names(step, place - _BOUNDS) if step.name == _LOOP else {step.name}
        if inner is None:
            return None
        names |= inner
    return None if steps is None else names


def _carry(loop: Any, number: int) -> None:
    """Carries integers, as the initial value is by now."""
    steps = _steps(loop, number)
    assert steps is not None
    type_ = loop.operands[_BOUNDS + number].type
    loop.regions[0].blocks[0].arguments[_INDICES + number].set_type(type_)
    for step, place in steps:
        if step.name == _LOOP:
            _carry(step, place - _BOUNDS)
            continue
        with step.location, ir.InsertionPoint(step):
            other = _key(step.operands[1 - place], step.name)
            found = ops.binary(_EXTREMA[step.name][0], step.operands[place], other)
        ops.replace(step, [found])
    loop.results[number].set_type(type_)


def _key(value: Any, name: str) -> Any:
    """The integers that have the order of the floats."""
    type_ = ops.with_element_type(value.type, ops.integer(16))
    bits = ops.unary("arith.bitcast", value, type_)
    size = ops.binary("arith.andi", bits, ops.constant(type_, _MOST))
    infinity = ops.constant(type_, _INFINITIES[ops.element_name(value.type)])
    is_nan = ops.compare(_UGT, size, infinity)
    return ops.select(is_nan, ops.constant(type_, _EXTREMA[name][1]), _inverted(bits))


def _inverted(bits: Any) -> Any:
    """Inverts all bits but the sign where that is set."""
    sign = ops.binary("arith.shrsi", bits, ops.constant(bits.type, _SIGN))
    return ops.binary(
        "arith.xori", bits, ops.binary("arith.andi", sign, ops.constant(bits.type, _MOST))
    )
