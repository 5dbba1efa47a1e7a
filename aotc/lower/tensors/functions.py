"""Prepares functions on tensors for bufferization, and turns their results into arguments
afterwards.

A tensor argument of an entry becomes a memref that the entry only reads, unless a result is written
into it (`aotc.into`). A tensor result becomes an additional output argument if its shape is static;
otherwise it becomes a memref result that the caller frees. Intermediate tensors become allocations
that are freed after their last use.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.analysis.sparse import is_sparse
from aotc.attributes import KNOWN_RESULTS, NAME_ATTRIBUTE, OWNED
from aotc.input.entries import ENTRY_ATTRIBUTE, functions_of
from aotc.input.source import Source
from aotc.input.state import targets_of
from aotc.mlir import ir
from aotc.module_names import PRINTS
from aotc.rewrites.run import run_passes

_RESULTS = ("buffer-results-to-out-params{hoist-static-allocs=1 add-result-attr=1}",)
_RESULT_ATTRIBUTE = "bufferize.result"
_WRITABLE = "bufferization.writable"
_ACCESS = "bufferization.access"
BY_HAND = "bufferization.manual_deallocation"


def mark_writable_tensors(module: Any) -> None:
    """Attaches the attributes that bufferization and later passes need.

    Tensor arguments of entries are marked not writable. Functions whose tensor results have sizes
    known to the caller are marked, and so are the other tensor results of entries. Print functions
    only read their arguments. If the module has `memref.dealloc`, its allocations are marked as
    freed by the author.
    """
    with module.context:
        if ops.find(module.operation, "memref.dealloc"):
            for operation in ops.find(module.operation, "memref.alloc", "memref.dealloc"):
                operation.attributes[BY_HAND] = ir.UnitAttr.get()
        for function in ops.find(module.operation, "func.func"):
            if ops.is_declaration(function) and ops.symbol_of(function).startswith(PRINTS):
                _say_that_it_reads(function)
        for function in functions_of(module):
            if function.name != "func.func":
                continue
            if not _returns(function):
                # Upstream's inliner expects a single block to end with func.return, or crashes.
                function.attributes["no_inline"] = ir.UnitAttr.get()
            if ENTRY_ATTRIBUTE in function.attributes:
                _protect_arguments(function)
            if "sym_visibility" not in function.attributes and _has_known_results(function):
                function.attributes[KNOWN_RESULTS] = ir.UnitAttr.get()
            elif ENTRY_ATTRIBUTE in function.attributes:
                _mark_owned_results(function)


def return_in_arguments(source: Source) -> None:
    """Turns the results of the functions that `mark_writable_tensors` marked into arguments:
    `result0` and so on."""
    module = source.module
    with module.context:
        _mark_allocations_again(module)
        marked = [op for op in functions_of(module) if KNOWN_RESULTS in op.attributes]
        for function in marked:
            del function.attributes[KNOWN_RESULTS]
            # The upstream pass only changes private functions, as others may have callers
            # elsewhere.
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        # The pass refuses private functions whose results have dynamic shapes, so these are made
        # public.
        kept = [op for op in functions_of(module) if op not in marked and _is_refused(op)]
        for function in kept:
            del function.attributes["sym_visibility"]
        for returned in ops.find(module.operation, "func.return"):
            for value in returned.operands:
                _allocate_as_returned(value)
        # Behind what erases operations.
        roots = Roots(Functions(module), follows_loops=True)
        for function in ops.find(module.operation, "func.func"):
            _return_each_once(function, roots)
    run_passes(
        module,
        _RESULTS,
        name=source.name,
        lines=source.lines,
        doing="turning results into arguments",
    )
    with module.context:
        for function in marked:
            del function.attributes["sym_visibility"]
        for function in kept:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        for returned in ops.find(module.operation, "func.return"):
            _hand_results_on(returned)
        for function in functions_of(module):
            if function.name == "func.func" and "arg_attrs" in function.attributes:
                _name_results(function)


_INVERSE = {
    "memref.expand_shape": "memref.collapse_shape",
    "memref.collapse_shape": "memref.expand_shape",
}


_OF_ALLOCATIONS = ("alignment", "operandSegmentSizes")


def _allocate_as_returned(value: Any) -> None:
    """If a function returns a reshape of an allocation, allocates the returned shape, and uses its
    inverse reshape in the function. The returned value is then the allocation itself, and need not
    be copied."""
    views = []
    producer = ops.defining(value)
    while producer is not None and producer.name in _INVERSE:
        views.append(producer)
        producer = ops.defining(producer.operands[0])
    if (
        not views
        or producer is None
        or producer.name != "memref.alloc"
        or len(producer.operands) > 0
    ):
        return
    old, type_ = producer.results[0], value.type
    is_plain = type_.affine_map == ir.AffineMap.get_identity(type_.rank)
    if not type_.has_static_shape or not is_plain:
        return
    with producer.location, ir.InsertionPoint(producer):
        names = [name for name in _OF_ALLOCATIONS if name in producer.attributes]
        kept = {name: producer.attributes[name] for name in names}
        new = seen = ops.create("memref.alloc", [], [type_], kept).result
        for view in views:
            before = view.operands[0].type
            attributes = {"reassociation": view.attributes["reassociation"]}
            if view.name == "memref.collapse_shape":
                attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(before.shape))
            seen = ops.create(_INVERSE[view.name], [seen], [before], attributes).result
    old.replace_all_uses_with(seen)
    value.replace_all_uses_with(new)
    for view in views:
        if any(True for _ in view.results[0].uses):
            break
        ops.erase(view)
    ops.erase(producer)


def _return_each_once(function: Any, roots: Roots) -> None:
    """Copies results that are, or may be, in the buffer of an earlier result.

    The upstream pass replaces the allocation of a result of static shape by an argument once for
    each result, and would erase the allocation several times. For each return, the argument
    would replace another allocation, although both may be in use. The caller frees each result that
    it owns, wherever the function returned, and may write to one without changing another. An
    allocation of dynamic shape that the only return names twice stays one buffer: the caller owns
    the first of the two results.
    """
    owned = _owned_results(function)
    returns = ops.find(function, "func.return")
    for number, type_ in enumerate(ops.function_type(function).results):
        if not isinstance(type_, ir.MemRefType):
            continue
        elsewhere = [value for one in returns for value in _memrefs_before(one, number)]
        for returned in returns:
            value = returned.operands[number]
            is_named_again = value in _memrefs_before(returned, number)
            is_replaced = len(returns) > 1 or is_named_again
            stays = len(returns) == 1 and is_named_again and _is_allocation(value)
            is_shared = number in owned and any(roots.may_overlap(value, o) for o in elsewhere)
            if (is_shared and not stays) or (is_replaced and type_.has_static_shape):
                with returned.location, ir.InsertionPoint(returned):
                    copy = ops.alloc(value.type, ops.dynamic_sizes(value))
                    ops.create("memref.copy", [value, copy])
                returned.operands[number] = copy


def _memrefs_before(returned: Any, number: int) -> list[Any]:
    """The memrefs that a func.return returns before operand `number`."""
    return [value for value in list(returned.operands)[:number] if _is_memref(value.type)]


def _is_allocation(value: Any) -> bool:
    producer = ops.defining(value)
    return producer is not None and producer.name == "memref.alloc"


def _owned_results(function: Any) -> list[int]:
    """The numbers of the results that the function's caller frees."""
    if "res_attrs" not in function.attributes:
        return []
    attributes = ir.ArrayAttr(function.attributes["res_attrs"])
    return [i for i, one in enumerate(attributes) if OWNED in ir.DictAttr(one)]


