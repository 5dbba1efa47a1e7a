"""Calls of functions with attention's operations → a choice between kernels and those, made when
they are to be called: by the GPU's compute capability, and by the addresses of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.input.entries import functions_of
from aotc.kernels.attention.choice import Choice, choose
from aotc.kernels.attention.family import Candidate
from aotc.kernels.attention.layout import Lying
from aotc.kernels.attention.outline import CAUSAL, FORMS, OPERANDS, PLACES, SCALE, ZERO, problem_of
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.matmul.dispatch import (
    DECLARATION,
    TARGET,
    chips_of,
    declare_capability,
    name_modules,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter, Matrix
from aotc.lower.placement_names import CAPABILITY, LEAST_CAPABILITY
from aotc.lower.remarks import Remarks
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest

STEP = "aotc-choose-attention-kernels"
_NAMES = ("q", "k", "v", "c", "m")


def choose_attention_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Changes `module`, in which tensors are buffers, in place."""
    with module.context:
        functions = {
            symbol_of(function): function
            for function in functions_of(module)
            if SCALE in function.attributes
        }
        is_any = False
        for call in ops.find(module.operation, "func.call"):
            function = functions.get(ops.callee_of(call))
            if function is not None:
                is_any |= _replace(call, function, request, remarks)
        if is_any:
            declare_capability(module)


def _replace(call: Any, function: Any, request: BuildRequest, remarks: Remarks) -> bool:
    problem = _problem(call, function)
    choices = [] if problem is None else choose(problem, chips_of(request))
    if problem is None or not choices:
        return False
    what = "causal attention" if problem.causal else "attention"
    if problem.mask is not None:
        what += " with a mask"
    if any(problem.heads):
        what += " of heads in rows"
    kernels = ", else ".join(map(str, choices))
    remarks.add(STEP, call.location, f"{what}: one kernel, {kernels}, else as it was written")
    operands = _operands(call, function)
    with call.location:
        parsed = ir.Module.parse(_text(problem, choices, _lying(operands, function)))
    body = next(iter(parsed.body.operations)).operation.regions[0].blocks[0]
    *_, choice, _ = body.operations
    name_modules(choice.operation, request.capabilities)
    end = _last_end(choice.operation)
    ops.replace_by_body(call, body, operands)
    call.move_before(end)
    return True


def _last_end(choice: Any) -> Any:
    """The end of what is done where none of an `scf.if`'s conditions holds."""
    *before, end = choice.regions[1].blocks[0].operations
    return _last_end(before[-1].operation) if before else end.operation


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


def _lying(operands: Sequence[Any], function: Any) -> list[Lying]:
    return [
        Lying.of(value.type, *form) for value, form in zip(operands, _forms(function), strict=False)
    ]


def _text(problem: Attention, choices: Sequence[Choice], lying: Sequence[Lying]) -> str:
    """A function of Q, K, V, the result and perhaps a mask that ends with an `scf.if`, whose last
    region is for the call."""
    e = _Dispatch()
    capability = e.value(f"func.call @{CAPABILITY}() : () -> i32")
    arguments, distances = [], []
    for name, one in zip(_NAMES, lying, strict=False):
        wanted = one.matrix.type
        given = f"%{name}" if str(one.type) == wanted else f"%{name}_given"
        arguments.append(f"{given}: {one.type}")
        dynamic = one.write(e, given, f"%{name}") if given != f"%{name}" else []
        distances.append([e.bytes(count, one.matrix.element) for count in dynamic])
    if problem.mask is not None:
        arguments.append(f"%m: {problem.mask.type}")
    # Over no keys, the sums of O are 0, and not 0 / 0.
    is_any = [] if problem.k.sizes[0] is not None else [e.has_keys(problem)]
    e.choose(choices, capability, distances, is_any)
    return f"func.func @choice({', '.join(arguments)}) {{\n{e.text()}\n  return\n}}\n{DECLARATION}"


