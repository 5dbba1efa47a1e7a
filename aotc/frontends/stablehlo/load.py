"""Imports StableHLO text (`.stablehlo`) and portable artifacts, as JAX and others export them.

torch-mlir's bindings contain the dialect, its deserializer and the pass to linalg.
https://openxla.org/stablehlo/bytecode
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.stablehlo.control import lower_regions
from aotc.frontends.stablehlo.conversions import saturate_conversions
from aotc.frontends.stablehlo.dynamic import lower_dynamic
from aotc.frontends.stablehlo.fourier import expand_transforms
from aotc.frontends.stablehlo.lapack import isolate_calls, lower_calls
from aotc.frontends.stablehlo.select_and_scatter import turn_selections
from aotc.frontends.stablehlo.sharding import remove_exchanges, without_sharding
from aotc.frontends.torch_mlir.entry import make_entry
from aotc.input.source import Source, describe_diagnostics, input_error

# What the parser says of an operation of a dialect that the bindings do not have.
_UNKNOWN_OPERATION = re.compile(r'"-":(\d+:\d+): Dialect `\w+\' not found for custom op \'([\w.]+)')
_BYTECODE_MAGIC = b"ML\xefR"
# The first passes convert CHLO's operations and composites, which JAX exports, to StableHLO.
_PASSES = (
    "func.func(stablehlo-legalize-composite-to-call)",
    "inline",
    "func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo)",
    "func.func(stablehlo-complex-math-expander,stablehlo-canonicalize-dynamism)",
    "canonicalize",
)
_LINALG_PASSES = (
    "canonicalize",
    "cse",
    "stablehlo-legalize-to-linalg",
    "stablehlo-convert-to-signless",
)
# The lowering of these operations sign-extends all integers.
_CONTRACTIONS = ("stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution")
# The lowering of these operations takes slices of tensors of static sizes, or has no size 0.
_SLICED = ("stablehlo.slice", "stablehlo.scatter", "stablehlo.fft")
_CLEANUP_PASSES = ("canonicalize", "cse", "symbol-dce")


@functools.cache
def _dialect() -> Any:
    """The bindings of StableHLO. The first call registers its passes."""
    dialect = importlib.import_module("torch_mlir._mlir_libs._stablehlo")
    dialect.register_stablehlo_passes()
    return dialect


def import_module(data: bytes, name: str, entry: str) -> Any:
    """Imports text, bytecode or a portable artifact as an `ir.Module` of linalg on tensors, with
    one entry.

    `name` is the name of the input in errors. Raises InputError for input that cannot be read or
    lowered.
    """
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    dialect = _dialect()
    context = ir.Context()
    context.emit_error_diagnostics = False
    dialect.register_dialect(context)
    _load_chlo(context)
    # Custom calls may have attributes of dialects that are not registered. They are refused by name
    # below, as are the operations of such dialects.
    context.allow_unregistered_dialects = True
    is_binary = data.startswith(_BYTECODE_MAGIC)
    text = "" if is_binary else data.decode(errors="replace")
    lines = () if is_binary else tuple(text.split("\n"))
    with context:
        try:
            if is_binary:
                module = dialect.deserialize_portable_artifact(context, data)
            else:
                module = ir.Module.parse(without_sharding(text))
        except (ir.MLIRError, ValueError) as error:
            # Bytecode cannot be read if it has attributes of a dialect that is not registered, as
            # JAX's calls of LAPACK have those of sdy.
            hint = "Write it as text: exported.mlir_module() of jax.export." if is_binary else None
            unknown = _UNKNOWN_OPERATION.search(str(error))
            if unknown is not None:
                line, operation = unknown.groups()
                raise InputError(f"{name}:{line}: error: {operation} has no lowering") from None
            raise InputError(f"Cannot read the StableHLO of {name}:\n{error}", hint=hint) from None
        public = [
            operation.operation
            for operation in module.body.operations
            if operation.operation.name == "func.func"
            and "sym_visibility" in operation.operation.attributes
            and ir.StringAttr(operation.operation.attributes["sym_visibility"]).value == "public"
        ]
        arguments = _argument_names(public[0]) if public else []
        type_ = ops.function_type(public[0]) if public else None
        unsigned_arguments = _unsigned(ir, type_.inputs if type_ else [])
        unsigned_results = _unsigned(ir, type_.results if type_ else [])
        _prepare(ir, module)
        try:
            PassManager.parse(f"builtin.module({','.join(_PASSES)})").run(module.operation)
            lower_dynamic(ir, module)
            turn_selections(ir, module)
            passes = f"builtin.module({','.join(_LINALG_PASSES)})"
            PassManager.parse(passes).run(module.operation)
            saturate_conversions(ir, module)
            lower_regions(ir, module)
            lower_calls(ir, module)
            PassManager.parse(f"builtin.module({','.join(_CLEANUP_PASSES)})").run(module.operation)
        except ir.MLIRError as error:
            said = describe_diagnostics(error, name, lines)
            raise InputError(f"Cannot lower the StableHLO of {name}:\n{said}") from None
        _refuse_unlowered(module, name, lines)
    return make_entry(
        module,
        entry,
        arguments,
        unsigned_arguments=unsigned_arguments,
        unsigned_results=unsigned_results,
    )


def _load_chlo(context: Any) -> None:
    """Loads the CHLO dialect. The text of a module that JAX lowered (`jax.jit(f).lower(x)`) has its
    operations; only exported modules have composites instead.

    The bindings do not register this dialect. A pass manager loads the dialects on which its passes
    depend, and this pass depends on CHLO.
    """
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    importlib.import_module("torch_mlir.dialects.torch")  # Registers the pass.
    with context, ir.Location.unknown():
        empty = ir.Module.create()
        PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))").run(
            empty.operation
        )


def _unsigned(ir: Any, types: Iterable[Any]) -> list[int]:
    """The indices of tensors of unsigned integers. The passes make the types signless."""
    return [
        number
        for number, type_ in enumerate(types)
        if isinstance(type_, ir.RankedTensorType)
        and isinstance(type_.element_type, ir.IntegerType)
        and type_.element_type.is_unsigned
    ]


def _prepare(ir: Any, module: Any) -> None:
    """Rewrites operations that the passes would refuse or lower wrongly, in place.

    What passes a barrier is its operand: no pass moves what the barrier keeps apart. A reduction
    over no dimension becomes its operand, and one of no elements its initial value. A slice,
    scatter or transform without elements becomes a constant, because slices at the end of a tensor
    would begin out of bounds. Unsigned operands are converted explicitly where only their type says
    that they are unsigned.
    """
    for operation in ops.find(module.operation, "stablehlo.optimization_barrier"):
        ops.replace(operation, operation.operands)
    for operation in ops.find(module.operation, *_SLICED):
        _replace_empty(ir, operation)
    expand_transforms(ir, module)
    remove_exchanges(ir, module)
    isolate_calls(ir, module)
    for operation in ops.find(module.operation, "stablehlo.reduce"):
        if not list(ir.DenseI64ArrayAttr(operation.attributes["dimensions"])):
            ops.replace(operation, operation.operands)
        elif 0 in operation.operands[0].type.shape:
            _replace_by_initial(ir, operation)
    for operation in ops.find(module.operation, "stablehlo.scatter"):
        _convert_unsigned(ir, operation, len(operation.results), ir.IntegerType.get_signless(64))
    for operation in ops.find(module.operation, *_CONTRACTIONS):
        for place in range(2):
            _convert_unsigned(ir, operation, place, operation.results[0].type.element_type)


def _replace_by_initial(ir: Any, reduction: Any) -> None:
    """Replaces a reduction by its initial values, broadcast to the types of its results."""
    count = len(reduction.results)
    for result, initial in zip(reduction.results, list(reduction.operands)[count:], strict=True):
        with reduction.location, ir.InsertionPoint(reduction):
            value = ir.Operation.create(
                "stablehlo.broadcast_in_dim",
                results=[result.type],
                operands=[initial],
                attributes={"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])},
            )
        result.replace_all_uses_with(value.result)
    ops.erase(reduction)


def _replace_empty(ir: Any, operation: Any) -> None:
    """Replaces an operation whose results have no elements by constants."""
    types = [result.type for result in operation.results]
    if not all(0 in type_.shape for type_ in types):
        return
    with operation.location, ir.InsertionPoint(operation):
        ops.replace(operation, [_empty(ir, type_) for type_ in types])


def _empty(ir: Any, type_: Any) -> Any:
    """A constant without elements, at the insertion point."""
    if isinstance(type_.element_type, ir.ComplexType):
        # The bindings have no attributes of complex numbers.
        part = _empty(ir, ir.RankedTensorType.get(type_.shape, type_.element_type.element_type))
        operands = [part, part]
        return ir.Operation.create("stablehlo.complex", [type_], operands).result
    value = ir.Attribute.parse(f"dense<> : {type_}")
    return ir.Operation.create("stablehlo.constant", [type_], attributes={"value": value}).result


def _convert_unsigned(ir: Any, operation: Any, place: int, element: Any) -> None:
    """Converts the operand number `place` of an operation to `element`, if it has unsigned
    integers."""
    type_ = operation.operands[place].type
    own = type_.element_type
    if not isinstance(own, ir.IntegerType) or not own.is_unsigned or own == element:
        return
    with operation.location, ir.InsertionPoint(operation):
        operation.operands[place] = ops.unary(
            "stablehlo.convert",
            operation.operands[place],
            ir.RankedTensorType.get(type_.shape, element),
        )


def _refuse_unlowered(module: Any, name: str, lines: tuple[str, ...]) -> None:
    """Raises InputError for the operations that the pass to linalg did not lower. The end of a
    region is left with the operation that has the region."""
    left = [
        operation
        for operation in ops.walk(module.operation)
        if operation.name != "stablehlo.return"
        and (
            operation.name.split(".")[0] in ("stablehlo", "chlo")
            or not module.context.is_registered_operation(operation.name)
        )
    ]
    if left:
        problems = [
            (operation.location, f"{_name(operation)} has no lowering to linalg")
            for operation in left
        ]
        raise input_error(Source(name, lines, module), problems)


def _name(operation: Any) -> str:
    if "call_target_name" in operation.attributes:
        return f"{operation.name} of {operation.attributes['call_target_name']}"
    return str(operation.name)


def _argument_names(function: Any) -> list[str]:
    """The names of the arguments, which JAX puts into their locations."""
    names = []
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        text = str(argument.location)
        words = text.split('"')
        is_name = len(words) >= 3 and words[0] == "loc(" and words[1].isidentifier()
        names.append(words[1] if is_name else f"arg{number}")
    return names if len(set(names)) == len(names) else []
