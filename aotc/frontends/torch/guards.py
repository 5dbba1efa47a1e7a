"""Conditions on sizes under which PyTorch traced a program, as checks of the entry.

`torch.export` records the conditions of the user's code as Python source, which
`ExportedProgram.module()` checks. Decompositions, which run later, add theirs to the guards of the
program's shape environment.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from aotc import ops
from aotc.errors import InputError

_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}


def noted_conditions(program: Any) -> list[Any]:
    """The conditions of the user's code, as SymPy relations of the program's symbols."""
    import torch

    texts = getattr(program, "_guards_code", None) or ()
    given = _given(program) if texts else {}
    conditions = []
    for text in texts:
        try:
            parsed = ast.parse(text, mode="eval").body
            if _is_of_base(parsed):
                continue
            condition = _evaluated(parsed, given)
        except (KeyError, IndexError, SyntaxError, TypeError, AttributeError) as error:
            raise InputError(f"A condition on sizes cannot be checked: {text}") from error
        if isinstance(condition, torch.SymBool):
            conditions.append(condition.node.expr)
    return [one for one in conditions if not _is_true(one) and not _is_specialization(one)]


@contextlib.contextmanager
def without_noted_conditions(program: Any) -> Iterator[None]:
    """Removes the recorded conditions while the context is active. PyTorch compiles and runs their
    source when it runs the program, which it also does to decompose it; a file may have any source
    there."""
    texts, program._guards_code = getattr(program, "_guards_code", None) or [], []
    try:
        yield
    finally:
        program._guards_code = texts


def guards_of(program: Any) -> list[Any]:
    """The guards of the program's symbols. Decompositions append theirs."""
    environment = _environment(program)
    return [] if environment is None else [guard.expr for guard in environment.guards]


def repair_expressions(program: Any) -> None:
    """Mends what PyTorch reads from a file for sizes that are expressions of a symbol (`2*n`): it
    takes the expressions for symbols, and then cannot decompose the program.

    Their ranges are removed, which those of the symbols imply, and the values that the program was
    traced with are given to the symbols.
    """
    environment = _environment(program)
    ranges = getattr(environment, "var_to_range", {})
    for expression in [one for one in ranges if not one.is_Symbol]:
        del ranges[expression]
    # Older versions of PyTorch have the second name.
    names = ("backed_var_to_val", "var_to_val")
    found = [getattr(environment, name) for name in names if hasattr(environment, name)]
    values: dict[Any, Any] = found[0] if found else {}
    for expression, value in list(values.items()):
        for symbol in expression.free_symbols - values.keys():
            rest = expression.subs(symbol, 0)
            factor = expression.subs(symbol, 1) - rest
            if factor.is_Integer and rest.is_Integer and expression == factor * symbol + rest:
                values[symbol] = (value - rest) / factor


def _environment(program: Any) -> Any:
    """The shape environment of the program's symbols, or None if it has none."""
    for node in program.graph.nodes:
        environment = getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)
        if environment is not None:
            return environment
    return None


def made_conditions(guards: Sequence[Any]) -> list[Any]:
    """The guards of decompositions that their results depend on. An inequality of two sizes is left
    out: the general case is traced then, which also holds for equal sizes."""
    return [
        guard
        for guard in guards
        if not _is_true(guard)
        and not _is_specialization(guard)
        and (guard.func.__name__ != "Unequality" or _has_remainder(guard))
    ]


def _is_true(condition: Any) -> bool:
    return bool(condition.func.__name__ == "BooleanTrue")


def _has_remainder(condition: Any) -> bool:
    return any(side.func.__name__ in ("Mod", "PythonMod") for side in condition.args)


def _is_specialization(condition: Any) -> bool:
    """Whether a condition says that a size is neither 0 nor 1. PyTorch assumes that of each
    symbolic size, also of one rounded from another, to decide broadcasting. It also says so by
    products: n < n * m, as of strides, and n mod (n * m) != 0."""
    import sympy  # type: ignore[import-not-found, import-untyped, unused-ignore]

    if not condition.is_Relational or not all(
        isinstance(side, sympy.Expr) for side in condition.args
    ):
        return False
    left, right = condition.args
    match condition.func.__name__:
        case "Unequality" if left.func.__name__ == "Mod" and right == 0 and _is_factor(*left.args):
            return True
        case "StrictLessThan" if _is_factor(left, right):
            return True
        case "StrictGreaterThan" if _is_factor(right, left):
            return True
    least = {"Unequality": 1, "StrictGreaterThan": 1, "GreaterThan": 2}
    mirrored = {"Unequality": 1, "StrictLessThan": 1, "LessThan": 2}
    for size, bound, bounds in (
        (*condition.args, least),
        (*reversed(condition.args), mirrored),
    ):
        is_size = _is_product(size) or size.func.__name__ in _TO_INTEGERS
        if is_size and bound.is_Integer:
            return bool(0 <= bound <= bounds.get(condition.func.__name__, -1))
    return False


