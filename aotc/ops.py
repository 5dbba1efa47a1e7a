"""Small helpers over the bindings: walking, symbols, operands, and making operations.

Each maker builds at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aotc.errors import InternalError
from aotc.mlir import ir

# What defines a symbol, and of that what has a body.
_FUNCTIONS = ("func.func", "gpu.func", "llvm.func")
_SYMBOLS = frozenset((*_FUNCTIONS, "memref.global"))
_LAUNCH = "gpu.launch_func"  # in host code alone
_EQ, _SGE = 0, 5  # arith.cmpi's numbers
_LARGEST_INDEX = (1 << 63) - 1
_CONSTANT = "arith.constant"
_COPY_GROUP = "nvgpu.device_async_create_group"


def text_of(operation: Any, **options: Any) -> str:
    """The text of an operation, which can be parsed. `options` are those of `get_asm`."""
    text = str(operation.get_asm(**options))
    # MLIR prints a group without tokens in a short form after which its parser takes the name of
    # the next line's result for a token.
    generic = f'"{_COPY_GROUP}"() : () -> !nvgpu.device.async.token'
    return text.replace(f"{_COPY_GROUP} \n", f"{generic}\n")


def walk(operation: Any) -> list[Any]:
    """Every operation under `operation`, itself first, in order.

    A list: the caller may add and erase operations as it goes. (The bindings' own walk takes less
    than half as long as one of Python's over regions and blocks.)
    """
    found: list[Any] = []
    add, go_on = found.append, ir.WalkResult.ADVANCE

    def visit(inner: Any) -> Any:
        add(inner)
        return go_on

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def body_of_module(module: Any) -> Any:
    """The block of an `ir.Module`, of its operation, or of another one with one block (a
    gpu.module); of whatever class the bindings have made it."""
    return module.operation.regions[0].blocks[0]


def operations_in(block: Any) -> list[Any]:
    """The operations of a block. The list does not change when they are moved or erased."""
    return [one.operation for one in block.operations]


def content(operation: Any) -> list[Any]:
    """The operations directly inside an operation with one block: a module, a loop, linalg."""
    return operations_in(operation.regions[0].blocks[0])


def globals_of(module: Any) -> dict[str, Any]:
    """The `memref.global` operations of a module, by their names."""
    return {
        symbol_of(op.operation): op.operation
        for op in body_of_module(module).operations
        if op.operation.name == "memref.global"
    }


def enumerator(attribute: Any) -> str:
    """The case of an enum attribute, such as `add` of `#gpu<all_reduce_op add>`."""
    return str(attribute).rstrip(">").split()[-1]


def symbol_of(operation: Any) -> str:
    """The name that a symbol operation defines."""
    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def is_declaration(function: Any) -> bool:
    return len(function.regions[0].blocks) == 0


def find(operation: Any, *names: str) -> list[Any]:
    """The operations under `operation` that have one of the names."""
    found: list[Any] = []
    add, go_on, skip = found.append, ir.WalkResult.ADVANCE, ir.WalkResult.SKIP
    # Kernels have thousands of operations: a walk enters them only if it can find something.
    passed_by: Collection[str] = ()
    if _SYMBOLS.issuperset(names):
        passed_by = _FUNCTIONS
    elif names == (_LAUNCH,):
        passed_by = ("gpu.module",)

    def visit(inner: Any) -> Any:
        if inner.name in names:
            add(inner)
        return go_on

    def visit_outer(inner: Any) -> Any:
        visit(inner)
        return skip if inner.name in passed_by else go_on

    operation.walk(visit_outer if passed_by else visit, ir.WalkOrder.PRE_ORDER)
    return found


def ancestors(operation: Any) -> Iterator[Any]:
    parent = operation.parent
    while parent is not None:
        yield parent.operation if hasattr(parent, "operation") else parent
        parent = parent.parent


def enclosing(operation: Any, *names: str) -> Any | None:
    """The nearest ancestor that has one of the names."""
    return next((op for op in ancestors(operation) if op.name in names), None)


def users_through(value: Any, views: Collection[str]) -> Iterator[Any]:
    """The operations that use a value, or what those that are called like `views` make of it."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in views:
            yield from users_through(user.results[0], views)
        else:
            yield user


def replace_by_body(operation: Any, body: Any, operands: Sequence[Any]) -> None:
    """Moves what is in a function's block in front of `operation`, whose results it computes of
    `operands`. The operation is used no more, and stays."""
    for argument, value in zip(body.arguments, operands, strict=True):
        argument.replace_all_uses_with(value)
    *made, returned = body.operations
    for replacement in made:
        for inner in walk(replacement.operation):
            # Places in the text that the body is from are none in the input.
            inner.location = operation.location
        replacement.operation.move_before(operation)
    for result, value in zip(operation.results, returned.operands, strict=True):
        result.replace_all_uses_with(value)


def erase(operation: Any) -> None:
    """Erases an operation that nothing uses. (The bindings do not look: what still uses it would
    have an operand in memory that was freed.) Raises InternalError."""
    if any(next(iter(result.uses), None) is not None for result in operation.results):
        raise InternalError(f"{operation.name} would be erased while its results are used.")
    operation.erase()


def replace(operation: Any, values: Iterable[Any]) -> None:
    """Erases an operation, whose users get `values` in the place of its results. Nothing may use
    results for which there is no value."""
    for result, value in zip(operation.results, values, strict=False):
        result.replace_all_uses_with(value)
    erase(operation)


def defining(value: Any) -> Any | None:
    """The operation that makes `value`; None for a block argument.

    As a plain operation: an op's own class may have a `name` that is an attribute's.
    """
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def is_made_outside(value: Any, operation: Any) -> bool:
    """Whether `value` comes from outside the operation's regions."""
    owner = defining(value)
    inner = owner if owner is not None else value.owner.owner.operation
    return inner != operation and operation not in ancestors(inner)


def callee_of(call: Any) -> str:
    """The function that a `func.call` or a direct `llvm.call` calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def global_of(use: Any) -> str:
    """The variable that a `memref.get_global` is of."""
    return str(ir.FlatSymbolRefAttr(use.attributes["name"]).value)


def used_global(operation: Any) -> str | None:
    """The variable whose memory or address the operation is, if it is one of those operations."""
    if operation.name == "memref.get_global":
        return global_of(operation)
    if operation.name == "llvm.mlir.addressof":
        return str(ir.FlatSymbolRefAttr(operation.attributes["global_name"]).value)
    return None


def attributes_of(operation: Any) -> dict[str, Any]:
    return {name: operation.attributes[name] for name in operation.attributes}


def function_type(function: Any) -> Any:
    """The type of a `func.func`, or of a `gpu.func`."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def set_function_type(function: Any, inputs: Iterable[Any], results: Iterable[Any]) -> None:
    type_ = ir.FunctionType.get(list(inputs), list(results))
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def terminator(block: Any) -> Any:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1].operation


