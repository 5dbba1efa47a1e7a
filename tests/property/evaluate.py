"""Programs, evaluated in NumPy: all threads of the launch in lock step, as arrays with masks.

A step is taken by all threads that take it at all, before the next. For a program without
races that gives what any order gives; that there is no race, that everything read was written,
that barriers are reached by whole blocks and exchanges by whole warps is checked on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from property.arithmetic import DTYPES, Array, unsigned
from property.operations import OPERATIONS
from property.program import (
    WARP,
    Assign,
    Atomic,
    Ballot,
    Barrier,
    Body,
    Break,
    Call,
    Constant,
    Expression,
    For,
    Function,
    If,
    Let,
    Level,
    Load,
    Memory,
    Operation,
    Program,
    Reduce,
    Return,
    Shuffle,
    Statement,
    Store,
    Switch,
    Variable,
    While,
)

Mask = NDArray[np.bool_]

# More turns of one loop than the generator ever makes.
_MOST_TURNS = 10_000


class InvalidProgramError(Exception):
    """The program has no defined meaning: no fault of aotc."""


def evaluate(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What is in the memories that are arguments after the launch; `inputs`: before."""
    machine = _Machine(program, inputs)
    with np.errstate(all="ignore"):
        machine.run()
    return {m.name: machine.cells[m.name].values for m in program.memories if m.is_argument}


@dataclass
class _Cells:
    """A memory: the values of all its copies, and who touched them since the last barrier."""

    memory: Memory
    values: Array
    # Copies: one for all, one for each block, or one for each thread.
    first: Array
    was_written: Mask
    # The thread, or one of the numbers below.
    writer: Array
    reader: Array


_NOBODY = -1
_SEVERAL = -2
_ATOMIC = -3


