"""Random loop nests: what aotc maps to kernels gives what the loops give in sequence.

A program is a function on buffers of integers, of affine.for and scf.for nests which say nothing of
what is parallel: loads and stores next to each other, through views, into temporaries, reductions.
It is built twice, by aotc's own plan and by a pipeline that maps nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from property.two_pipelines import check_against

PROGRAMS = 24
SIZES = (3, 4, 9, 34)
SEEDS = (1, 2, 3)
SEQUENTIAL = ("--pipeline", "builtin.module(canonicalize)")

MATRIX, VECTOR = "memref<?x?xi32>", "memref<?xi32>"
VIEW = "memref<?x?xi32, strided<[?, 1], offset: ?>>"
# Name → type. `v` is a view of `a` without its border; `t` a temporary.
BUFFERS = {"a": MATRIX, "b": MATRIX, "c": VECTOR, "t": MATRIX, "v": VIEW}
OPERATIONS = ("addi", "subi", "muli", "xori", "maxsi")


@dataclass
class Writer:
    """Writes one function, choice by choice."""

    choose: random.Random
    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 1

    def name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def write(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def value(self, text: str) -> str:
        name = self.name()
        self.write(f"{name} = {text}")
        return name


def function(name: str, choose: random.Random) -> str:
    writer = Writer(choose)
    for _ in range(choose.randint(1, 3)):
        nest(writer, is_affine=choose.random() < 0.5, outer=[], most=choose.randint(1, 3))
    body = "\n".join(writer.lines)
    return f"""\
func.func @{name}(%a: {MATRIX}, %b: {MATRIX}, %c: {VECTOR}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %seven = arith.constant 7 : i32
  %n = memref.dim %c, %zero : {VECTOR}
  %end = arith.subi %n, %one : index
  %inner = arith.subi %n, %two : index
  %t = memref.alloc(%n, %n) : {MATRIX}
  %v = memref.subview %a[1, 1] [%inner, %inner] [1, 1] : {MATRIX} to {VIEW}
  affine.for %i = 0 to %n {{
    affine.for %j = 0 to %n {{
      affine.store %seven, %t[%i, %j] : {MATRIX}
    }}
  }}
{body}
  memref.dealloc %t : {MATRIX}
  return
}}
"""


def nest(w: Writer, *, is_affine: bool, outer: list[str], most: int) -> None:
    """A loop from 1 to one before the end, with statements, and loops in it."""
    variable = w.name()
    by = w.choose.choice((1, 1, 1, 2))
    if is_affine:
        w.write(f"affine.for {variable} = 1 to affine_map<()[s] -> (s - 1)>()[%n] step {by} {{")
    else:
        w.write(f"scf.for {variable} = %one to %end step {'%one' if by == 1 else '%two'} {{")
    w.depth += 1
    around = [*outer, variable]
    for _ in range(w.choose.randint(1, 2)):
        if len(around) < most and w.choose.random() < 0.8:
            nest(w, is_affine=is_affine, outer=around, most=most)
        elif w.choose.random() < 0.25:
            store(w, is_affine, around, reduction(w, is_affine, around))
        else:
            store(w, is_affine, around, expression(w, is_affine, around))
    w.depth -= 1
    w.write("}")


def reduction(w: Writer, is_affine: bool, around: list[str]) -> str:
    """What a loop with one value carried along yields."""
    result, variable, carried = w.name(), w.name(), w.name()
    head = "affine.for {} = 1 to affine_map<()[s] -> (s - 1)>()[%n]"
    head = head if is_affine else "scf.for {} = %one to %end step %one"
    w.write(f"{result} = {head.format(variable)} iter_args({carried} = %seven) -> (i32) {{")
    w.depth += 1
    added = expression(w, is_affine, [*around, variable])
    total = w.value(f"arith.{w.choose.choice(OPERATIONS)} {carried}, {added} : i32")
    w.write(f"{'affine' if is_affine else 'scf'}.yield {total} : i32")
    w.depth -= 1
    w.write("}")
    return result


def expression(w: Writer, is_affine: bool, around: list[str]) -> str:
    value = load(w, is_affine, around)
    for _ in range(w.choose.randint(0, 2)):
        if w.choose.random() < 0.2:
            other = w.value(f"arith.index_cast {w.choose.choice(around)} : index to i32")
        else:
            other = load(w, is_affine, around)
        value = w.value(f"arith.{w.choose.choice(OPERATIONS)} {value}, {other} : i32")
    return value


def load(w: Writer, is_affine: bool, around: list[str]) -> str:
    buffer = w.choose.choice(list(BUFFERS))
    at = place(w, is_affine, around, buffer)
    dialect = "affine" if is_affine else "memref"
    return w.value(f"{dialect}.load %{buffer}[{at}] : {BUFFERS[buffer]}")


def store(w: Writer, is_affine: bool, around: list[str], value: str) -> None:
    buffer = w.choose.choice(list(BUFFERS))
    at = place(w, is_affine, around, buffer)
    dialect = "affine" if is_affine else "memref"
    w.write(f"{dialect}.store {value}, %{buffer}[{at}] : {BUFFERS[buffer]}")


def place(w: Writer, is_affine: bool, around: list[str], buffer: str) -> str:
    """Indices that are inside: a loop's variable (from 1 to n - 2), one beside it, or 0."""
    rank = 1 if buffer == "c" else 2
    # In the view's own numbers, the variable is 1 less at most and at least.
    offsets = (-1,) if buffer == "v" else (0, 0, 0, 1, -1)
    found = []
    for _ in range(rank):
        variable, offset = w.choose.choice(around), w.choose.choice(offsets)
        if w.choose.random() < 0.1:
            found.append("0" if is_affine else "%zero")
        elif is_affine:
            found.append(f"{variable} + {offset}" if offset else variable)
        elif offset:
            operation = "addi" if offset > 0 else "subi"
            found.append(w.value(f"arith.{operation} {variable}, %one : index"))
        else:
            found.append(variable)
    return ", ".join(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_give_what_loops_give(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, ())


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", [("-O0",), ("--block", "8x4"), ("--memory", "managed")])
def test_options_change_no_number(options: tuple[str, ...], tmp_path: Path) -> None:
    check(4, tmp_path, options)


def check(seed: int, folder: Path, options: tuple[str, ...]) -> None:
    names = [f"f{i}" for i in range(PROGRAMS)]
    text = "\n".join(function(name, random.Random(f"{seed} {name}")) for name in names)
    manifest = check_against(SEQUENTIAL, text, names, SIZES, seed, folder, options)
    assert manifest["kernels"], "nothing was mapped"
