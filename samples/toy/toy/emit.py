"""Syntax tree → MLIR: functions over tensors of known shape, and nothing of a GPU in them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from aotc.mlir import dialect, ir, make_context
from toy.shapes import Instance, Key
from toy.tree import (
    At,
    Binary,
    Call,
    Declare,
    Evaluate,
    Expression,
    Literal,
    Return,
    Shape,
    Statement,
    Variable,
)

arith, func, linalg, scf, tensor = map(dialect, "arith func linalg scf tensor".split())

# How the tutorial prints. What a program calls is linked with it, and the C library is.
_PRINTING = r"""
llvm.mlir.global internal constant @element("%f \00")
llvm.mlir.global internal constant @line("\0A\00")
llvm.func @printf(!llvm.ptr, ...) -> i32

func.func private @print_element(%value: f64) {
  %format = llvm.mlir.addressof @element : !llvm.ptr
  %0 = llvm.call @printf(%format, %value) vararg(!llvm.func<i32 (ptr, ...)>)
    : (!llvm.ptr, f64) -> i32
  return
}
func.func private @print_line() {
  %format = llvm.mlir.addressof @line : !llvm.ptr
  %0 = llvm.call @printf(%format) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32
  return
}
"""


def emit_module(file: str, instances: Mapping[Key, Instance]) -> Any:
    """An `ir.Module` with a function for each instance. Locations name `file`."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(_PRINTING)
        with ir.InsertionPoint(module.body):
            for instance in instances.values():
                _FunctionEmitter(file, instances).function(instance)
    return module


class _FunctionEmitter:
    """Emits one function. `variables` has the value of each name that was declared so far."""

    def __init__(self, file: str, instances: Mapping[Key, Instance]) -> None:
        self.file = file
        self.instances = instances
        self.variables: dict[str, Any] = {}

    def at(self, place: At) -> Any:
        """A location, for `with`: of the operations that are made there."""
        return ir.Location.file(self.file, place.line, place.column)

    def function(self, instance: Instance) -> None:
        function = instance.function
        inputs = [_tensor_type(shape) for shape in instance.arguments]
        results = [] if instance.result is None else [_tensor_type(instance.result)]
        visibility = None if instance.symbol == "main" else "private"
        with self.at(function.at):
            made = func.FuncOp(instance.symbol, (inputs, results), visibility=visibility)
            entry = made.add_entry_block([self.at(p.at) for p in function.parameters])
            names = [parameter.name for parameter in function.parameters]
            self.variables = dict(zip(names, entry.arguments, strict=True))
            with ir.InsertionPoint(entry):
                for statement in function.body:
                    self.statement(statement)
                if not function.body or not isinstance(function.body[-1], Return):
                    func.return_([])

    def statement(self, statement: Statement) -> None:
        match statement:
            case Declare(at, name, shape, value):
                made = self.value(value)
                with self.at(at):
                    self.variables[name] = made if shape is None else _reshape(made, shape)
            case Evaluate(value):
                self.value(value)
            case Return(at, value):
                values = [] if value is None else [self.value(value)]
                with self.at(at):
                    func.return_(values)

    def value(self, expression: Expression) -> Any:
        """The tensor that an expression is; None where it is a call that gives no value."""
        with self.at(expression.at):
            match expression:
                case Literal(_, shape, elements):
                    return arith.constant(
                        _tensor_type(shape), ir.DenseElementsAttr.get(elements, shape=shape)
                    )
                case Variable(name=name):
                    return self.variables[name]
                case Binary(_, operator, left, right):
                    operation = {"+": arith.addf, "*": arith.mulf}[operator]
                    return operation(self.value(left), self.value(right))
                case Call(_, name, arguments):
                    return self.call(name, [self.value(argument) for argument in arguments])

    def call(self, name: str, arguments: list[Any]) -> Any:
        if name == "print":
            return _print(arguments[0])
        if name == "transpose":
            return _transpose(arguments[0])
        callee = self.instances[name, tuple(map(_shape, arguments))]
        results = [] if callee.result is None else [_tensor_type(callee.result)]
        made = func.CallOp(results, callee.symbol, arguments)
        return made.results[0] if results else None


def _tensor_type(shape: Shape) -> Any:
    return ir.RankedTensorType.get(shape, ir.F64Type.get())


def _shape(value: Any) -> Shape:
    return tuple(ir.RankedTensorType(value.type).shape)


def _transpose(value: Any) -> Any:
    """The tutorial turns all dimensions around, however many there are."""
    shape = _shape(value)[::-1]
    if len(shape) < 2:
        return value
    result = tensor.empty(shape, ir.F64Type.get())
    permutation = [*range(len(shape))][::-1]
    return linalg.transpose(value, outs=[result], permutation=permutation).results[0]


def _reshape(value: Any, shape: Shape) -> Any:
    """By way of a tensor of rank 1, where it is not one already."""
    given = _shape(value)
    if len(given) > 1:
        flat = _tensor_type((prod(given),))
        value = tensor.collapse_shape(flat, value, [[*range(len(given))]])
    if len(given) == 0 or len(shape) > 1:
        together = [[*range(len(shape))]] if given else []
        value = tensor.expand_shape(_tensor_type(shape), value, together, [], shape)
    return value


def _print(value: Any, *indices: Any) -> None:
    """A loop for each dimension, outermost first; each but the innermost ends lines."""
    shape = _shape(value)
    if len(indices) == len(shape):
        func.CallOp([], "print_element", [tensor.extract(value, indices)])
        return
    first, end, step = (_index(number) for number in (0, shape[len(indices)], 1))
    loop = scf.ForOp(first, end, step)
    with ir.InsertionPoint(loop.body):
        _print(value, *indices, loop.induction_variable)
        if len(indices) < len(shape) - 1:
            func.CallOp([], "print_line", [])
        scf.yield_([])


def _index(number: int) -> Any:
    return arith.constant(ir.IndexType.get(), number)