class _Machine:
    def __init__(self, program: Program, inputs: Mapping[str, Array]) -> None:
        self._program = program
        self._functions = {function.name: function for function in program.functions}
        n, blocks = program.threads, program.blocks
        self._count = n * blocks
        self._all = np.ones(self._count, np.bool_)
        self._thread = np.arange(self._count)
        self._block = self._thread // n
        self._linear = self._thread % n
        self._warps_of_block = -(-n // WARP)
        self._warp = self._block * self._warps_of_block + self._linear // WARP
        self._lane = self._linear % WARP
        # The thread of a lane of a warp; -1 where the warp has no such lane.
        self._threads = np.full((blocks * self._warps_of_block, WARP), -1)
        self._threads[self._warp, self._lane] = self._thread
        self._ids = self._launch_ids()
        self.cells = {memory.name: self._allocate(memory, inputs) for memory in program.memories}

    def run(self) -> None:
        frame: dict[str, Array] = {
            variable.name: np.full(self._count, value, DTYPES[variable.type])
            for variable, value in self._program.scalars
        }
        _Frame(self, frame).run(self._program.body, self._all)

    def function(self, name: str) -> Function:
        return self._functions[name]

    def _launch_ids(self) -> dict[str, Array]:
        ids: dict[str, Array] = {}
        linear, block = self._linear, self._block
        for dimension, name in enumerate("xyz"):
            size, count = self._program.block[dimension], self._program.grid[dimension]
            ids[f"thread_id {name}"] = linear % size
            ids[f"block_id {name}"] = block % count
            ids[f"block_dim {name}"] = np.full(self._count, size)
            ids[f"grid_dim {name}"] = np.full(self._count, count)
            ids[f"global_id {name}"] = block % count * size + linear % size
            linear, block = linear // size, block // count
        ids["lane_id"] = self._lane
        ids["subgroup_id"] = self._linear // WARP
        ids["num_subgroups"] = np.full(self._count, self._warps_of_block)
        ids["subgroup_size"] = np.full(self._count, WARP)
        return {name: array.astype(np.int64) for name, array in ids.items()}

    def _allocate(self, memory: Memory, inputs: Mapping[str, Array]) -> _Cells:
        if memory.is_argument:
            values = inputs[memory.name].reshape(-1).copy()
            first = np.zeros(self._count, np.int64)
        else:
            owner = self._thread if memory.is_of_thread else self._block
            copies = self._count if memory.is_of_thread else self._program.blocks
            values = np.zeros(copies * memory.size, DTYPES[memory.type])
            first = owner * memory.size
        is_written = np.full(len(values), memory.is_argument)
        nobody = np.full(len(values), _NOBODY)
        return _Cells(memory, values, first, is_written, nobody, nobody.copy())

    def expression(self, expression: Expression, frame: _Frame, mask: Mask) -> Array:
        match expression:
            case Constant(type=type_, value=value):
                return np.full(self._count, value, DTYPES[type_])
            case Variable(name=name):
                return frame.variables[name]
            case Operation(name=name, operands=operands):
                values = [self.expression(operand, frame, mask) for operand in operands]
                return OPERATIONS[name].evaluate(*values)
            case Load(memory=name, index=index):
                return self._load(name, self.expression(index, frame, mask), mask)
            case _:
                return self._ids[expression.name]

    def _places(self, name: str, index: Array, mask: Mask) -> tuple[_Cells, Array]:
        """Where the threads of the mask touch a memory; it is 0 for the others."""
        cells = self.cells[name]
        if np.any((index[mask] < 0) | (index[mask] >= cells.memory.size)):
            raise InvalidProgramError(f"{name} has no such element")
        return cells, np.where(mask, cells.first + index, 0)

    def _load(self, name: str, index: Array, mask: Mask) -> Array:
        cells, places = self._places(name, index, mask)
        touched, threads = places[mask], self._thread[mask]
        if not cells.was_written[touched].all():
            raise InvalidProgramError(f"{name} is read before it is written")
        writer = cells.writer[touched]
        if np.any((writer != _NOBODY) & (writer != threads)):
            raise InvalidProgramError(f"{name} is read where another thread writes")
        if cells.memory.space != "input":
            before = cells.reader[touched]
            is_other = (before != _NOBODY) & (before != threads)
            cells.reader[touched] = np.where(is_other, _SEVERAL, threads)
            # Two threads of this very step: the later one has its number there.
            cells.reader[touched[cells.reader[touched] != threads]] = _SEVERAL
        return cells.values[places]

    def store(self, name: str, index: Array, value: Array, mask: Mask) -> None:
        cells, places = self._places(name, index, mask)
        touched, threads = places[mask], self._thread[mask]
        for before in (cells.writer[touched], cells.reader[touched]):
            if np.any((before != _NOBODY) & (before != threads)):
                raise InvalidProgramError(f"{name} is written where another thread is")
        cells.writer[touched] = threads
        if np.any(cells.writer[touched] != threads):
            raise InvalidProgramError(f"{name} is written by two threads at once")
        cells.was_written[touched] = True
        cells.values[touched] = value[mask]

    def atomic(self, kind: str, name: str, index: Array, value: Array, mask: Mask) -> None:
        cells, places = self._places(name, index, mask)
        touched = places[mask]
        if not cells.was_written[touched].all():
            raise InvalidProgramError(f"{name} is updated before it is written")
        for before in (cells.writer[touched], cells.reader[touched]):
            if np.any((before != _NOBODY) & (before != _ATOMIC)):
                raise InvalidProgramError(f"{name} is updated where a thread is")
        cells.writer[touched] = _ATOMIC
        type_ = cells.memory.type
        if kind in ("maxu", "minu"):
            _UPDATES[kind](unsigned(cells.values, type_), touched, unsigned(value[mask], type_))
        else:
            _UPDATES[kind](cells.values, touched, value[mask])

    def barrier(self, mask: Mask) -> None:
        self._require_whole(mask, self._block, "a barrier", "block")
        for cells in self.cells.values():
            memory = cells.memory
            if memory.is_of_block:
                over = np.repeat(mask[:: self._program.threads], memory.size)
            elif memory.space == "scratch":
                # Each block has its part.
                size = memory.size // self._program.blocks
                over = np.repeat(mask[:: self._program.threads], size)
            else:
                continue
            cells.writer[over] = _NOBODY
            cells.reader[over] = _NOBODY

    def shuffle(self, statement: Shuffle, value: Array, offset: Array, mask: Mask) -> Any:
        """The value of the lane asked for, and whether it is one of 32."""
        self._require_whole(mask, self._warp, "a shuffle", "warp")
        source = {
            "xor": self._lane ^ offset,
            "up": self._lane - offset,
            "down": self._lane + offset,
            "idx": offset,
            "broadcast": offset,
            "rotate": (self._lane + offset) % WARP,
        }[statement.mode]
        valid = (source >= 0) & (source < WARP)
        thread = self._threads[self._warp, np.where(valid, source, self._lane)]
        # Of a lane that does not exist: programs do not look at it.
        return np.where(thread >= 0, value[thread], value), valid

    def ballot(self, value: Array, mask: Mask) -> Array:
        self._require_whole(mask, self._warp, "a ballot", "warp")
        bits = np.zeros(len(self._threads), np.uint32)
        np.bitwise_or.at(bits, self._warp, value.astype(np.uint32) << self._lane.astype(np.uint32))
        everyones: Array = bits.view(np.int32)[self._warp]
        return everyones

    def reduce(self, scope: Level, kind: str, value: Array, type_: str, mask: Mask) -> Array:
        groups, what = (self._block, "block") if scope == Level.BLOCK else (self._warp, "warp")
        self._require_whole(mask, groups, "a reduction", what)
        function = _REDUCTIONS[kind]
        if kind in ("minui", "maxui"):
            value = unsigned(value, type_)
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        found = function.reduceat(value, starts)
        everyones: Array = found.astype(value.dtype).view(DTYPES[type_])[groups]
        return everyones

    def _require_whole(self, mask: Mask, groups: Array, what: str, of: str) -> None:
        """That of each group all threads are in the mask, or none."""
        counts = np.bincount(groups)
        present = np.bincount(groups, mask)
        if np.any((present != 0) & (present != counts)):
            raise InvalidProgramError(f"{what} that not the whole {of} reaches")


_UPDATES: dict[str, Callable[[Array, Array, Array], None]] = {
    "addi": np.add.at,
    "addf": np.add.at,
    "andi": np.bitwise_and.at,
    "ori": np.bitwise_or.at,
    "xori": np.bitwise_xor.at,
    "maxs": np.maximum.at,
    "mins": np.minimum.at,
    "maxu": np.maximum.at,
    "minu": np.minimum.at,
}
_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": np.maximum,
    "minui": np.minimum,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.maximum,
    "minnumf": np.minimum,
}


