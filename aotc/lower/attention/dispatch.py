"""Calls of functions with attention's operations → a choice between those and a kernel, made when
they are to be called: on a GPU of Hopper's, with matrices at addresses that TMA takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.input.entries import functions_of
from aotc.lower.attention import hopper
from aotc.lower.attention.choice import CHIP, MULTIPROCESSORS, Choice, choose
from aotc.lower.attention.lying import Lying
from aotc.lower.attention.outline import CAUSAL, FORMS, OPERANDS, PLACES, SCALE, ZERO, problem_of
from aotc.lower.attention.problem import Attention
from aotc.lower.contractions.dispatch import (
    DECLARATION,
    TARGET,
    declare_capability,
    name_modules,
)
from aotc.lower.contractions.problem import ELEMENT_BYTES, Emitter
from aotc.lower.placement_names import CAPABILITY
from aotc.lower.plan.remarks import Remarks
from aotc.mlir import ir
from aotc.ops import symbol_of

STEP = "aotc-choose-attention-kernels"
_NAMES = ("q", "k", "v", "c", "m")
_ALIGNMENT = 16


def choose_attention_kernels(module: Any, remarks: Remarks) -> None:
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
                is_any |= _replace(call, function, remarks)
        if is_any:
            declare_capability(module)


def _replace(call: Any, function: Any, remarks: Remarks) -> bool:
    problem = _problem(call, function)
    choices = [] if problem is None else choose(problem)
    if problem is None or not choices:
        return False
    what = "causal attention" if problem.causal else "attention"
    if problem.mask is not None:
        what += " with a mask"
    if any(problem.heads):
        what += " of heads in rows"
    remarks.add(
        STEP,
        call.location,
        f"{what}: {hopper.NAME} with tiles of {' or '.join(map(_words, choices))} on {CHIP.name}, "
        "else as it was written",
    )
    operands = _operands(call, function)
    with call.location:
        parsed = ir.Module.parse(_text(problem, choices, _lying(operands, function)))
    body = next(iter(parsed.body.operations)).operation.regions[0].blocks[0]
    *_, choice, _ = body.operations
    name_modules(choice.operation)
    (end,) = choice.operation.regions[1].blocks[0].operations
    ops.replace_by_body(call, body, operands)
    call.move_before(end.operation)
    return True


def _words(choice: Choice) -> str:
    return f"{choice.variant.m}x{choice.variant.keys}"


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
    """A function of Q, K, V, the result and perhaps a mask that ends with an `scf.if`, whose second
    region is for the call."""
    e = _Dispatch()
    capability = e.value(f"func.call @{CAPABILITY}() : () -> i32")
    number = e.constant(CHIP.capability, "i32")
    conditions = [e.value(f"arith.cmpi eq, {capability}, {number} : i32")]
    arguments, bytes_ = [], []
    for name, one in zip(_NAMES, lying, strict=False):
        wanted = one.matrix.type
        given = f"%{name}" if str(one.type) == wanted else f"%{name}_given"
        arguments.append(f"{given}: {one.type}")
        if given != f"%{name}":
            two = e.constant(ELEMENT_BYTES[one.matrix.element])
            bytes_ += [
                e.value(f"arith.muli {count}, {two} : index")
                for count in one.write(e, given, f"%{name}")
            ]
        bytes_.append(_address(e, f"%{name}", wanted))
    if problem.mask is not None:
        arguments.append(f"%m: {problem.mask.type}")
    bits = bytes_[0]
    for one_more in bytes_[1:]:
        bits = e.value(f"arith.ori {bits}, {one_more} : index")
    low = e.value(f"arith.andi {bits}, {e.constant(_ALIGNMENT - 1)} : index")
    conditions.append(e.value(f"arith.cmpi eq, {low}, {e.constant(0)} : index"))
    if problem.k.sizes[0] is None:
        # Over no keys, the sums of O are 0, and not 0 / 0.
        keys = e.value(f"memref.dim %k, {e.constant(1)} : {problem.k.type}")
        conditions.append(e.value(f"arith.cmpi ne, {keys}, {e.constant(0)} : index"))
    all_hold = conditions[0]
    for condition in conditions[1:]:
        all_hold = e.value(f"arith.andi {all_hold}, {condition} : i1")
    e.open(f"scf.if {all_hold} {{")
    e.choose(problem, choices)
    e.otherwise()
    e.close()
    return f"func.func @choice({', '.join(arguments)}) {{\n{e.text()}\n  return\n}}\n{DECLARATION}"


def _address(e: Emitter, name: str, type_: str) -> str:
    return e.value(f"memref.extract_aligned_pointer_as_index {name} : {type_} -> index")


class _Dispatch(Emitter):
    """What is around kernels. Names are its own: those of kernels stand within."""

    def name(self) -> str:
        return f"{super().name()}_choice"

    def choose(self, problem: Attention, choices: Sequence[Choice]) -> None:
        """The one that costs least."""
        costs = [self._cost(problem, one) for one in choices] if len(choices) > 1 else []
        self._choose(problem, choices, costs)

    def _choose(self, problem: Attention, choices: Sequence[Choice], costs: list[str]) -> None:
        first, *others = choices
        if not others:
            self._kernel(problem, first)
            return
        least = costs[0]
        for cost in costs[1:]:
            least = self.value(f"arith.minui {least}, {cost} : index")
        is_best = self.value(f"arith.cmpi eq, {costs[0]}, {least} : index")
        self.open(f"scf.if {is_best} {{")
        self._kernel(problem, first)
        self.otherwise()
        self._choose(problem, others, costs[1:])
        self.close()

    def _cost(self, problem: Attention, choice: Choice) -> str:
        """See `choice`."""
        batch, rows = (
            self.value(f"memref.dim %q, {self.constant(i)} : {problem.q.type}") for i in (0, 1)
        )
        down = self.value(f"arith.ceildivui {rows}, {self.constant(choice.variant.m)} : index")
        tiles = self.value(f"arith.muli {down}, {batch} : index")
        if problem.causal:
            least = self.constant(2 * MULTIPROCESSORS)
            turns = self.value(f"arith.maxui {tiles}, {least} : index")
        else:
            many = self.constant(MULTIPROCESSORS)
            turns = self.value(f"arith.ceildivui {tiles}, {many} : index")
        return self.value(f"arith.muli {turns}, {self.constant(choice.cost)} : index")

    def _kernel(self, problem: Attention, choice: Choice) -> None:
        text = hopper.function(problem, choice.variant, "kernel")
        _, *body, _, _ = text.strip().splitlines()
        self.open("scf.execute_region {")
        for line in body:
            self.line(line)
        self.line("scf.yield")
        self.close(f'}} {{{TARGET} = "{CHIP.name}"}}')
