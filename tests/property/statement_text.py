"""Bodies of functions → MLIR: variables that change become values again.

They become results of scf operations, or arguments of blocks where the form is "cf".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from property.expression_text import ExpressionPrinter, memref_type
from property.program import (
    FLOATS,
    Assign,
    Atomic,
    Ballot,
    Barrier,
    Body,
    Break,
    Call,
    Constant,
    For,
    Function,
    If,
    Let,
    Level,
    Program,
    Reduce,
    Return,
    Shuffle,
    Statement,
    Store,
    Switch,
    While,
    assigned,
)


@dataclass(frozen=True)
class _LoopEnd:
    """Where a break branches to, with the values of these variables."""

    label: str
    carried: tuple[str, ...]


class Printer(ExpressionPrinter):
    """Prints the body of one function."""

    def __init__(self, program: Program, ending: str, function: Function | None = None) -> None:
        super().__init__(program, has_launch_names=ending == "gpu.terminator")
        self._ending = ending
        self._function = function
        self._loop_end: _LoopEnd | None = None

    def ending(self) -> str:
        """The operation that ends the function, with the results' values."""
        results = self._function.results if self._function is not None else ()
        if not results:
            return self._ending
        values = [self.values[result.name] for result in results]
        names, types = zip(*values, strict=True)
        return f"{self._ending} {', '.join(names)} : {', '.join(types)}"

    def body(self, body: Body, *, may_branch: bool) -> None:
        """`may_branch`: whether this place is in a region of several blocks."""
        for statement in body:
            self._statement(statement, may_branch=may_branch)

    def _scope(self, body: Body, *, may_branch: bool) -> None:
        """A body inside a statement: what it declares ends with it."""
        outside = set(self.values)
        self.body(body, may_branch=may_branch)
        self.values = {name: value for name, value in self.values.items() if name in outside}

    def _statement(self, statement: Statement, *, may_branch: bool) -> None:
        match statement:
            case Let(name=name, value=value) | Assign(name=name, value=value):
                self.values[name] = (self.expression(value), value.type)
            case Store(memory=memory, index=index, value=value):
                stored = self.expression(value)
                element = self.element(memory, index)
                type_ = memref_type(self.program.memory(memory))
                self.line(f"memref.store {stored}, {element} : {type_}")
            case Atomic():
                self._atomic(statement)
            case Barrier():
                self.line("gpu.barrier")
            case Shuffle() | Ballot() | Reduce():
                self._exchange(statement)
            case If(form="scf"):
                self._scf_if(statement)
            case Switch():
                self._scf_switch(statement)
            case For(form="scf"):
                self._scf_for(statement)
            case While(form="scf" | "do"):
                self._scf_while(statement)
            case Call():
                self._call(statement)
            case If() | For() | While() | Break() | Return() if may_branch:
                self._cf(statement)
            case If() | For() | While():
                self._inside_region(statement)
            case _:
                raise AssertionError(f"{statement} cannot stand in a region of one block")

    def _atomic(self, atomic: Atomic) -> None:
        memory = self.program.memory(atomic.memory)
        value = self.expression(atomic.value)
        element = self.element(atomic.memory, atomic.index)
        type_, of = atomic.value.type, memref_type(memory)
        if not atomic.is_generic:
            self.define(
                f"memref.atomic_rmw {atomic.kind} {value}, {element} : ({type_}, {of}) -> {type_}"
            )
            return
        found = self.define(f"memref.generic_atomic_rmw {element} : {of} {{")
        current = f"{found}_current"
        self.line(f"^bb0({current}: {type_}):")
        self.line(
            f"{found}_new = arith.{_ATOMIC_AS_ARITH[atomic.kind]} {current}, {value} : {type_}"
        )
        self.line(f"memref.atomic_yield {found}_new : {type_}")
        self.line("}")

    def _exchange(self, statement: Shuffle | Ballot | Reduce) -> None:
        value = self.expression(statement.value)
        type_ = statement.value.type
        found = self.name()
        match statement:
            case Shuffle():
                self._shuffle(statement, value, found)
            case Ballot():
                type_ = "i32"
                self.line(f"{found} = gpu.ballot {value} : i32")
            case Reduce(scope=Level.BLOCK, has_region=True):
                a, b, c = (f"{found}_{name}" for name in "abc")
                self.line(f"{found} = gpu.all_reduce {value} {{")
                self.line(f"^bb0({a}: {type_}, {b}: {type_}):")
                operation = _REDUCTION_AS_ARITH[statement.kind]
                if type_ in FLOATS and not operation.endswith("f"):
                    operation = operation.removesuffix("i") + "f"
                self.line(f"{c} = arith.{operation} {a}, {b} : {type_}")
                self.line(f"gpu.yield {c} : {type_}")
                self.line(f"}} : ({type_}) -> {type_}")
            case Reduce(scope=Level.BLOCK):
                self.line(
                    f"{found} = gpu.all_reduce {statement.kind} {value} {{}} : ({type_}) -> {type_}"
                )
            case Reduce():
                self.line(
                    f"{found} = gpu.subgroup_reduce {statement.kind} {value} : ({type_}) -> {type_}"
                )
        self.values[statement.name] = (found, type_)

    def _shuffle(self, shuffle: Shuffle, value: str, found: str) -> None:
        type_, valid = shuffle.value.type, f"{found}_valid"
        self.values[shuffle.valid] = (valid, "i1")
        if shuffle.mode == "rotate":
            assert isinstance(shuffle.offset, Constant)
            by = int(shuffle.offset.value)
            self.line(f"{found}, {valid} = gpu.rotate {value}, {by}, 32 : {type_}")
            return
        by_lane = self.expression(shuffle.offset)
        if shuffle.mode == "broadcast":
            self.line(
                f"{found} = gpu.subgroup_broadcast {value}, specific_lane {by_lane} : {type_}"
            )
            self.line(f"{valid} = arith.constant true")
            return
        width = self.define("arith.constant 32 : i32")
        self.line(
            f"{found}, {valid} = gpu.shuffle {shuffle.mode} {value}, {by_lane}, {width} : {type_}"
        )

    def _call(self, call: Call) -> None:
        function = next(f for f in self.program.functions if f.name == call.function)
        values = [self.expression(argument) for argument in call.arguments]
        values += [f"%{memory.name}" for memory in function.memories]
        types = [argument.type for argument in call.arguments]
        types += [memref_type(memory) for memory in function.memories]
        results = [result.type for result in function.results]
        text = (
            f"func.call @{function.name}({', '.join(values)})"
            f" : ({', '.join(types)}) -> ({', '.join(results)})"
        )
        if not results:
            self.line(text)
            return
        names = [self.name() for _ in results]
        self.line(f"{', '.join(names)} = {text}")
        for name, value, type_ in zip(call.names, names, results, strict=True):
            self.values[name] = (value, type_)

    # scf: what bodies change becomes results

    def _carried(self, *bodies: Body) -> tuple[str, ...]:
        changed = set().union(*(assigned(body) for body in bodies))
        return tuple(sorted(changed & set(self.values)))

    def _current(self, names: Sequence[str]) -> tuple[str, str]:
        """The values of variables and their types, each as a list in text."""
        values = [self.values[name] for name in names]
        return ", ".join(value for value, _ in values), ", ".join(type_ for _, type_ in values)

    def _set_results(self, names: Sequence[str], result: str) -> None:
        for number, name in enumerate(names):
            value = f"{result}#{number}" if len(names) > 1 else result
            self.values[name] = (value, self.values[name][1])

    def _results(self, names: Sequence[str]) -> tuple[str, str]:
        """A name for an operation's results, and `%name:2 = ` or nothing in front of it."""
        result = self.name()
        if not names:
            return result, ""
        return result, f"{result}:{len(names)} = " if len(names) > 1 else f"{result} = "

    def _yield(self, names: Sequence[str]) -> None:
        values, types = self._current(names)
        self.line(f"scf.yield {values} : {types}" if names else "scf.yield")

    def _branch_scope(self, body: Body, carried: Sequence[str]) -> None:
        """A body that may or may not run: the variables outside stay what they are."""
        before = dict(self.values)
        loop_end, self._loop_end = self._loop_end, None
        self.body(body, may_branch=False)
        self._yield(carried)
        self.values, self._loop_end = before, loop_end

    def _scf_if(self, statement: If) -> None:
        carried = self._carried(statement.then, statement.otherwise)
        condition = self.expression(statement.condition)
        result, start = self._results(carried)
        types = self._current(carried)[1]
        arrow = f" -> ({types})" if carried else ""
        self.line(f"{start}scf.if {condition}{arrow} {{")
        self._branch_scope(statement.then, carried)
        if carried or statement.otherwise:
            self.line("} else {")
            self._branch_scope(statement.otherwise, carried)
        self.line("}")
        self._set_results(carried, result)

    def _scf_switch(self, statement: Switch) -> None:
        carried = self._carried(*statement.bodies)
        selector = self.expression(statement.selector)
        result, start = self._results(carried)
        types = self._current(carried)[1]
        arrow = f" -> {types}" if carried else ""
        self.line(f"{start}scf.index_switch {selector}{arrow}")
        last = len(statement.bodies) - 1
        for number, body in enumerate(statement.bodies):
            self.line(f"case {number} {{" if number < last else "default {")
            self._branch_scope(body, carried)
            self.line("}")
        self._set_results(carried, result)

    def _rename(self, names: Sequence[str]) -> list[str]:
        """New values for variables, as arguments of a block; `%value: type` for each."""
        texts = []
        for name in names:
            value, type_ = self.name(), self.values[name][1]
            self.values[name] = (value, type_)
            texts.append(f"{value}: {type_}")
        return texts

    def _scf_for(self, loop: For) -> None:
        carried = self._carried(loop.body)
        low, high, step = (self.expression(e) for e in (loop.low, loop.high, loop.step))
        type_ = loop.low.type
        result, start = self._results(carried)
        before = dict(self.values)
        position = self.name()
        first = [self.values[name][0] for name in carried]
        types = self._current(carried)[1]
        renamed = [text.split(":")[0] for text in self._rename(carried)]
        pairs = ", ".join(f"{new} = {old}" for new, old in zip(renamed, first, strict=True))
        arguments = f" iter_args({pairs}) -> ({types})" if carried else ""
        suffix = f" : {type_}" if type_ != "index" else ""
        self.line(f"{start}scf.for {position} = {low} to {high} step {step}{arguments}{suffix} {{")
        self.values[loop.name] = (position, type_)
        self._branch_scope(loop.body, carried)
        self.line("}")
        self.values = before
        self._set_results(carried, result)

    def _scf_while(self, loop: While) -> None:
        carried = self._carried(loop.body)
        result, start = self._results(carried)
        before = dict(self.values)
        first, types = self._current(carried)
        renamed = [text.split(":")[0] for text in self._rename(carried)]
        pairs = zip(renamed, first.split(", ") if carried else [], strict=True)
        initial = ", ".join(f"{new} = {old}" for new, old in pairs)
        inputs = f" ({initial})" if carried else ""
        self.line(f"{start}scf.while{inputs} : ({types}) -> ({types}) {{")
        loop_end, self._loop_end = self._loop_end, None
        if loop.form == "do":
            self._scope(loop.body, may_branch=False)
        condition = self.expression(loop.condition)
        values, _ = self._current(carried)
        self.line(
            f"scf.condition({condition}) {values} : {types}"
            if carried
            else f"scf.condition({condition})"
        )
        self.line("} do {")
        arguments = self._rename(carried)
        if carried:
            self.line(f"^bb0({', '.join(arguments)}):")
        if loop.form == "scf":
            self._scope(loop.body, may_branch=False)
        self._yield(carried)
        self.line("}")
        self.values, self._loop_end = before, loop_end
        self._set_results(carried, result)

    # cf: blocks

    def _inside_region(self, statement: If | For | While) -> None:
        """Blocks, where there may be but one: in an scf.execute_region."""
        carried = self._carried((statement,))
        result, start = self._results(carried)
        types = self._current(carried)[1]
        arrow = f" -> ({types})" if len(carried) > 1 else f" -> {types}" if carried else ""
        before = dict(self.values)
        self.line(f"{start}scf.execute_region{arrow} {{")
        loop_end, self._loop_end = self._loop_end, None
        self._cf(statement)
        self._yield(carried)
        self.line("}")
        self.values, self._loop_end = before, loop_end
        self._set_results(carried, result)

    def _branch(self, label: str, names: Sequence[str]) -> str:
        values, types = self._current(names)
        return f"{label}({values} : {types})" if names else label

    def _block(self, label: str, names: Sequence[str]) -> None:
        """Begins a block whose arguments are these variables."""
        arguments = self._rename(names)
        self.line(f"{label}({', '.join(arguments)}):" if arguments else f"{label}:")

    def _cf(self, statement: If | For | While | Break | Return) -> None:
        match statement:
            case If():
                self._cf_if(statement)
            case For():
                self._cf_for(statement)
            case While():
                self._cf_while(statement)
            case Break(condition=condition):
                assert self._loop_end is not None
                holds, onward = self.expression(condition), self.label()
                end = self._branch(self._loop_end.label, self._loop_end.carried)
                self.line(f"cf.cond_br {holds}, {end}, {onward}")
                self.line(f"{onward}:")
            case Return(condition=condition):
                holds = self.expression(condition)
                leave, onward = self.label(), self.label()
                self.line(f"cf.cond_br {holds}, {leave}, {onward}")
                self.line(f"{leave}:")
                self.line(self.ending())
                self.line(f"{onward}:")

    def _cf_if(self, statement: If) -> None:
        carried = self._carried(statement.then, statement.otherwise)
        condition = self.expression(statement.condition)
        then, otherwise, end = self.label(), self.label(), self.label()
        before = dict(self.values)
        self.line(f"cf.cond_br {condition}, {then}, {otherwise}")
        for label, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.values = dict(before)
            self.line(f"{label}:")
            self._scope(body, may_branch=True)
            self.line(f"cf.br {self._branch(end, carried)}")
        self.values = before
        self._block(end, carried)

    def _cf_for(self, loop: For) -> None:
        low, high, step = (self.expression(e) for e in (loop.low, loop.high, loop.step))
        type_ = loop.low.type
        carried = self._carried(loop.body)
        head, body, end = self.label(), self.label(), self.label()
        self.values[loop.name] = (low, type_)
        self.line(f"cf.br {self._branch(head, (loop.name, *carried))}")
        self._block(head, (loop.name, *carried))
        before = dict(self.values)
        more = self.define(f"arith.cmpi slt, {self.values[loop.name][0]}, {high} : {type_}")
        self.line(f"cf.cond_br {more}, {body}, {self._branch(end, carried)}")
        self.line(f"{body}:")
        outer, self._loop_end = self._loop_end, _LoopEnd(end, carried)
        self._scope(loop.body, may_branch=True)
        position = self.values[loop.name][0]
        self.values[loop.name] = (self.define(f"arith.addi {position}, {step} : {type_}"), type_)
        self.line(f"cf.br {self._branch(head, (loop.name, *carried))}")
        self.values, self._loop_end = before, outer
        del self.values[loop.name]
        self._block(end, carried)

    def _cf_while(self, loop: While) -> None:
        carried = self._carried(loop.body)
        head, body, end = self.label(), self.label(), self.label()
        self.line(f"cf.br {self._branch(head, carried)}")
        self._block(head, carried)
        before = dict(self.values)
        condition = self.expression(loop.condition)
        self.line(f"cf.cond_br {condition}, {body}, {self._branch(end, carried)}")
        self.line(f"{body}:")
        outer, self._loop_end = self._loop_end, _LoopEnd(end, carried)
        self._scope(loop.body, may_branch=True)
        self.line(f"cf.br {self._branch(head, carried)}")
        self.values, self._loop_end = before, outer
        self._block(end, carried)


_ATOMIC_AS_ARITH = {
    "addi": "addi",
    "addf": "addf",
    "andi": "andi",
    "ori": "ori",
    "xori": "xori",
    "maxs": "maxsi",
    "mins": "minsi",
    "maxu": "maxui",
    "minu": "minui",
}
_REDUCTION_AS_ARITH = {
    "add": "addi",
    "mul": "muli",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "maxsi": "maxsi",
    "minsi": "minsi",
    "maxui": "maxui",
    "minui": "minui",
    "maximumf": "maximumf",
    "minimumf": "minimumf",
    "maxnumf": "maxnumf",
    "minnumf": "minnumf",
}
