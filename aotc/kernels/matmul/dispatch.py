"""Products of matrices in host code → a choice among kernels, made when they are to be launched.

What a program runs on is known then: a GPU of Hopper's has kernels that no other has, and the CPU
device keeps the loops. So are the addresses of matrices, which the widest copies need at multiples
of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.errors import InternalError
from aotc.input.entries import functions_of
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.matmul.choice import FAMILIES, Choice, choose, choose_for_cpu
from aotc.kernels.matmul.explanation import reasons
from aotc.kernels.matmul.fusion.fuse import Fused, fuse, remove_temporary, unfused
from aotc.kernels.matmul.fusion.narrow import narrow_results
from aotc.kernels.matmul.implicit_gemm.flattened import flattened
from aotc.kernels.matmul.implicit_gemm.problem import Gathered
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_gathered
from aotc.kernels.matmul.implicit_gemm.repeated import repeat
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter, Extra, Matrix, Problem
from aotc.kernels.matmul.recognition import Product, multiplies, recognise_product
from aotc.kernels.matmul.tuned import Entry, parse_tuned, problem_words, variant_of
from aotc.lower.analysis.aliasing import Roots
from aotc.lower.analysis.functions import Functions
from aotc.lower.outlining.limits import excesses
from aotc.lower.outlining.module import module_for
from aotc.lower.placement_names import CAPABILITY, LEAST_CAPABILITY
from aotc.lower.remarks import Remarks
from aotc.lower.tensors.generics import has_reduction
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest, Chip

STEP = "aotc-choose-product-kernels"
DECLARATION = f"func.func private @{CAPABILITY}() -> i32"
# Inside of these somebody else decides what runs where.
PARALLEL = ("scf.parallel", "scf.forall", "affine.parallel", "gpu.launch", "gpu.func")
# Of the region around a kernel, while it is text: what it is launched on, and, where that is not
# every GPU that code is made for, the compute capabilities of those.
TARGET = "aotc.target"
CAPABILITIES = "aotc.capabilities"
# What is made by these begins where any copy may.
_ALIGNED = ("memref.alloc", "memref.get_global")


def choose_product_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Changes `module`, in which linalg is on buffers and `linalg.generic`, in place."""
    with module.context:
        roots = Roots(Functions(module))
        inside = called_inside(module)
        generics = [
            generic
            for function in functions_of(module)
            if symbol_of(function) not in inside
            for generic in ops.find(function, "linalg.generic")
            if ops.enclosing(generic, *PARALLEL) is None
            and has_reduction(generic)
            and not _is_empty(generic)
        ]
        products = _products(generics, roots, request)
        narrow_results(
            [one for one in products if not isinstance(one.problem, Gathered) and not one.has_rows]
        )
        taken: list[_Taken] = []
        for number, product in enumerate(products):
            done = [operation for one in taken for operation in one.fused.replaced]
            later = [other.c for other in products[number + 1 :]]
            taken.append(_take(product, roots, (done, later), request, remarks))
        # From below: what a product takes with it is not before it.
        for one in reversed(taken):
            one.replace()
        if taken:
            declare_capability(module)


def _is_empty(generic: Any) -> bool:
    """Whether an operand is known to have no elements: there is nothing to multiply."""
    types = [value.type for value in generic.operands if isinstance(value.type, ir.MemRefType)]
    return any(0 in list(type_.shape) for type_ in types)


def called_inside(module: Any) -> set[str]:
    """The functions that parallel code calls, directly or not: none of them can launch kernels."""
    functions = {symbol_of(function): function for function in functions_of(module)}
    found: set[str] = set()
    pending = [
        ops.callee_of(call)
        for call in ops.find(module.operation, "func.call")
        if ops.enclosing(call, *PARALLEL) is not None
    ]
    while pending:
        name = pending.pop()
        if name in functions and name not in found:
            found.add(name)
            pending += [ops.callee_of(call) for call in ops.find(functions[name], "func.call")]
    return found


def declare_capability(module: Any) -> None:
    functions = [op.operation for op in ops.body_of_module(module).operations]
    if any(op.name == "func.func" and ops.symbol_of(op) == CAPABILITY for op in functions):
        return
    with ir.Location.unknown():
        parsed = ir.Module.parse(DECLARATION)
    (declaration,) = parsed.body.operations
    declaration.operation.move_after(functions[-1])