def _hand_results_on(returned: Any) -> None:
    """Passes the caller's output argument to a called function instead of a temporary buffer.

    The upstream pass allocates a buffer for the call's result and copies it. `returned` is the
    terminator of the function.
    """
    function = returned.parent.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return
    attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    arguments = function.regions[0].blocks[0].arguments
    results = [
        argument
        for argument, attribute in zip(arguments, attributes, strict=True)
        if _RESULT_ATTRIBUTE in ir.DictAttr(attribute)
    ]
    operations = ops.operations_in(returned.block)
    for copy in reversed(operations[:-1]):
        if copy.name != "memref.copy":
            return
        source, target = copy.operands
        made = ops.defining(source)
        is_alone = target in results and len(list(target.uses)) == 1
        if not is_alone or source.type != target.type:
            continue
        is_new = made is not None and made.name == "memref.alloc" and made in operations
        if is_new and {use.owner.operation.name for use in source.uses} <= {"func.call", copy.name}:
            ops.erase(copy)
            source.replace_all_uses_with(target)
            ops.erase(made)


def _is_tensor(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType)


def _is_memref(type_: Any) -> bool:
    return isinstance(type_, ir.MemRefType)


def _has_known_results(function: Any) -> bool:
    """Whether all tensor results can be arguments: their shapes, and those of the memref results,
    are static."""
    written = targets_of(function)
    results = [
        type_ for i, type_ in enumerate(ops.function_type(function).results) if i not in written
    ]
    buffers = [type_ for type_ in results if _is_tensor(type_) or _is_memref(type_)]
    return any(map(_is_tensor, buffers)) and all(map(_is_known, buffers))