def constant_index(value: int) -> Any:
    """An `arith.constant` of type index at the current insertion point."""
    return constant_from(ir.IntegerAttr.get(index(), value))


def constant_from(attribute: Any) -> Any:
    """An `arith.constant` with the value and the type of an attribute."""
    return create("arith.constant", (), [attribute.type], {"value": attribute}).result


def is_constant(value: Any) -> bool:
    """Whether an `arith.constant` makes the value."""
    owner = defining(value)
    return owner is not None and owner.name == _CONSTANT


def known_constant(value: Any) -> Any | None:
    """The attribute with the value of an `arith.constant`; None if nothing such makes it."""
    return value.owner.operation.attributes["value"] if is_constant(value) else None


def known_index(value: Any) -> int | None:
    """The value of a constant of type index, or of an integer type; None if it is none."""
    attribute = known_constant(value)
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def known_float(value: Any) -> float | None:
    """The value of a constant float, or of each element of a constant vector; None for others."""
    attribute = known_constant(value)
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else None


def known_dimension(dim: Any) -> int | None:
    """The dimension whose size a `tensor.dim` or `memref.dim` asks for; None if it is not known, or
    if its operand has no such dimension: then the program's behaviour is undefined, and the
    bindings would read behind the shape."""
    dimension, type_ = known_index(dim.operands[1]), dim.operands[0].type
    if dimension is None or not isinstance(type_, ir.MemRefType | ir.RankedTensorType):
        return None
    return dimension if 0 <= dimension < type_.rank else None


def index_op(name: str, *operands: Any) -> Any:
    """A binary arith operation on index values."""
    return create(name, operands, [index()]).result


def compare(predicate: int, left: Any, right: Any) -> Any:
    """`arith.cmpi` with a predicate by number (2 is slt, 6 is ult), on vectors as on numbers."""
    attributes = {"predicate": ir.IntegerAttr.get(integer(64), predicate)}
    result = with_element_type(left.type, integer(1))
    return create("arith.cmpi", [left, right], [result], attributes).result