class _Taken(Struct):
    """A product and its kernels. `with_loops`: those of the CPU are loops. `capabilities`: the GPUs
    that code is made for."""

    fused: Fused
    choices: list[Choice]
    cpu: Choice | None
    with_loops: bool
    capabilities: tuple[int, ...]

    def __str__(self) -> str:
        words = ", else ".join(map(str, self.choices))
        if self.with_loops:
            words += "; loops on the CPU"
        elif self.cpu is not None:
            words += f"; {self.cpu}"
        steps = " and what is done with it" if self.fused.epilogue else ""
        return f"a product of matrices{steps}: {words}"

    def replace(self) -> None:
        """Puts the kernels where the last of the operations is that they do."""
        fused = self.fused
        last = fused.replaced[-1]
        with last.location:
            parsed = ir.Module.parse(_text(self))
            with ir.InsertionPoint(last):
                operands = [operand.make() for operand in fused.operands]
        body = next(iter(parsed.body.operations)).operation.regions[0].blocks[0]
        *_, choice, _ = body.operations
        name_modules(choice.operation, self.capabilities)
        ops.replace_by_body(last, body, operands)
        if self.with_loops:
            (end,) = choice.operation.regions[1].blocks[0].operations
            for operation in fused.replaced:
                operation.move_before(end.operation)
            return
        for operation in reversed(fused.replaced):
            ops.erase(operation)
        for temporary in fused.temporaries:
            remove_temporary(temporary)


def _products(generics: Sequence[Any], roots: Roots, request: BuildRequest) -> list[Product]:
    """Those that are to have kernels."""
    products = []
    for generic in generics:
        with generic.location:
            product = _recognise(generic, roots, request)
        if product is not None and _choose(product.problem, request):
            products.append(product)
    return products


def _take(
    product: Product,
    roots: Roots,
    others: tuple[Sequence[Any], Sequence[Any]],
    request: BuildRequest,
    remarks: Remarks,
) -> _Taken:
    """The product with what is fused to it, if that can have the kernels that it has alone.
    `others`: as `fuse` is told of them."""
    location = product.operation.location
    alone = kept = _with_kernels(unfused(product), request, remarks)
    with location:
        more = _with_kernels(fuse(product, roots, *others), request, remarks)
    # What some family cannot store stays an operation of its own.
    if _families(more) == _families(alone):
        kept = more
    if not isinstance(product.problem, Gathered):  # those are not timed
        remarks.products.append(replace(kept.fused.problem, extras=()))
    remarks.add(STEP, location, str(kept))
    for line in reasons(kept.choices, chips_of(request)):
        remarks.add(STEP, location, line)
    return kept


def _families(taken: _Taken) -> list[Any]:
    """Behind a kernel for some GPUs alone stands the one for the others: it counts for both."""
    families = [choice.family for choice in taken.choices if not choice.capabilities]
    return [*families, taken.cpu is None]


def _choose(
    problem: Problem, request: BuildRequest, measured: Sequence[Entry] = ()
) -> list[Choice]:
    return choose(
        problem,
        chips_of(request),
        measured,
        untested=request.untested_kernels,
        capabilities=request.capabilities,
    )


def _with_kernels(fused: Fused, request: BuildRequest, remarks: Remarks) -> _Taken:
    measured = _measured(fused.problem, fused.replaced[-1], request, remarks)
    choices = _choose(fused.problem, request, measured)
    cpu = choose_for_cpu(fused.problem) if request.cpu_kernels else None
    with_loops = request.cpu_kernels and cpu is None
    return _Taken(fused, choices, cpu, with_loops, request.capabilities)


def _measured(
    problem: Problem, generic: Any, request: BuildRequest, remarks: Remarks
) -> list[Entry]:
    """What the file of --tuned says of the problem, but for what this aotc cannot make: of that it
    is warned."""
    if request.tuned is None or isinstance(problem, Gathered):
        return []
    words, found = problem_words(problem), []
    for entry in parse_tuned(request.tuned):
        if entry.problem != words:
            continue
        try:
            variant_of(entry, FAMILIES, problem)
        except ValueError as error:
            text = f"what was measured on {entry.gpu} is left out: {error}. Measure again"
            remarks.warn("stale-tuning", generic.location, text)
            continue
        found.append(entry)
    return found


def _recognise(generic: Any, roots: Roots, request: BuildRequest) -> Product | None:
    recognise = partial(
        recognise_product,
        allow_tf32=request.allow_tf32,
        allow_3xtf32=request.allow_3xtf32,
    )
    product = recognise(generic, roots)
    if product is None:
        product = recognise_gathered(generic, roots, allow_tf32=request.allow_tf32)
        product = product and (flattened(product) or product)
    if product is None and multiplies(generic) and repeat(generic):
        product = recognise(generic, roots)
    return product


