"""math operations → operations that upstream lowers correctly on a host.

* f16 and bf16 are computed in f32 and rounded once, as no library has functions for them.
  (Upstream's `math-extend-to-supported-types` marks the casts `contract`, which allows LLVM to drop
  roundings between operations, and it tests isnormal on the wider number.)
* `fma` of f16 and bf16 goes through f64, because in f32 the sum would be rounded twice. For f16
  that is exact; for bf16 a result can differ where the exact sum lies within 2^-45 of itself from
  the middle between two bf16.
* In kernels, functions of f32 become arithmetic: see elementary.py.
* Functions that LLVM has no intrinsic for become calls of libm, one for each element of a vector.
  (Upstream has a pass for that. It would have to run before vectors are lowered, and would then
  convert functions with intrinsics, too. Upstream's expansions of `expm1` as exp(x) - 1 and of
  `log1p` as log(1 + x) have no correct digit near 0.)
* `fpowi`: upstream multiplies repeatedly, and inverts for negative exponents, which can overflow
  in between. An f64 `pow` takes every i32 exponent exactly.
* isnan, isinf, isfinite and isnormal are computed from the bits, for every type and shape.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.ops import (
    binary,
    body_of_module,
    call,
    compare,
    constant,
    create,
    element_type,
    integer,
    unary,
    walk,
    with_element_type,
)
from aotc.rewrites.elementary import expand_function, replace_exp_plus_one

# arith.cmpi's predicates.
_LESS_UNSIGNED, _GREATER_UNSIGNED, _EQUAL = 6, 8, 0
_OEQ = 1  # of arith.cmpf
_FMA = frozenset({"math.fma", "vector.fma"})
# Functions that LLVM has no intrinsic for, with their names in libm.
_LIBM = {
    "math.acosh": "acosh",
    "math.asinh": "asinh",
    "math.atanh": "atanh",
    "math.cbrt": "cbrt",
    "math.erf": "erf",
    "math.erfc": "erfc",
    "math.expm1": "expm1",
    "math.log1p": "log1p",
}
_CLASSES = frozenset({"math.isnan", "math.isinf", "math.isfinite", "math.isnormal"})


def replace_math(module: Any, *, in_loops: bool = False) -> None:
    """Rewrites the math operations of every function in the module. `in_loops` says that they are
    in loops that LLVM is to vectorize, so that functions of f32 become arithmetic."""
    library: dict[str, Any] = {}
    found = walk(module.operation)
    for operation in [op for op in found if op.name.startswith("math.") or op.name in _FMA]:
        if not (in_loops and replace_exp_plus_one(operation)):
            _replace_one(operation, library, in_loops=in_loops)
    present = ir.SymbolTable(module.operation)
    for name, declaration in library.items():
        # The host code of the module may declare it already.
        if name not in present:
            body_of_module(module).append(declaration)


def replace_questions(root: Any) -> None:
    """Rewrites isnan, isinf, isfinite and isnormal only, as upstream does not lower all of them."""
    for operation in walk(root):
        if operation.name in _CLASSES:
            _replace_one(operation, {}, in_loops=False)


def simplify_powers(root: Any) -> None:
    """Rewrites powers with constant exponents that products, quotients and roots give, as LLVM does
    on the host, but not for a GPU's library. The results for zeros, infinities and NaN are those of
    `pow`."""
    for operation in ops.find(root, "math.powf"):
        exponent = ops.known_float(operation.operands[1])
        if exponent not in _POWERS:
            continue
        type_ = operation.results[0].type
        with ir.InsertionPoint(operation), operation.location:
            base = operation.operands[0]
            wide = type_
            if _is_narrow(operation):
                wide = with_element_type(type_, ir.F32Type.get())
                base = unary("arith.extf", base, wide)
            power = _known_power(base, exponent)
            if wide != type_:
                power = unary("arith.truncf", power, type_)
        ops.replace(operation, [power])


# More products round more often than `pow`.
_POWERS = (-1.0, -0.5, 0.5, 1.0, 2.0, 3.0)


def _known_power(base: Any, exponent: float) -> Any:
    type_ = base.type
    one = constant(type_, 1.0)
    if exponent in (0.5, -0.5):
        # Of -0 and of -infinity, a root has another sign, or none.
        root = unary("math.sqrt", binary("arith.addf", base, constant(type_, 0.0)), type_)
        power = root if exponent > 0 else binary("arith.divf", one, root)
        is_infinite = ops.compare_floats(_OEQ, base, constant(type_, -math.inf))
        return ops.select(is_infinite, constant(type_, math.inf if exponent > 0 else 0.0), power)
    power = base
    for _ in range(int(abs(exponent)) - 1):
        power = binary("arith.mulf", power, base)
    return power if exponent > 0 else binary("arith.divf", one, power)


def _replace_one(operation: Any, library: dict[str, Any], *, in_loops: bool) -> None:
    name = operation.name
    successors: list[Any] = []
    with ir.InsertionPoint(operation), operation.location:
        if name in _CLASSES:
            values = [_classify(operation)]
        elif name == "math.sincos":
            successors = [_like(part, operation) for part in ("math.sin", "math.cos")]
            values = [successor.result for successor in successors]
        elif name == "math.fpowi":
            values = [_power(operation)]
        elif _is_narrow(operation):
            successor, value = _widen(operation)
            successors, values = [successor], [value]
        elif in_loops and (expanded := expand_function(operation)) is not None:
            values = [expanded]
        elif name in _LIBM:
            values = [_call_libm(operation, library)]
        else:
            return
    ops.replace(operation, values)
    for successor in successors:
        _replace_one(successor, library, in_loops=in_loops)


def _like(name: str, operation: Any) -> Any:
    """Another operation with the same operands and result type."""
    return create(name, list(operation.operands), [operation.results[0].type])


def _is_narrow(operation: Any) -> bool:
    return any(
        isinstance(element_type(value.type), (ir.F16Type, ir.BF16Type))
        for value in [*operation.operands, *operation.results]
    )


def _widen(operation: Any) -> tuple[Any, Any]:
    """Creates the operation in a wider type, and rounds its result; returns both."""
    wide = ir.F64Type.get() if operation.name in _FMA else ir.F32Type.get()
    operands = [
        unary("arith.extf", operand, with_element_type(operand.type, wide))
        for operand in operation.operands
    ]
    narrow = operation.results[0].type
    widened = create(operation.name, operands, [with_element_type(narrow, wide)])
    return widened, unary("arith.truncf", widened.result, narrow)


def _power(operation: Any) -> Any:
    base, exponent = operation.operands
    type_ = base.type
    f64 = with_element_type(type_, ir.F64Type.get())
    wide = base if type_ == f64 else unary("arith.extf", base, f64)
    power = binary("math.powf", wide, unary("arith.sitofp", exponent, f64))
    return power if type_ == f64 else unary("arith.truncf", power, type_)


def _classify(operation: Any) -> Any:
    """isnan, isinf, isfinite or isnormal, computed from the bits of exponent and fraction."""
    (value,) = operation.operands
    element = element_type(value.type)
    width, fraction = _FORMATS[type(element)]
    infinity = ((1 << (width - 1 - fraction)) - 1) << fraction
    bits_type = with_element_type(value.type, integer(width))
    bits = unary("arith.bitcast", value, bits_type)
    magnitude = binary("arith.andi", bits, constant(bits_type, (1 << (width - 1)) - 1))
    if operation.name == "math.isnan":
        return compare(_GREATER_UNSIGNED, magnitude, constant(bits_type, infinity))
    if operation.name == "math.isinf":
        return compare(_EQUAL, magnitude, constant(bits_type, infinity))
    if operation.name == "math.isfinite":
        return compare(_LESS_UNSIGNED, magnitude, constant(bits_type, infinity))
    # A normal number is at least the smallest normal one and below infinity. Smaller numbers wrap
    # around in the subtraction.
    smallest = 1 << fraction
    distance = binary("arith.subi", magnitude, constant(bits_type, smallest))
    return compare(_LESS_UNSIGNED, distance, constant(bits_type, infinity - smallest))


# The width, and the number of fraction bits.
_FORMATS = {ir.F16Type: (16, 10), ir.BF16Type: (16, 7), ir.F32Type: (32, 23), ir.F64Type: (64, 52)}


def _call_libm(operation: Any, library: dict[str, Any]) -> Any:
    """Calls libm for each element. Declarations are added to `library`."""
    (value,) = operation.operands
    element = element_type(value.type)
    name = _LIBM[operation.name] + ("f" if isinstance(element, ir.F32Type) else "")
    if name not in library:
        library[name] = ir.Operation.parse(
            f"func.func private @{name}({element}) -> {element} attributes {{llvm.readnone}}"
        )
    if not isinstance(value.type, ir.VectorType):
        return call(name, [value], [element]).result
    count = math.prod(value.type.shape)
    parts = create("vector.to_elements", [value], [element] * count).results
    called = [call(name, [part], [element]).result for part in parts]
    return create("vector.from_elements", called, [value.type]).result
