"""Replaces calls of outlined attention functions by a choice among kernels and the call. The
program chooses at run time, by the GPU's compute capability and the addresses of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from operator import and_, or_
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import (
    ATTENTION_CAUSAL,
    ATTENTION_GROUP,
    ATTENTION_HEADS,
    ATTENTION_MASK,
    ATTENTION_MASK_REPLACES,
    ATTENTION_OPERANDS,
    ATTENTION_SCALE,
    ATTENTION_ZERO,
    RUNS_ON,
    TARGET_ATTRIBUTE,
)
from aotc.builder import Builder
from aotc.builder.numbers import Condition, Number, Scalar, Value, compare, minimum
from aotc.input.entries import functions_of
from aotc.kernels.attention.choice import LEAST_CPU_QUERIES, Choice, choose, choose_for_cpu
from aotc.kernels.attention.layout import Form, Layout
from aotc.kernels.attention.outline import layouts_of, pages_of, problem_of
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.launch_functions import LaunchFunctions
from aotc.kernels.launches import chips_of, name_modules
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.mlir import dialect, ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability

STEP = "aotc-choose-attention-kernels"


def choose_attention_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Replaces the calls in `module`, after bufferization, in place."""
    with module.context:
        functions = {
            symbol_of(function): function
            for function in functions_of(module)
            if ATTENTION_SCALE in function.attributes
        }
        calls = [
            (number, call, function, _problem(call, function))
            for number, call in enumerate(ops.find(module.operation, "func.call"))
            if (function := functions.get(ops.callee_of(call))) is not None
        ]
        problems = [problem for *_, problem in calls]
        launches = LaunchFunctions(module, request, "aotc_attention_", problems)
        is_any = False
        for number, call, function, problem in calls:
            if problem is not None:
                is_any |= _replace(call, function, problem, launches, remarks, number)
        if is_any:
            declare_capability(module)


class _Kernels(Struct, frozen=True):
    """The kernels of an attention. `on_gpus`: those for GPUs. `on_cpu`: that for the CPU device.
    `has_all_gpus`: every GPU of the build has a kernel, for matrices at any address. `is_for_cpu`:
    the build is also for the CPU device."""

    on_gpus: list[Choice]
    on_cpu: Choice | None
    has_all_gpus: bool
    is_for_cpu: bool

    def __str__(self) -> str:
        named = ", else ".join(map(str, [*self.on_gpus, *filter(None, [self.on_cpu])]))
        if self.has_all_gpus and not self.is_for_cpu:
            return named
        if self.has_all_gpus:
            return named if self.is_all_of_cpu else f"{named}; as it was written on the CPU"
        return f"{named}, else as it was written"

    @property
    def is_all_of_cpu(self) -> bool:
        """Whether the CPU's kernel is for every number of queries."""
        return self.on_cpu is not None and self.on_cpu.problem.q.sizes[0] is not None


def _replace(
    call: Any,
    function: Any,
    problem: Attention,
    launches: LaunchFunctions,
    remarks: Remarks,
    number: int,
) -> bool:
    request = launches.request
    choices = choose(problem, chips_of(request), one_variant=request.is_for_trying)
    on_cpu = choose_for_cpu(problem) if request.cpu_kernels else None
    if not choices and on_cpu is None:
        return False
    has_all_gpus = bool(choices) and _has_all_gpus(choices, request)
    kernels = _Kernels(choices, on_cpu, has_all_gpus, request.cpu_kernels)
    what = "causal attention" if problem.causal else "attention"
    if problem.group:
        what += " of one query"
    if problem.group > 1:
        what += f" for each {problem.group} heads that share keys"
    if problem.pages is not None:
        what += f" in pages of {problem.pages.rows}"
    if problem.mask is not None:
        what += " with a mask"
    if any(problem.heads):
        what += " of heads in rows"
    remarks.add(STEP, call.location, f"{what}: one kernel, {kernels}")
    operands, layouts = _operands(call, function), _layouts(call, function)
    with call.location, ir.InsertionPoint(call):
        dispatch = Dispatch(Builder(), problem, operands, layouts)
        dispatch.build(kernels, call, launches, f"attention_{number}")
    ops.erase(call)
    if not dispatch.called_on:
        ops.erase(function)
    elif len(dispatch.called_on) == 1:
        function.attributes[RUNS_ON] = ir.StringAttr.get(*dispatch.called_on)
    return True


def _has_all_gpus(choices: Sequence[Choice], request: BuildRequest) -> bool:
    """Whether every GPU of the build has one of the kernels, for matrices at any address."""
    last = choices[-1]
    return (
        last.family.target == ANY_GPU
        and not any(True for _ in _aligned(last.problem))
        and min(request.capabilities) >= LEAST_CAPABILITY
    )