def name_modules(choice: Any, capabilities: Sequence[int]) -> None:
    """Tells the outlining what each launch is for; a dispatch has noted it around them.

    Raises InternalError for a launch that one of the GPUs that it is for would refuse, of those of
    `capabilities`.
    """
    for launch in ops.find(choice, "gpu.launch"):
        around = next(a for a in ops.ancestors(launch) if TARGET in a.attributes)
        target = ir.StringAttr(around.attributes[TARGET]).value
        launch.attributes["module"] = ir.FlatSymbolRefAttr.get(module_for(target))
        for capability in _launched_on(around, target, capabilities):
            for excess in excesses(launch, capability):
                raise InternalError(f"A kernel that was chosen at {launch.location} has {excess}.")
    for operation in ops.walk(choice):
        for name in (TARGET, CAPABILITIES):
            if name in operation.attributes:
                del operation.attributes[name]


def _launched_on(around: Any, target: str, capabilities: Sequence[int]) -> Sequence[int]:
    if target == CPU:
        return ()
    if target != ANY_GPU:
        return [Chip(target).capability]
    if CAPABILITIES in around.attributes:
        return list(ir.DenseI32ArrayAttr(around.attributes[CAPABILITIES]))
    return capabilities


def chips_of(request: BuildRequest) -> list[Chip]:
    return [*request.cubin_chips, *([request.ptx] if request.ptx else [])]


def _text(taken: _Taken) -> str:
    """A function of A, B, C and the extras that ends with one operation, in which the kernels are
    launched; with loops an `scf.if`, whose second region is for them."""
    emitter = _Dispatch(taken.fused)
    capability = emitter.value(f"func.call @{CAPABILITY}() : () -> i32")
    if taken.cpu is not None or taken.with_loops:
        is_gpu = emitter.compare("sge", capability, LEAST_CAPABILITY)
        emitter.open(f"scf.if {is_gpu} {{")
    else:
        emitter.open("scf.execute_region {")
    emitter.choose(capability, taken.choices)
    if taken.cpu is not None or taken.with_loops:
        emitter.otherwise()
        if taken.cpu is not None:
            emitter.kernel(taken.cpu)
    else:
        emitter.line("scf.yield")
    emitter.close()
    signature = taken.fused.problem.signature
    return f"func.func @choice({signature}) {{\n{emitter.text()}\n  return\n}}\n{DECLARATION}"