class _Frame:
    """A call of a function by all threads of a mask, or the kernel itself."""

    def __init__(self, machine: _Machine, variables: dict[str, Array]) -> None:
        self._machine = machine
        self.variables = variables

    def run(self, body: Body, mask: Mask) -> Mask:
        """Runs the body; which threads come out at its end, rather than break or return."""
        for statement in body:
            if not mask.any():
                return mask
            mask = self._statement(statement, mask)
        return mask

    def _value(self, expression: Expression, mask: Mask) -> Array:
        return self._machine.expression(expression, self, mask)

    def _set(self, name: str, value: Array, mask: Mask) -> None:
        old = self.variables.get(name)
        self.variables[name] = value if old is None else np.where(mask, value, old)

    def _statement(self, statement: Statement, mask: Mask) -> Mask:
        machine = self._machine
        match statement:
            case Let(name=name, value=value) | Assign(name=name, value=value):
                self._set(name, self._value(value, mask), mask)
            case Store(memory=memory, index=index, value=value):
                machine.store(memory, self._value(index, mask), self._value(value, mask), mask)
            case Atomic(kind=kind, memory=memory, index=index, value=value):
                place = self._value(index, mask)
                machine.atomic(kind, memory, place, self._value(value, mask), mask)
            case Barrier():
                machine.barrier(mask)
            case Shuffle(name=name, valid=valid, value=value, offset=offset):
                values = self._value(value, mask), self._value(offset, mask)
                found, is_valid = machine.shuffle(statement, *values, mask)
                self._set(name, found, mask)
                self._set(valid, is_valid, mask)
            case Ballot(name=name, value=value):
                self._set(name, machine.ballot(self._value(value, mask), mask), mask)
            case Reduce(name=name, scope=scope, kind=kind, value=value):
                operand = self._value(value, mask)
                self._set(name, machine.reduce(scope, kind, operand, value.type, mask), mask)
            case If(condition=condition, then=then, otherwise=otherwise):
                holds = self._value(condition, mask)
                return self.run(then, mask & holds) | self.run(otherwise, mask & ~holds)
            case Switch(selector=selector, bodies=bodies):
                return self._switch(self._value(selector, mask), bodies, mask)
            case For():
                return self._for(statement, mask)
            case While():
                return self._while(statement, mask)
            case Break(condition=condition) | Return(condition=condition):
                return self._leave(statement, self._value(condition, mask), mask)
            case Call():
                self._call(statement, mask)
        return mask

    def _switch(self, selector: Array, bodies: tuple[Body, ...], mask: Mask) -> Mask:
        # As scf.index_switch has it: what no case names goes to the last body.
        last = len(bodies) - 1
        chosen = np.where((selector >= 0) & (selector < last), selector, last)
        after = np.zeros_like(mask)
        for number, body in enumerate(bodies):
            after |= self.run(body, mask & (chosen == number))
        return after

    # The masks of the statements around a return still have the threads that left by it.
    _returned: Mask | None = None

    def _leave(self, statement: Break | Return, condition: Array, mask: Mask) -> Mask:
        if isinstance(statement, Return):
            leaving = mask & condition
            self._returned = leaving if self._returned is None else self._returned | leaving
        return mask & ~condition

    def _behind_loop(self, mask: Mask) -> Mask:
        return mask if self._returned is None else mask & ~self._returned

    def _for(self, loop: For, mask: Mask) -> Mask:
        values = [self._value(bound, mask) for bound in (loop.low, loop.high, loop.step)]
        position, high, step = values
        if np.any(step[mask] <= 0):
            raise InvalidProgramError("a loop's step is not positive")
        inside = mask
        for _ in range(_MOST_TURNS):
            inside = inside & (position < high)
            if not inside.any():
                return self._behind_loop(mask)
            self._set(loop.name, position, inside)
            inside = self.run(loop.body, inside)
            position = position + step
        raise InvalidProgramError("a loop does not end")

    def _while(self, loop: While, mask: Mask) -> Mask:
        inside = mask
        for turn in range(_MOST_TURNS):
            if loop.form != "do" or turn > 0:
                inside = inside & self._value(loop.condition, inside)
            if not inside.any():
                return self._behind_loop(mask)
            inside = self.run(loop.body, inside)
        raise InvalidProgramError("a loop does not end")

    def _call(self, call: Call, mask: Mask) -> None:
        function = self._machine.function(call.function)
        arguments = [self._value(argument, mask) for argument in call.arguments]
        names = [parameter.name for parameter in function.parameters]
        frame = _Frame(self._machine, dict(zip(names, arguments, strict=True)))
        frame.run(function.body, mask)
        for name, result in zip(call.names, function.results, strict=True):
            self._set(name, frame.variables[result.name], mask)