def _is_known(type_: Any) -> bool:
    return type_.has_static_shape and not is_sparse(type_)


def _protect_arguments(function: Any) -> None:
    inputs = ops.function_type(function).inputs
    dictionaries = _argument_dictionaries(function, len(inputs))
    written = targets_of(function).values()
    for i, (type_, dictionary) in enumerate(zip(inputs, dictionaries, strict=True)):
        if _is_tensor(type_) and i not in written:
            dictionary[_WRITABLE] = ir.BoolAttr.get(value=False)
    _set_argument_dictionaries(function, dictionaries)


def _returns(function: Any) -> bool:
    blocks = list(function.regions[0].blocks)
    return len(blocks) != 1 or list(blocks[0].operations)[-1].operation.name == "func.return"


def _mark_owned_results(function: Any) -> None:
    results = ops.function_type(function).results
    attributes = function.attributes
    dictionaries = (
        list(map(ir.DictAttr, ir.ArrayAttr(attributes["res_attrs"])))
        if "res_attrs" in attributes
        else [ir.DictAttr.get({}) for _ in results]
    )
    for i, type_ in enumerate(results):
        if _is_tensor(type_) and not is_sparse(type_):
            known = {named.name: named.attr for named in dictionaries[i]}
            dictionaries[i] = ir.DictAttr.get({**known, OWNED: ir.UnitAttr.get()})
    attributes["res_attrs"] = ir.ArrayAttr.get(dictionaries)


def _mark_allocations_again(module: Any) -> None:
    """Marks the allocations that the author frees again. Canonicalization replaces an allocation
    whose sizes become constant, and drops the mark."""
    for dealloc in ops.find(module.operation, "memref.dealloc"):
        if BY_HAND not in dealloc.attributes:
            continue
        producer = ops.defining(dealloc.operands[0])
        while producer is not None and producer.name == "memref.cast":
            producer = ops.defining(producer.operands[0])
        if producer is not None and producer.name == "memref.alloc":
            producer.attributes[BY_HAND] = ir.UnitAttr.get()


def _is_refused(function: Any) -> bool:
    """Whether the function is private and returns a memref of dynamic shape."""
    if function.name != "func.func" or "sym_visibility" not in function.attributes:
        return False
    memrefs = (
        type_ for type_ in ops.function_type(function).results if isinstance(type_, ir.MemRefType)
    )
    return not all(type_.has_static_shape for type_ in memrefs)


def _say_that_it_reads(function: Any) -> None:
    inputs = ops.function_type(function).inputs
    dictionaries = _argument_dictionaries(function, len(inputs))
    for type_, dictionary in zip(inputs, dictionaries, strict=True):
        if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
            dictionary[_ACCESS] = ir.StringAttr.get("read")
    _set_argument_dictionaries(function, dictionaries)


def _name_results(function: Any) -> None:
    """Names the arguments that are results: `result0` and so on."""
    dictionaries = _argument_dictionaries(function, len(ops.function_type(function).inputs))
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