class _Dispatch(Emitter):
    """The nest of conditions around kernels. Names are its own: those of kernels stand within."""

    def __init__(self, fused: Fused) -> None:
        super().__init__()
        self._problem, self._epilogue = fused.problem, fused.epilogue
        self._is_aligned = {
            name: (owner := ops.defining(operand.value)) is not None and owner.name in _ALIGNED
            for name, operand in zip(_buffers(fused.problem), fused.operands, strict=True)
        }

    def name(self) -> str:
        return f"{super().name()}_choice"

    def compare(self, predicate: str, value: str, number: int) -> str:
        return self.value(f"arith.cmpi {predicate}, {value}, {self.constant(number, 'i32')} : i32")

    def choose(self, capability: str, choices: Sequence[Choice]) -> None:
        """The first one that can be launched; the last one always can."""
        first, *others = choices
        conditions = []
        if first.target != ANY_GPU:
            conditions.append(self.compare("eq", capability, Chip(first.target).capability))
        if first.capabilities:
            conditions.append(self._is_one_of(capability, first.capabilities))
        for name, buffer in _buffers(first.problem).items():
            if buffer.element is not None:
                conditions += self._alignment(name, buffer)
        if first.least_tiles:
            conditions.append(self._is(self._tiles(first), "uge", first.least_tiles))
        if first.most_tiles:
            conditions.append(self._is(self._tiles(first), "ule", first.most_tiles))
        if first.problem.k is None and (first.least_depth or first.target != ANY_GPU):
            # At least 1: TMA wants an address, and what has no elements may have none.
            conditions.append(self._is(self._depth(), "uge", max(1, first.least_depth)))
        if first.rows is not None:
            conditions += self._has_rows(*first.rows)
        if not conditions or not others:
            self.kernel(first)
            return
        both = conditions[0]
        for condition in conditions[1:]:
            both = self.value(f"arith.andi {both}, {condition} : i1")
        self.open(f"scf.if {both} {{")
        self.kernel(first)
        self.otherwise()
        self.choose(capability, others)
        self.close()

    def kernel(self, choice: Choice) -> None:
        finish = self._epilogue.finish(choice.problem.extras) if self._epilogue else None
        _, *body, _, _ = choice.write("kernel", finish).strip().splitlines()
        self.open("scf.execute_region {")
        for line in body:
            self.line(line)
        self.line("scf.yield")
        note = f'{TARGET} = "{choice.target}"'
        if choice.capabilities:
            numbers = ", ".join(map(str, choice.capabilities))
            note += f", {CAPABILITIES} = array<i32: {numbers}>"
        self.close(f"}} {{{note}}}")

    def _is_one_of(self, capability: str, numbers: Sequence[int]) -> str:
        found, *others = (self.compare("eq", capability, number) for number in numbers)
        for other in others:
            found = self.value(f"arith.ori {found}, {other} : i1")
        return found

    def _tiles(self, choice: Choice) -> str:
        """How many tiles C has, those of a batch together."""
        matrix = self._problem.c
        last = self._rank(matrix) - 1
        count = self.constant(1)
        tiles = {last - 1: choice.variant.m, last: choice.variant.n}
        for dimension in range(last + 1):
            place = self.constant(dimension)
            size = self.value(f"memref.dim %c, {place} : {matrix.type}")
            tile = self.constant(tiles.get(dimension, 1))
            number = self.value(f"arith.ceildivui {size}, {tile} : index")
            count = self.value(f"arith.muli {count}, {number} : index")
        return count

    def _depth(self) -> str:
        matrix = self._problem.a
        place = self.constant(self._rank(matrix) - (2 if matrix.transposed else 1))
        return self.value(f"memref.dim %a, {place} : {matrix.type}")

    def _has_rows(self, least: int, most: int) -> list[str]:
        """Whether C has so many."""
        matrix = self._problem.c
        place = self.constant(self._rank(matrix) - 2)
        rows = self.value(f"memref.dim %c, {place} : {matrix.type}")
        return [self._is(rows, "uge", least), self._is(rows, "ule", most)]

    def _alignment(self, name: str, buffer: Matrix | Extra) -> list[str]:
        """Whether rows begin at multiples of what the buffer's `alignment` says."""
        size = ELEMENT_BYTES.get(buffer.element or "", 1)
        if buffer.alignment <= size:
            return []
        parts, distances_exist = [], list[str]()
        if not self._is_aligned[name]:
            address = f"memref.extract_aligned_pointer_as_index %{name} : {buffer.type} -> index"
            parts.append(self.value(address))
        type_ = ir.MemRefType(ir.Type.parse(buffer.type))
        if type_.layout != _identity(type_.rank):
            offset, distances = self._strides(name, buffer)
            parts += [self._bytes(number, size) for number in (offset, *distances)]
            if isinstance(buffer, Matrix):  # TMA has no distance of 0
                distances_exist = [self._is(distance, "ne", 0) for distance in distances]
        elif _has_unknown_rows(buffer, type_):
            last = self.constant(type_.rank - 1)
            pitch = self.value(f"memref.dim %{name}, {last} : {buffer.type}")
            parts.append(self._bytes(pitch, size))
        if not parts:
            return []
        return [*distances_exist, self._are_multiples(parts, buffer.alignment)]

    def _are_multiples(self, numbers: Sequence[str], of: int) -> str:
        """Of a power of two."""
        bits = numbers[0]
        for number in numbers[1:]:
            bits = self.value(f"arith.ori {bits}, {number} : index")
        low = self.value(f"arith.andi {bits}, {self.constant(of - 1)} : index")
        return self._is(low, "eq", 0)

    def _is(self, number: str, predicate: str, other: int) -> str:
        return self.value(f"arith.cmpi {predicate}, {number}, {self.constant(other)} : index")

    def _bytes(self, elements: str, size: int) -> str:
        return self.value(f"arith.muli {elements}, {self.constant(size)} : index")

    def _rank(self, buffer: Matrix | Extra) -> int:
        return int(ir.MemRefType(ir.Type.parse(buffer.type)).rank)

    def _strides(self, name: str, buffer: Matrix | Extra) -> tuple[str, list[str]]:
        """The first element's offset, and the distances of rows and of matrices, in elements."""
        rank = self._rank(buffer)
        results = self.name()
        types = ", ".join([f"memref<{buffer.element}>", *["index"] * (1 + 2 * rank)])
        self.line(
            f"{results}:{2 + 2 * rank} = memref.extract_strided_metadata %{name} "
            f": {buffer.type} -> {types}"
        )
        return f"{results}#1", [f"{results}#{2 + rank + i}" for i in range(rank - 1)]


def _has_unknown_rows(buffer: Matrix | Extra, type_: Any) -> bool:
    """Whether it is not known how far rows lie apart, which follow each other."""
    if isinstance(buffer, Matrix):
        return buffer.pitch is None
    return bool(type_.rank > 1 and type_.is_dynamic_dim(type_.rank - 1))


def _buffers(problem: Problem) -> dict[str, Matrix | Extra]:
    """The arguments of kernels, by their names."""
    extras = {f"e{number}": extra for number, extra in enumerate(problem.extras)}
    return {"a": problem.a, "b": problem.b, "c": problem.c, **extras}


def _identity(rank: int) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