class _Dispatch(Emitter):
    """What is around kernels. Names are its own: those of kernels stand within."""

    def name(self) -> str:
        return f"{super().name()}_choice"

    def bytes(self, count: str, element: str) -> str:
        return self.value(f"arith.muli {count}, {self.constant(ELEMENT_BYTES[element])} : index")

    def has_keys(self, problem: Attention) -> str:
        keys = self.value(f"memref.dim %k, {self.constant(1)} : {problem.k.type}")
        return self.value(f"arith.cmpi ne, {keys}, {self.constant(0)} : index")

    def choose(
        self,
        choices: Sequence[Choice],
        capability: str,
        distances: Sequence[Sequence[str]],
        conditions: Sequence[str],
    ) -> None:
        """The first one that can be launched. `distances`: of each matrix what is not known of its
        offset and strides, in bytes; `conditions`: of all choices."""
        first, *others = choices
        alike = [self._runs_there(first, capability), *conditions]
        alike += self._alignment(first, distances)
        all_hold = alike[0]
        for condition in alike[1:]:
            all_hold = self.value(f"arith.andi {all_hold}, {condition} : i1")
        self.open(f"scf.if {all_hold} {{")
        able = first.candidates
        costs = [self._cost(first, one) for one in able] if len(able) > 1 else []
        self._candidates(first, able, costs)
        self.otherwise()
        if others:
            self.choose(others, capability, distances, conditions)
        self.close()

    def _runs_there(self, choice: Choice, capability: str) -> str:
        chip = choice.family.chip
        predicate, number = ("sge", LEAST_CAPABILITY) if chip is None else ("eq", chip.capability)
        wanted = self.constant(number, "i32")
        return self.value(f"arith.cmpi {predicate}, {capability}, {wanted} : i32")

    def _alignment(self, choice: Choice, distances: Sequence[Sequence[str]]) -> list[str]:
        """Whether matrices lie as the choice's problem says."""
        problem, found = choice.problem, []
        matrices: list[Matrix | Mask] = [problem.q, problem.k, problem.v, problem.o]
        if problem.mask is not None:
            matrices.append(problem.mask)
        for name, matrix, unknown in zip(_NAMES, matrices, (*distances, ()), strict=False):
            if matrix.alignment <= ELEMENT_BYTES[matrix.element]:
                continue
            bits = self.value(
                f"memref.extract_aligned_pointer_as_index %{name} : {matrix.type} -> index"
            )
            for distance in unknown:
                bits = self.value(f"arith.ori {bits}, {distance} : index")
            low = self.value(f"arith.andi {bits}, {self.constant(matrix.alignment - 1)} : index")
            found.append(self.value(f"arith.cmpi eq, {low}, {self.constant(0)} : index"))
        return found

    def _candidates(self, choice: Choice, able: Sequence[Candidate], costs: Sequence[str]) -> None:
        """The one that costs least."""
        first, *others = able
        if not others:
            self._kernel(choice, first)
            return
        least = costs[0]
        for cost in costs[1:]:
            least = self.value(f"arith.minui {least}, {cost} : index")
        is_best = self.value(f"arith.cmpi eq, {costs[0]}, {least} : index")
        self.open(f"scf.if {is_best} {{")
        self._kernel(choice, first)
        self.otherwise()
        self._candidates(choice, others, costs[1:])
        self.close()

    def _cost(self, choice: Choice, one: Candidate) -> str:
        """See `choice.cost`."""
        problem, at_once = choice.problem, choice.family.at_once
        batch, rows = (
            self.value(f"memref.dim %q, {self.constant(i)} : {problem.q.type}") for i in (0, 1)
        )
        if problem.heads[0]:
            batch = self.value(f"arith.muli {batch}, {self.constant(problem.heads[0])} : index")
        down = self.value(f"arith.ceildivui {rows}, {self.constant(one.variant.m)} : index")
        tiles = self.value(f"arith.muli {down}, {batch} : index")
        if problem.causal:
            least = self.constant(2 * at_once)
            turns = self.value(f"arith.maxui {tiles}, {least} : index")
        else:
            turns = self.value(f"arith.ceildivui {tiles}, {self.constant(at_once)} : index")
        return self.value(f"arith.muli {turns}, {self.constant(one.cost)} : index")

    def _kernel(self, choice: Choice, one: Candidate) -> None:
        text = choice.family.function(choice.problem, one.variant, "kernel")
        _, *body, _, _ = text.strip().splitlines()
        self.open("scf.execute_region {")
        for line in body:
            self.line(line)
        self.line("scf.yield")
        self.close(f'}} {{{TARGET} = "{choice.target}"}}')