def alloc(type_: Any, sizes: Sequence[Any] = ()) -> Any:
    """`memref.alloc`; `sizes` are those that the type does not say."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0])}
    return create("memref.alloc", sizes, [type_], segments).result


def load(memref: Any, indices: Sequence[Any]) -> Any:
    """`memref.load`."""
    return create("memref.load", [memref, *indices], [memref.type.element_type]).result


def compare_floats(predicate: int, left: Any, right: Any) -> Any:
    """`arith.cmpf` with a predicate by number (1 is oeq, 4 is olt), on vectors as on numbers."""
    attributes = {"predicate": ir.IntegerAttr.get(integer(64), predicate)}
    result = with_element_type(left.type, integer(1))
    return create("arith.cmpf", [left, right], [result], attributes).result


def select(condition: Any, yes: Any, no: Any) -> Any:
    """`arith.select`: one of two values of one type."""
    return create("arith.select", [condition, yes, no], [yes.type]).result


def capped_product(counts: Sequence[Any]) -> Any:
    """The product of sizes; the largest index, which no grid and no memory has, where it is more
    than an index can count."""
    total = counts[0]
    index_type = ir.IndexType.get()
    for count in counts[1:]:
        if None not in (known_index(total), known_index(count)):
            total = index_op("arith.muli", total, count)
            continue
        low, excess = create("arith.mului_extended", [total, count], [index_type] * 2).results
        zero = constant_index(0)
        is_small, has_no_excess = compare(_SGE, low, zero), compare(_EQ, excess, zero)
        is_countable = binary("arith.andi", is_small, has_no_excess)
        largest = constant_index(_LARGEST_INDEX)
        total = select(is_countable, low, largest)
    return total


def create_for(lower: Any, upper: Any, step: Any, body: Callable[[Any], None]) -> Any:
    """`scf.for` whose body `body(induction variable)` fills."""
    loop = create("scf.for", [lower, upper, step], regions=1)
    block = loop.regions[0].blocks.append(index())
    with ir.InsertionPoint(block):
        body(block.arguments[0])
        create("scf.yield")
    return loop


def create_parallel(sizes: Sequence[Any], body: Callable[[list[Any]], None]) -> None:
    """`scf.parallel` from 0 to `sizes` by 1, without results, whose body `body(induction
    variables)` fills."""
    zeros = [constant_index(0) for _ in sizes]
    ones = [constant_index(1) for _ in sizes]
    count = len(sizes)
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([count, count, count, 0])}
    loop = create("scf.parallel", [*zeros, *sizes, *ones], (), segments, regions=1)
    block = loop.regions[0].blocks.append(*[index()] * count)
    with ir.InsertionPoint(block):
        body(list(block.arguments))
        create("scf.reduce")


def create_if(condition: Any, body: Callable[[], object]) -> None:
    """`scf.if` without results whose body `body()` fills."""
    branch = create("scf.if", [condition], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        body()
        create("scf.yield")


def create_either(condition: Any, then: Callable[[], object], other: Callable[[], object]) -> None:
    """`scf.if` without results, with both branches."""
    branch = create("scf.if", [condition], regions=2)
    for region, fill in zip(branch.regions, (then, other), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            fill()
            create("scf.yield")


def operand_groups(operation: Any) -> list[list[Any]]:
    """The operands by `operandSegmentSizes`."""
    sizes = list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
    operands = list(operation.operands)
    groups, start = [], 0
    for size in sizes:
        groups.append(operands[start : start + size])
        start += size
    return groups


def create(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: Mapping[str, Any] | None = None,
    regions: int = 0,
) -> Any:
    """An operation by name, at the current insertion point."""
    return ir.Operation.create(
        name,
        results=list(results),
        operands=list(operands),
        attributes=dict(attributes) if attributes else None,
        regions=regions,
    )


def dim(shaped: Any, dimension: int) -> Any:
    """`memref.dim` or `tensor.dim`."""
    name = "memref.dim" if isinstance(shaped.type, ir.MemRefType) else "tensor.dim"
    return index_op(name, shaped, constant_index(dimension))


def size(shaped: Any, dimension: int) -> Any:
    """The size of a dimension of a memref or a tensor: a constant, if its type says it."""
    type_ = shaped.type
    if type_.is_dynamic_dim(dimension):
        return dim(shaped, dimension)
    return constant_index(type_.get_dim_size(dimension))


def dynamic_sizes(shaped: Any, dimensions: Iterable[int] | None = None) -> list[Any]:
    """The sizes of a memref or a tensor, or of some of its dimensions, that its type does not
    say."""
    return [
        dim(shaped, i)
        for i in (range(shaped.type.rank) if dimensions is None else dimensions)
        if shaped.type.is_dynamic_dim(i)
    ]


def create_generic(
    operands: Sequence[Any],
    maps: Sequence[Any],
    compute: Callable[..., Any],
    reductions: Collection[int] = (),
) -> Any:
    """A `linalg.generic` that writes its last operand, a tensor or a buffer.

    `compute` is called at the insertion point of the body, with one element of each operand, and
    returns the element to write. The loops in `reductions` are reductions, the others parallel.
    """
    result = operands[-1].type
    kinds = ["reduction" if i in reductions else "parallel" for i in range(maps[0].n_dims)]
    generic = create(
        "linalg.generic",
        list(operands),
        [] if isinstance(result, ir.MemRefType) else [result],
        {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands) - 1, 1]),
        },
        regions=1,
    )
    types = [
        one.type.element_type if isinstance(one.type, ir.ShapedType) else one.type
        for one in operands
    ]
    with ir.InsertionPoint(block := generic.regions[0].blocks.append(*types)):
        create("linalg.yield", [compute(*block.arguments)])
    return generic


def create_elementwise(
    inputs: Sequence[Any],
    type_: Any,
    sizes: Sequence[Any],
    compute: Callable[..., Any],
    maps: Sequence[Any] | None = None,
) -> Any:
    """A tensor of `type_`, with these dynamic sizes, whose elements `compute` returns for those of
    the inputs. `maps` are the inputs' indexing maps, identities by default."""
    identity = ir.AffineMap.get_identity(type_.rank)
    empty = create("tensor.empty", sizes, [type_]).result
    read = [identity] * len(inputs) if maps is None else maps
    return create_generic(
        [*inputs, empty], [*read, identity], lambda *elements: compute(*elements[:-1])
    ).result