def _aligned(problem: Attention) -> Iterator[tuple[int, int]]:
    """The operands that the problem says to be aligned, by number, and how: in bytes."""
    matrices: list[Matrix | Mask] = [problem.q, problem.k, problem.v, problem.o]
    if problem.mask is not None:
        matrices.append(problem.mask)
    for number, matrix in enumerate(matrices):
        if matrix.alignment > ELEMENT_BYTES[matrix.element]:
            yield number, matrix.alignment


def _problem(call: Any, function: Any) -> Attention | None:
    """None for a call that bufferization has left in another form than it should."""
    expected = ir.IntegerAttr(function.attributes[ATTENTION_OPERANDS]).value
    if call.results or len(call.operands) != expected:
        return None
    operands = _operands(call, function)
    for value, one in zip(operands, _all_forms(function), strict=False):
        if not isinstance(value.type, ir.MemRefType):
            return None
        if not one.heads and value.type.affine_map != ir.AffineMap.get_identity(value.type.rank):
            return None
        strides, _ = value.type.get_strides_and_offset()
        if strides[-1] != 1:
            return None
        # Heads with a separate dimension must be adjacent in a row.
        if one.has_head_dimension and strides[-2] != value.type.shape[-1]:
            return None
    return problem_of(
        [value.type for value in operands],
        ir.FloatAttr(function.attributes[ATTENTION_SCALE]).value,
        _places(function),
        _forms(function),
        causal=ir.BoolAttr(function.attributes[ATTENTION_CAUSAL]).value,
        masked_rows_are_zero=ir.BoolAttr(function.attributes[ATTENTION_ZERO]).value,
        group=_group(function),
        pages=pages_of(function),
        mask_replaces=ir.BoolAttr(function.attributes[ATTENTION_MASK_REPLACES]).value,
    )


def _group(function: Any) -> int:
    return int(ir.IntegerAttr(function.attributes[ATTENTION_GROUP]).value)


def _operands(call: Any, function: Any) -> list[Any]:
    """The operands of the call: Q, K, V, the result, and if present a mask and page tables. Casts
    of operands with heads in rows are removed, so that their static strides are known."""
    count = 4 + bool(_places(function)) + 2 * (pages_of(function) is not None)
    return [
        owner.operands[0]
        if form.heads and (owner := ops.defining(value)) is not None and owner.name == "memref.cast"
        else value
        for value, form in zip(list(call.operands)[:count], _all_forms(function), strict=False)
    ]


def _all_forms(function: Any) -> list[Form]:
    """The forms of all operands, including those that may follow the result."""
    return [*_forms(function), *[Form()] * 3]


def _places(function: Any) -> tuple[str, ...]:
    attribute = ir.ArrayAttr(function.attributes[ATTENTION_MASK])
    return tuple(ir.StringAttr(place).value for place in attribute)


