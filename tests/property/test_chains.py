"""Random chains of linalg on buffers: one kernel for several gives what each gives by itself.

A program is a function of several `linalg.generic`, on integers: elementwise, turned, along rows,
reduced, through views and temporaries, one reading what another wrote, none of them knowing a size.
It is built twice, by aotc's own plan and by a pipeline of plain loops in sequence.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from property.two_pipelines import check_against

PROGRAMS = 16
SIZES = (1, 2, 5, 33)
SEEDS = (1, 2)
PLAIN = ("--pipeline", "builtin.module(func.func(convert-linalg-to-loops))")

MATRIX, VECTOR = "memref<?x?xi32>", "memref<?xi32>"
VIEW = "memref<?x?xi32, strided<[?, 1]>>"
# Name → type. `v` is all of `a`, seen another way; `t`, `u` and `r` are temporaries.
BUFFERS = {"a": MATRIX, "b": MATRIX, "c": VECTOR, "t": MATRIX, "u": MATRIX, "r": VECTOR, "v": VIEW}
OPERATIONS = ("addi", "subi", "muli", "xori", "maxsi")
# The maps that a buffer of a rank has; most accesses are straight.
MAPS = {1: ["(d0)", "(d0)", "(d1)"], 2: ["(d0, d1)"] * 6 + ["(d1, d0)"]}


def _rank(buffer: str) -> int:
    return BUFFERS[buffer].count("?x")


def _statement(choose: random.Random, number: int) -> str:
    """One linalg.generic over a square; into a vector it reduces along the other dimension."""
    inputs = [choose.choice(list(BUFFERS)) for _ in range(choose.randint(1, 3))]
    if all(_rank(name) == 1 for name in inputs):
        inputs[0] = choose.choice("abtu")
    output = choose.choice(list(BUFFERS))
    maps = [choose.choice(MAPS[_rank(name)]) for name in (*inputs, output)]
    kinds = ["parallel", "parallel"]
    if _rank(output) == 1:
        kinds[1 if maps[-1] == "(d0)" else 0] = "reduction"
    # What it writes, it reads at the same place alone: else the order of its own points counts.
    aliases = {"a", "v"} if output in "av" else {output}
    for i, name in enumerate(inputs):
        if name in aliases:
            inputs[i], maps[i] = output, maps[-1]
    spelled = ", ".join(f"affine_map<(d0, d1) -> {map_}>" for map_ in maps)
    names = [f"%e{number}_{i}" for i in range(len(maps))]
    lines, value = [], names[-1]
    operation = choose.choice(OPERATIONS)
    for i, name in enumerate(names[:-1]):
        # A reduction must not depend on its order.
        operation = operation if "reduction" in kinds else choose.choice(OPERATIONS)
        if operation == "subi" and "reduction" in kinds:
            operation = "addi"
        lines.append(f"    %w{number}_{i} = arith.{operation} {value}, {name} : i32")
        value = f"%w{number}_{i}"
    ins = ", ".join(f"%{name}" for name in inputs)
    types = ", ".join(BUFFERS[name] for name in inputs)
    return (
        f"  linalg.generic {{indexing_maps = [{spelled}], "
        f'iterator_types = ["{kinds[0]}", "{kinds[1]}"]}}\n'
        f"      ins({ins} : {types}) outs(%{output} : {BUFFERS[output]}) {{\n"
        f"  ^bb0({', '.join(f'{name}: i32' for name in names)}):\n"
        + "\n".join(lines)
        + f"\n    linalg.yield {value} : i32\n  }}"
    )


def _function(name: str, choose: random.Random) -> str:
    body = "\n".join(_statement(choose, i) for i in range(choose.randint(2, 7)))
    return f"""\
func.func @{name}(%a: {MATRIX}, %b: {MATRIX}, %c: {VECTOR}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %seven = arith.constant 7 : i32
  %n = memref.dim %c, %zero : {VECTOR}
  %t = memref.alloc(%n, %n) : {MATRIX}
  %u = memref.alloc(%n, %n) : {MATRIX}
  %r = memref.alloc(%n) : {VECTOR}
  %v = memref.subview %a[0, 0] [%n, %n] [1, 1] : {MATRIX} to {VIEW}
  linalg.fill ins(%seven : i32) outs(%t : {MATRIX})
  linalg.fill ins(%seven : i32) outs(%u : {MATRIX})
  linalg.fill ins(%seven : i32) outs(%r : {VECTOR})
{body}
  memref.dealloc %t : {MATRIX}
  memref.dealloc %u : {MATRIX}
  memref.dealloc %r : {VECTOR}
  return
}}
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_give_what_operations_give(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", [("-O0",), ("--block", "8x4")])
def test_options_change_no_number(options: tuple[str, ...], tmp_path: Path) -> None:
    check(4, tmp_path, *options)


def check(seed: int, folder: Path, *options: str) -> None:
    names = [f"f{i}" for i in range(PROGRAMS)]
    text = "\n".join(_function(name, random.Random(f"{seed} {name}")) for name in names)
    check_against(PLAIN, text, names, SIZES, seed, folder, options)
