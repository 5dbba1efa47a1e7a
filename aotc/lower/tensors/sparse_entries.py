"""Entries that take or return sparse tensors → entries on the arrays of their levels.

MLIR's `sparse-assembler` makes them: of each entry a wrapper of its name, which calls the function
that was there. What it does not keep is done here: calls within the module, and names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.sparse import is_sparse, levels_of
from aotc.input.entries import ENTRY_ATTRIBUTE, NAME_ATTRIBUTE, functions_of
from aotc.input.source import Problem, Source, input_error
from aotc.mlir import ir
from aotc.rewrites.run import run_group

# What a level has beside the values, by the word for its format.
_FIELDS = {
    "compressed": ("positions", "coordinates"),
    "loose_compressed": ("positions", "coordinates"),
    "singleton": ("coordinates",),
    "structured": ("coordinates",),
}


def assemble_sparse_entries(source: Source) -> None:
    """Gives entries the positions, coordinates and values of their sparse tensors as arguments and
    results. Raises InputError for a sparse argument whose sizes are not known."""
    module = source.module
    entries: dict[str, tuple[list[Any], list[Any]]] = {}
    problems: list[Problem] = []
    for function in functions_of(module):
        if function.name != "func.func" or not any(_sparse_types(function)):
            continue
        if ENTRY_ATTRIBUTE in function.attributes:
            problems += _problems_of(function)
            attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
            entries[ops.symbol_of(function)] = (list(_type(function).inputs), attributes)
        else:
            # Nobody calls it from outside: it needs no wrapper.
            with module.context:
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    if problems:
        raise input_error(source, problems)
    if not entries:
        return
    calls = [call for call in ops.find(module.operation, "func.call") if _is_of(call, entries)]
    with module.context:
        # Not verified before the calls are of what was there.
        run_group(module.operation, ["sparse-assembler{direct-out=true}"], verifies_each=False)
        functions = {ops.symbol_of(function): function for function in functions_of(module)}
        for name, before in entries.items():
            functions[name].attributes["arg_attrs"] = _argument_attributes(*before)
            # Kernels are called like the function that they are of.
            inner = functions[f"_internal_{name}"]
            new = f"{name}_sparse"
            while new in functions:
                new += "_"
            ir.SymbolTable.replace_all_symbol_uses(f"_internal_{name}", new, module.operation)
            inner.attributes["sym_name"] = ir.StringAttr.get(new)
            for call in calls:
                if ops.callee_of(call) == name:
                    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(new)
        module.operation.verify()


def _sparse_types(function: Any) -> Iterator[Any]:
    type_ = _type(function)
    return (one for one in (*type_.inputs, *type_.results) if is_sparse(one))


def _type(function: Any) -> Any:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _is_of(call: Any, entries: dict[str, Any]) -> bool:
    return ops.callee_of(call) in entries


def _problems_of(entry: Any) -> Iterator[Problem]:
    name = ops.symbol_of(entry)
    for argument in entry.regions[0].blocks[0].arguments:
        if is_sparse(argument.type) and not argument.type.has_static_shape:
            said = (
                f"'{name}' takes a sparse tensor of unknown sizes, which do not follow from its "
                "positions, coordinates and values: give it sizes (tensor<64x32xf32, #CSR>)."
            )
            yield argument.location, said
    if any(("singleton", "") in levels_of(type_) for type_ in _sparse_types(entry)):
        said = (
            f"'{name}' takes or returns a sparse tensor with the coordinates of several levels in "
            "one array, which no entry has: give each its own, singleton(soa)."
        )
        yield entry.location, said


def _argument_attributes(types: Sequence[Any], attributes: Sequence[Any]) -> Any:
    """Those of the entry, with the names of arrays in place of a sparse tensor's."""
    made = []
    for type_, attribute in zip(types, attributes, strict=True):
        if not is_sparse(type_):
            made.append(attribute)
            continue
        name = ir.StringAttr(ir.DictAttr(attribute)[NAME_ATTRIBUTE]).value
        for field in _fields_of(type_):
            names = {NAME_ATTRIBUTE: ir.StringAttr.get(f"{name}_{field}")}
            made.append(ir.DictAttr.get(names))
    return ir.ArrayAttr.get(made)


def _fields_of(type_: Any) -> Iterator[str]:
    """`positions1`, `coordinates1`, `values` of a matrix whose rows are compressed."""
    for number, (level, _) in enumerate(levels_of(type_)):
        for field in _FIELDS.get(level, ()):
            yield f"{field}{number}"
    yield "values"
