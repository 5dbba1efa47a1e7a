"""`arith.extf` of f8 → arithmetic on bits: upstream has it for no chip, and for no CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc import ops
from aotc.lower.rewrites.by_text import replace_by_text
from aotc.mlir import ir

FLOAT8 = ("f8E4M3FN", "f8E5M2")

_WIDEN = "arith.extf"
_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def expand_float8(root: Any) -> None:
    """Rewrites those under `root`, of numbers and vectors, in place."""
    for operation in ops.find(root, _WIDEN):
        source, target = operation.operands[0].type, operation.results[0].type
        if str(ops.element_type(source)) in FLOAT8:
            replace_by_text(operation, _function(source, target))


def _function(source: Any, target: Any) -> str:
    lines: list[str] = []

    def value(text: str) -> str:
        lines.append(f"%v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    shape = str(source).removeprefix("vector<").split(str(ops.element_type(source)))[0]
    words = str(ops.element_type(source)), str(ops.element_type(target))
    result = widen_float8(value, "%x", *words, shape if isinstance(source, ir.VectorType) else "")
    body = "\n  ".join([*lines, f"return {result} : {target}"])
    return f"func.func @widen(%x: {source}) -> {target} {{\n  {body}\n}}"


def widen_float8(
    value: Callable[[str], str], name: str, source: str, target: str, shape: str = ""
) -> str:
    """The value `name`, an f8, as a wider float, exactly; `value` adds an operation and names its
    result. `shape`: of vectors, `4x`.

    f8E5M2 is the upper half of an f16. f8E4M3FN's bits behind its sign are those of an f16, whose
    exponent has another bias; but for its NaN, which has them all.
    """

    def type_(element: str) -> str:
        return f"vector<{shape}{element}>" if shape else element

    def constant(number: int | str, element: str) -> str:
        text = f"dense<{number}>" if shape else number
        return value(f"arith.constant {text} : {type_(element)}")

    def do(operation: str, left: str, right: str, element: str) -> str:
        return value(f"arith.{operation} {left}, {right} : {type_(element)}")

    def cast(operation: str, one: str, from_: str, to: str) -> str:
        return value(f"arith.{operation} {one} : {type_(from_)} to {type_(to)}")

    def resize(one: str, from_: str) -> str:
        """A float of 16 or 32 bits as the target, which has all its values or more than f8's."""
        if from_ == target:
            return one
        return cast("extf" if _BITS[from_] < _BITS[target] else "truncf", one, from_, target)

    bits = cast("extui", cast("bitcast", name, source, "i8"), "i8", "i16")
    eight = constant(8, "i16")
    if source == "f8E5M2":
        half = cast("bitcast", do("shli", bits, eight, "i16"), "i16", "f16")
        single = cast("extf", half, "f16", "f32") if target == "bf16" else half
        return resize(single, "f32" if target == "bf16" else "f16")
    all_ones = constant(0x7F, "i16")
    magnitude = do("andi", bits, all_ones, "i16")
    sign = do("shli", do("subi", bits, magnitude, "i16"), eight, "i16")
    moved = do("shli", magnitude, constant(7, "i16"), "i16")
    half = cast("bitcast", do("ori", sign, moved, "i16"), "i16", "f16")
    scale = constant("256.0", "f32")
    scaled = do("mulf", cast("extf", half, "f16", "f32"), scale, "f32")
    is_nan = do("cmpi eq,", magnitude, all_ones, "i16")
    nan = constant("0x7FC00000", "f32")
    chosen = f"{type_('i1')}, {type_('f32')}" if shape else "f32"
    number = value(f"arith.select {is_nan}, {nan}, {scaled} : {chosen}")
    return resize(number, "f32")
