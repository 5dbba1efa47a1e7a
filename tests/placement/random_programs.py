"""Random programs of host code and kernels over a few buffers: MLIR, and what it computes.

A program is a list of statements, each a function that appends MLIR text and one that does the
same to NumPy arrays, which know nothing of two memories.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from placement.patterns import N, initialize, launch

MEMREF = f"memref<{N}xf32>"
PART = "memref<16xf32, strided<[1], offset: 8>>"
_MOST_DEEP = 3
F32 = np.float32


@dataclass
class Run:
    """The values of one run: buffers by SSA name, the sum so far, the entry's number."""

    number: int
    buffers: dict[str, Any] = field(default_factory=dict)
    total: Any = field(default_factory=lambda: F32(0))


Do = Callable[[Run], None]


@dataclass
class Program:
    """The text of an entry `(%out, %n) -> f32`, and its meaning."""

    text: str
    do: Do

    def expect(self, number: int) -> tuple[float, list[float]]:
        """(the result, the content of `out`) for a number."""
        run = Run(number, {"%out": np.zeros(N, F32)})
        with np.errstate(all="ignore"):
            self.do(run)
        return float(run.total), run.buffers["%out"].tolist()


class _Writer:
    """Writes one program. Text uses `total`, the SSA name of the sum so far."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0
        self.total = "%zero"

    def name(self) -> str:
        self._names += 1
        return f"%x{self._names}"

    def block(self, buffers: list[str], depth: int, count: int) -> tuple[list[str], list[Do]]:
        lines: list[str] = []
        done: list[Do] = []
        buffers = list(buffers)
        for _ in range(count):
            kinds = self._kinds(depth)
            text, do = self._random.choice(kinds)(buffers, depth)
            lines.append(text)
            done.append(do)
        return lines, done

    def _kinds(self, depth: int) -> list[Callable[[list[str], int], tuple[str, Do]]]:
        simple = [self.kernel, self.kernel, self.kernel, self.store, self.read, self.host_loop]
        simple += [self.copy, self.part, self.select, self.call]
        nested = [self.loop, self.swap, self.branch, self.local, self.choice]
        return simple + nested * 2 if depth < _MOST_DEEP else simple

    def kernel(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        kind = self._random.choice(["fill", "inc", "add", "next"])
        a, b = self._random.choice(buffers), self._random.choice(buffers)
        if kind in ("add", "next"):
            return launch(kind, a, b), _kernel(kind, a, b)
        return launch(kind, a), _kernel(kind, a)

    def call(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a = self._random.choice(buffers)
        return f"func.call @step({a}) : ({MEMREF}) -> ()", _kernel("inc", a)

    def part(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, view = self._random.choice(buffers), self.name()
        text = f"{view} = memref.subview {a}[8][16][1] : {MEMREF} to {PART}\n"
        if self._random.random() < 0.5:

            def on_device(run: Run) -> None:
                run.buffers[a][8:24] += F32(1)

            return text + launch("inc_part", (view, PART)), on_device

        def on_host(run: Run) -> None:
            run.buffers[a][8 + 5] = F32(100)

        return text + f"memref.store %hundred, {view}[%c5] : {PART}", on_host

    def store(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, total = self._random.choice(buffers), self.total

        def do(run: Run) -> None:
            run.buffers[a][5] = run.total

        return f"memref.store {total}, {a}[%c5] : {MEMREF}", do

    def read(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, value, total = self._random.choice(buffers), self.name(), self.name()
        index = self._random.choice([5, 6])
        text = (
            f"{value} = memref.load {a}[%c{index}] : {MEMREF}\n"
            f"{total} = arith.addf {self.total}, {value} : f32"
        )
        self.total = total

        def do(run: Run) -> None:
            run.total = F32(run.total + run.buffers[a][index])

        return text, do

    def host_loop(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, i, value, more = self._random.choice(buffers), self.name(), self.name(), self.name()
        text = f"""scf.for {i} = %c0 to %c32 step %c1 {{
      {value} = memref.load {a}[{i}] : {MEMREF}
      {more} = arith.addf {value}, %hundred : f32
      memref.store {more}, {a}[{i}] : {MEMREF}
    }}"""

        def do(run: Run) -> None:
            run.buffers[a] += F32(100)

        return text, do

    def copy(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, b = self._random.choice(buffers), self._random.choice(buffers)

        def do(run: Run) -> None:
            run.buffers[b][:] = run.buffers[a].copy()

        if a == b:
            return "", lambda run: None
        return f"memref.copy {a}, {b} : {MEMREF} to {MEMREF}", do

    def condition(self) -> tuple[str, str, int]:
        mask, bits, name = self._random.choice([1, 2]), self.name(), self.name()
        text = (
            f"{bits} = arith.andi %n, %c{mask} : index\n"
            f"{name} = arith.cmpi ne, {bits}, %c0 : index\n"
        )
        return text, name, mask

    def select(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, b = self._random.choice(buffers), self._random.choice(buffers)
        text, condition, mask = self.condition()
        name = self.name()
        buffers.append(name)

        def do(run: Run) -> None:
            run.buffers[name] = run.buffers[a] if run.number & mask else run.buffers[b]

        return f"{text}{name} = arith.select {condition}, {a}, {b} : {MEMREF}", do

    def loop(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        before, inner, total, i = self.total, self.name(), self.name(), self.name()
        bound, turns = self._random.choice([("%n", None), ("%c2", 2)])
        self.total = inner
        lines, done = self.block(buffers, depth + 1, self._random.randint(1, 3))
        text = f"""{total} = scf.for {i} = %c0 to {bound} step %c1 iter_args({inner} = {before})
        -> (f32) {{
    {_joined(lines)}
    scf.yield {self.total} : f32
    }}"""
        self.total = total

        def do(run: Run) -> None:
            for _ in range(run.number if turns is None else turns):
                _all(done, run)

        return text, do

    def swap(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        a, b = self._random.choice(buffers), self._random.choice(buffers)
        before, inner, result, i = self.total, self.name(), self.name(), self.name()
        p, q = self.name(), self.name()
        self.total = inner
        lines, done = self.block([p, q], depth + 1, self._random.randint(1, 3))
        types = f"f32, {MEMREF}, {MEMREF}"
        text = f"""{result}:3 = scf.for {i} = %c0 to %n step %c1
        iter_args({inner} = {before}, {p} = {a}, {q} = {b}) -> ({types}) {{
    {_joined(lines)}
    scf.yield {self.total}, {q}, {p} : {types}
    }}"""
        self.total = f"{result}#0"
        buffers += [f"{result}#1", f"{result}#2"]

        def do(run: Run) -> None:
            pair = run.buffers[a], run.buffers[b]
            for _ in range(run.number):
                run.buffers[p], run.buffers[q] = pair
                _all(done, run)
                pair = pair[1], pair[0]
            run.buffers[f"{result}#1"], run.buffers[f"{result}#2"] = pair

        return text, do

    def branch(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        text, condition, mask = self.condition()
        before, total = self.total, self.name()
        sides = []
        ends = []
        for _ in range(2):
            self.total = before
            sides.append(self.block(buffers, depth + 1, self._random.randint(0, 2)))
            ends.append(self.total)
        self.total = total
        then, other = (
            f"{_joined(lines)}\nscf.yield {end} : f32"
            for (lines, _), end in zip(sides, ends, strict=True)
        )
        text += f"{total} = scf.if {condition} -> (f32) {{\n{then}\n}} else {{\n{other}\n}}"

        def do(run: Run) -> None:
            _all(sides[0][1] if run.number & mask else sides[1][1], run)

        return text, do

    def choice(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        """A branch that hands on one buffer or another, seen as one of unknown size and back."""
        text, condition, mask = self.condition()
        before, result, seen, name = self.total, self.name(), self.name(), self.name()
        sides = []
        for _ in range(2):
            self.total = before
            lines, done = self.block(buffers, depth + 1, self._random.randint(0, 2))
            chosen = self._random.choice(buffers)
            end = f"scf.yield {self.total}, {chosen} : f32, {MEMREF}"
            sides.append((f"{_joined(lines)}\n{end}", done, chosen))
        self.total = f"{result}#0"
        buffers.append(name)
        text += f"""{result}:2 = scf.if {condition} -> (f32, {MEMREF}) {{
    {sides[0][0]}
    }} else {{
    {sides[1][0]}
    }}
    {seen} = memref.cast {result}#1 : {MEMREF} to memref<?xf32>
    {name} = memref.cast {seen} : memref<?xf32> to {MEMREF}"""

        def do(run: Run) -> None:
            _, done, chosen = sides[0] if run.number & mask else sides[1]
            _all(done, run)
            run.buffers[name] = run.buffers[chosen]

        return text, do

    def local(self, buffers: list[str], depth: int) -> tuple[str, Do]:
        t = self.name()
        kind = self._random.choice(["alloc", "alloca"])
        text, start = self.start(t, kind)
        lines, done = self.block([*buffers, t], depth + 1, self._random.randint(1, 3))
        free = f"memref.dealloc {t} : {MEMREF}" if kind == "alloc" else ""

        def do(run: Run) -> None:
            start(run)
            _all(done, run)

        return f"{text}\n{_joined(lines)}\n{free}", do

    def start(self, name: str, kind: str) -> tuple[str, Do]:
        """A new buffer with 0, 1, 2, ... in it, from the host or from a kernel."""

        def do(run: Run) -> None:
            run.buffers[name] = np.arange(N, dtype=F32)

        by = initialize(name).replace("%h", self.name() + "h")
        by = by if self._random.random() < 0.5 else launch("fill", name)
        return f"{name} = memref.{kind}() : {MEMREF}\n{by}", do


def _kernel(kind: str, a: str, b: str = "") -> Do:
    def do(run: Run) -> None:
        source = run.buffers[a]
        if kind == "fill":
            source[:] = np.arange(N, dtype=F32)
        elif kind == "inc":
            source += F32(1)
        elif kind == "add":
            run.buffers[b] += source.copy()
        else:
            run.buffers[b][:] = source + F32(1)

    return do


def _joined(lines: list[str]) -> str:
    return "\n    ".join(lines)


def _all(done: list[Do], run: Run) -> None:
    for do in done:
        do(run)


def random_program(name: str, seed: int) -> Program:
    """The program of a seed, with two or three buffers of its own."""
    writer = _Writer(seed)
    buffers = [f"%buffer{i}" for i in range(2 + seed % 2)]
    starts = [writer.start(buffer, "alloc") for buffer in buffers]
    lines, done = writer.block(buffers, 0, 7)
    ends, shown = [], []
    for buffer in buffers:
        text, do = writer.read([buffer], 0)
        ends += [text, launch("add", buffer, "%out"), f"memref.dealloc {buffer} : {MEMREF}"]
        shown += [do, _kernel("add", buffer, "%out")]
    body = _joined([*(text for text, _ in starts), *lines, *ends])
    text = f"""
  func.func @{name}(%out: {MEMREF}, %n: index) -> f32 attributes {{llvm.emit_c_interface}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %hundred = arith.constant 100.0 : f32
    {body}
    return {writer.total} : f32
  }}
"""
    return Program(text, lambda run: _all([*(do for _, do in starts), *done, *shown], run))