def _is_factor(size: Any, product: Any) -> bool:
    """Whether a product is one of this size and other sizes."""
    import sympy  # type: ignore[import-not-found, import-untyped, unused-ignore]

    if size == 0 or not (size.is_polynomial() and product.is_polynomial()):
        return False
    return _is_product(sympy.cancel(product / size))


def _is_product(expression: Any) -> bool:
    """Whether an expression is a symbolic size, or a product of such sizes."""
    bases = [factor.as_base_exp() for factor in expression.as_ordered_factors()]
    return all(base.is_Symbol and power.is_Integer and power > 0 for base, power in bases)


def _given(program: Any) -> dict[str, Any]:
    """The parameters of `forward` by name. A variadic parameter is a tuple."""
    from torch.utils import _pytree

    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    leaves = [
        spec.arg.value if hasattr(spec.arg, "value") else values.get(spec.arg.name)
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT"
    ]
    positional, named = _pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    names = program.module_call_graph[0].signature.forward_arg_names or ()
    given = {**dict(zip(names, positional, strict=False)), **named}
    several: dict[str, list[Any]] = {}
    for name in names:
        # `*rest` is `rest_0`, `rest_1`, ...
        numbered = re.fullmatch(r"(.+)_\d+", name)
        if numbered and name in given:
            several.setdefault(numbered[1], []).append(given[name])
    # The name that strict export gives to all arguments.
    return {"flat_args": leaves, **several, **given}


def _functions() -> dict[str, Callable[..., Any]]:
    import torch

    return {
        **{f"math.{name}": getattr(math, name) for name in ("trunc", "floor", "ceil", "sqrt")},
        **{f"torch.sym_{name}": getattr(torch, f"sym_{name}") for name in _SYMBOLIC},
        "int": torch.sym_int,
        "float": torch.sym_float,
        "round": round,
        "neg": operator.neg,
        "not": torch.sym_not,
        "max": lambda *values: functools.reduce(torch.sym_max, values),
        "min": lambda *values: functools.reduce(torch.sym_min, values),
    }


def _is_of_base(node: ast.expr) -> bool:
    """Whether a condition is about the base tensor that an example argument was a view of.
    Arguments of an entry are separate arrays."""
    return any(isinstance(one, ast.Attribute) and one.attr == "_base" for one in ast.walk(node))


_SYMBOLIC = ("float", "int", "max", "min")


def _evaluated(node: ast.expr, given: dict[str, Any]) -> Any:
    """The value of a Python expression. Only these operations are evaluated, because a file may
    have any source."""
    value: Any
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            value = node.value
        case ast.Subscript(value=ast.Name(id="L"), slice=key):
            value = given[_evaluated(key, given)]
        case ast.Subscript():
            value = _evaluated(node.value, given)[_evaluated(node.slice, given)]
        case ast.Call(func=ast.Attribute(attr="size" | "stride" | "storage_offset"), args=[]):
            assert isinstance(node.func, ast.Attribute)
            tensor = _evaluated(node.func.value, given)
            value = getattr(tensor, node.func.attr)()
        case ast.Call(keywords=[]):
            function = _functions()[ast.unparse(node.func)]
            value = function(*(_evaluated(argument, given) for argument in node.args))
        case ast.UnaryOp():
            name = {ast.USub: "neg", ast.Not: "not"}[type(node.op)]
            value = _functions()[name](_evaluated(node.operand, given))
        case ast.BinOp():
            left, right = _evaluated(node.left, given), _evaluated(node.right, given)
            value = _BINARY[type(node.op)](left, right)
        case ast.BoolOp():
            terms = [_evaluated(one, given) for one in node.values]
            value = functools.reduce(_BINARY[type(node.op)], terms)
        case ast.Compare():
            terms = [_evaluated(one, given) for one in (node.left, *node.comparators)]
            relations = [_BINARY[type(one)] for one in node.ops]
            pairs = zip(relations, pairwise(terms), strict=True)
            value = functools.reduce(operator.and_, (relation(*pair) for relation, pair in pairs))
        case _:
            raise KeyError(type(node).__name__)
    return value


