"""tosa, linalg and tensors → parallel loops over memrefs.

What an entry takes as a tensor becomes a memref that it only reads; a tensor that it returns
becomes one more argument, which it writes, where its shape is known, and else a memref that it
returns, and the caller frees. Intermediate tensors become allocations, freed after their last use.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.load.entries import ENTRY_ATTRIBUTE, NAME_ATTRIBUTE, functions_of
from aotc.load.source import Source
from aotc.lower.passes import run_passes
from aotc.lower.schedules import decompose
from aotc.mlir import ir

DIALECTS = ("tensor", "linalg", "tosa", "bufferization")

_TOSA = (
    "func.func(tosa-optional-decompositions,canonicalize,tosa-infer-shapes,tosa-make-broadcastable)",
    "func.func(tosa-to-linalg-named,canonicalize,tosa-layerwise-constant-fold)",
    "func.func(tosa-make-broadcastable)",
    "func.func(tosa-to-linalg,tosa-to-arith{include-apply-rescale=1},tosa-to-tensor,tosa-to-scf)",
)
_FUSION = (
    "inline",
    "func.func(convert-elementwise-to-linalg,linalg-fold-unit-extent-dims)",
    "func.func(linalg-generalize-named-ops,linalg-fuse-elementwise-ops)",
    "canonicalize",
    "cse",
)
_BUFFERS = (
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map}",
    "drop-equivalent-buffer-results",
)
# Changes private functions alone: see `_hide`.
_RESULTS = ("buffer-results-to-out-params{hoist-static-allocs=1 add-result-attr=1}",)
_DEALLOCATION = (
    "canonicalize",
    "cse",
    "buffer-deallocation-pipeline",
    "convert-bufferization-to-memref",
)
_LOOPS = ("func.func(convert-linalg-to-parallel-loops)", "canonicalize")
_RESULT_ATTRIBUTE = "bufferize.result"
_WRITABLE = "bufferization.writable"


def lower_tensors(source: Source) -> None:
    """Changes the source's module in place; does nothing where there are no such operations."""
    module = source.module
    dialects = {op.name.split(".")[0] for op in ops.walk(module.operation)}
    has_tensors = any(_has_tensors(function) for function in functions_of(module))
    if not has_tensors and not dialects & set(DIALECTS):
        return
    passes: list[str] = [*_TOSA] if "tosa" in dialects else []
    if has_tensors:
        decompose(source)
        with module.context:
            _protect_arguments(module)
            names = _functions_with_known_results(module)
        _run(source, (*passes, *_FUSION, *_BUFFERS))
        with module.context:
            _set_visibility(module, names, "private")
        _run(source, _RESULTS)
        with module.context:
            _set_visibility(module, names, None)
            _name_results(module)
        _run(source, _DEALLOCATION)
    _run(source, _LOOPS)


def _run(source: Source, passes: tuple[str, ...]) -> None:
    run_passes(
        source.module,
        passes,
        name=source.name,
        lines=source.lines,
        doing="lowering tensors to loops",
    )


def _has_tensors(function: Any) -> bool:
    return _is_tensor_function(function) or any(
        isinstance(value.type, ir.RankedTensorType | ir.UnrankedTensorType)
        for op in ops.walk(function)
        if not op.name.startswith("shape.")
        for value in (*op.results, *op.operands)
    )


def _is_tensor_function(function: Any) -> bool:
    if function.name != "func.func":
        return False
    type_ = _type(function)
    return any(_is_tensor(t) for t in (*type_.inputs, *type_.results))


def _type(function: Any) -> Any:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _is_tensor(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType)


def _functions_with_known_results(module: Any) -> list[str]:
    """Those whose tensor results can all be arguments: the caller knows how large they are."""
    names = []
    for function in functions_of(module):
        if function.name != "func.func" or "sym_visibility" in function.attributes:
            continue
        results = [t for t in _type(function).results if _is_tensor(t)]
        if results and all(t.has_static_shape for t in results):
            names.append(ops.symbol_of(function))
    return names


def _set_visibility(module: Any, names: list[str], visibility: str | None) -> None:
    for function in functions_of(module):
        if ops.symbol_of(function) not in names:
            continue
        if visibility is not None:
            function.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
        else:
            del function.attributes["sym_visibility"]


def _protect_arguments(module: Any) -> None:
    """Says that the arguments of entries are the caller's: not to be written."""
    for function in functions_of(module):
        if function.name != "func.func" or ENTRY_ATTRIBUTE not in function.attributes:
            continue
        inputs = _type(function).inputs
        dictionaries = _argument_dictionaries(function, len(inputs))
        for type_, dictionary in zip(inputs, dictionaries, strict=True):
            if _is_tensor(type_):
                dictionary[_WRITABLE] = ir.BoolAttr.get(value=False)
        _set_argument_dictionaries(function, dictionaries)


def _name_results(module: Any) -> None:
    """Names the arguments that are results."""
    for function in functions_of(module):
        if function.name != "func.func" or "arg_attrs" not in function.attributes:
            continue
        dictionaries = _argument_dictionaries(function, len(_type(function).inputs))
        results = 0
        for dictionary in dictionaries:
            dictionary.pop(_WRITABLE, None)
            if dictionary.pop(_RESULT_ATTRIBUTE, None) is not None:
                dictionary[NAME_ATTRIBUTE] = ir.StringAttr.get(f"result{results}")
                results += 1
        _set_argument_dictionaries(function, dictionaries)


def _argument_dictionaries(function: Any, count: int) -> list[dict[str, Any]]:
    if "arg_attrs" not in function.attributes:
        return [{} for _ in range(count)]
    return [
        {named.name: named.attr for named in ir.DictAttr(dictionary)}
        for dictionary in ir.ArrayAttr(function.attributes["arg_attrs"])
    ]


def _set_argument_dictionaries(function: Any, dictionaries: list[dict[str, Any]]) -> None:
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get(dictionary) for dictionary in dictionaries]
    )
