"""`aotc-sparsify`: sparse tensors become the arrays of their levels, and loops over stored
elements.

This is done by MLIR's sparsifier. The steps before and after it here do what the sparsifier leaves
to others: buffers are freed, and the iterations of parallel loops are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import reduction_loops
from aotc.analysis.sparse import is_sparse, levels_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.functions import BY_HAND
from aotc.lower.tensors.sparse_assembly import expand_assembly
from aotc.lower.tensors.sparse_columns import separate_columns
from aotc.lower.tensors.sparse_specifiers import drop_views, scalarize_specifiers
from aotc.lower.tensors.sparse_vectors import make_matrices
from aotc.mlir import ir

_FUSION = (
    "func.func(linalg-generalize-named-ops,linalg-fuse-elementwise-ops,empty-tensor-to-alloc-tensor)",
)
_SPARSIFIER = "sparsification-and-bufferization"
# Each iteration of an outer loop over a dense level has its own element or row.
_OUTER_LOOPS = "{parallelization-strategy=dense-outer-loop}"
_SPECIFIERS = ("sparse-storage-specifier-to-llvm", "canonicalize", "cse")
# The attribute of loops that the sparsifier creates.
_EMITTED = "Emitted from"
# Operation → the operand number of the memref that it writes; the indices follow it.
_STORES = {"memref.store": 1, "memref.atomic_rmw": 1, "memref.generic_atomic_rmw": 0}


class Sparsify(OwnPass, frozen=True):
    name = "aotc-sparsify"
    needs = ("aotc-mark-writable-tensors",)
    reason: str = (
        "sparse tensors become the arrays of their levels, and their operations become loops over "
        "stored elements, parallel along an outer dense level"
    )

    def run(self, lowering: Lowering) -> None:
        # MLIR's deallocation frees the buffers, and refuses buffers that are freed elsewhere. The
        # sparsifier frees some of its own, but none of the arrays that a tensor was assembled from.
        for hint in ops.find(lowering.module.operation, "bufferization.dealloc_tensor"):
            ops.erase(hint)
        if ops.find(lowering.module.operation, "sparse_tensor.push_back"):
            # push_back may reallocate a buffer, so it is only known at run time whether the buffer
            # that the author frees is the one that was allocated. MLIR's deallocation frees all of
            # them instead.
            for operation in ops.find(lowering.module.operation, "memref.alloc", "memref.dealloc"):
                if BY_HAND in operation.attributes:
                    del operation.attributes[BY_HAND]
        with lowering.module.context:
            make_matrices(lowering.module)
        lowering.run_upstream(*_FUSION)
        with lowering.module.context:
            is_full = _prepare_generics(lowering.module.operation)
        lowering.run_upstream(_SPARSIFIER if is_full else _SPARSIFIER + _OUTER_LOOPS)
        with lowering.module.context:
            expand_assembly(lowering.module)
            drop_views(lowering.module)
        lowering.run_upstream(*_SPECIFIERS)
        with lowering.module.context:
            scalarize_specifiers(lowering.module)
        for dealloc in ops.find(lowering.module.operation, "memref.dealloc"):
            if BY_HAND not in dealloc.attributes:
                ops.erase(dealloc)
        with lowering.module.context:
            for loop in ops.find(lowering.module.operation, "scf.parallel"):
                if _EMITTED not in loop.attributes:
                    continue
                if any(_shared_stores(loop)):
                    _make_sequential(loop)
                else:
                    separate_columns(loop)
            for copy in ops.find(lowering.module.operation, "memref.copy"):
                _fill_in_parallel(copy, lowering.module)


def _prepare_generics(module: Any) -> bool:
    """Changes initial values that the sparsifier does not take; returns whether there is a
    reduction that it cannot parallelize."""
    generics = ops.find(module, "linalg.generic")
    for generic in generics:
        _allocate_constant_init(generic)
    for convert in ops.find(module, "sparse_tensor.convert"):
        _start_from_zeros(convert)
    return any(map(_is_full_reduction, generics))


def _is_full_reduction(generic: Any) -> bool:
    """Whether a sparse tensor with a dense outer level is reduced to one number: upstream's
    sparsifier crashes if the outer loop of such a reduction is parallel."""
    types = [value.type for value in generic.operands if is_sparse(value.type)]
    kinds = ir.ArrayAttr(generic.attributes["iterator_types"])
    is_dense = any(levels_of(type_)[0].format == "dense" for type_ in types)
    return is_dense and len(reduction_loops(generic)) == len(kinds)


def _allocate_constant_init(generic: Any) -> None:
    """Replaces a constant init by an allocation with a copy of it.

    If the sparsifier fuses a matrix product with a mask, it assumes that the init is an allocation,
    and crashes otherwise.
    """
    _, inits = ops.operand_groups(generic)
    for number, init in enumerate(inits, start=len(generic.operands) - len(inits)):
        if not ops.is_constant(init) or is_sparse(init.type):
            continue
        if not isinstance(init.type, ir.RankedTensorType):
            continue
        with generic.location, ir.InsertionPoint(generic):
            segments = ir.DenseI32ArrayAttr.get([0, 1, 0])  # sizes, copy, size hint
            attributes = {"operandSegmentSizes": segments}
            copy = ops.create("bufferization.alloc_tensor", [init], [init.type], attributes)
            generic.operands[number] = copy.result


def _start_from_zeros(convert: Any) -> None:
    """Makes the result of a reduction dense, and zeros its init, if it is sparse and only converted
    to a dense tensor.

    The sparsifier does so without the zeros, which a new sparse tensor has and a dense one has not.
    """
    generic, type_ = ops.defining(convert.operands[0]), convert.results[0].type
    if generic is None or generic.name != "linalg.generic" or is_sparse(type_):
        return
    init = ops.defining(list(generic.operands)[-1])
    if init is None or init.name not in ("bufferization.alloc_tensor", "tensor.empty"):
        return
    argument = list(generic.regions[0].blocks[0].arguments)[-1]
    is_copy = any(is_sparse(operand.type) for operand in init.operands)
    has_one_use = len(list(convert.operands[0].uses)) == 1 and len(generic.results) == 1
    if is_copy or not has_one_use or not any(True for _ in argument.uses):
        return
    # A conversion may forget sizes.
    shape = generic.results[0].type.shape
    dense = ir.RankedTensorType.get(shape, type_.element_type, loc=convert.location)
    sizes = list(init.operands)[: sum(map(dense.is_dynamic_dim, range(dense.rank)))]
    with generic.location, ir.InsertionPoint(generic):
        zero = _zero(type_.element_type)
        zeros = ops.create("tensor.splat", [zero, *sizes], [dense]).result
    generic.operands[len(generic.operands) - 1] = zeros
    result = generic.results[0]
    result.set_type(dense)
    if dense != type_:
        with convert.location, ir.InsertionPoint(convert):
            result = ops.create("tensor.cast", [result], [type_]).result
    convert.results[0].replace_all_uses_with(result)
    ops.erase(convert)


def _zero(type_: Any) -> Any:
    if not isinstance(type_, ir.ComplexType):
        return ops.constant(type_, 0)
    parts = [ir.FloatAttr.get(type_.element_type, 0)] * 2
    return ops.create("complex.constant", [], [type_], {"value": ir.ArrayAttr.get(parts)}).result


def _fill_in_parallel(copy: Any, module: Any) -> None:
    """Replaces a copy of a splat constant by a parallel loop that stores the number.

    `_allocate_constant_init` makes such copies. It is done if rows of the target are computed in
    parallel: loops over rows can then start from the number, and do not load it.
    """
    source, target = copy.operands
    read = ops.defining(source)
    users = (use.owner.operation for use in target.uses)
    if read is None or read.name != "memref.get_global":
        return
    if not any(ops.enclosing(user, "scf.parallel") is not None for user in users):
        return
    name = ops.global_of(read)
    (variable,) = (
        one for one in ops.find(module.operation, "memref.global") if ops.symbol_of(one) == name
    )
    is_constant = "constant" in variable.attributes and "initial_value" in variable.attributes
    value = variable.attributes["initial_value"] if is_constant else None
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return
    with copy.location, ir.InsertionPoint(copy):
        element = value.get_splat_value()
        number = ops.constant_from(element)
        sizes = [ops.constant_index(size) for size in target.type.shape]
        ops.create_parallel(sizes, lambda at: ops.create("memref.store", [number, target, *at]))
    ops.erase(copy)


def _shared_stores(loop: Any) -> Iterator[Any]:
    """Yields the stores of the loop to elements that several of its iterations write.

    For example, a window that slides over a sparse tensor, as in a convolution, keeps its positions
    in a buffer outside of the loop. Elements of the result have the loop's variable among their
    indices. In a matrix of blocks, the index is that variable times the block size plus a number
    below the block size.
    """
    variables = list(loop.regions[0].blocks[0].arguments)
    for store in ops.find(loop, *_STORES):
        target = _STORES[store.name]
        memref, indices = store.operands[target], list(store.operands)[target + 1 :]
        is_own = any(index in variables or _is_in_block(index, variables) for index in indices)
        if not is_own and ops.is_made_outside(memref, loop):
            yield store


def _is_in_block(index: Any, variables: Sequence[Any]) -> bool:
    """Whether the index is `variable * size + number`, where an inner loop bounds `number` by
    `size`."""
    total = ops.defining(index)
    if total is None or total.name != "arith.addi":
        return False
    pairs = (list(total.operands), list(total.operands)[::-1])
    return any(_multiple(begin, variables) in _below(number) for begin, number in pairs)


def _multiple(value: Any, variables: Sequence[Any]) -> int | None:
    """The constant factor in a product of a variable and a constant; None for other values."""
    product = ops.defining(value)
    if product is None or product.name != "arith.muli" or product.operands[0] not in variables:
        return None
    return ops.known_index(product.operands[1])


def _below(value: Any) -> list[int]:
    """The upper bound of the loop from 0 with step 1 whose variable the value is, if it is
    constant; otherwise an empty list."""
    loop = value.owner.owner.operation if ops.defining(value) is None else None
    if loop is None or loop.name != "scf.for" or value != loop.regions[0].blocks[0].arguments[0]:
        return []
    lower, upper, step = (ops.known_index(bound) for bound in list(loop.operands)[:3])
    return [upper] if (lower, step) == (0, 1) and upper is not None else []


def _make_sequential(loop: Any) -> None:
    """Replaces a parallel loop without results by nested sequential loops."""
    lower, upper, step, _ = ops.operand_groups(loop)
    body = loop.regions[0].blocks[0]

    def build(bounds: list[tuple[Any, Any, Any]], variables: list[Any]) -> None:
        if bounds:
            ops.create_for(*bounds[0], lambda i: build(bounds[1:], [*variables, i]))
            return
        place = ir.InsertionPoint.current
        for argument, variable in zip(body.arguments, variables, strict=True):
            argument.replace_all_uses_with(variable)
        for operation in list(body.operations)[:-1]:  # not its scf.reduce
            operation.operation.detach_from_parent()
            place.insert(operation)

    with loop.location, ir.InsertionPoint(loop):
        build(list(zip(lower, upper, step, strict=True)), [])
    ops.erase(loop)
