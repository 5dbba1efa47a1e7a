"""Products of matrices in host code → a choice among kernels, made when they are to be launched.

What a program runs on is known then: a GPU of Hopper's has kernels that no other has, and the CPU
device keeps the loops. So are the addresses of matrices, which the widest copies need at multiples
of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.input.entries import functions_of
from aotc.lower.analysis.aliasing import Roots
from aotc.lower.analysis.functions import Functions
from aotc.lower.contractions.choice import FAMILIES, Choice, choose, choose_for_cpu
from aotc.lower.contractions.flattened import flattened
from aotc.lower.contractions.gathered import Gathered
from aotc.lower.contractions.problem import ELEMENT_BYTES, Emitter, Matrix, Problem
from aotc.lower.contractions.reasons import reasons
from aotc.lower.contractions.recognise import Product, recognise_product
from aotc.lower.contractions.recognise_gathered import recognise_gathered
from aotc.lower.contractions.tuned import Entry, parse_tuned, problem_words, variant_of
from aotc.lower.contractions.vectors import row_view
from aotc.lower.kernels.outlining import ANY_GPU, module_for
from aotc.lower.placement_names import CAPABILITY, LEAST_CAPABILITY
from aotc.lower.plan.remarks import Remarks
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest, Chip

STEP = "aotc-choose-product-kernels"
DECLARATION = f"func.func private @{CAPABILITY}() -> i32"
# Inside of these somebody else decides what runs where.
PARALLEL = ("scf.parallel", "scf.forall", "affine.parallel", "gpu.launch", "gpu.func")
# Of the region around a kernel, while it is text: what it is launched on.
TARGET = "aotc.target"
# What is made by these begins where any copy may.
_ALIGNED = ("memref.alloc", "memref.get_global")


def choose_product_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Changes `module`, in which linalg is on buffers and `linalg.generic`, in place."""
    with module.context:
        is_any = False
        roots = Roots(Functions(module))
        inside = called_inside(module)
        for function in functions_of(module):
            if symbol_of(function) in inside:
                continue
            for generic in ops.find(function, "linalg.generic"):
                if ops.enclosing(generic, *PARALLEL) is None:
                    is_any |= _replace(generic, roots, request, remarks)
        if is_any:
            declare_capability(module)


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


def _replace(generic: Any, roots: Roots, request: BuildRequest, remarks: Remarks) -> bool:
    product = _recognise(generic, roots, request)
    if product is None:
        return False
    chips = chips_of(request)
    measured = _measured(product.problem, generic, request, remarks)
    choices = choose(product.problem, chips, measured)
    if not choices:
        return False
    if not isinstance(product.problem, Gathered):  # those are not timed
        remarks.products.append(product.problem)
    cpu = choose_for_cpu(product.problem) if request.cpu_kernels else None
    with_loops = request.cpu_kernels and cpu is None
    words = ", else ".join(map(str, choices))
    if request.cpu_kernels:
        words += "; loops on the CPU" if cpu is None else f"; {cpu}"
    remarks.add(STEP, generic.location, f"a product of matrices: {words}")
    for line in reasons(choices, chips):
        remarks.add(STEP, generic.location, line)
    with generic.location:
        parsed = ir.Module.parse(_text(product, choices, cpu, with_loops=with_loops))
    body = next(iter(parsed.body.operations)).operation.regions[0].blocks[0]
    *_, choice, _ = body.operations
    name_modules(choice.operation)
    ops.replace_by_body(generic, body, [product.a, product.b, product.c])
    replaced = [product.fill, generic] if product.fill is not None else [generic]
    if with_loops:
        (end,) = choice.operation.regions[1].blocks[0].operations
        for operation in replaced:
            operation.move_before(end.operation)
    else:
        for operation in reversed(replaced):
            operation.erase()
    return True


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
    product = recognise_product(
        generic, roots, allow_tf32=request.allow_tf32, allow_3xtf32=request.allow_3xtf32
    )
    if product is None:
        product = recognise_gathered(generic, roots, allow_tf32=request.allow_tf32)
        product = product and (flattened(product) or product)
    return product


def name_modules(choice: Any) -> None:
    """Tells the outlining what each launch is for; a dispatch has noted it around them."""
    for launch in ops.find(choice, "gpu.launch"):
        target = next(a for a in ops.ancestors(launch) if TARGET in a.attributes)
        name = module_for(ir.StringAttr(target.attributes[TARGET]).value)
        launch.attributes["module"] = ir.FlatSymbolRefAttr.get(name)
    for operation in ops.walk(choice):
        if TARGET in operation.attributes:
            del operation.attributes[TARGET]


def chips_of(request: BuildRequest) -> list[Chip]:
    return [*request.cubin_chips, *([request.ptx] if request.ptx else [])]


def _text(
    product: Product, choices: Sequence[Choice], cpu: Choice | None, *, with_loops: bool
) -> str:
    """A function of A, B and C that ends with one operation, in which the kernels are launched;
    with loops an `scf.if`, whose second region is for them."""
    emitter = _Dispatch(product)
    arguments = emitter.arguments(product)
    capability = emitter.value(f"func.call @{CAPABILITY}() : () -> i32")
    if cpu is not None or with_loops:
        is_gpu = emitter.compare("sge", capability, LEAST_CAPABILITY)
        emitter.open(f"scf.if {is_gpu} {{")
    else:
        emitter.open("scf.execute_region {")
    emitter.choose(capability, choices)
    if cpu is not None or with_loops:
        emitter.otherwise()
        if cpu is not None:
            emitter.kernel(cpu)
    else:
        emitter.line("scf.yield")
    emitter.close()
    return f"func.func @choice({arguments}) {{\n{emitter.text()}\n  return\n}}\n{DECLARATION}"


