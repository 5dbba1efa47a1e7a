"""Moves the computation of factors out of the body of an integer matmul into elementwise
operations.

The body of `linalg.quantized_matmul`, and of other operations with zero points, multiplies
differences. After this rewrite, elementwise operations compute the differences, and the body only
multiplies and accumulates.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import has_reduction, maps_of, reduction_loops
from aotc.kernels.matmul.recognition import multiplies
from aotc.mlir import ir
from aotc.rewrites.cloning import copy


def separate_factors(generic: Any) -> None:
    """Replaces a `linalg.generic` on tensors of integers whose body is c + f(a) * g(b).

    f and g each read an element of one operand, and scalars.
    """
    if not has_reduction(generic) or len(generic.results) != 1 or multiplies(generic):
        return
    factors = _factors(generic)
    if factors is None:
        return
    slices = [_Slice(generic, factor) for factor in factors]
    numbers = [one.number for one in slices if one.number is not None]
    if len(set(numbers)) < len(slices):
        return
    with generic.location, ir.InsertionPoint(generic):
        tensors = [one.computed() for one in slices]
        _, (start,) = ops.operand_groups(generic)
        maps = maps_of(generic)
        product = ops.create_generic(
            [*tensors, start],
            [*(maps[number] for number in numbers), maps[-1]],
            ops.multiply_add_integers,
            reduction_loops(generic),
        )
    ops.replace(generic, [product.result])


def _factors(generic: Any) -> list[Any] | None:
    """The two factors, if the body adds a product of integers to the accumulator; otherwise
    None."""
    total = list(generic.regions[0].blocks[0].arguments)[-1]
    add = ops.defining(ops.content(generic)[-1].operands[0])
    if add is None or add.name != "arith.addi" or total not in list(add.operands):
        return None
    left, right = add.operands
    multiply = ops.defining(right if left == total else left)
    if multiply is None or multiply.name != "arith.muli" or multiply.parent != generic:
        return None
    factors = list(multiply.operands)
    return factors if len(list(total.uses)) == 1 and factors[0] != factors[1] else None


class _Slice:
    """The backward slice of a value in a body.

    `number`: the only tensor operand that the slice reads; None if there is not exactly one, or if
    the slice contains operations other than arithmetic.
    """

    def __init__(self, generic: Any, value: Any) -> None:
        self._generic, self._value = generic, value
        self._arguments = list(generic.regions[0].blocks[0].arguments)
        self._operations: list[Any] = []
        self._read: set[int] = set()
        is_arithmetic = self._visit(value)
        tensors = [one for one in self._read if self._is_tensor(one)]
        is_one = is_arithmetic and len(tensors) == 1 and tensors[0] < len(self._arguments) - 1
        self.number = tensors[0] if is_one else None

    def _is_tensor(self, number: int) -> bool:
        return isinstance(self._generic.operands[number].type, ir.ShapedType)

    def _visit(self, value: Any) -> bool:
        if value in self._arguments:
            self._read.add(self._arguments.index(value))
            return True
        operation = ops.defining(value)
        if operation is None or operation.parent != self._generic:
            return True  # a scalar from outside
        if operation in self._operations:
            return True
        if not operation.name.startswith("arith."):
            return False
        is_arithmetic = all(self._visit(operand) for operand in operation.operands)
        self._operations.append(operation)
        return is_arithmetic

    def computed(self) -> Any:
        """The tensor that the slice computes, created at the insertion point."""
        assert self.number is not None
        tensor = self._generic.operands[self.number]
        if not self._operations:
            return tensor
        type_ = ir.RankedTensorType.get(list(tensor.type.shape), self._value.type)

        def compute(element: Any) -> Any:
            known = {
                argument: element if self._is_tensor(number) else operand
                for number, (argument, operand) in enumerate(
                    zip(self._arguments, self._generic.operands, strict=True)
                )
            }
            for operation in self._operations:
                copy(operation, known)
            return known[self._value]

        return ops.create_elementwise([tensor], type_, ops.dynamic_sizes(tensor), compute)
