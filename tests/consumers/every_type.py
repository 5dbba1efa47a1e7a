"""The MLIR module whose entries have every type of argument and result that C can say."""

from __future__ import annotations

# What MLIR calls an element type, by the name of its entries.
TYPES = {
    "bool": "i1",
    **{f"{sign}{bits}": f"{sign}{bits}" for sign in ("i", "si", "ui") for bits in (8, 16, 32, 64)},
    "index": "index",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "c64": "complex<f32>",
    "c128": "complex<f64>",
    "f8e4m3fn": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
}


def every_type() -> str:
    return "".join(_of_one_type(name, type_) for name, type_ in TYPES.items()) + _OTHERS


def _of_one_type(name: str, type_: str) -> str:
    """A kernel copies; a scalar goes into a memref of rank 0, and comes back."""
    memref = f"memref<?x{type_}>"
    return f"""
func.func @copy_{name}(%x: {memref}, %y: {memref}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : {memref}
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %a = memref.load %x[%i] : {memref}
    memref.store %a, %y[%i] : {memref}
  }}
  return
}}
func.func @scalar_{name}(%s: {type_}, %y: memref<{type_}>) -> {type_}
    attributes {{llvm.emit_c_interface}} {{
  memref.store %s, %y[] : memref<{type_}>
  return %s : {type_}
}}
"""


_OTHERS = """
// y = 2 x, of sizes that the types say.
func.func @fixed(%x: memref<2x3xf32>, %y: memref<2x3xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 3 {
      %a = affine.load %x[%i, %j] : memref<2x3xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %y[%i, %j] : memref<2x3xf32>
    }
  }
  return
}

// y = 2 x, where x has gaps and does not begin at its pointer.
func.func @strided(%x: memref<2x3xf32, strided<[8, 2], offset: 5>>, %y: memref<2x3xf32>)
    attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 3 {
      %a = affine.load %x[%i, %j] : memref<2x3xf32, strided<[8, 2], offset: 5>>
      %b = arith.addf %a, %a : f32
      affine.store %b, %y[%i, %j] : memref<2x3xf32>
    }
  }
  return
}

// y = 2 x, where the descriptor of x says how it lies.
func.func @any_strides(%x: memref<?x?xf32, strided<[?, ?], offset: ?>>, %y: memref<?x3xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c3) step (%c1, %c1) {
    %a = memref.load %x[%i, %j] : memref<?x?xf32, strided<[?, ?], offset: ?>>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i, %j] : memref<?x3xf32>
  }
  return
}

func.func @negate(%flag: i1) -> i1 attributes {llvm.emit_c_interface} {
  %true = arith.constant true
  %not = arith.xori %flag, %true : i1
  return %not : i1
}

// Nothing in, nothing out.
func.func @nothing() attributes {llvm.emit_c_interface} {
  return
}

// 0, 1, 2, ... in a new buffer, which the caller frees.
func.func @count(%n: index) -> memref<?xi32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc(%n) : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = arith.index_cast %i : index to i32
    memref.store %a, %m[%i] : memref<?xi32>
  }
  return %m : memref<?xi32>
}

// Several results: two numbers, an argument again, and a new buffer.
func.func @several(%a: i32, %b: memref<4xf32>) -> (i32, f64, memref<4xf32>, memref<2xi64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %next = arith.addi %a, %one : i32
  %wide = arith.sitofp %a : i32 to f64
  %long = arith.extsi %a : i32 to i64
  %m = memref.alloc() : memref<2xi64>
  memref.store %long, %m[%c0] : memref<2xi64>
  memref.store %long, %m[%c1] : memref<2xi64>
  return %next, %wide, %b, %m : i32, f64, memref<4xf32>, memref<2xi64>
}

// Arguments may be called as C++ calls other things, or as macros are.
func.func @named(%new: i32, %N: i32, %I: i32, %stream: memref<?xi32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %a = arith.addi %new, %N : i32
  %b = arith.addi %a, %I : i32
  memref.store %b, %stream[%c0] : memref<?xi32>
  return
}
"""