def loop_index(loop: int) -> Any:
    """The index of a loop, in the body of a `linalg.generic`."""
    dim = ir.IntegerAttr.get(integer(64), loop)
    return create("linalg.index", [], [index()], {"dim": dim}).result


def unary(name: str, operand: Any, result: Any) -> Any:
    """The value of a cast or another operation of one operand."""
    return create(name, [operand], [result]).result


def shape_cast(vector: Any, type_: Any) -> Any:
    return vector if vector.type == type_ else unary("vector.shape_cast", vector, type_)


def binary(name: str, left: Any, right: Any) -> Any:
    """The value of an operation whose two operands have the result's type."""
    return create(name, [left, right], [left.type]).result


def multiply_add_integers(left: Any, right: Any, addend: Any) -> Any:
    return binary("arith.addi", addend, binary("arith.muli", left, right))


def call(name: str, operands: Sequence[Any] = (), results: Sequence[Any] = ()) -> Any:
    """A `func.call`."""
    return create("func.call", operands, results, {"callee": ir.FlatSymbolRefAttr.get(name)})


def create_function(
    name: str, inputs: Sequence[Any], results: Sequence[Any], **attributes: Any
) -> Any:
    """A private `func.func` without a block yet."""
    type_ = ir.FunctionType.get(list(inputs), list(results))
    own = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(type_),
    }
    return create("func.func", attributes=own | attributes, regions=1)


def create_assert(condition: Any, message: str, **attributes: Any) -> None:
    """`cf.assert`."""
    said = {"msg": ir.StringAttr.get(message)}
    create("cf.assert", [condition], attributes=said | attributes)


def extract(vector: Any, *position: int) -> Any:
    """`vector.extract` of an element, or of a vector of those that the position leaves open."""
    type_ = vector.type
    shape = list(type_.shape)[len(position) :]
    result = ir.VectorType.get(shape, type_.element_type) if shape else type_.element_type
    attributes = {"static_position": ir.DenseI64ArrayAttr.get(position)}
    return create("vector.extract", [vector], [result], attributes).result


def reassociation(groups: Iterable[Iterable[int]]) -> Any:
    """What `expand_shape` and `collapse_shape` have of the groups of dimensions that are one."""
    number = integer(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(number, i) for i in group]) for group in groups]
    )


def groups_of(reshape: Any) -> list[list[int]]:
    """The groups of dimensions of the larger shape, each of which is one of the other shape."""
    return [
        [ir.IntegerAttr(dimension).value for dimension in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(reshape.attributes["reassociation"])
    ]


def constant(type_: Any, value: float) -> Any:
    """A constant of a number's type; for a vector type the same value in every element."""
    element = element_type(type_)
    if isinstance(element, ir.IntegerType | ir.IndexType):
        attribute = ir.IntegerAttr.get(element, _signed(element, int(value)))
    else:
        attribute = ir.FloatAttr.get(element, value)
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return constant_from(attribute)


def _signed(type_: Any, value: int) -> int:
    """`value`'s bits as the two's complement number that IntegerAttr takes."""
    if not isinstance(type_, ir.IntegerType):
        return value
    return value - (1 << type_.width) if value >= 1 << (type_.width - 1) else value


def index() -> Any:
    return ir.IndexType.get()


def integer(width: int) -> Any:
    return ir.IntegerType.get_signless(width)


def is_pointer(type_: Any) -> bool:
    return str(type_).startswith("!llvm.ptr")


def element_name(type_: Any) -> str:
    return str(element_type(type_))


def element_type(type_: Any) -> Any:
    """The element's type of a vector, else the type itself."""
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def with_element_type(type_: Any, element: Any) -> Any:
    """`type_`, scalar or vector, of other elements."""
    if not isinstance(type_, ir.VectorType):
        return element
    return ir.VectorType.get(
        list(type_.shape), element, scalable=list(type_.scalable_dims) if type_.scalable else None
    )