def _forms(function: Any) -> list[Form]:
    numbers = list(ir.DenseI64ArrayAttr(function.attributes[ATTENTION_HEADS]))
    return [Form.of(numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def _layouts(call: Any, function: Any) -> list[Layout]:
    types = [value.type for value in _operands(call, function)[:4]]
    return layouts_of(types, _forms(function), _group(function))


class Dispatch:
    """Builds the nest of conditions around kernels.

    `arguments`: the operands as matrices, and the mask. `distances`: the dynamic offset and strides
    of each operand, in bytes.
    """

    def __init__(
        self, b: Builder, problem: Attention, operands: Sequence[Any], layouts: Sequence[Layout]
    ) -> None:
        """Inserts the code that all kernels share."""
        self.b, self._problem = b, problem
        # The targets on which the original operations are called.
        self.called_on: set[str] = set()
        callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
        self.capability: Scalar = b.op("func.call", (), "i32", callee=callee)
        self.arguments = list(operands)
        self.distances: list[list[Number]] = [[] for _ in operands]
        for number, layout in enumerate(layouts):
            self.arguments[number], dynamic = layout.view(b, operands[number])
            bytes_ = ELEMENT_BYTES[layout.matrix.element]
            self.distances[number] = [count * bytes_ for count in dynamic]
        # Without keys, O is 0, and not 0 / 0.
        counted = (self.arguments[1], 1) if problem.pages is None else (self.arguments[-1], 1)
        self.has_keys = problem.keys is not None or compare("ne", b.dim(*counted), 0)

    def build(self, kernels: _Kernels, call: Any, launches: LaunchFunctions, name: str) -> None:
        """Inserts the launches of the kernels, and copies of `call` for all other cases. `name`:
        the dispatch's, for `name_modules`."""
        self._launches, self._name = launches, name
        name_modules(self._insert(kernels, call), launches.request.capabilities, name)

    def _insert(self, kernels: _Kernels, call: Any) -> Any:
        """Returns the operation that contains what it inserts."""
        b = self.b
        if kernels.has_all_gpus and not kernels.is_for_cpu:
            with b.execute_region() as outermost:
                self._choose_unless_empty(kernels.on_gpus)
            return outermost
        least = LEAST_CAPABILITY if kernels.has_all_gpus else 1
        with b.where(compare("sge", self.capability, least)) as branch:
            if kernels.has_all_gpus:
                self._choose_unless_empty(kernels.on_gpus)
            else:
                self._choose(kernels.on_gpus, call)
        with branch.otherwise():
            self._build_for_cpu(kernels, call)
        return branch.operation

    def _choose_unless_empty(self, choices: Sequence[Choice]) -> None:
        """As `_choose`, without a call. If there are no keys, the result is filled with zeros."""
        with self.b.where(self.has_keys) as branch:
            self._choose(choices, None)
        if branch.operation is not None:
            with branch.otherwise():
                o = self.arguments[3]
                dialect("linalg").fill(self.b.zero(str(o.type.element_type)), outs=[o])

    def _build_for_cpu(self, kernels: _Kernels, call: Any) -> None:
        if kernels.on_cpu is None:
            self._call(call, CPU)
            return
        queries = self.b.dim(self.arguments[0], 1)
        is_enough = kernels.is_all_of_cpu or compare("sge", queries, LEAST_CPU_QUERIES)
        with self.b.where(is_enough) as branch:
            self._launch_cheapest(kernels.on_cpu)
        if branch.operation is not None:
            with branch.otherwise():
                self._call(call, CPU)

    def _choose(self, choices: Sequence[Choice], call: Any) -> None:
        """Launches the first choice whose conditions hold. If none do, a copy of `call` is
        executed; without a call, the last choice is launched unconditionally."""
        if not choices:
            self._call(call, ANY_GPU)
            return
        first, *others = choices
        if not others and call is None:
            self._launch_cheapest(first)
            return
        with self.b.where(self._can_launch(first)) as branch:
            self._launch_cheapest(first)
        with branch.otherwise():
            self._choose(others, call)

    def _call(self, call: Any, target: str) -> None:
        ir.InsertionPoint.current.insert(call.clone().detach_from_parent())
        self.called_on.add(target)

    def _can_launch(self, choice: Choice) -> Condition:
        target = choice.family.target
        if target == ANY_GPU:
            runs = compare("sge", self.capability, LEAST_CAPABILITY)
        else:
            runs = compare("eq", self.capability, Chip(target).capability)
        all_hold: Condition = reduce(and_, [*self._alignment(choice)], runs & self.has_keys)
        return all_hold

    def _alignment(self, choice: Choice) -> Iterator[Condition]:
        """The conditions that matrices have the alignments of the choice's problem."""
        for number, alignment in _aligned(choice.problem):
            argument, distances = self.arguments[number], self.distances[number]
            address = self.b.op("memref.extract_aligned_pointer_as_index", [argument], "index")
            bits = reduce(or_, distances, address)
            yield compare("eq", bits & (alignment - 1), 0)

    def costs(self, choice: Choice) -> list[Number]:
        """The cost of each variant of the choice."""
        b, heads = self.b, max(choice.problem.heads[0], 1)
        found = []
        for variant in choice.variants:
            batch, rows = (b.dim(self.arguments[0], axis) for axis in range(2))
            found.append(choice.cost(variant, rows, batch * heads))
        return found

    def _launch_cheapest(self, choice: Choice) -> None:
        """Launches the variant of least cost."""
        b, variants = self.b, choice.variants
        costs = self.costs(choice) if len(variants) > 1 else []
        with ExitStack() as nest:
            for number, variant in enumerate(variants[:-1]):
                is_best = compare("eq", costs[number], reduce(minimum, costs[number:]))
                with b.where(is_best) as branch:
                    self._launch(choice, variant)
                nest.enter_context(branch.otherwise())
            self._launch(choice, variants[-1])

    def _launch(self, choice: Choice, variant: Any) -> None:
        def build(values: Sequence[Value]) -> None:
            with self.b.execute_region() as region:
                choice.family.build(self.b, choice.problem, variant, values)
            region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(choice.family.target)

        keys = self._problem, (choice, variant)
        self._launches.launch(keys, self.arguments, self._name, build)
