"""Lowers LAPACK's custom calls for real matrices, as JAX exports them for CPUs: potrf (Cholesky),
getrf (LU with partial pivoting, of square matrices) and trsm (triangular systems).

`isolate_calls` makes calls of `aotc_*` of them, on batches of matrices, before other operations are
lowered, and `lower_calls` replaces these by loops, afterwards.
"""

from __future__ import annotations

import math
import re
from typing import Any

from aotc import ops
from aotc.frontends.factorization_text import cholesky_text, element_of, lu_text, solve_text
from aotc.frontends.stablehlo.regions import replace_by_text

_CALL, _TARGET = "stablehlo.custom_call", "call_target_name"
_LAPACK = re.compile(r"lapack_[sd](potrf|getrf|trsm)_ffi")
_LU, _CHOLESKY, _FAILED, _SOLVE = "aotc_lu", "aotc_cholesky", "aotc_failed", "aotc_solve"
_CONFIG = "mhlo.backend_config"


def isolate_calls(ir: Any, module: Any) -> None:
    """Replaces the supported calls on tensors of static sizes, in place."""
    for operation in ops.find(module.operation, _CALL):
        found = _LAPACK.fullmatch(ir.StringAttr(operation.attributes[_TARGET]).value)
        types = [value.type for value in (*operation.operands, *operation.results)]
        if found is None or not all(one.has_static_shape and 0 not in one.shape for one in types):
            continue
        call = _Call(ir, operation)
        with operation.location, ir.InsertionPoint(operation):
            results = getattr(call, found[1])()
        if results is not None:
            ops.replace(operation, results)


def lower_calls(ir: Any, module: Any) -> None:
    """Replaces what `isolate_calls` made by loops on tensors, in place."""
    for operation in ops.find(module.operation, _CALL):
        target = ir.StringAttr(operation.attributes[_TARGET]).value
        types = [str(value.type) for value in operation.operands]
        if target == _LU:
            replace_by_text(ir, operation, lu_text(*types, has_pivots=True))
        elif target == _CHOLESKY:
            replace_by_text(ir, operation, cholesky_text(*types, is_checked=False))
        elif target == _FAILED:
            replace_by_text(ir, operation, _failed_text(types[0], str(operation.results[0].type)))
        elif target == _SOLVE:
            flags = _flags(ir, operation)
            text = solve_text(
                *types,
                is_upper=flags["uplo"] == "U",
                is_transposed=flags["trans_x"] != "N",
                is_unit=flags["diag"] == "U",
                is_right=flags["side"] == "R",
            )
            replace_by_text(ir, operation, text)


class _Call:
    """A call of LAPACK. The leading dimensions of all tensors are those of the batch."""

    def __init__(self, ir: Any, operation: Any) -> None:
        self._ir, self._operation = ir, operation
        self._batch = list(operation.operands[0].type.shape)[:-2]
        self._count = math.prod(self._batch)

    def potrf(self) -> list[Any] | None:
        if _flags(self._ir, self._operation)["uplo"] != "L":
            return None
        made = self._call(_CHOLESKY, self._matrices(), [0])
        [failed] = self._call(_FAILED, made, [1])
        return [self._restored(made[0], 0), self._restored(failed, 1)]

    def getrf(self) -> list[Any] | None:
        rows, columns = list(self._operation.operands[0].type.shape)[-2:]
        if rows != columns:
            return None
        order, state = (self._zeros(self._flat_type(number)) for number in (1, 2))
        made = self._call(_LU, [*self._matrices(), order], [0, 1])
        results = [self._restored(one, number) for number, one in enumerate(made)]
        return [*results, self._restored(state, 2)]

    def trsm(self) -> list[Any] | None:
        if len(self._operation.operands) != 2:
            return None
        attributes = {_CONFIG: self._operation.attributes[_CONFIG]}
        [made] = self._call(_SOLVE, self._matrices(), [0], **attributes)
        return [self._restored(made, 0)]

    def _call(
        self, target: str, operands: list[Any], numbers: list[int], **attributes: Any
    ) -> list[Any]:
        """The results of a call whose results are those with these numbers, with one dimension for
        the batch."""
        attributes[_TARGET] = self._ir.StringAttr.get(target)
        types = [self._flat_type(number) for number in numbers]
        made = self._ir.Operation.create(
            _CALL, results=types, operands=operands, attributes=attributes
        )
        return list(made.results)

    def _flat_type(self, number: int) -> Any:
        type_ = self._operation.results[number].type
        shape = [self._count, *list(type_.shape)[len(self._batch) :]]
        return self._ir.RankedTensorType.get(shape, type_.element_type)

    def _matrices(self) -> list[Any]:
        """The operands, with one dimension for the batch."""
        types = [value.type for value in self._operation.operands]
        return [
            self._reshaped(
                value,
                self._ir.RankedTensorType.get(
                    [self._count, *list(type_.shape)[-2:]], type_.element_type
                ),
            )
            for value, type_ in zip(self._operation.operands, types, strict=True)
        ]

    def _restored(self, value: Any, number: int) -> Any:
        return self._reshaped(value, self._operation.results[number].type)

    def _reshaped(self, value: Any, type_: Any) -> Any:
        return self._ir.Operation.create(
            "stablehlo.reshape", results=[type_], operands=[value]
        ).result

    def _zeros(self, type_: Any) -> Any:
        value = self._ir.Attribute.parse(f"dense<0> : {type_}")
        return self._ir.Operation.create(
            "stablehlo.constant", results=[type_], attributes={"value": value}
        ).result


def _flags(ir: Any, operation: Any) -> dict[str, str]:
    """LAPACK's one-letter arguments, by name."""
    config = ir.DictAttr(operation.attributes[_CONFIG])
    return {one.name: chr(ir.IntegerAttr(one.attr).value) for one in config}


def _failed_text(factor: str, result: str) -> str:
    """For each matrix the number of the first row, from 1, at which the factorization failed, or 0,
    as LAPACK's `info`."""
    element = element_of(factor)
    return f"""
func.func @failed(%a: {factor}) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {element}
  %batch = tensor.dim %a, %c0 : {factor}
  %rows = tensor.dim %a, %c1 : {factor}
  %none = tensor.empty() : {result}
  %made = scf.for %s = %c0 to %batch step %c1 iter_args(%all = %none) -> ({result}) {{
    %first = scf.for %t = %c0 to %rows step %c1 iter_args(%found = %c0) -> (index) {{
      %left = arith.subi %rows, %t : index
      %row = arith.subi %left, %c1 : index
      %root = tensor.extract %a[%s, %row, %row] : {factor}
      %is_positive = arith.cmpf ogt, %root, %zero : {element}
      %number = arith.select %is_positive, %found, %left : index
      scf.yield %number : index
    }}
    %info = arith.index_cast %first : index to i32
    %put = tensor.insert %info into %all[%s] : {result}
    scf.yield %put : {result}
  }}
  return %made : {result}
}}
"""
