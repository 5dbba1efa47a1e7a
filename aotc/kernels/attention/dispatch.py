"""Calls of functions with attention's operations → a choice between kernels and those, made when
they are to be called: by the GPU's compute capability, and by the addresses of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from operator import and_, or_
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import RUNS_ON
from aotc.builder import Builder
from aotc.input.entries import functions_of
from aotc.kernels.attention.choice import Choice, choose
from aotc.kernels.attention.layout import Layout
from aotc.kernels.attention.outline import CAUSAL, FORMS, OPERANDS, PLACES, SCALE, ZERO, problem_of
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.matmul.dispatch import TARGET, chips_of, name_modules
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.mlir import dialect, ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY
from aotc.numbers import Condition, Number, Scalar, compare, minimum
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability

STEP = "aotc-choose-attention-kernels"


def choose_attention_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Changes `module`, in which tensors are buffers, in place."""
    with module.context:
        functions = {
            symbol_of(function): function
            for function in functions_of(module)
            if SCALE in function.attributes
        }
        is_any = False
        for number, call in enumerate(ops.find(module.operation, "func.call")):
            function = functions.get(ops.callee_of(call))
            if function is not None:
                is_any |= _replace(call, function, request, remarks, number)
        if is_any:
            declare_capability(module)


def _replace(
    call: Any, function: Any, request: BuildRequest, remarks: Remarks, number: int
) -> bool:
    problem = _problem(call, function)
    if problem is None:
        return False
    choices = choose(problem, chips_of(request), one_variant=request.is_for_trying)
    if not choices:
        return False
    what = "causal attention" if problem.causal else "attention"
    if problem.mask is not None:
        what += " with a mask"
    if any(problem.heads):
        what += " of heads in rows"
    on_cpu_alone = _has_all_gpus(choices, request)
    rest = "; as it was written on the CPU" if on_cpu_alone else ", else as it was written"
    kernels = ", else ".join(map(str, choices))
    remarks.add(STEP, call.location, f"{what}: one kernel, {kernels}{rest}")
    operands, layouts = _operands(call, function), _layouts(call, function)
    with call.location, ir.InsertionPoint(call):
        dispatch = Dispatch(Builder(), problem, operands, layouts)
        if on_cpu_alone:
            outermost = dispatch.build_for_all_gpus(choices, call)
            function.attributes[RUNS_ON] = ir.StringAttr.get(CPU)
        else:
            outermost = dispatch.build(choices, call)
    name_modules(outermost, request.capabilities, f"attention_{number}")
    return True


def _has_all_gpus(choices: Sequence[Choice], request: BuildRequest) -> bool:
    """Whether every GPU that the build is for has one of the kernels, wherever matrices lie."""
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
    expected = ir.IntegerAttr(function.attributes[OPERANDS]).value
    if call.results or len(call.operands) != expected:
        return None
    operands = _operands(call, function)
    for value, one in zip(operands, [*_forms(function), (0, False)], strict=False):
        if not isinstance(value.type, ir.MemRefType):
            return None
        if not one[0] and value.type.affine_map != ir.AffineMap.get_identity(value.type.rank):
            return None
        if value.type.get_strides_and_offset()[0][-1] != 1:
            return None
    return problem_of(
        [value.type for value in operands],
        ir.FloatAttr(function.attributes[SCALE]).value,
        _places(function),
        _forms(function),
        causal=ir.BoolAttr(function.attributes[CAUSAL]).value,
        masked_rows_are_zero=ir.BoolAttr(function.attributes[ZERO]).value,
    )


def _operands(call: Any, function: Any) -> list[Any]:
    """Q, K, V, the result, and perhaps a mask, each with the strides that are known of it."""
    return [
        owner.operands[0]
        if (owner := ops.defining(value)) is not None and owner.name == "memref.cast"
        else value
        for value in list(call.operands)[: 5 if _places(function) else 4]
    ]


def _places(function: Any) -> tuple[str, ...]:
    attribute = ir.ArrayAttr(function.attributes[PLACES])
    return tuple(ir.StringAttr(place).value for place in attribute)


def _forms(function: Any) -> list[tuple[int, bool]]:
    numbers = list(ir.DenseI64ArrayAttr(function.attributes[FORMS]))
    return [(numbers[i], bool(numbers[i + 1])) for i in range(0, len(numbers), 2)]


def _layouts(call: Any, function: Any) -> list[Layout]:
    operands = _operands(call, function)
    return [
        Layout.of(value.type, *form)
        for value, form in zip(operands, _forms(function), strict=False)
    ]


class Dispatch:
    """Builds the nest of conditions around kernels.

    `arguments`: the operands as matrices, and the mask. `distances`: of each operand the dynamic
    offset and strides, in bytes.
    """

    def __init__(
        self, b: Builder, problem: Attention, operands: Sequence[Any], layouts: Sequence[Layout]
    ) -> None:
        """Inserts what all kernels share."""
        self.b = b
        callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
        self.capability: Scalar = b.op("func.call", (), "i32", callee=callee)
        self.arguments = list(operands)
        self.distances: list[list[Number]] = [[] for _ in operands]
        for number, layout in enumerate(layouts):
            self.arguments[number], dynamic = layout.view(b, operands[number])
            bytes_ = ELEMENT_BYTES[layout.matrix.element]
            self.distances[number] = [count * bytes_ for count in dynamic]
        # Over no keys, the sums of O are 0, and not 0 / 0.
        keys = problem.k.sizes[0]
        self.has_keys = keys is not None or compare("ne", b.dim(self.arguments[1], 1), 0)

    def build(self, choices: Sequence[Choice], call: Any) -> Any:
        """Launches the first choice whose conditions hold, else inserts `call`, which is moved
        there; without a call, the last choice is launched unconditionally. Returns the outermost
        `scf.if`, if any."""
        first, *others = choices
        if not others and call is None:
            self._launch_cheapest(first)
            return None
        with self.b.where(self._can_launch(first)) as branch:
            self._launch_cheapest(first)
        with branch.otherwise():
            if others:
                self.build(others, call)
            else:
                ir.InsertionPoint.current.block.append(call)
        return branch.operation

    def build_for_all_gpus(self, choices: Sequence[Choice], call: Any) -> Any:
        """As `build`, where every GPU can launch one of the choices: `call` is for the CPU only."""
        b = self.b
        with b.where(compare("sge", self.capability, LEAST_CAPABILITY)) as branch:
            with b.where(self.has_keys) as inner:
                self.build(choices, None)
            if inner.operation is not None:
                with inner.otherwise():
                    o = self.arguments[3]
                    dialect("linalg").fill(b.zero(str(o.type.element_type)), outs=[o])
        with branch.otherwise():
            ir.InsertionPoint.current.block.append(call)
        return branch.operation

    def _can_launch(self, choice: Choice) -> Condition:
        target = choice.family.target
        if target == ANY_GPU:
            runs = compare("sge", self.capability, LEAST_CAPABILITY)
        else:
            runs = compare("eq", self.capability, Chip(target).capability)
        all_hold: Condition = reduce(and_, [*self._alignment(choice)], runs & self.has_keys)
        return all_hold

    def _alignment(self, choice: Choice) -> Iterator[Condition]:
        """Whether matrices lie as the choice's problem says."""
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
        """The variant whose cost is the least."""
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
        with self.b.execute_region() as region:
            choice.family.build(self.b, choice.problem, variant, self.arguments)
        region.attributes[TARGET] = ir.StringAttr.get(choice.family.target)
