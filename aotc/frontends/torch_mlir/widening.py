"""Widens the element types of operations in torch-mlir's torch dialect where its lowering needs it.

torch-mlir's lowering to linalg treats many unsigned integers as signed ones (division, comparison,
maximum, conversion from and to floats). Here an operation that interprets such elements gets them
as signed integers of at least twice the width, and its result is truncated to the unsigned type.
Operations that only move elements are not changed.

The same is done for some operations on int8, for which torch-mlir crashes when it converts a bool
or a number to int8; for comparisons of bool with numbers, which torch-mlir truncates to one bit;
for means, norms and cumulative sums of 16-bit floats, which torch-mlir accumulates in 16 bits; and
for activation functions of 16-bit floats whose lowering subtracts or adds 1, which cancels there.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch_mlir.dialect import (
    converted,
    create,
    element_of,
    integer,
    load_casts,
    reinterpreted,
    with_element,
)
from aotc.input.source import find_place

# By element type: the signed type that has all its values, PyTorch's numbers of both types, and a
# mask. (There is no wider type for ui64.)
_WIDER = {
    "ui8": ("si32", 0, 3, 0xFF),
    "ui16": ("si32", 27, 3, 0xFFFF),
    "ui32": ("si64", 28, 4, 0xFFFFFFFF),
    "si8": ("si32", 1, 3, None),
    "i1": ("si64", None, 4, None),
    "f16": ("f32", 5, 6, None),
    "bf16": ("f32", 15, 6, None),
}
_SHORT = 2  # PyTorch's number of si16
_UNSIGNED = frozenset({"ui8", "ui16", "ui32", "ui64"})
# The operations that need wider elements, for the other element types.
_ON_INT8 = frozenset(
    "torch.aten." + name
    for name in (
        *("add.Tensor", "addcmul", "addmm", "bitwise_and.Tensor", "bitwise_or.Tensor"),
        *("bitwise_xor.Tensor", "bmm", "cat", "div.Tensor_mode", "floor_divide", "fmod.Tensor"),
        *("matmul", "max", "maximum", "min", "minimum", "mm", "mul.Scalar", "mul.Tensor"),
        *("remainder.Scalar", "remainder.Tensor", "rsub.Scalar", "sub.Scalar", "sub.Tensor"),
        *("sum", "sum.dim_IntList", "where.self"),
        *(f"{relation}.Tensor" for relation in ("lt", "le", "gt", "ge", "eq", "ne")),
    )
)
_ON_HALF = frozenset(
    "torch.aten." + name
    for name in (
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d"),
        *("avg_pool2d", "avg_pool3d", "frobenius_norm.dim", "linalg_vector_norm", "mean"),
        *("mean.dim", "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype"),
        *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
        *("cumsum", "cumprod", "logcumsumexp"),
        *("elu", "gelu", "sigmoid"),
    )
)
_ON_BOOL = frozenset(f"torch.aten.{name}.Scalar" for name in ("lt", "le", "gt", "ge", "eq", "ne"))
# Operations that torch-mlir also lowers rightly for the unsigned types without a wider one.
_CORRECT_UNWIDENED = frozenset(
    "torch.aten." + name
    for name in (
        *("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum", "amax", "argmax"),
        *("lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor", "eq.Tensor", "ne.Tensor"),
        *("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "bitwise_not"),
        *("where.self", "cat"),
    )
)
# Operations that do not interpret elements: they move them, make them of an attribute, or read only
# the shape. Also those on unsigned elements of another kind: quantized ones, and bits that are
# reinterpreted.
_MOVES = frozenset(
    "torch.aten." + name
    for name in (
        *("alias", "as_strided", "broadcast_to", "clone", "contiguous", "detach", "dim"),
        *("empty.memory_format", "empty_like", "empty_strided", "expand", "flatten.using_ints"),
        *("flip", "full", "full_like", "gather", "index_select", "narrow", "new_empty"),
        *("new_empty_strided", "new_full", "new_ones", "new_zeros", "numel", "ones", "ones_like"),
        *("permute", "repeat", "reshape", "roll", "select.int", "select_scatter", "size"),
        *("size.int", "slice.Tensor", "slice_scatter", "split.Tensor", "squeeze", "squeeze.dim"),
        *("squeeze.dims", "t", "tile", "transpose.int", "unflatten.int", "unsqueeze", "view"),
        *("view.dtype", "zeros", "zeros_like", "_reshape_alias", "_unsafe_view"),
        *("_assert_tensor_metadata", "_make_per_channel_quantized_tensor"),
        *("_make_per_tensor_quantized_tensor", "int_repr", "quantize_per_tensor"),
    )
)
# The index of the operand that is PyTorch's number of the result's element type.
_DTYPES = {
    "torch.prims.convert_element_type": 1,
    "torch.aten.to.dtype": 1,
    "torch.aten._to_copy": 1,
    "torch.aten.to.dtype_layout": 1,
    "torch.aten.sum": 1,
    "torch.aten.sum.dim_IntList": 3,
    "torch.aten.prod": 1,
    "torch.aten.prod.dim_int": 3,
    "torch.aten.arange": 1,
    "torch.aten.linalg_vector_norm": 4,
    "torch.aten.mean": 1,
    "torch.aten.mean.dim": 3,
    "torch.aten.norm.ScalarOpt_dim_dtype": 4,
    "torch.aten.cumsum": 2,
    "torch.aten.cumprod": 2,
    "torch.aten.arange.start": 2,
    "torch.aten.arange.start_step": 3,
}


def widen_elements(module: Any) -> None:
    """Changes a module of the torch dialect, in place.

    Raises InputError for operations on unsigned integers for which there is no wider signed type.
    """
    load_casts(module.context)
    with module.context:
        cut: dict[Any, Any] = {}  # truncated values → the wide ones
        for operation in ops.walk(module.operation):
            if operation.name.startswith(("torch.aten.", "torch.prims.")):
                _Widening(operation, cut).replace()


class _Widening:
    """An operation, and the element types that must be widened for it."""

    def __init__(self, operation: Any, cut: dict[Any, Any]) -> None:
        self._operation, self._cut, name = operation, cut, operation.name
        self._types = set(_UNSIGNED)
        if name in _ON_INT8:
            self._types.add("si8")
        if name in _ON_HALF:
            self._types |= {"f16", "bf16"}
        self._operand_types = self._types | ({"i1"} if name in _ON_BOOL else set())

    def replace(self) -> None:
        operation = self._operation
        given = [self._operand_element(value) for value in self._tensors()]
        made = [self._result_element(value) for value in operation.results]
        taken = [one for one in (*given, *made) if one is not None]
        if not taken or operation.name in _MOVES:
            return
        if operation.name == "torch.aten.cat" and len({*given, *made}) == 1:
            return
        missing = [one for one in taken if one not in _WIDER]
        if not missing:
            self._replace()
        elif operation.name not in _CORRECT_UNWIDENED:
            place = find_place(str(operation.location), "")
            where = f"{place}: error: " if place else ""
            raise InputError(
                f"{where}{operation.name.removeprefix('torch.')} of {missing[0]} has no lowering: "
                "use another integer type"
            )

    def _replace(self) -> None:
        from torch_mlir import ir

        operation = self._operation
        with operation.location, ir.InsertionPoint(operation):
            operands = [self._wide_operand(value) for value in operation.operands]
            at = _DTYPES.get(operation.name)
            results = []
            for result in operation.results:
                element = self._result_element(result)
                results.append(result.type if element is None else _wide_type(result, element))
                if at is not None and element is not None:
                    operands[at] = _dtype(operation.operands[at], element)
            attributes = ops.attributes_of(operation)
            made = ops.create(operation.name, operands, results, attributes)
            for old, new in zip(operation.results, made.results, strict=True):
                old.replace_all_uses_with(self._truncated(new, old))
        ops.erase(operation)

    def _tensors(self) -> list[Any]:
        """The tensor operands, including those in lists."""
        found = []
        for value in self._operation.operands:
            owner = ops.defining(value)
            if owner is not None and owner.name == "torch.prim.ListConstruct":
                found += list(owner.operands)
            else:
                found.append(value)
        return [value for value in found if "vtensor" in str(value.type)]

    def _operand_element(self, operand: Any) -> str | None:
        """The element type of an operand that must be widened, or None."""
        element = element_of(operand)
        return element if element in self._operand_types else None

    def _result_element(self, result: Any) -> str | None:
        """The element type that a result must be truncated to, or None."""
        element = element_of(result)
        return element if element in self._types else None

    def _wide_operand(self, value: Any) -> Any:
        owner = ops.defining(value)
        if owner is None or owner.name != "torch.prim.ListConstruct":
            return self._wide(value)
        if all(self._operand_element(one) is None for one in owner.operands):
            return value
        wide = [self._wide(one) for one in owner.operands]
        return ops.create(owner.name, wide, [value.type]).result

    def _wide(self, value: Any) -> Any:
        """The tensor with the same values in the wider type."""
        element = self._operand_element(value)
        if element is None:
            return value
        _, _, number, mask = _WIDER[element]
        if mask is None:
            return converted(value, number, _wide_type(value, element))
        # However the conversion extends the elements, the mask keeps only their own bits.
        wide = self._cut.get(value) or converted(value, number, _wide_type(value, element))
        return create("aten.bitwise_and.Scalar", wide.type, wide, integer(mask))

    def _truncated(self, wide: Any, old: Any) -> Any:
        """The tensor truncated to the narrow element type."""
        element = self._result_element(old)
        if element is None:
            return wide
        number = _WIDER[element][1]
        assert number is not None
        if element == "ui16":
            # torch-mlir supports only the conversion to the signed type, which has the same bits.
            short = converted(wide, _SHORT, with_element(old.type, "si16"))
            made = reinterpreted(short, old.type)
        else:
            made = converted(wide, number, old.type)
        self._cut[made] = wide
        return made


def _wide_type(value: Any, element: str) -> Any:
    return with_element(value.type, _WIDER[element][0])


def _dtype(given: Any, element: str) -> Any:
    """PyTorch's number of the wider type. A dtype of None is not changed."""
    return integer(_WIDER[element][2]) if str(given.type) == "!torch.int" else given
