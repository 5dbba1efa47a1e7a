"""Blocks that control never reaches are gone before MLIR's canonicalize sees them."""

from __future__ import annotations

from aotc.lower.unreachable import erase_unreachable_blocks
from aotc.mlir import ir, make_context

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
