"""Blocks that control never reaches are gone before MLIR's canonicalize sees them."""

from __future__ import annotations

import pytest

from aotc.mlir import ir, make_context
from aotc.rewrites.run import run_pipeline
from aotc.rewrites.unreachable import erase_unreachable_blocks, fold_branches

# Once `%never` is a constant, the loops within ^body are what canonicalize merges for ever.
NEVER_ENTERED = """
func.func @f(%x: memref<64xi32>, %n: index) {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %never = arith.constant false
  cf.br ^outer
^outer:
  cf.cond_br %never, ^body, ^end(%one : i32)
^body:
  cf.br ^inner(%z : i32)
^inner(%j: i32):
  %v = memref.load %x[%n] : memref<64xi32>
  %c = arith.cmpi ugt, %v, %j : i32
  cf.cond_br %c, ^step, ^done
^step:
  %j2 = arith.addi %j, %one : i32
  cf.cond_br %never, ^done, ^back
^back:
  cf.br ^inner(%j2 : i32)
^done:
  cf.br ^outer
^end(%r: i32):
  memref.store %r, %x[%n] : memref<64xi32>
  return
}
"""

NESTED = """
func.func @f(%c: i1) {
  scf.if %c {
    scf.execute_region {
      %yes = arith.constant true
      cf.cond_br %yes, ^left, ^right
    ^left:
      scf.yield
    ^right:
      cf.br ^right
    }
  }
  return
}
"""

BEHIND_THE_END = """
func.func @f(%one: i32) {
  return
^again(%i: i32):
  %j = arith.addi %i, %one : i32
  cf.br ^again(%j : i32)
}
"""

REACHED = """
func.func @f(%c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^b
^b:
  cf.cond_br %c, ^a, ^end
^end:
  return
}
"""

SWITCH = """
func.func @f(%x: i32) -> i32 {{
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %k = arith.constant {value} : {type}
  cf.switch %k : {type}, [
    default: ^end(%x : i32),
    {first}: ^end(%one : i32),
    {second}: ^both(%two, %one : i32, i32)
  ]
^both(%a: i32, %b: i32):
  %sum = arith.addi %a, %b : i32
  cf.br ^end(%sum : i32)
^end(%r: i32):
  return %r : i32
}}
"""

# The branch in front of the loop is on what is constant at a second look alone.
NEVER_ENTERED_AT_LAST = """
func.func @f(%x: memref<64xi64>, %y: memref<64xf32>, %k: i64) {{
  %c0 = arith.constant 0 : i64
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %i = arith.constant 0 : index
  {branch}
^joint(%got: i64):
  memref.store %got, %x[%i] : memref<64xi64>
  return
^loop(%turn: i32, %v: i64):
  %goes_on = arith.cmpi slt, %turn, %four : i32
  cf.cond_br %goes_on, ^body, ^joint(%v : i64)
^body:
  %next = arith.addi %turn, %one : i32
  %f = memref.load %y[%i] : memref<64xf32>
  %g = arith.uitofp %next : i32 to f32
  %less = arith.cmpf olt, %f, %g : f32
  cf.cond_br %less, ^then, ^else
^then:
  %square = arith.muli %v, %v : i64
  %most = arith.maxui %square, %v : i64
  cf.br ^back(%most : i64)
^else:
  memref.store %k, %x[%i] : memref<64xi64>
  cf.br ^back(%v : i64)
^back(%w: i64):
  cf.br ^loop(%next, %w : i32, i64)
}}
"""
BRANCHES_AT_LAST = {
    "switch": """cf.switch %c0 : i64, [
    default: ^loop(%zero, %k : i32, i64),
    0: ^joint(%k : i64)
  ]""",
    "comparison": """%is = arith.cmpi eq, %c0, %c0 : i64
  cf.cond_br %is, ^joint(%k : i64), ^loop(%zero, %k : i32, i64)""",
    "another block's": """cf.br ^ask(%c0 : i64)
^ask(%given: i64):
  %is = arith.cmpi eq, %given, %c0 : i64
  cf.cond_br %is, ^joint(%k : i64), ^loop(%zero, %k : i32, i64)""",
}


def erase(text: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        erase_unreachable_blocks(module.operation)
        assert module.operation.verify()
        return str(module)


def test_a_loop_behind_a_branch_never_taken() -> None:
    text = erase(NEVER_ENTERED)
    assert "memref.load" not in text
    assert "cf.cond_br" not in text
    assert text.count("cf.br") == 2
    assert "memref.store %c1_i32" not in text
    assert "cf.br ^bb2(%c1_i32 : i32)" in text


def test_within_other_regions() -> None:
    text = erase(NESTED)
    assert "^bb2" not in text
    assert "cf.br ^bb1" in text
    assert "scf.yield" in text


def test_what_is_reached_is_left_alone() -> None:
    with make_context():
        before = str(ir.Module.parse(REACHED))
    assert erase(REACHED) == before


@pytest.mark.parametrize(
    ("type_", "value", "cases", "found"),
    [
        ("i64", 5, (5, 3000000000), "cf.br ^bb1(%c1_i32 : i32)"),
        ("i64", 3000000000, (5, 3000000000), "cf.br ^bb1(%c2_i32, %c1_i32 : i32, i32)"),
        ("i8", -1, (0, -1), "cf.br ^bb1(%c2_i32, %c1_i32 : i32, i32)"),
        ("i32", 7, (0, 1), "cf.br ^bb1(%arg0 : i32)"),
        ("i1", 1, (0, 1), "cf.br ^bb1(%c2_i32, %c1_i32 : i32, i32)"),
        ("i1", 0, (0, 1), "cf.br ^bb1(%c1_i32 : i32)"),
    ],
)
def test_a_switch_on_a_constant(type_: str, value: int, cases: tuple[int, int], found: str) -> None:
    text = erase(SWITCH.format(type=type_, value=value, first=cases[0], second=cases[1]))
    assert "cf.switch" not in text
    assert found in text


@pytest.mark.parametrize("branch", BRANCHES_AT_LAST.values(), ids=BRANCHES_AT_LAST.keys())
def test_what_canonicalize_would_find_constant(branch: str) -> None:
    """A loop that is still there when canonicalize begins would keep it busy for ever."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(NEVER_ENTERED_AT_LAST.format(branch=branch)).operation
        fold_branches(module)
        assert "memref.load" not in str(module)
        module = ir.Module.parse(NEVER_ENTERED_AT_LAST.format(branch=branch)).operation
        run_pipeline(module, ["canonicalize"])
        assert "cf." not in str(module)
        assert "memref.store %arg2" in str(module)


@pytest.mark.parametrize("passes", [(), ("cse",), ("canonicalize",), ("canonicalize", "cse")])
def test_passes_leave_no_block_that_is_not_reached(passes: tuple[str, ...]) -> None:
    """`cse` alone erases no blocks."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(BEHIND_THE_END).operation
        run_pipeline(module, passes)
        assert "cf.br" not in str(module)