# Maps SymPy's and PyTorch's functions to operations of the arith and math dialects, for integers
# and for floats.
_OPERATIONS: dict[str, tuple[str | None, str | None]] = {
    "Add": ("arith.addi", "arith.addf"),
    "Mul": ("arith.muli", "arith.mulf"),
    "Max": ("arith.maxsi", "arith.maximumf"),
    "Min": ("arith.minsi", "arith.minimumf"),
    "FloorDiv": ("arith.floordivsi", None),
    "CleanDiv": ("arith.divsi", None),
    "Mod": ("arith.remsi", None),
    "FloatTrueDiv": (None, "arith.divf"),
    "IntTrueDiv": (None, "arith.divf"),
    "FloatPow": (None, "math.powf"),
    "PowByNatural": ("math.ipowi", None),
    "Pow": ("math.ipowi", "math.powf"),
    "And": ("arith.andi", None),
    "Or": ("arith.ori", None),
}
_DIVISIONS = ("arith.floordivsi", "arith.divsi", "arith.remsi")
_NE = 1  # a predicate of arith.cmpi
# The predicates of arith.cmpi (signed) and of arith.cmpf.
_RELATIONS = {
    "Equality": (0, 1),
    "Unequality": (1, 6),
    "StrictLessThan": (2, 4),
    "LessThan": (3, 5),
    "StrictGreaterThan": (4, 2),
    "GreaterThan": (5, 3),
}
_TO_INTEGERS = {"TruncToInt": None, "FloorToInt": "math.floor", "CeilToInt": "math.ceil"}


class Conditions:
    """Builds conditions at the insertion point. `symbols` maps each symbol to its value, of type
    index."""

    def __init__(self, symbols: dict[Any, Any]) -> None:
        from torch_mlir import ir  # type: ignore[import-not-found, unused-ignore]

        self._symbols = symbols
        self._ir = ir
        self._i64, self._f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()

    def value(self, condition: Any) -> Any:
        """The condition as an i1 value. Raises InputError if it has no lowering."""
        try:
            return self._value(condition)
        except KeyError as error:
            raise InputError(
                "The program is for sizes of which a condition holds that cannot be checked: "
                f"{condition} ({error.args[0]})"
            ) from None

    def _value(self, expression: Any) -> Any:
        name = expression.func.__name__
        if expression.is_Symbol:
            size = self._symbols[expression]
            return ops.unary("arith.index_cast", size, self._i64)
        if expression.is_Integer:
            return self._constant(self._i64, int(expression))
        if expression.is_number:
            return self._constant(self._f64, float(expression))
        operands = [self._value(one) for one in expression.args]
        if name in _RELATIONS:
            return self._compared(*_RELATIONS[name], operands)
        if name in ("ToFloat", "Identity"):
            return self._float(operands[0]) if name == "ToFloat" else operands[0]
        if name in _TO_INTEGERS:
            rounding = _TO_INTEGERS[name]
            rounded = ops.unary(rounding, operands[0], self._f64) if rounding else operands[0]
            return ops.unary("arith.fptosi", rounded, self._i64)
        if name == "PythonMod":
            return self._modulo(*operands)
        if name == "Not":
            true = self._constant(operands[0].type, 1)
            return ops.binary("arith.xori", operands[0], true)
        of_integers, of_floats = _OPERATIONS[name]
        is_of_floats = of_integers is None or any(one.type == self._f64 for one in operands)
        operation = of_floats if is_of_floats else of_integers
        if operation is None:
            raise KeyError(name)
        first, *others = map(self._float, operands) if is_of_floats else operands
        for other in others:
            if operation in _DIVISIONS:
                other = self._not_zero(other)
            first = ops.binary(operation, first, other)
        return first

    def _compared(self, of_integers: int, of_floats: int, operands: Sequence[Any]) -> Any:
        if all(one.type != self._f64 for one in operands):
            return ops.compare(of_integers, *operands)
        attributes = {
            "predicate": self._ir.IntegerAttr.get(self._i64, of_floats),
            "fastmath": self._ir.Attribute.parse("#arith.fastmath<none>"),
        }
        i1 = self._ir.IntegerType.get_signless(1)
        return ops.create("arith.cmpf", [*map(self._float, operands)], [i1], attributes).result

    def _modulo(self, value: Any, divisor: Any) -> Any:
        """The remainder that has the divisor's sign."""
        divisor = self._not_zero(divisor)
        quotient = ops.binary("arith.floordivsi", value, divisor)
        return ops.binary("arith.subi", value, ops.binary("arith.muli", quotient, divisor))

    def _not_zero(self, divisor: Any) -> Any:
        """Replaces a zero divisor by 1, because division by zero traps on the CPU. Another
        condition checks that the divisor is not 0."""
        one, zero = self._constant(self._i64, 1), self._constant(self._i64, 0)
        is_there = ops.compare(_NE, divisor, zero)
        return ops.select(is_there, divisor, one)

    def _float(self, value: Any) -> Any:
        return value if value.type == self._f64 else ops.unary("arith.sitofp", value, self._f64)

    def _constant(self, type_: Any, number: float) -> Any:
        of = self._ir.FloatAttr if type_ == self._f64 else self._ir.IntegerAttr
        value = of.get(type_, number)
        return ops.constant_from(value)
