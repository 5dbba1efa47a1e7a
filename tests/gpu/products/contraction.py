"""Contractions along any loops, and what is done with them, as entries on tensors or buffers."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tests.gpu.products.program import Program


class Operand(Struct, frozen=True):
    """`places`: for each dimension the loops that move along it, as "n", or "h*2 + p"."""

    element: str
    places: tuple[str, ...]


class Contraction(Struct, frozen=True):
    """C[...] = sum of A[...] · B[...].

    `loops`: their sizes, 0 for those that are known when the program runs. `operation`: a named
    operation of linalg with its attributes, "generic", or "contract". `sums`: elements of what it
    writes. `more`: further operands of `steps`, which are done with the sums one after the other:

        add I, times I   operand number I (A is 0), wherever its loops put it
        product I        times the product of A and operand I, which lies as B does
        scale X          times a constant
        relu, silu, gelu
        round T          to the type T, and back

    `begins`: C begins from zeros; with "adds" from what it has, with "row" from a vector along its
    last dimension, which is the first one of `more`.
    `apart`: each step is an operation of its own. `turned`: B's two dimensions, which
    `linalg.transpose` gives it in front of the product, as they are in the argument.
    `strided`: operands' rows are not one behind the other. `most`: of a loop's size that is drawn.
    """

    name: str
    loops: dict[str, int]
    a: Operand
    b: Operand
    result: Operand
    operation: str = "generic"
    sums: str = ""
    more: tuple[Operand, ...] = ()
    steps: tuple[tuple[Any, ...], ...] = ()
    begins: str = ""
    apart: bool = False
    turned: bool = False
    strided: bool = False
    most: dict[str, int] = {}
    chip: str = "sm_90a"
    options: tuple[str, ...] = ()

    @property
    def program(self) -> Program:
        name = "_".join([self.name, self.chip, *self.options])
        about = {
            "kind": "contraction",
            "loops": self.loops,
            "operands": [{"element": one.element, "places": one.places} for one in self._operands],
            "result": {"element": self.result.element, "places": self.result.places},
            "sums": self._sums,
            "steps": self.steps,
            "begins": self.begins,
            "strided": self.strided,
            "most": self.most,
        }
        return Program(name, _Writer(self, name).text(), about, self.chip, self.options)

    @property
    def _operands(self) -> tuple[Operand, ...]:
        return self.a, self.b, *self.more

    @property
    def _sums(self) -> str:
        return self.sums or self.result.element


class _Writer:
    """The entry's text."""

    def __init__(self, of: Contraction, name: str) -> None:
        self.of, self.name = of, name
        self.operands = of._operands
        self.lines: list[str] = []
        self.count = 0

    def type(self, operand: Operand, element: str = "") -> str:
        sizes = [self._size(place) for place in operand.places]
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{element or operand.element}>"

    def _size(self, place: str) -> str:
        """One more than the last place."""
        last = 0
        for loop, factor in terms(place):
            size = self.of.loops[loop]
            if not size:
                return "?"
            last += (size - 1) * factor
        return str(last + 1)

    def buffer(self, operand: Operand) -> str:
        found = self.type(operand).replace("tensor", "memref")
        if not self.of.strided:
            return found
        strides = ", ".join(["?"] * (len(operand.places) - 1) + ["1"])
        return f"{found[:-1]}, strided<[{strides}], offset: ?>>"

    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def text(self) -> str:
        of = self.of
        result = self.type(of.result)
        names = [f"%a{i}" for i in range(len(self.operands))]
        arguments = [
            f"{name}: {self.buffer(one)}"
            for name, one in zip([*names, "%result"], [*self.operands, of.result], strict=True)
        ]
        if of.steps or of.turned or of.begins == "row":
            self._on_tensors(names, result)
        else:
            zero = self.zero(of.result.element)
            out = self.buffer(of.result)
            if not of.begins:
                self.lines.append(f"  linalg.fill ins({zero} : {of.result.element})"
                                  f" outs(%result : {out})")  # fmt: skip
            self.lines.append("  " + self.product(names[:2], [self.buffer(of.a), self.buffer(of.b)],
                                                  "%result", out))  # fmt: skip
        body = "\n".join(self.lines)
        return (
            f"func.func @{self.name}({', '.join(arguments)}) attributes "
            f"{{llvm.emit_c_interface}} {{\n{body}\n  return\n}}\n"
        )

    def zero(self, element: str) -> str:
        number = "0" if element.startswith("i") else "0.0"
        return self.value(f"arith.constant {number} : {element}")

    def product(self, names: list[str], types: list[str], out: str, out_type: str) -> str:
        """The operation, without the name of its result."""
        of = self.of
        given = f"ins({', '.join(names)} : {', '.join(types)}) outs({out} : {out_type})"
        loops = ", ".join(of.loops)
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(one.places)})>" for one in (of.a, of.b, of.result)
        )
        if of.operation == "contract":
            return f"linalg.contract indexing_maps = [{maps}] {given}"
        if of.operation != "generic":
            return f"linalg.{of.operation} {given}"
        used = {loop for place in of.result.places for loop, _ in terms(place)}
        kinds = ", ".join(f'"{"parallel" if one in used else "reduction"}"' for one in of.loops)
        return (
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {given} "
            f"{{\n{self._multiply_add()}\n  }}"
        )

    def _multiply_add(self) -> str:
        of = self.of
        sums = of._sums
        letter = "i" if sums.startswith("i") else "f"
        factors, lines = [], []
        for name, operand in (("x", of.a), ("y", of.b)):
            factors.append(f"%{name}")
            if operand.element != sums:
                widen = "extsi" if letter == "i" else "extf"
                lines.append(f"    %w{name} = arith.{widen} %{name} : {operand.element} to {sums}")
                factors[-1] = f"%w{name}"
        lines.append(f"    %p = arith.mul{letter} {', '.join(factors)} : {sums}")
        lines.append(f"    %s = arith.add{letter} %z, %p : {sums}")
        arguments = f"%x: {of.a.element}, %y: {of.b.element}, %z: {sums}"
        return f"  ^bb0({arguments}):\n" + "\n".join(lines) + f"\n    linalg.yield %s : {sums}"

    # --- On tensors ------------------------------------------------------------------------

    def _on_tensors(self, names: list[str], result: str) -> None:
        of = self.of
        values = [
            self.value(
                f"bufferization.to_tensor {name} restrict : {self.buffer(one)} to {self.type(one)}"
            )
            for name, one in zip(names, self.operands, strict=True)
        ]
        self.sizes = self._dynamic_sizes(values)
        first = self._sums_of(values, 1)
        last = self._steps(first, values)
        self.lines.append(
            f"  bufferization.materialize_in_destination {last} in restrict writable %result "
            f": ({result}, {self.buffer(of.result)}) -> ()"
        )

    def _dynamic_sizes(self, values: list[str]) -> dict[str, str]:
        """Of each loop whose size is not known."""
        found: dict[str, str] = {}
        for value, operand in zip(values, self.operands, strict=True):
            for number, place in enumerate(operand.places):
                if self.of.loops.get(place) == 0 and place not in found:
                    index = self.value(f"arith.constant {number} : index")
                    found[place] = self.value(f"tensor.dim {value}, {index} : {self.type(operand)}")
        return found

    def empty(self, operand: Operand, element: str) -> str:
        given = ", ".join(self.sizes[one] for one in operand.places if not self.of.loops[one])
        return self.value(f"tensor.empty({given}) : {self.type(operand, element)}")

    def _sums_of(self, values: list[str], right: int) -> str:
        of, sums = self.of, self.of._sums
        type_ = self.type(of.result, sums)
        zero, empty = self.zero(sums), self.empty(of.result, sums)
        if of.begins == "row":
            row = self.type(of.more[0])
            places = list(range(len(of.result.places) - 1))
            operation = f"linalg.broadcast ins({values[2]} : {row}) outs({empty} : {type_})"
            filled = self.value(f"{operation} dimensions = {places}")
        else:
            operation = f"linalg.fill ins({zero} : {sums}) outs({empty} : {type_})"
            filled = self.value(f"{operation} -> {type_}")
        b, b_type = values[right], self.type(of.b)
        if of.turned:
            b, b_type = self._turned(b)
        operation = self.product([values[0], b], [self.type(of.a), b_type], filled, type_)
        return self.value(f"{operation} -> {type_}")

    def _turned(self, b: str) -> tuple[str, str]:
        turned = Operand(self.of.b.element, self.of.b.places[::-1])
        room = self.empty(turned, turned.element)
        types = self.type(self.of.b), self.type(turned)
        return self.value(
            f"linalg.transpose ins({b} : {types[0]}) outs({room} : {types[1]}) permutation = [1, 0]"
        ), types[1]

    def _steps(self, sums: str, values: list[str]) -> str:
        of = self.of
        others = {
            step[1]: self._sums_of(values, step[1]) for step in of.steps if step[0] == "product"
        }
        if not of.steps:
            return sums
        groups = [[step] for step in of.steps] if of.apart else [list(of.steps)]
        element = of._sums
        for number, group in enumerate(groups):
            is_last = number == len(groups) - 1
            target = of.result.element if is_last else ("f64" if element == "f64" else "f32")
            sums = self._elementwise(sums, element, target, group, values, others)
            element = target
        return sums

    def _elementwise(
        self,
        sums: str,
        element: str,
        target: str,
        steps: list[tuple[Any, ...]],
        values: list[str],
        others: dict[int, str],
    ) -> str:
        result = self.of.result
        read: list[tuple[str, str, Operand]] = [(sums, element, result)]
        for name, *numbers in steps:
            if name in ("add", "times"):
                one = self.operands[numbers[0]]
                read.append((values[numbers[0]], one.element, one))
            elif name == "product":
                read.append((others[numbers[0]], self.of._sums, result))
        out = self.empty(result, target)
        loops = ", ".join(result.places)
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(one.places)})>"
            for one in [*(one for _, _, one in read), result]
        )
        kinds = ", ".join(['"parallel"'] * len(result.places))
        types = ", ".join(self.type(one, kind) for _, kind, one in read)
        body = _Body("f64" if "f64" in (element, target) else "f32")
        given = ", ".join(f"%e{i}: {kind}" for i, (_, kind, _) in enumerate(read))
        current = body.widened("%e0", element)
        taken = 1
        for name, *numbers in steps:
            other = ""
            if name in ("add", "times", "product"):
                other = body.widened(f"%e{taken}", read[taken][1])
                taken += 1
            current = body.step(current, name, other, *numbers)
        current = body.narrowed(current, target)
        text = "\n".join(f"    {line}" for line in body.lines)
        return self.value(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({', '.join(value for value, _, _ in read)} : {types}) "
            f"outs({out} : {self.type(result, target)}) {{\n  ^bb0({given}, %old: {target}):\n"
            f"{text}\n    linalg.yield {current} : {target}\n  }} -> {self.type(result, target)}"
        )


