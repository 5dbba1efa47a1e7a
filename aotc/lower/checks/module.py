"""Checks for input that no stage supports; all problems are reported with their places.

These are names that are not UTF-8 or contain characters that tools' languages do not allow, types
whose size in bytes overflows, unknown memory spaces, bit casts that LLVM miscompiles, and loops
whose step is not positive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.rounding import rounding_of, rounds_to_nearest
from aotc.attributes import (
    ATTENTION_CAUSAL,
    ATTENTION_HEADS,
    ATTENTION_MASK,
    ATTENTION_OPERANDS,
    ATTENTION_SCALE,
    ATTENTION_ZERO,
    CAPABILITIES,
    CPU_LEVEL,
    MESSAGE_ATTRIBUTE,
    NUMBER_ATTRIBUTE,
    RUNS_ON,
)
from aotc.input.entries import LONGEST_NAME, RUNTIME_PREFIXES
from aotc.input.source import Problem, Source, input_error
from aotc.lower.checks.launched_kernels import launch_problems
from aotc.mlir import ir
from aotc.rewrites.bit_casts import has_odd_elements, is_expandable
from aotc.sizes import LARGEST_MEMORY, element_bytes

_NO_NAME = re.compile(r'[\x00-\x1f\x7f"\\]')
# The limit of elements in a vector. LLVM splits vectors into registers in quadratic time: a sum of
# 2^14 elements takes it 9 s, and one of 2^16 takes 150 s. exp is many operations, and takes 10 s
# for 2^13.
_LARGEST_VECTOR = 1 << 14
_LARGEST_VECTOR_OF_MATH = 1 << 13
# The limit of an unroll factor: all later passes process each copy of the loop's body.
_LARGEST_FACTOR = 1 << 10
# The limit of counted loops in each other that carry a tensor: 20 take two seconds, 24 take half a
# minute.
_MOST_LOOPS_OF_TENSORS = 20
_COUNTED_LOOPS = ("scf.for", "affine.for")
_UNROLLING = ("transform.loop.unroll", "transform.loop.unroll_and_jam")
_GPU_SPACE = "#gpu.address_space<"
# NVVM's address spaces: generic, global, shared, constant and local memory.
_SPACES = (0, 1, 3, 4, 5)
_FUNCTIONS = ("func.func", "llvm.func")


def check_module(source: Source, *, architecture: str, has_pipeline: bool) -> None:
    """Raises InputError with all problems, for a host of the given architecture.

    With a user's pipeline, memory spaces and scalable vectors are not checked.
    """
    problems: list[Problem] = [*launch_problems(source.module)]
    seen: set[Any] = set()
    for operation in ops.walk(source.module.operation):
        problems += _problems_of(operation)
        if not has_pipeline and (problem := _scalable_problem(operation)) is not None:
            problems.append((operation.location, problem))
        for value in _values_of(operation):
            type_ = value.type
            if type_ in seen:
                continue
            seen.add(type_)
            problem = _type_problem(type_, architecture, has_pipeline)
            if problem is not None:
                problems.append((value.location, f"{_abbreviated(type_)} {problem}"))
    if problems:
        raise input_error(source, problems)


def _values_of(operation: Any) -> Iterator[Any]:
    yield from operation.results
    for region in operation.regions:
        for block in region.blocks:
            yield from block.arguments


# Attributes that aotc attaches for its later stages, with their kinds. They may occur in the input,
# as text that aotc wrote may be given to it again.
_OWN_ATTRIBUTES = {
    ATTENTION_CAUSAL: "BoolAttr",
    ATTENTION_HEADS: "DenseI64ArrayAttr",
    ATTENTION_MASK: "ArrayAttr",
    ATTENTION_OPERANDS: "IntegerAttr",
    ATTENTION_SCALE: "FloatAttr",
    ATTENTION_ZERO: "BoolAttr",
    CAPABILITIES: "DenseI32ArrayAttr",
    MESSAGE_ATTRIBUTE: "StringAttr",
    NUMBER_ATTRIBUTE: "IntegerAttr",
    RUNS_ON: "StringAttr",
}


# Attributes that aotc reads from any operation by these names. MLIR only verifies them on its own
# operations.
_KINDS = {
    "arg_attrs": ("ArrayAttr", "an array"),
    "function_type": ("TypeAttr", "a type"),
    # The translation to LLVM IR reads these without a check.
    "llvm.commandline": ("StringAttr", "a string"),
    "llvm.data_layout": ("StringAttr", "a string"),
    "llvm.dependent_libraries": ("ArrayAttr", "an array"),
    "llvm.emit_c_interface": ("UnitAttr", "a unit attribute, which is its name alone"),
    "llvm.ident": ("StringAttr", "a string"),
    "llvm.module_asm": ("ArrayAttr", "an array"),
    "llvm.target_triple": ("StringAttr", "a string"),
    "res_attrs": ("ArrayAttr", "an array"),
    "sym_name": ("StringAttr", "a string"),
    "sym_visibility": ("StringAttr", "a string"),
}


# A word of the bindings' error → its meaning.
_UNREADABLE = {".Location": "a location", "DenseArrayAttr": "an array of odd elements"}


def _attribute_problem(operation: Any) -> str | None:
    """A problem with the attributes of an operation. The bindings cannot represent a location, an
    array with unusual elements, or a name that is not text."""
    attributes = operation.attributes
    try:
        names = list(attributes)
    except RuntimeError:
        return f"an attribute of this {operation.name} has a name that is not UTF-8."
    for name in names:
        try:
            _visit(attributes[name])
        except TypeError as error:
            # They do not support dense complex numbers either, which are valid.
            for word, what in _UNREADABLE.items():
                if word in str(error):
                    return f"the attribute '{name}' of this {operation.name} has {what} in it."
            continue
        except RuntimeError:
            return f"the attribute '{name}' of this {operation.name} has a name that is not UTF-8."
        except _UnknownPositionError:
            return (
                f"the attribute '{name}' of this {operation.name} has a map with a dimension or a "
                "symbol beyond those that it says to have."
            )
        if name in _KINDS and not isinstance(attributes[name], getattr(ir, _KINDS[name][0])):
            return (
                f"{name} of this {operation.name} is {_abbreviated(attributes[name])}; expected "
                f"{_KINDS[name][1]}."
            )
        if name in _OWN_ATTRIBUTES and not isinstance(
            attributes[name], getattr(ir, _OWN_ATTRIBUTES[name])
        ):
            return (
                f"{name} is {_abbreviated(attributes[name])}, a kind of attribute that aotc does "
                "not write under this name."
            )
    return None


_AFFINE_LOOPS = ("affine.for", "affine.parallel")


class _UnknownPositionError(Exception):
    """An expression of an affine map refers to a dimension or symbol that the map does not have."""


def _visit(attribute: Any) -> None:
    """Visits everything in an attribute, as its readers do."""
    if isinstance(attribute, ir.AffineMapAttr):
        _check_positions(attribute.value)
    elif isinstance(attribute, ir.ArrayAttr):
        for one in attribute:
            _visit(one)
    elif isinstance(attribute, ir.DictAttr) and "\\" not in str(attribute):
        # A name that is not UTF-8 would end the process, as `named.attr` of a location would.
        for named in attribute:
            _visit(attribute[named.name])


def _check_positions(map_: Any) -> None:
    pending = list(map_.results)
    while pending:
        expression = pending.pop().maybe_downcast()
        if isinstance(expression, ir.AffineBinaryExpr):
            pending += (expression.lhs, expression.rhs)
        elif isinstance(expression, ir.AffineDimExpr):
            if expression.position >= map_.n_dims:
                raise _UnknownPositionError
        elif isinstance(expression, ir.AffineSymbolExpr) and expression.position >= map_.n_symbols:
            raise _UnknownPositionError


def _bounds_problem(loop: Any) -> str | None:
    """A problem with the operand count of an affine loop's bounds, which MLIR's verifier does not
    check."""
    if loop.name == "affine.parallel":
        maps = [ir.AffineMapAttr(loop.attributes[f"{end}BoundsMap"]) for end in ("lower", "upper")]
        needed, count = sum(map_.value.n_inputs for map_ in maps), len(loop.operands)
        if needed != count:
            return f"the bounds of this affine.parallel take {needed} operands; there are {count}."
        return None
    counts = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    for name, count in zip(("lowerBoundMap", "upperBoundMap"), counts, strict=False):
        needed = ir.AffineMapAttr(loop.attributes[name]).value.n_inputs
        if needed != count:
            return f"{name} of this affine.for takes {needed} operands; there are {count}."
    return None


def _problems_of(operation: Any) -> Iterator[Problem]:
    name, location = operation.name, operation.location
    problem = _attribute_problem(operation)
    if problem is not None:
        yield location, problem
        return
    if "sym_name" in operation.attributes:
        problem = _name_problem(operation.attributes["sym_name"])
        if problem is None and name in _FUNCTIONS and not ops.is_declaration(operation):
            problem = _runtime_name_problem(ops.symbol_of(operation))
        if problem is not None:
            yield location, problem
    yield from ((location, problem) for problem in _vector_problems(operation))
    if (problem := _module_problem(operation)) is not None:
        yield location, problem
    if name in _AFFINE_LOOPS and (problem := _bounds_problem(operation)) is not None:
        yield location, problem
    if name in _UNROLLING:
        factor = int(ir.IntegerAttr(operation.attributes["factor"]).value)
        if factor > _LARGEST_FACTOR:
            yield location, f"the factor of this {name} is {factor}; aotc takes {_LARGEST_FACTOR}."
    if name != "arith.truncf" and not rounds_to_nearest(operation):
        yield (
            location,
            f"this {name} rounds {rounding_of(operation).name.lower()}; devices round arithmetic "
            "to_nearest_even. (arith.truncf may round otherwise.)",
        )
    if name in _COUNTED_LOOPS:
        yield from ((location, problem) for problem in _loop_problems(operation))


def _loop_problems(loop: Any) -> Iterator[str]:
    step = ops.known_index(loop.operands[2]) if loop.name == "scf.for" else None
    if step is not None and step <= 0:
        yield f"the step of this scf.for is {step}; it must be positive."
    around = sum(map(_carries_tensors, ops.ancestors(loop)))
    if _carries_tensors(loop) and around == _MOST_LOOPS_OF_TENSORS:
        yield (
            f"this {loop.name} carries a tensor in more than {_MOST_LOOPS_OF_TENSORS} loops, which "
            "aotc does not take: bufferization takes twice the time for each."
        )


def _carries_tensors(operation: Any) -> bool:
    """Whether an operation is a counted loop with tensor results."""
    return operation.name in _COUNTED_LOOPS and any(
        isinstance(result.type, ir.RankedTensorType) for result in operation.results
    )


def _module_problem(operation: Any) -> str | None:
    """A problem with a module in a module: only a transform schedule may be in one."""
    if operation.name != "builtin.module" or operation.parent is None:
        return None
    inside = [one.operation.name for one in operation.regions[0].blocks[0].operations]
    lost = [name for name in inside if not name.startswith("transform.")]
    if not lost:
        return None
    return (
        f"this builtin.module with a {lost[0]} is in another module; aotc builds the outermost "
        "module's functions: move its operations there."
    )


_SCALE = ("vector.vscale", "llvm.intr.vscale")


def _scalable_problem(operation: Any) -> str | None:
    """A problem with an operation that makes, or would make, scalable vectors."""
    name, attributes = operation.name, operation.attributes
    if name in _SCALE and CPU_LEVEL not in attributes:
        return f"{name} is the length of scalable vectors, which aotc does not take."
    if name.startswith("transform.") and "scalable_sizes" in attributes:
        sizes = attributes["scalable_sizes"]
        if isinstance(sizes, ir.DenseBoolArrayAttr) and any(sizes):
            return (
                f"this {name} has scalable sizes, of vectors that aotc does not take: write sizes "
                "without brackets."
            )
    return None


def _vector_problems(operation: Any) -> Iterator[str]:
    name = operation.name
    if name.startswith("math."):
        type_ = operation.results[0].type
        if isinstance(type_, ir.VectorType) and math.prod(type_.shape) > _LARGEST_VECTOR_OF_MATH:
            yield (
                f"{name} of {math.prod(type_.shape)} elements; it may have a vector of "
                f"{_LARGEST_VECTOR_OF_MATH}."
            )
    if name in ("vector.bitcast", "llvm.bitcast"):
        types = (operation.operands[0].type, operation.results[0].type)
        is_expanded = name == "vector.bitcast" and is_expandable(*types)
        if any(map(has_odd_elements, types)) and not is_expanded:
            yield (
                f"{name} of {types[0]} to {types[1]}: LLVM takes bit casts of vectors apart "
                "wrongly where an element's bits are no power of two."
            )


def _name_problem(attribute: Any) -> str | None:
    try:
        name = ir.StringAttr(attribute).value_bytes.decode()
    except UnicodeDecodeError:
        return "this name is not UTF-8."
    if len(name) > LONGEST_NAME:
        return f"the name '{name[:20]}...' has {len(name)} characters; aotc takes {LONGEST_NAME}."
    found = _NO_NAME.search(name)
    if found is not None:
        return (
            f"the name {name!r} has the character {found[0]!r}; names may have any but quotation "
            "marks, backslashes and control characters."
        )
    return None


def _runtime_name_problem(name: str) -> str | None:
    """A problem with a name that the runtime or LLVM uses. Calls of the runtime are inserted by
    name."""
    if name.startswith("llvm."):
        return f"the name '{name}' begins with 'llvm.', as those of LLVM's intrinsics do."
    for kept in RUNTIME_PREFIXES:
        if name.startswith(kept):
            return f"the name '{name}' begins with '{kept}', as those of aotc's runtime do."
    return None


def _type_problem(type_: Any, architecture: str, has_pipeline: bool) -> str | None:
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    if str(element) == "f80" and architecture != "x86_64":
        return f"has numbers that {architecture} lacks."
    if isinstance(type_, ir.VectorType):
        if type_.scalable and not has_pipeline:
            return "is a scalable vector, which aotc does not take."
        count = int(math.prod(type_.shape))
        if count > _LARGEST_VECTOR:
            return f"has {count} elements; a vector may have {_LARGEST_VECTOR}."
        return None
    if isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType) and not has_pipeline:
        problem = _space_problem(type_.memory_space)
        if problem is not None:
            return problem
    if not isinstance(type_, ir.MemRefType | ir.RankedTensorType):
        return None
    known = [size for i, size in enumerate(type_.shape) if not type_.is_dynamic_dim(i)]
    size = element_bytes(type_.element_type) or 1
    if math.prod(known) * size > LARGEST_MEMORY or _reach(type_) * size > LARGEST_MEMORY:
        return "has more bytes than memory can hold."
    return None


def _space_problem(space: Any) -> str | None:
    if space is None or str(space).startswith(_GPU_SPACE):
        return None
    if isinstance(space, ir.IntegerAttr) and int(ir.IntegerAttr(space).value) in _SPACES:
        return None
    return (
        f"is in the memory space {_abbreviated(space)}, which aotc does not know; it knows "
        "#gpu.address_space<global>, <workgroup> and <private>, and the numbers 0 (any memory), "
        "1 (global), 3 (workgroup), 4 (constant) and 5 (private)."
    )


def _reach(type_: Any) -> int:
    """The number of elements that a strided memref spans, as far as it is static."""
    if not isinstance(type_, ir.MemRefType):
        return 0
    try:
        strides, offset = type_.get_strides_and_offset()
    except (ValueError, RuntimeError):
        return 0
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    steps = [
        abs(stride) * (size - 1)
        for i, (size, stride) in enumerate(zip(type_.shape, strides, strict=True))
        if stride != dynamic and not type_.is_dynamic_dim(i) and size > 0
    ]
    return int(sum(steps)) + (0 if offset == dynamic else abs(offset))


def _abbreviated(thing: Any) -> str:
    text = str(thing)
    return text if len(text) <= 100 else f"{text[:100]}..."
