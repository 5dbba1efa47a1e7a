"""Creates functions that compute the sizes of results of entries, for sizes that the caller does
not know.

`NAME.result_sizes` takes the dynamic sizes of the entry's arguments and its scalar arguments, in
order, and returns all sizes of its results as one sequence. It has no memory arguments, so it
cannot read elements. It contains the entry's assertions about sizes. A size that depends on
elements is `UNKNOWN_SIZE`.

Sizes are computed backwards from the results, so that dependences on elements are found and left
out on the way. A clone of the whole entry would have to be lowered before its unused parts could be
removed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.affine import evaluate_affine
from aotc.analysis.same_sizes import same_sized_operand
from aotc.attributes import FOR_MEMORY
from aotc.input.entries import ENTRY_ATTRIBUTE, functions_of
from aotc.input.state import targets_of
from aotc.lower.tensors.size_products import requested_sizes
from aotc.mlir import ir
from aotc.module_names import RESULT_SIZES, SIZE_NUMBERS
from aotc.slices import mixed_lists

# AOTC_DYNAMIC of runtime_c/include/aotc_entry.h
UNKNOWN_SIZE = -(1 << 63)
_SHAPED = (ir.RankedTensorType, ir.MemRefType)
_EQ = 0
_SIGN = 63  # the sign bit of an index
_OVERFLOW = "there is no memory for results of these sizes"

# A question is a value (dimension None), or the size of a tensor along a dimension. A computation
# is a generator that yields the questions it needs answered, and returns its answer: a value of the
# new function, or None if the sizes and scalars of the arguments do not determine it. Generators
# replace recursion, as programs are deeper than Python's stack.
_Question = tuple[Any, int | None]
_Computation = Generator[_Question, Any, Any]


def size_results(module: Any) -> None:
    """Adds the functions to a module whose entries are on tensors or memrefs."""
    with module.context:
        functions = functions_of(module)
        # The input may be a module that aotc lowered before.
        known = set(map(ops.symbol_of, functions))
        for function in functions:
            if function.name != "func.func" or ENTRY_ATTRIBUTE not in function.attributes:
                continue
            if f"{ops.symbol_of(function)}{RESULT_SIZES}" in known:
                continue
            results = _results_of(function)
            if any(not type_.has_static_shape for type_ in results.values()):
                with function.location, ir.InsertionPoint.after(function):
                    _add_function(function, results)


def _results_of(function: Any) -> dict[int, Any]:
    """Result number → type, for the results that the entry returns in memory."""
    written = targets_of(function)
    return {
        i: type_
        for i, type_ in enumerate(ops.function_type(function).results)
        if isinstance(type_, _SHAPED) and i not in written
    }


def _add_function(entry: Any, results: dict[int, Any]) -> None:
    count = sum(type_.rank for type_ in results.values())
    function, sizes = create_size_function(entry, RESULT_SIZES, count)
    with ir.InsertionPoint(function.regions[0].blocks[0]):
        for assertion in ops.find(entry, "cf.assert"):
            # Assertions in other blocks depend on branches and loops, which check them again.
            if assertion.block == entry.regions[0].blocks[0]:
                _assert_again(assertion, sizes)
        found = _returned_sizes(entry, results, sizes)
        sizes.assert_that_products_fit()
        unknown = sizes.constant(ops.index(), UNKNOWN_SIZE)
        ops.create("func.return", [unknown if one is None else one for one in found])


def create_size_function(entry: Any, suffix: str, count: int) -> tuple[Any, SizeBuilder]:
    """Creates an empty function for the entry that returns `count` sizes, at the insertion point.

    Returns the function, and the `SizeBuilder` that computes values inside of its block.
    """
    inputs = []
    for type_ in ops.function_type(entry).inputs:
        if isinstance(type_, _SHAPED):
            inputs += [ops.index()] * sum(map(type_.is_dynamic_dim, range(type_.rank)))
        elif str(type_) in SIZE_NUMBERS:
            inputs.append(type_)
    attributes = {
        "sym_name": ir.StringAttr.get(f"{ops.symbol_of(entry)}{suffix}"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [ops.index()] * count)),
    }
    function = ops.create("func.func", attributes=attributes, regions=1)
    locations = [entry.location] * len(inputs)
    block = function.regions[0].blocks.append(*inputs, arg_locs=locations)
    return function, SizeBuilder(entry, list(block.arguments))


def _assert_again(assertion: Any, sizes: SizeBuilder) -> None:
    with assertion.location:
        condition = sizes.find(assertion.operands[0])
        if condition is not None:
            ops.create("cf.assert", [condition], attributes=ops.attributes_of(assertion))


def _returned_sizes(entry: Any, results: dict[int, Any], sizes: SizeBuilder) -> list[Any]:
    returns = ops.find(entry, "func.return")
    found: list[Any] = []
    for number, type_ in results.items():
        for dimension in range(type_.rank):
            if not type_.is_dynamic_dim(dimension):
                found.append(sizes.constant(ops.index(), type_.get_dim_size(dimension)))
            elif len(returns) == 1:
                found.append(sizes.find(returns[0].operands[number], dimension))
            else:
                found.append(None)
    return found


class SizeBuilder:
    """Creates the computation of an entry's values, and of sizes of its tensors, at the insertion
    point.

    `given` are the arguments of the function that contains the insertion point.
    """

    def __init__(self, entry: Any, given: Sequence[Any]) -> None:
        self._block = entry.regions[0].blocks[0]
        self._known: dict[_Question, Any] = {}
        # Equal operations are created once, so that equal sizes are the same value.
        self._made: dict[Any, Any] = {}
        # The conditions that products do not overflow an index, as an ordered set.
        self._fits: dict[Any, None] = {}
        rest = iter(given)
        for argument in self._block.arguments:
            type_ = argument.type
            if not isinstance(type_, _SHAPED):
                self._known[argument, None] = next(rest) if str(type_) in SIZE_NUMBERS else None
                continue
            for dimension in range(type_.rank):
                if type_.is_dynamic_dim(dimension):
                    self._known[argument, dimension] = next(rest)

    def find(self, value: Any, dimension: int | None = None) -> Any:
        """The value, or the size of a tensor along `dimension`; None if it is not known."""
        question: _Question = (value, dimension)
        if question in self._known:
            return self._known[question]
        pending = [(question, self._computed(question))]
        answer = None
        while pending:
            question, computation = pending[-1]
            try:
                asked = computation.send(answer)
            except StopIteration as end:
                answer = self._known[question] = end.value
                pending.pop()
                continue
            answer = self._known.get(asked)
            if asked not in self._known:
                pending.append((asked, self._computed(asked)))
        return answer

    def assert_that_products_fit(self) -> None:
        """Asserts that no product overflows, as the entry refuses to allocate such sizes."""
        for fits in self._fits:
            ops.create_assert(fits, _OVERFLOW, **{FOR_MEMORY: ir.UnitAttr.get()})

    def constant(self, type_: Any, number: int) -> Any:
        """The constant of this type, created once."""
        return self._make(
            "arith.constant", [], [type_], {"value": ir.IntegerAttr.get(type_, number)}
        )

    def _constant_index(self, number: int) -> Any:
        return self.constant(ops.index(), number)

    def _make(
        self,
        name: str,
        operands: Sequence[Any],
        results: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        number: int = 0,
    ) -> Any:
        """Result `number` of the operation, which is created once for equal operands and
        attributes."""
        attributes = attributes or {}
        key = (name, *operands, *results, *attributes.items())
        if key not in self._made:
            self._made[key] = ops.create(name, operands, results, attributes)
        return self._made[key].results[number]

    def _index_op(self, name: str, left: Any, right: Any) -> Any:
        return self._make(name, [left, right], [left.type])

    def _cast(self, value: Any, type_: Any) -> Any:
        return value if value.type == type_ else self._make("arith.index_cast", [value], [type_])

    def _product(self, left: Any, right: Any) -> Any:
        """The product of two sizes. The condition that it does not overflow is recorded."""
        numbers = [ops.known_index(one) for one in (left, right)]
        if None not in numbers or str(left.type) not in ("index", "i64"):
            return self._index_op("arith.muli", left, right)
        if 1 in numbers:
            return left if numbers[1] == 1 else right
        # Upstream folds a factor that becomes 1 by arith.extsi, which is invalid for index.
        number = ops.integer(64)
        factors = [self._cast(one, number) for one in (left, right)]
        low, high = (
            self._make("arith.mulsi_extended", factors, [number] * 2, number=i) for i in range(2)
        )
        sign = self._index_op("arith.shrsi", low, self.constant(number, _SIGN))
        predicate = {"predicate": ir.IntegerAttr.get(ops.integer(64), _EQ)}
        fits = self._make("arith.cmpi", [high, sign], [ops.integer(1)], predicate)
        self._fits[fits] = None
        return self._cast(low, left.type)

    def _computed(self, question: _Question) -> _Computation:
        value, dimension = question
        if dimension is not None:
            if not isinstance(value.type, _SHAPED):
                return _answer(None)
            if not value.type.is_dynamic_dim(dimension):
                return _answer(self.constant(ops.index(), value.type.get_dim_size(dimension)))
        owner = ops.defining(value)
        if owner is None:
            return _answer(None) if dimension is None else self._carried(value, dimension)
        if owner.name in _EITHER:
            return self._either(owner, list(owner.results).index(value), dimension)
        if dimension is None:
            return self._number(owner, value)
        return self._size(owner, value, dimension)

    def _carried(self, value: Any, dimension: int) -> _Computation:
        """The size of a block argument. A tensor that a loop carries may keep its size."""
        loop = value.owner.owner.operation
        if loop.name != "scf.for":
            return None
        return (yield loop.results[value.arg_number - 1], dimension)

    def _either(self, owner: Any, number: int, dimension: int | None) -> _Computation:
        """The value if it is the same on both paths; otherwise a select on the condition."""
        if owner.name == "arith.select":
            condition, *values = owner.operands
        else:
            condition = owner.operands[0]
            blocks = [region.blocks[0] for region in owner.regions if len(region.blocks) == 1]
            if len(blocks) != len(_EITHER[owner.name]):
                return None
            values = [ops.terminator(block).operands[number] for block in blocks]
        found = []
        for value in values:
            found.append((yield value, dimension))
        one, other = found
        if one is None or other is None:
            return None
        if one == other:
            return one
        is_one = yield condition, None
        if is_one is None:
            return None
        return self._make("arith.select", [is_one, one, other], [one.type])

    # ---- numbers

    def _number(self, owner: Any, value: Any) -> _Computation:
        if owner.name in ("tensor.dim", "memref.dim"):
            return self._queried_size(owner)
        if owner.name in _AFFINE:
            return self._affine(owner)
        if owner.name == "arith.muli":
            return self._multiplied(owner)
        if owner.name.startswith(_PURE) and not list(owner.regions):
            return self._copied(owner, list(owner.results).index(value))
        return _answer(None)

    def _queried_size(self, dim: Any) -> _Computation:
        dimension = ops.known_dimension(dim)
        if dimension is None:
            return None
        return (yield dim.operands[0], dimension)

    def _operands(self, owner: Any) -> Generator[_Question, Any, list[Any] | None]:
        found = []
        for operand in owner.operands:
            found.append((yield operand, None))
            if found[-1] is None:
                return None
        return found

    def _multiplied(self, owner: Any) -> _Computation:
        operands = yield from self._operands(owner)
        return None if operands is None else self._product(*operands)

    def _copied(self, owner: Any, number: int) -> _Computation:
        types = [result.type for result in owner.results]
        if any(isinstance(type_, ir.ShapedType | ir.VectorType) for type_ in types):
            return None
        if "div" in owner.name or "rem" in owner.name:
            # A branch may be guarded by the condition that the divisor is not 0.
            is_safe = owner.block == self._block or bool(ops.known_index(owner.operands[1]))
            if not is_safe:
                return None
        operands = yield from self._operands(owner)
        if operands is None:
            return None
        return self._make(owner.name, operands, types, ops.attributes_of(owner), number)

    def _affine(self, owner: Any) -> _Computation:
        operands = yield from self._operands(owner)
        if operands is None:
            return None
        map_ = ir.AffineMapAttr(owner.attributes["map"]).value
        dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
        total, *others = (
            evaluate_affine(one, dims, symbols, self._constant_index, self._combine)
            for one in map_.results
        )
        for other in others:
            total = self._index_op(_AFFINE[owner.name], total, other)
        return total

    def _combine(self, kind: str, left: Any, right: Any) -> Any:
        if kind == "mul":
            return self._product(left, right)
        if kind != "mod":
            return self._index_op(_COMBINED[kind], left, right)
        # The remainder of floordivsi, which is never negative.
        whole = self._index_op("arith.floordivsi", left, right)
        return self._index_op("arith.subi", left, self._index_op("arith.muli", whole, right))

    # ---- sizes of tensors

    def _size(self, owner: Any, tensor: Any, dimension: int) -> _Computation:
        type_, name = tensor.type, owner.name
        if name in _RULES:
            return (yield from _RULES[name](self, owner, dimension))
        if name in _GIVEN:
            # There is one operand for each dynamic size, after the others.
            number = sum(map(type_.is_dynamic_dim, range(dimension)))
            return (yield owner.operands[_GIVEN[name] + number], None)
        result = list(owner.results).index(tensor)
        if name == "scf.for":
            return (yield from self._looped(owner, dimension, result))
        like = same_sized_operand(owner, result)
        return None if like is None else (yield like, dimension)

    def _allocated(self, owner: Any, dimension: int) -> _Computation:
        sizes, *others = ops.operand_groups(owner)
        copied = others[0] if owner.name == "bufferization.alloc_tensor" else []
        if copied:
            return (yield copied[0], dimension)
        number = sum(map(owner.results[0].type.is_dynamic_dim, range(dimension)))
        return (yield sizes[number], None)

    def _sliced(self, owner: Any, dimension: int) -> _Computation:
        # Dropped dimensions have the static size 1.
        number = sum(map(owner.results[0].type.is_dynamic_dim, range(dimension)))
        return (yield ops.operand_groups(owner)[2][number], None)

    def _collapsed(self, owner: Any, dimension: int) -> _Computation:
        total = None
        for one in ops.groups_of(owner)[dimension]:
            size = yield owner.operands[0], one
            if size is None:
                return None
            total = size if total is None else self._product(total, size)
        return total

    def _concatenated(self, owner: Any, dimension: int) -> _Computation:
        if ir.IntegerAttr(owner.attributes["dim"]).value != dimension:
            return (yield owner.operands[0], dimension)
        total = None
        for operand in owner.operands:
            size = yield operand, dimension
            if size is None:
                return None
            total = size if total is None else self._index_op("arith.addi", total, size)
        return total

    def _padded(self, owner: Any, dimension: int) -> _Computation:
        total = yield owner.operands[0], dimension
        for mixed in mixed_lists(owner):
            added = mixed[dimension]
            if isinstance(added, int):
                added = self.constant(ops.index(), added)
            else:
                added = yield added, None
            if total is None or added is None:
                return None
            total = self._index_op("arith.addi", total, added)
        return total

    def _reshaped(self, owner: Any, dimension: int) -> _Computation:
        asked = requested_sizes(owner)
        size = None if asked is None else (yield asked[dimension], None)
        if size is None or isinstance(size.type, ir.IndexType):
            return size
        return self._make("arith.index_cast", [size], [ops.index()])

    def _looped(self, owner: Any, dimension: int, number: int) -> _Computation:
        """The size of a loop-carried tensor is its initial size if the body preserves that size."""
        body = owner.regions[0].blocks[0]
        first = yield owner.operands[3 + number], dimension
        count = len(self._known)
        self._known[body.arguments[1 + number], dimension] = first
        yielded = ops.terminator(body).operands[number]
        next_one = yield yielded, dimension
        if first is None or next_one is None or next_one != first:
            # Answers found in the meantime may depend on the assumption that it does.
            for question in list(self._known)[count:]:
                del self._known[question]
            return None
        return first


def _answer(value: Any) -> _Computation:
    """A computation that needs no other answers."""
    yield from ()
    return value


# Operations whose result is one of two values, with their regions or operands.
_EITHER = {"arith.select": ("true", "false"), "scf.if": ("then", "else")}
# Dialects whose operations on scalars may be executed anywhere.
_PURE = ("arith.", "math.", "index.")
# Affine expression kind → arith operation.
_COMBINED = {
    "add": "arith.addi",
    "floordiv": "arith.floordivsi",
    "ceildiv": "arith.ceildivsi",
}
_AFFINE = {"affine.apply": "", "affine.min": "arith.minsi", "affine.max": "arith.maxsi"}
# Operation → the number of the first operand that is a dynamic size of its result.
_GIVEN = {
    "tensor.empty": 0,
    "tensor.generate": 0,
    "tensor.splat": 1,
    "tensor.expand_shape": 1,
    "memref.expand_shape": 1,
    "memref.view": 2,
}
_RULES: dict[str, Callable[[SizeBuilder, Any, int], _Computation]] = {
    "bufferization.alloc_tensor": SizeBuilder._allocated,
    "memref.alloc": SizeBuilder._allocated,
    "memref.alloca": SizeBuilder._allocated,
    "tensor.extract_slice": SizeBuilder._sliced,
    "memref.subview": SizeBuilder._sliced,
    "memref.reinterpret_cast": SizeBuilder._sliced,
    "tensor.collapse_shape": SizeBuilder._collapsed,
    "memref.collapse_shape": SizeBuilder._collapsed,
    "tensor.concat": SizeBuilder._concatenated,
    "tensor.pad": SizeBuilder._padded,
    "tensor.reshape": SizeBuilder._reshaped,
}