class _Body:
    """Operations on scalars of the type `wide`."""

    def __init__(self, wide: str) -> None:
        self.wide = wide
        self.lines: list[str] = []

    def value(self, text: str) -> str:
        name = f"%s{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, number: float) -> str:
        return self.value(f"arith.constant {number!r} : {self.wide}")

    def two(self, name: str, one: str, other: str) -> str:
        return self.value(f"arith.{name} {one}, {other} : {self.wide}")

    def widened(self, name: str, element: str) -> str:
        if element == self.wide:
            return name
        how = "sitofp" if element.startswith("i") else "extf"
        return self.value(f"arith.{how} {name} : {element} to {self.wide}")

    def narrowed(self, name: str, element: str) -> str:
        if element == self.wide:
            return name
        return self.value(f"arith.truncf {name} : {self.wide} to {element}")

    def step(self, x: str, name: str, other: str, *numbers: Any) -> str:
        if name == "add":
            return self.two("addf", x, other)
        if name in ("times", "product"):
            return self.two("mulf", x, other)
        if name == "scale":
            return self.two("mulf", x, self.constant(numbers[0]))
        if name == "relu":
            return self.two("maximumf", x, self.constant(0.0))
        if name == "round":
            return self.widened(self.narrowed(x, numbers[0]), numbers[0])
        one = self.constant(1.0)
        if name == "silu":
            exponential = self.value(f"math.exp {self.value(f'arith.negf {x} : {self.wide}')} "
                                     f": {self.wide}")  # fmt: skip
            return self.two("divf", x, self.two("addf", exponential, one))
        if name == "gelu":
            inner = self.two("mulf", x, self.constant(0.7071067811865476))
            erf = self.value(f"math.erf {inner} : {self.wide}")
            half = self.two("mulf", x, self.constant(0.5))
            return self.two("mulf", half, self.two("addf", erf, one))
        raise ValueError(f"no step {name}")


def terms(place: str) -> list[tuple[str, int]]:
    """Loops, each with how many elements its turns are from each other."""
    found = []
    for term in place.split(" + "):
        loop, _, factor = term.partition("*")
        found.append((loop, int(factor or 1)))
    return found
