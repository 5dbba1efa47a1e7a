"""Converts entries with sparse tensors into entries on the arrays of their levels.

MLIR's `sparse-assembler` creates a wrapper with the entry's name, which calls the original
function. What it does not preserve is done here: calls within the module, names, and dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.sparse import block_of, is_sparse, level_size, levels_of
from aotc.attributes import ASSEMBLED, NAME_ATTRIBUTE, SPARSE_ATTRIBUTE
from aotc.input.entries import ENTRY_ATTRIBUTE, functions_of
from aotc.input.source import Problem, Source, input_error
from aotc.manifest import SparseTensor, sparse_text
from aotc.mlir import ir
from aotc.module_names import ASSEMBLE
from aotc.rewrites.run import run_group

# Level format → the arrays of a level.
_FIELDS = {
    "compressed": ("positions", "coordinates"),
    "loose_compressed": ("positions", "coordinates"),
    "singleton": ("coordinates",),
    "structured": ("coordinates",),
}
# Formats whose arrays determine the number of entries of the next level.
_MEASURED = ("dense", "compressed", "loose_compressed", "singleton")
_UNKNOWN = ir.ShapedType.get_dynamic_size()


def assemble_sparse_entries(source: Source) -> None:
    """Changes sparse arguments and results of entries to positions, coordinates and values, and
    adds their dynamic sizes. Raises InputError for unsupported levels."""
    module = source.module
    entries: dict[str, _Signature] = {}
    problems: list[Problem] = []
    for function in functions_of(module):
        if function.name != "func.func" or not any(_sparse_types(function)):
            continue
        if ENTRY_ATTRIBUTE in function.attributes:
            problems += _problems_of(function)
            entries[ops.symbol_of(function)] = _Signature(function)
        else:
            # It has no callers outside of the module, and needs no wrapper.
            with module.context:
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    if problems:
        raise input_error(source, problems)
    if not entries:
        return
    calls = [call for call in ops.find(module.operation, "func.call") if _is_of(call, entries)]
    with module.context:
        # The module is only valid once the calls refer to the original function again.
        run_group(module.operation, ["sparse-assembler{direct-out=true}"], verifies_each=False)
        functions = {ops.symbol_of(function): function for function in functions_of(module)}
        for name, before in entries.items():
            wrapper, inner = functions[name], functions[f"_internal_{name}"]
            _take_sizes(wrapper, before, module)
            _return_sizes(wrapper, before, f"_internal_{name}")
            before.describe(wrapper)
            # Kernels are named after the function that contains them.
            new = f"{name}_sparse"
            while new in functions:
                new += "_"
            ir.SymbolTable.replace_all_symbol_uses(f"_internal_{name}", new, module.operation)
            inner.attributes["sym_name"] = ir.StringAttr.get(new)
            for call in calls:
                if ops.callee_of(call) == name:
                    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(new)
        module.operation.verify()


class _Signature:
    """The signature of an entry before the conversion."""

    def __init__(self, function: Any) -> None:
        type_ = ops.function_type(function)
        self.inputs, self.results = list(type_.inputs), list(type_.results)
        self.attributes = [
            ir.DictAttr(attribute) for attribute in ir.ArrayAttr(function.attributes["arg_attrs"])
        ]

    def describe(self, wrapper: Any) -> None:
        """Names the arrays of each sparse tensor, and records which tensor they belong to."""
        made: list[Any] = []
        tensors: list[SparseTensor] = []
        for type_, attribute in zip(self.inputs, self.attributes, strict=True):
            if not is_sparse(type_):
                made.append(attribute)
                continue
            name = ir.StringAttr(attribute[NAME_ATTRIBUTE]).value
            tensors.append(_described(name, type_, len(made), is_result=False))
            for field in tensors[-1].arrays:
                names = {NAME_ATTRIBUTE: ir.StringAttr.get(f"{name}_{field}")}
                made.append(ir.DictAttr.get(names))
        count = 0
        for number, type_ in enumerate(self.results):
            if is_sparse(type_):
                tensors.append(_described(f"result{number}", type_, count, is_result=True))
                count += len(tensors[-1].arrays)
            else:
                count += 1
        wrapper.attributes["arg_attrs"] = ir.ArrayAttr.get(made)
        wrapper.attributes[SPARSE_ATTRIBUTE] = ir.StringAttr.get(sparse_text(tensors))


def _described(name: str, type_: Any, first: int, *, is_result: bool) -> SparseTensor:
    levels = levels_of(type_)
    formats = [level.format for level in levels]
    order = tuple(level.dimension for level in levels if level.dimension is not None)
    block = block_of(levels)
    is_list = formats == ["compressed", *["singleton"] * (len(levels) - 1)]
    format_ = None
    if formats == ["dense", "compressed"] and len(order) == 2:
        format_ = "csr" if order == (0, 1) else "csc"
    elif is_list and len(order) == len(levels):
        format_ = "coo"
    elif formats == ["dense", "compressed", "dense", "dense"] and block is not None:
        format_ = "bsr"
    return SparseTensor(
        name,
        str(type_),
        tuple(None if size == _UNKNOWN else size for size in type_.shape),
        (*_arrays_of(type_), *(f"size{d}" for d in _unknown_sizes(type_))),
        first,
        is_result,
        format_,
        order if format_ == "coo" else (),
        block if format_ == "bsr" else None,
    )


def _take_sizes(wrapper: Any, before: _Signature, module: Any) -> None:
    """Adds dynamic sizes as arguments after the values of their tensor.

    A function without a body assembles the tensor: `aotc-sparsify` lowers it, as upstream's
    operation only supports static sizes.
    """
    block = wrapper.regions[0].blocks[0]
    index = ir.IndexType.get()
    old = list(block.arguments)
    remaining = iter(old)
    made: list[Any] = []
    for type_ in before.inputs:
        count = len(list(_arrays_of(type_))) if is_sparse(type_) else 1
        values = [next(remaining) for _ in range(count)]
        new = [block.add_argument(value.type, value.location) for value in values]
        for value, replacement in zip(values, new, strict=True):
            value.replace_all_uses_with(replacement)
        made += new
        unknown = _unknown_sizes(type_) if is_sparse(type_) else []
        if not unknown:
            continue
        sizes = [block.add_argument(index, values[-1].location) for _ in unknown]
        made += sizes
        (assemble,) = (use.owner.operation for use in new[0].uses)
        with assemble.location, ir.InsertionPoint(assemble):
            call = _call_assembler(module, [*new, *sizes], type_)
        ops.replace(assemble, [call.results[0]])
    for _ in old:
        block.erase_argument(0)
    _set_type(wrapper, [value.type for value in made], list(ops.function_type(wrapper).results))


def _call_assembler(module: Any, values: Sequence[Any], type_: Any) -> Any:
    """A call of the function that assembles a sparse tensor from arrays and sizes."""
    names = {ops.symbol_of(one) for one in ops.find(module.operation, "func.func")}
    name = next(f"{ASSEMBLE}{i}" for i in range(len(names) + 1) if f"{ASSEMBLE}{i}" not in names)
    inputs = [value.type for value in values]
    reads = ir.DictAttr.get({"bufferization.access": ir.StringAttr.get("read")})
    none = ir.DictAttr.get({})
    is_array = [isinstance(one, ir.RankedTensorType) for one in inputs]
    with ir.InsertionPoint.at_block_begin(ops.body_of_module(module)):
        attributes = {
            "arg_attrs": ir.ArrayAttr.get([reads if one else none for one in is_array]),
            ASSEMBLED: ir.TypeAttr.get(type_),
        }
        ops.create_function(name, inputs, [type_], **attributes)
    return ops.call(name, values, [type_])


def _return_sizes(wrapper: Any, before: _Signature, inner: str) -> None:
    """Returns dynamic sizes after the values of their tensor."""
    *_, last = wrapper.regions[0].blocks[0].operations
    returned = last.operation
    (call,) = (op for op in ops.find(wrapper, "func.call") if ops.callee_of(op) == inner)
    remaining = iter(returned.operands)
    made: list[Any] = []
    with returned.location, ir.InsertionPoint(returned):
        for result, type_ in zip(call.results, before.results, strict=True):
            if not is_sparse(type_):
                made.append(next(remaining))
                continue
            made += [next(remaining) for _ in _arrays_of(type_)]
            for dimension in _unknown_sizes(type_):
                number = ops.constant_index(dimension)
                made.append(ops.create("tensor.dim", [result, number], [ir.IndexType.get()]).result)
        ops.create("func.return", made)
    ops.erase(returned)
    _set_type(wrapper, list(ops.function_type(wrapper).inputs), [value.type for value in made])


def _set_type(function: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _sparse_types(function: Any) -> Iterator[Any]:
    type_ = ops.function_type(function)
    return (one for one in (*type_.inputs, *type_.results) if is_sparse(one))


def _is_of(call: Any, entries: dict[str, Any]) -> bool:
    return ops.callee_of(call) in entries


def _problems_of(entry: Any) -> Iterator[Problem]:
    name = ops.symbol_of(entry)
    for argument in entry.regions[0].blocks[0].arguments:
        if not is_sparse(argument.type) or not _unknown_sizes(argument.type):
            continue
        for level in levels_of(argument.type):
            is_dimension = level_size(level, argument.type.shape) is not None
            if level.format not in _MEASURED or not is_dimension:
                said = (
                    f"'{name}' takes a sparse tensor of unknown sizes, from which those of its "
                    f"level '{level.expression} : {level.format}' do not follow: give it sizes "
                    "(tensor<64x32xf32, #F>)."
                )
                yield argument.location, said
    if any(
        (level.format, level.properties) == ("singleton", "")
        for type_ in _sparse_types(entry)
        for level in levels_of(type_)
    ):
        said = (
            f"'{name}' takes or returns a sparse tensor with the coordinates of several levels in "
            "one array, which no entry has: give each its own, singleton(soa)."
        )
        yield entry.location, said


def _arrays_of(type_: Any) -> Iterator[str]:
    """Yields the names of a tensor's arrays: `positions1`, `coordinates1`, `values` for a CSR
    matrix."""
    for number, level in enumerate(levels_of(type_)):
        for field in _FIELDS.get(level.format, ()):
            yield f"{field}{number}"
    yield "values"


def _unknown_sizes(type_: Any) -> list[int]:
    return [number for number, size in enumerate(type_.shape) if size == _UNKNOWN]
