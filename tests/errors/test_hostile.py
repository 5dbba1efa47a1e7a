"""Modules that nobody means: each is refused with exit 2, its place, and on one screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc import mlir
from aotc.input.source import bytecode_of
from aotc.mlir import ir

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

ENTRY = "attributes {llvm.emit_c_interface}"


# Of an expression of an affine map in bytecode.
_DIMENSION = 1
_LOOP = "affine.for %i = 0 to affine_map<() -> ({})>() {{ }}"


def _tensors_in_loops(others: int, count: int) -> str:
    """Loops that carry a tensor, in each other, inside other loops."""
    heads = [
        f"%r{i} = scf.for %i{i} = %n to %n step %n iter_args(%y{i} = "
        f"{f'%y{i - 1}' if i else '%x'}) -> tensor<4xf32> {{\n"
        for i in range(count)
    ]
    last = count - 1
    tails = [
        f"scf.yield {f'%y{last}' if i == last else f'%r{i + 1}'} : tensor<4xf32>\n}}\n"
        for i in reversed(range(count))
    ]
    around = [f"scf.for %o{i} = %n to %n step %n {{\n" for i in range(others)]
    body = "".join([*around, *heads, *tails, *["}\n"] * others])
    return (
        "func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {\n"
        f"{body}return %x : tensor<4xf32>\n}}"
    )


def _function(body: str, arguments: str = "%x: memref<4xf32>") -> str:
    return f"func.func @f({arguments}) {ENTRY} {{\n  {body}\n  return\n}}\n"


# Text, and where and with which words it is refused.
REFUSED = {
    "a name that is a number": (
        _function("", "%x: memref<4xf32> {aotc.name = 3}"),
        "1:14: error: The aotc.name of this argument is 3 : i64; it must be a string.",
    ),
    "a name of two lines": (
        _function("", '%x: memref<4xf32> {aotc.name = "a\\0Ab"}'),
        "1:14: error: The aotc.name of this argument must be one line of at most 1000 characters.",
    ),
    "a type of many dimensions": (
        _function("", f"%x: memref<{'1x' * 3000}f32>"),
        "1:14: error: The argument 'x' of 'f' has the type memref<1x1x1x1x1x1x1..., of 6011 "
        "characters; aotc takes 1000.",
    ),
    "an entry with a quote": (
        f'func.func @"a\\22;#include<x>\\0A"(%x: memref<4xf32>) {ENTRY} {{ return }}',
        "1:1: error: the name 'a\";#include<x>\\n' has the character '\"'",
    ),
    "a target triple that is a map": (
        "module attributes {llvm.target_triple = affine_map<()[s0] -> (s0)>} {\n"
        f"func.func @f() {ENTRY} {{ return }}\n}}",
        "1:1: error: llvm.target_triple of this builtin.module is affine_map<()[s0] -> (s0)>; "
        "expected a string.",
    ),
    "a name of other bytes": (
        'func.func private @"g\\FF"() { return }',
        "1:1: error: this name is not UTF-8.",
    ),
    "a function of the runtime": (
        f"func.func @mgpuModuleLoad(%x: memref<4xf32>) {ENTRY} {{ return }}",
        "1:1: error: the name 'mgpuModuleLoad' begins with 'mgpu', as those of aotc's runtime do.",
    ),
    "a function of aotc": (
        "func.func private @aotc_check() { return }",
        "1:1: error: the name 'aotc_check' begins with 'aotc_', as those of aotc's runtime do.",
    ),
    "a vector that LLVM takes minutes for": (
        _function("%v = arith.constant dense<1.0> : vector<128x256xf32>"),
        "2:8: error: vector<128x256xf32> has 32768 elements; a vector may have 16384.",
    ),
    "a function of a vector that LLVM takes minutes for": (
        _function(
            "%v = arith.constant dense<1.0> : vector<128x128xf32>\n"
            "  %e = math.exp %v : vector<128x128xf32>"
        ),
        "3:8: error: math.exp of 16384 elements; it may have a vector of 8192.",
    ),
    "a loop that is unrolled 100000 times": (
        "module attributes {transform.with_named_sequence} {\n"
        + _function("")
        + "transform.named_sequence @__transform_main(%m: !transform.any_op) {\n"
        "  transform.loop.unroll %m {factor = 100000} : !transform.any_op\n"
        "  transform.yield\n}\n}",
        "7:3: error: the factor of this transform.loop.unroll is 100000; aotc takes 1024.",
    ),
    "an attribute that is a location": (
        _function(
            "linalg.exp {aotc.block = loc(unknown)} ins(%x : memref<4xf32>)"
            " outs(%x : memref<4xf32>)"
        ),
        "2:3: error: the attribute 'aotc.block' of this linalg.exp has a location in it.",
    ),
    "an array of integers as wide as no others": (
        _function(
            "linalg.exp {aotc.block = array<i65536>} ins(%x : memref<4xf32>)"
            " outs(%x : memref<4xf32>)"
        ),
        "2:3: error: the attribute 'aotc.block' of this linalg.exp has an array of odd elements",
    ),
    "a bound without its operand": (
        _function(
            '"affine.for"() <{lowerBoundMap = affine_map<() -> (0)>, step = 1 : index,'
            " upperBoundMap = affine_map<(d0) -> (d0)>, operandSegmentSizes = array<i32: 0, 0, 0>"
            "}> ({^bb0(%i: index): affine.yield}) : () -> ()"
        ),
        "2:3: error: upperBoundMap of this affine.for takes 1 operands; there are 0.",
    ),
    "bounds of parallel loops without their operands": (
        _function(
            '"affine.parallel"() <{lowerBoundsMap = affine_map<() -> (0)>, steps = [1],'
            " lowerBoundsGroups = dense<1> : tensor<1xi32>, reductions = [],"
            " upperBoundsGroups = dense<1> : tensor<1xi32>,"
            " upperBoundsMap = affine_map<(d0) -> (d0)>}>"
            " ({^bb0(%i: index): affine.yield}) : () -> ()"
        ),
        "2:3: error: the bounds of this affine.parallel take 1 operands; there are 0.",
    ),
    "a location in an attribute": (
        "func.func @f() attributes {a = [{b = loc(unknown)}], llvm.emit_c_interface} { return }",
        "1:1: error: the attribute 'a' of this func.func has a location in it.",
    ),
    "a note of aotc's that it did not write": (
        "func.func @f() attributes {aotc.capabilities = 3, llvm.emit_c_interface} { return }",
        "1:1: error: aotc.capabilities is 3 : i64, a kind of attribute that aotc does not write",
    ),
    "a type of a function that is none": (
        "gpu.module @m attributes {function_type = #gpu.address_space<workgroup>} {}\n"
        + _function(""),
        "1:1: error: function_type of this gpu.module is #gpu.address_space<workgroup>; expected "
        "a type.",
    ),
    "a symbol that is a number": (
        _function("linalg.exp {sym_name = 3} ins(%x : memref<4xf32>) outs(%x : memref<4xf32>)"),
        "2:3: error: sym_name of this linalg.exp is 3 : i64; expected a string.",
    ),
    "attributes of arguments that are none": (
        "gpu.module @m attributes {arg_attrs = 3} {}\n" + _function(""),
        "1:1: error: arg_attrs of this gpu.module is 3 : i64; expected an array.",
    ),
    "an entry by a number": (
        "func.func @f() attributes {llvm.emit_c_interface = 3} { return }",
        "1:1: error: llvm.emit_c_interface of this func.func is 3 : i64; expected a unit "
        "attribute, which is its name alone.",
    ),
    "a variable of 2^42 bytes": (
        "memref.global @g : memref<1099511627776xf32> = dense<0.0>\n" + _function(""),
        "1:1: error: The constants and variables g have 4194304 MiB together; the code of one "
        "program or library reaches 1920 MiB.",
    ),
    "the same without a value": (
        "memref.global @g : memref<1048576x1048576xf32> = uninitialized\n" + _function(""),
        "1:1: error: The constants and variables g have 4194304 MiB together; the code of one "
        "program or library reaches 1920 MiB.",
    ),
    "an attribute of another name": (
        'func.func @f() attributes {"\\FF" = 3, llvm.emit_c_interface} { return }',
        "1:1: error: an attribute of this func.func has a name that is not UTF-8.",
    ),
    "a long name": (
        f"func.func @{'f' * 100_000}() {ENTRY} {{ return }}",
        "1:1: error: the name 'ffffffffffffffffffff...' has 100000 characters; aotc takes 1000.",
    ),
    "a step that goes back": (
        _function(
            "%c0 = arith.constant 0 : index\n  %c4 = arith.constant 4 : index\n"
            "  %m = arith.constant -1 : index\n  scf.for %i = %c0 to %c4 step %m { }"
        ),
        "5:3: error: the step of this scf.for is -1; it must be positive.",
    ),
    "a step that stays": (
        _function("%c0 = arith.constant 0 : i32\n  scf.for %i = %c0 to %c0 step %c0 : i32 { }"),
        "3:3: error: the step of this scf.for is 0; it must be positive.",
    ),
    "arithmetic that no device rounds so": (
        _function("%y = arith.addf %x, %x upward : f32", "%x: f32"),
        "2:8: error: this arith.addf rounds upward; devices round arithmetic to_nearest_even. "
        "(arith.truncf may round otherwise.)",
    ),
    "an argument of 2^63 bytes": (
        _function("", "%x: memref<1152921504606846976xf64>"),
        "1:14: error: memref<1152921504606846976xf64> has more bytes than memory can hold.",
    ),
    "a stride that leaves memory": (
        _function("", "%x: memref<4xf32, strided<[4611686018427387904]>>"),
        "1:14: error: memref<4xf32, strided<[4611686018427387904]>> has more bytes",
    ),
    "a buffer of 2^66 bytes": (
        _function("%a = memref.alloc() : memref<2x4611686018427387904xf64>"),
        "2:8: error: memref<2x4611686018427387904xf64> has more bytes than memory can hold.",
    ),
    "matrices of 2^66 bytes": (
        _function(
            "linalg.matmul ins(%a, %a : tensor<4294967296x4294967296xf32>, "
            "tensor<4294967296x4294967296xf32>) outs(%a : tensor<4294967296x4294967296xf32>) "
            "-> tensor<4294967296x4294967296xf32>",
            "%a: tensor<4294967296x4294967296xf32>",
        ),
        "1:14: error: tensor<4294967296x4294967296xf32> has more bytes than memory can hold.",
    ),
    "a vector of 2^40 elements": (
        _function("%v = arith.constant dense<0> : vector<1099511627776xi8>"),
        "2:8: error: vector<1099511627776xi8> has 1099511627776 elements; a vector may have 16384.",
    ),
    "the length of scalable vectors": (
        "func.func @f() -> index {\n  %n = vector.vscale\n  return %n : index\n}",
        "2:8: error: vector.vscale is the length of scalable vectors, which aotc does not take.",
    ),
    "scalable sizes of a schedule": (
        "module attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @__transform_main(%root: !transform.any_op "
        "{transform.consumed}) {\n"
        "  transform.structured.vectorize %root vector_sizes [2, [4]] : !transform.any_op\n"
        "  transform.yield\n}\n}",
        "3:3: error: this transform.structured.vectorize has scalable sizes, of vectors that aotc "
        "does not take: write sizes without brackets.",
    ),
    "tensors in 21 loops": (
        _tensors_in_loops(0, 21),
        "22:8: error: this scf.for carries a tensor in more than 20 loops, which aotc does not "
        "take: bufferization takes twice the time for each.",
    ),
    "tensors in 21 loops inside others": (
        _tensors_in_loops(21, 21),
        "43:8: error: this scf.for carries a tensor in more than 20 loops, which aotc does not "
        "take: bufferization takes twice the time for each.",
    ),
    "tensors in 21 affine loops": (
        _tensors_in_loops(0, 21)
        .replace("scf.yield", "affine.yield")
        .replace("scf.for", "affine.for")
        .replace("= %n to %n step %n", "= 0 to %n"),
        "22:8: error: this affine.for carries a tensor in more than 20 loops, which aotc does not "
        "take: bufferization takes twice the time for each.",
    ),
    "a sparse matrix of one row of blocks": (
        "#B = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 2 : dense, "
        "j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)}>\n"
        "func.func @f(%x: tensor<2x4xf32, #B>, %v: tensor<4xf32>, %y: tensor<2xf32>) "
        "-> tensor<2xf32> attributes {llvm.emit_c_interface} {\n"
        "  %r = linalg.matvec ins(%x, %v : tensor<2x4xf32, #B>, tensor<4xf32>) "
        "outs(%y : tensor<2xf32>) -> tensor<2xf32>\n"
        "  return %r : tensor<2xf32>\n}",
        "3:8: error: linalg.matvec is not supported here: d0 floordiv 2 in tensor<2x4xf32",
    ),
    "a sparse matrix of a part of a block": (
        "#B = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 2 : dense, "
        "j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)}>\n"
        "func.func @f(%x: tensor<5x4xf32, #B>, %v: tensor<4xf32>, %y: tensor<5xf32>) "
        "-> tensor<5xf32> attributes {llvm.emit_c_interface} {\n"
        "  %r = linalg.matvec ins(%x, %v : tensor<5x4xf32, #B>, tensor<4xf32>) "
        "outs(%y : tensor<5xf32>) -> tensor<5xf32>\n"
        "  return %r : tensor<5xf32>\n}",
        "3:8: error: linalg.matvec is not supported here: the size of d0 floordiv 2 in ",
    ),
    "a module in a module": (
        "module {\n  module @inner {\n    func.func @g() { return }\n  }\n"
        "  func.func @f() { return }\n}",
        "2:3: error: this builtin.module with a func.func is in another module; aotc builds the "
        "outermost module's functions: move its operations there.",
    ),
    "a scalable vector": (
        _function("%v = arith.constant dense<0.0> : vector<[4]xf32>"),
        "2:8: error: vector<[4]xf32> is a scalable vector, which aotc does not take.",
    ),
    "f80 in a kernel": (
        _function(
            """affine.for %i = 0 to 4 {
    %a = affine.load %x[%i] : memref<4xf32>
    %b = arith.extf %a : f32 to f80
    %c = arith.addf %b, %b : f80
    %d = arith.truncf %c : f80 to f32
    affine.store %d, %x[%i] : memref<4xf32>
  }"""
        ),
        "4:10: error: f80 is not supported in kernels: arith.extf makes a f80.",
    ),
    "a memory space without a meaning": (
        _function("", '%x: memref<4xf64, "x">'),
        '1:14: error: memref<4xf64, "x"> is in the memory space "x", which aotc does not know',
    ),
    "a memory space of no GPU": (
        _function("", "%x: memref<4xf64, 2>"),
        "1:14: error: memref<4xf64, 2> is in the memory space 2 : i64, which aotc does not know",
    ),
    "a memory space of the processor's": (
        _function("", "%x: memref<*xf64, 256>"),
        "1:14: error: memref<*xf64, 256> is in the memory space 256 : i64, which aotc does not",
    ),
    "constant memory of a caller": (
        _function("", "%x: memref<4xf64, 4>"),
        "1:14: error: The argument 'x' of 'f' has the type memref<4xf64, 4>: constant memory",
    ),
    "constant memory of the host": (
        _function(
            """%c = memref.get_global @t : memref<4xf32, 4>
  affine.parallel (%i) = (0) to (4) {
    %v = memref.load %c[%i] : memref<4xf32, 4>
    memref.store %v, %x[%i] : memref<4xf32>
  }""",
            "%x: memref<4xf32>",
        )
        + "memref.global constant @t : memref<4xf32, 4> = dense<[1.0, 2.0, 3.0, 4.0]>",
        "3:3: error: a kernel is given a memref<4xf32, 4>: constant memory is a part of the",
    ),
    "memory of an iteration that the next one reads": (
        _function(
            """affine.parallel (%i) = (0) to (4) {
    %a = memref.alloca() : memref<1xf32>
    %last = affine.for %j = 0 to 8 iter_args(%before = %a) -> (memref<1xf32>) {
      %own = memref.alloca() : memref<1xf32>
      %v = affine.load %before[0] : memref<1xf32>
      affine.store %v, %own[0] : memref<1xf32>
      affine.yield %own : memref<1xf32>
    }
    %v = affine.load %last[0] : memref<1xf32>
    affine.store %v, %x[%i] : memref<4xf32>
  }""",
            "%x: memref<4xf32>",
        ),
        "5:14: error: memref.alloca in a loop: in kernels, all iterations have the same memory",
    ),
    "memory of an iteration that branches pass on": (
        """gpu.module @m {
gpu.func @k(%n: index) kernel {
  %zero = arith.constant 0 : index
  %first = memref.alloca() : memref<1xf32>
  cf.br ^head(%zero, %first : index, memref<1xf32>)
^head(%i: index, %before: memref<1xf32>):
  %more = arith.cmpi slt, %i, %n : index
  cf.cond_br %more, ^body, ^end
^body:
  %own = memref.alloca() : memref<1xf32>
  %v = memref.load %before[%zero] : memref<1xf32>
  memref.store %v, %own[%zero] : memref<1xf32>
  %next = arith.addi %i, %n : index
  cf.br ^head(%next, %own : index, memref<1xf32>)
^end:
  gpu.return
}
}
"""
        + _function(""),
        "10:10: error: memref.alloca in a loop: in kernels, all iterations have the same memory",
    ),
    "a store to constant memory": (
        """gpu.module @m {
llvm.mlir.global internal @t(0.0 : f32) {addr_space = 4 : i32} : f32
gpu.func @k() kernel {
  %t = llvm.mlir.addressof @t : !llvm.ptr<4>
  %v = arith.constant 1.0 : f32
  llvm.store %v, %t : f32, !llvm.ptr<4>
  gpu.return
}
}
"""
        + _function(""),
        "6:3: error: llvm.store writes to constant memory, which kernels can only read.",
    ),
    "a store to constant memory by another name": (
        """gpu.module @m {
memref.global "private" constant @t : memref<4xf32, 4> = dense<0.0>
gpu.func @k() kernel {
  %t = memref.get_global @t : memref<4xf32, 4>
  %g = memref.memory_space_cast %t : memref<4xf32, 4> to memref<4xf32>
  %v = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  memref.store %v, %g[%c0] : memref<4xf32>
  gpu.return
}
}
"""
        + _function(""),
        "8:3: error: memref.store writes to constant memory, which kernels can only read.",
    ),
    "a name of LLVM's": (
        "func.func @llvm.memcpy(%x: memref<4xf32>) { return }",
        "1:1: error: the name 'llvm.memcpy' begins with 'llvm.', as those of LLVM's intrinsics",
    ),
    "a bit cast that LLVM folds wrongly": (
        _function(
            "%c0 = arith.constant 0 : index\n"
            "  %v = vector.load %x[%c0] : memref<5xi8>, vector<5xi8>\n"
            "  %u = vector.bitcast %v : vector<5xi8> to vector<8xi5>\n"
            "  %w = vector.bitcast %u : vector<8xi5> to vector<4xi10>",
            "%x: memref<5xi8>",
        ),
        "5:8: error: vector.bitcast of vector<8xi5> to vector<4xi10>: LLVM takes bit casts",
    ),
    "the same in a kernel": (
        """gpu.module @m {
gpu.func @k(%v: vector<5xi8>) kernel {
  %w = llvm.bitcast %v : vector<5xi8> to vector<8xi5>
  gpu.return
}
}
"""
        + _function(""),
        "3:8: error: llvm.bitcast of vector<5xi8> to vector<8xi5>: LLVM takes bit casts",
    ),
    "a resource without its bytes": (
        _function(
            "%z = arith.constant dense_resource<missing> : tensor<4xf32>\n"
            "  %y = arith.addf %t, %z : tensor<4xf32>",
            "%t: tensor<4xf32>",
        )
        .replace("return", "return %y : tensor<4xf32>")
        .replace(")", ") -> tensor<4xf32>", 1),
        "2:8: error: resource does not exist",
    ),
    "a type that is none": (
        _function("", "%x: memref<4xf9>"),
        "1:27: error: expected non-function type",
    ),
    "1,000 branches": (
        _function("%c = arith.constant true" + "\n  scf.if %c {" * 1000 + "}" * 1000),
        "258:13: error: this is nested more than 256 levels deep, which aotc does not take.",
    ),
    "an attribute of 8,000 levels": (
        f"module attributes {{a = {'[' * 8000}{']' * 8000}}} {{}}",
        "1:279: error: this is nested more than 256 levels deep, which aotc does not take.",
    ),
    "a type of 8,000 levels": (
        f"func.func private @g({'tuple<' * 8000}i1{'>' * 8000})",
        "1:1557: error: this is nested more than 256 levels deep, which aotc does not take.",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    text, problem = REFUSED[what]
    path = mlir_file(text)
    done = aotc("build", path, "--chip", "sm_80", "--emit", "shared", "-o", f"{path.parent}/")
    assert done.code == 2
    assert done.stderr.startswith(f"{path}:{problem}"), done.stderr
    assert len(done.stderr) < 4000
    assert len(done.stderr.splitlines()) < 25


def test_only_the_first_of_many_problems_are_shown(aotc: Aotc, mlir_file: MlirFile) -> None:
    """A screen of them, and how many more there are."""
    bad = "  %{} = memref.alloc() : memref<{}x4611686018427387904xf64>\n"
    path = mlir_file(_function("".join(bad.format(f"m{i}", i + 1) for i in range(500))))
    done = aotc("build", path)
    assert done.code == 2
    assert done.stderr.count(": error: ") == 20
    assert done.stderr.endswith("\nand 480 more errors\n")


def test_f80_on_a_host_that_lacks_it(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(
        f"""func.func @f(%x: f64) -> f64 {ENTRY} {{
  %b = arith.extf %x : f64 to f80
  %d = arith.truncf %b : f80 to f64
  return %d : f64
}}
"""
    )
    options = ("--emit", "host-mlir", "-o", "-")
    assert aotc("build", path, *options, "--target", "x86_64-linux-gnu.2.28").code == 0
    done = aotc("build", path, *options, "--target", "aarch64-linux-gnu.2.28")
    assert done.code == 2
    assert done.stderr.startswith(f"{path}:2:8: error: f80 has numbers that aarch64 lacks.")


def test_an_argument_with_a_long_name(aotc: Aotc, mlir_file: MlirFile) -> None:
    """It is only the text's name for a value: the argument has none then."""
    path = mlir_file(_function("", f"%{'a' * 100_000}: memref<4xf32>"))
    done = aotc("build", path, "--emit", "header", "-o", "-").succeeded()
    assert "arg0" in done.stdout
    assert "aaaa" not in done.stdout


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            '%r = llvm.inline_asm has_side_effects "foo $0", "=r" : () -> i32',
            "aotc: error: The module's assembly is refused for x86_64:\n"
            "<inline asm>:1:2: error: invalid instruction mnemonic 'foo'",
        ),
        (
            """affine.for %i = 0 to 4 {
    %r = llvm.inline_asm "foo.bar $0;", "=r" : () -> i32
    %z = arith.bitcast %r : i32 to f32
    affine.store %z, %x[%i] : memref<4xf32>
  }""",
            "aotc: error: ptxas does not take the inline assembly of a kernel:\n  foo.bar %r",
        ),
    ],
    ids=["host", "kernel"],
)
def test_inline_assembly_that_is_none(
    body: str, words: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    path = mlir_file(_function(body))
    done = aotc("build", path, "--chip", "sm_80", "--emit", "obj", "-o", f"{path.parent}/")
    assert done.code == 2
    assert done.stderr.startswith(words), done.stderr
    assert len(done.stderr.splitlines()) < 15


def test_a_map_with_a_dimension_that_it_has_not(aotc: Aotc, tmp_path: Path) -> None:
    # Text cannot say it. In bytecode an expression is a byte for its kind and one for its number,
    # which two maps tell.
    with mlir.make_context():
        code, other = (
            bytecode_of(ir.Module.parse(_function(_LOOP.format(end))).operation) for end in (7, 8)
        )
    number = next(i for i, (a, b) in enumerate(zip(code, other, strict=True)) if a != b)
    source = tmp_path / "module.mlirbc"
    source.write_bytes(code[: number - 1] + bytes([_DIMENSION]) + code[number:])
    outcome = aotc("build", source, "--emit", "host-mlir", "-o", tmp_path / "out.mlir")
    assert outcome.code == 2
    assert "'upperBoundMap' of this affine.for has a map with a dimension or" in outcome.stderr