class _Dispatch(Emitter):
    """The nest of conditions around kernels. Names are its own: those of kernels stand within."""

    def __init__(self, product: Product) -> None:
        super().__init__()
        problem = product.problem
        self.matrices = {"a": problem.a, "b": problem.b, "c": problem.c}
        values = {"a": product.a, "b": product.b, "c": product.c}
        self._is_aligned = {
            name: (owner := ops.defining(value)) is not None and owner.name in _ALIGNED
            for name, value in values.items()
        }

    def name(self) -> str:
        return f"{super().name()}_choice"

    def arguments(self, product: Product) -> str:
        """Of the function; a vector among them is made a matrix of one row here."""
        found = []
        values = {"a": product.a, "b": product.b, "c": product.c}
        for name, value in values.items():
            given = f"%{name}"
            if product.has_rows and name != "b":
                given = f"%{name}_vector"
                for line in row_view(f"%{name}", given, ir.MemRefType(value.type)):
                    self.line(line)
            found.append(f"{given}: {value.type}")
        return ", ".join(found)

    def compare(self, predicate: str, value: str, number: int) -> str:
        return self.value(f"arith.cmpi {predicate}, {value}, {self.constant(number, 'i32')} : i32")

    def choose(self, capability: str, choices: Sequence[Choice]) -> None:
        """The first one that can be launched; the last one always can."""
        first, *others = choices
        conditions = []
        if first.target != ANY_GPU:
            conditions.append(self.compare("eq", capability, Chip(first.target).capability))
        problem = first.problem
        for name, matrix in (("a", problem.a), ("b", problem.b), ("c", problem.c)):
            conditions += self._alignment(name, matrix)
        if first.least_tiles:
            conditions.append(self._has_tiles(first))
        if first.target != ANY_GPU and problem.k is None:
            conditions.append(self._has_depth())
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
        _, *body, _, _ = choice.write("kernel").strip().splitlines()
        self.open("scf.execute_region {")
        for line in body:
            self.line(line)
        self.line("scf.yield")
        self.close(f'}} {{{TARGET} = "{choice.target}"}}')

    def _has_tiles(self, choice: Choice) -> str:
        """Whether C has as many tiles as the choice wants."""
        matrix = self.matrices["c"]
        last = self._rank(matrix) - 1
        count = self.constant(1)
        for dimension, tile in ((last - 1, choice.variant.m), (last, choice.variant.n)):
            place = self.constant(dimension)
            size = self.value(f"memref.dim %c, {place} : {matrix.type}")
            tiles = self.value(f"arith.ceildivui {size}, {self.constant(tile)} : index")
            count = self.value(f"arith.muli {count}, {tiles} : index")
        least = self.constant(choice.least_tiles)
        return self.value(f"arith.cmpi uge, {count}, {least} : index")

    def _has_depth(self) -> str:
        """Whether K is not 0: TMA wants an address, and what has no elements may have none."""
        matrix = self.matrices["a"]
        place = self.constant(self._rank(matrix) - (2 if matrix.transposed else 1))
        depth = self.value(f"memref.dim %a, {place} : {matrix.type}")
        return self._is(depth, "ne", 0)

    def _has_rows(self, least: int, most: int) -> list[str]:
        """Whether C has so many."""
        matrix = self.matrices["c"]
        place = self.constant(self._rank(matrix) - 2)
        rows = self.value(f"memref.dim %c, {place} : {matrix.type}")
        return [self._is(rows, "uge", least), self._is(rows, "ule", most)]

    def _alignment(self, name: str, matrix: Matrix) -> list[str]:
        """Whether rows begin at multiples of what the matrix's `alignment` says."""
        size = ELEMENT_BYTES[matrix.element]
        if matrix.alignment <= size:
            return []
        parts, distances_exist = [], list[str]()
        if not self._is_aligned[name]:
            address = f"memref.extract_aligned_pointer_as_index %{name} : {matrix.type} -> index"
            parts.append(self.value(address))
        if ir.MemRefType(ir.Type.parse(matrix.type)).layout != _identity(self._rank(matrix)):
            offset, distances = self._strides(name, matrix)
            parts += [self._bytes(number, size) for number in (offset, *distances)]
            # TMA has no distance of 0.
            distances_exist = [self._is(distance, "ne", 0) for distance in distances]
        elif matrix.pitch is None:
            last = self.constant(self._rank(matrix) - 1)
            pitch = self.value(f"memref.dim %{name}, {last} : {matrix.type}")
            parts.append(self._bytes(pitch, size))
        if not parts:
            return []
        return [*distances_exist, self._are_multiples(parts, matrix.alignment)]

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

    def _rank(self, matrix: Matrix) -> int:
        return int(ir.MemRefType(ir.Type.parse(matrix.type)).rank)

    def _strides(self, name: str, matrix: Matrix) -> tuple[str, list[str]]:
        """The first element's offset, and the distances of rows and of matrices, in elements."""
        rank = self._rank(matrix)
        results = self.name()
        types = ", ".join([f"memref<{matrix.element}>", *["index"] * (1 + 2 * rank)])
        self.line(
            f"{results}:{2 + 2 * rank} = memref.extract_strided_metadata %{name} "
            f": {matrix.type} -> {types}"
        )
        return f"{results}#1", [f"{results}#{2 + rank + i}" for i in range(rank - 1)]


def _identity(rank: int) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
