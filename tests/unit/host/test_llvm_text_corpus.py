"""Operations of every kind → LLVM IR of the bindings → rewritten → clang takes it.

What clang would refuse, or take for an external function, is a difference between the two
LLVMs that `llvm_text` does not know. Upstream's own passes lower the corpus: what aotc's
lowering adds is tested with it.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from aotc import mlir
from aotc.errors import ToolError
from aotc.mlir import PassManager, ir, llvm
from aotc.toolchain import Runner, Toolchain
from aotc.toolchain.llvm_text import downlevel, explain_refusal, unknown_intrinsics
from aotc.toolchain.version import Version

_TO_LLVM = (
    "convert-vector-to-scf,lower-affine,convert-scf-to-cf,memref-expand,expand-strided-metadata,"
    "lower-affine,arith-expand,math-expand-ops,convert-complex-to-standard,{first}"
    "convert-math-to-llvm,{libm}convert-vector-to-llvm,convert-complex-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts"
)
HOST_PASSES = f"builtin.module({_TO_LLVM.format(first='', libm='convert-math-to-libm,')})"
DEVICE_PASSES = (
    "builtin.module(convert-nvgpu-to-nvvm,convert-nvvm-to-llvm,"
    + _TO_LLVM.format(first="gpu.module(convert-gpu-to-nvvm{has-redux=1}),", libm="")
    + ")"
)

FLOATS = ("f16", "bf16", "f32", "f64", "vector<4xf32>")
INTEGERS = ("i8", "i32", "i64", "index", "vector<4xi32>")


def arithmetic() -> list[tuple[str, str, str]]:
    """(body with %a and %b, their type, the type of %r)."""
    cases = []
    words = (
        "addi subi muli divsi divui remsi remui andi ori xori shli shrsi shrui maxsi maxui "
        "minsi minui ceildivsi ceildivui floordivsi"
    )
    for word, kind in itertools.product(words.split(), INTEGERS):
        cases.append((f"%r = arith.{word} %a, %b : {kind}", kind, kind))
    for word, flag in itertools.product(("addi", "subi", "muli"), ("nsw", "nuw", "nsw, nuw")):
        cases.append((f"%r = arith.{word} %a, %b overflow<{flag}> : i32", "i32", "i32"))
    words = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"
    for word, kind in itertools.product(words.split(), FLOATS):
        for flags in ("", "fastmath<fast>", "fastmath<contract,nsz>"):
            cases.append((f"%r = arith.{word} %a, %b {flags} : {kind}", kind, kind))
    for integer, real in itertools.product(("i8", "i32", "i64"), FLOATS[:4]):
        cases += [
            (f"%r = arith.sitofp %a : {integer} to {real}", integer, real),
            (f"%r = arith.uitofp %a : {integer} to {real}", integer, real),
            (f"%r = arith.uitofp %a nneg : {integer} to {real}", integer, real),
            (f"%r = arith.fptosi %a : {real} to {integer}", real, integer),
            (f"%r = arith.fptoui %a : {real} to {integer}", real, integer),
        ]
    for wide, narrow in (("f32", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "f16")):
        cases += [
            (f"%r = arith.truncf %a : {wide} to {narrow}", wide, narrow),
            (f"%r = arith.truncf %a toward_zero : {wide} to {narrow}", wide, narrow),
            (f"%r = arith.extf %a : {narrow} to {wide}", narrow, wide),
        ]
    for flags in ("", "overflow<nsw>", "overflow<nuw>", "overflow<nsw, nuw>"):
        cases.append((f"%r = arith.trunci %a {flags} : i64 to i32", "i64", "i32"))
    cases += [
        ("%r = arith.extui %a nneg : i32 to i64", "i32", "i64"),
        ("%r = arith.extsi %a : i32 to i64", "i32", "i64"),
        ("%r, %carry = arith.addui_extended %a, %b : i32, i1", "i32", "i32"),
        ("%r, %high = arith.mulsi_extended %a, %b : i32", "i32", "i32"),
        ("%r = arith.bitcast %a : f32 to i32", "f32", "i32"),
    ]
    for kind, value in itertools.product(FLOATS[:4], ("0.1", "-0.0", "1.0e-7", "3.0e4")):
        constant = f"%c = arith.constant {value} : {kind}"
        cases.append((f"{constant}\n%r = arith.addf %a, %c : {kind}", kind, kind))
    for comparison, kind in itertools.product(
        "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split(), FLOATS[:4]
    ):
        compare = f"%z = arith.cmpf {comparison}, %a, %b : {kind}"
        cases.append((f"{compare}\n%r = arith.select %z, %a, %b : {kind}", kind, kind))
    for comparison in "eq ne slt sle sgt sge ult ule ugt uge".split():
        compare = f"%z = arith.cmpi {comparison}, %a, %b : i32"
        cases.append((f"{compare}\n%r = arith.select %z, %a, %b : i32", "i32", "i32"))
    return cases


def mathematics() -> list[tuple[str, str, str]]:
    cases = []
    words = (
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
        "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc absf"
    )
    for word, kind in itertools.product(words.split(), FLOATS):
        cases.append((f"%r = math.{word} %a : {kind}", kind, kind))
        cases.append((f"%r = math.{word} %a fastmath<fast> : {kind}", kind, kind))
    for word, kind in itertools.product(("atan2", "copysign", "powf"), FLOATS):
        cases.append((f"%r = math.{word} %a, %b : {kind}", kind, kind))
    for kind in FLOATS[:4]:
        cases += [
            (f"%r = math.fma %a, %b, %a : {kind}", kind, kind),
            (f"%r = math.clampf %a to [%a, %b] : {kind}", kind, kind),
            (f"%s, %r = math.sincos %a : {kind}", kind, kind),
        ]
        for test in ("isnan", "isfinite"):
            body = f"%z = math.{test} %a : {kind}\n%r = arith.select %z, %a, %b : {kind}"
            cases.append((body, kind, kind))
    for word, kind in itertools.product(
        ("absi", "ctlz", "cttz", "ctpop"), ("i32", "i64", "vector<4xi32>")
    ):
        cases.append((f"%r = math.{word} %a : {kind}", kind, kind))
    return cases


def vectors() -> list[tuple[str, str, str]]:
    reals, integers = "vector<8xf32>", "vector<8xi32>"
    cases = []
    for kind in ("add", "mul", "minimumf", "maximumf", "minnumf", "maxnumf"):
        for flags in ("", "fastmath<fast>"):
            body = f"%r = vector.reduction <{kind}>, %a {flags} : {reals} into f32"
            cases.append((body, reals, "f32"))
    for kind in ("add", "mul", "minui", "minsi", "maxui", "maxsi", "and", "or", "xor"):
        cases.append((f"%r = vector.reduction <{kind}>, %a : {integers} into i32", integers, "i32"))
    lanes = ", ".join(str(lane) for lane in (0, 1, 8, 9, 2, 3, 10, 11))
    cases += [
        (f"%r = vector.shuffle %a, %b [{lanes}] : {reals}, {reals}", reals, reals),
        (f"%r = vector.extract %a[3] : f32 from {reals}", reals, "f32"),
        (f"%r = vector.fma %a, %b, %a : {reals}", reals, reals),
        (f"%r = vector.interleave %a, %b : {reals} -> vector<16xf32>", reals, "vector<16xf32>"),
        ("%r = vector.broadcast %a : f32 to vector<8xf32>", "f32", reals),
        (
            "%s = vector.step : vector<8xindex>\n"
            "%r = arith.index_cast %s : vector<8xindex> to vector<8xi32>",
            integers,
            integers,
        ),
        (
            "%c = arith.constant dense<[0.1, 0.2, 1.0e-40, 0.0]> : vector<4xf32>\n"
            "%r = arith.addf %a, %c : vector<4xf32>",
            "vector<4xf32>",
            "vector<4xf32>",
        ),
        (
            "%c = arith.constant dense<0.1> : vector<4xf16>\n"
            "%r = arith.addf %a, %c : vector<4xf16>",
            "vector<4xf16>",
            "vector<4xf16>",
        ),
    ]
    return cases


MEMORY = """
memref.global "private" constant @weights : memref<2x3xf32> =
  dense<[[0.1, 0.2, 0.3], [1.0, 0x7F800001, -0.0]]>
memref.global "private" @state : memref<4xf64> = uninitialized
func.func @memory(%m: memref<?x?xf32, strided<[?, 1], offset: ?>>, %i: index, %x: f32,
                  %v: vector<4xf32>, %mask: vector<4xi1>, %n: memref<?xf32>) -> f32 {
  %w = memref.get_global @weights : memref<2x3xf32>
  %s = memref.get_global @state : memref<4xf64>
  %a = memref.alloc(%i) {alignment = 64 : i64} : memref<?xf32>
  %b = memref.alloca() : memref<16xf32>
  %0 = memref.load %w[%i, %i] : memref<2x3xf32>
  memref.store %0, %m[%i, %i] : memref<?x?xf32, strided<[?, 1], offset: ?>>
  %sub = memref.subview %m[%i, 0] [4, 4] [1, 1]
    : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<4x4xf32, strided<[?, 1], offset: ?>>
  %row = memref.load %sub[%i, %i] : memref<4x4xf32, strided<[?, 1], offset: ?>>
  vector.store %v, %n[%i] : memref<?xf32>, vector<4xf32>
  %1 = vector.load %n[%i] : memref<?xf32>, vector<4xf32>
  %2 = vector.maskedload %n[%i], %mask, %v
    : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.maskedstore %n[%i], %mask, %2 : memref<?xf32>, vector<4xi1>, vector<4xf32>
  %indices = arith.constant dense<[0, 2, 4, 6]> : vector<4xi32>
  %3 = vector.gather %n[%i] [%indices], %mask, %v
    : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.scatter %n[%i] [%indices], %mask, %3
    : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  vector.compressstore %n[%i], %mask, %3 : memref<?xf32>, vector<4xi1>, vector<4xf32>
  %4 = vector.expandload %n[%i], %mask, %v
    : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %5 = vector.transfer_read %n[%i], %x : memref<?xf32>, vector<4xf32>
  vector.transfer_write %5, %n[%i] : vector<4xf32>, memref<?xf32>
  %6 = memref.atomic_rmw addf %x, %n[%i] : (f32, memref<?xf32>) -> f32
  %7 = memref.atomic_rmw maximumf %x, %n[%i] : (f32, memref<?xf32>) -> f32
  %8 = memref.generic_atomic_rmw %n[%i] : memref<?xf32> {
  ^bb0(%old: f32):
    %tenth = arith.constant 0.1 : f32
    %new = arith.mulf %old, %tenth : f32
    memref.atomic_yield %new : f32
  }
  memref.prefetch %n[%i], read, locality<3>, data : memref<?xf32>
  memref.assume_alignment %n, 16 : memref<?xf32>
  memref.copy %n, %a : memref<?xf32> to memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  %sum = arith.addf %row, %8 : f32
  return %sum : f32
}
func.func @control(%i: index, %x: f32, %c: i1) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tenth = arith.constant 0.1 : f32
  %sum = scf.for %j = %zero to %i step %one iter_args(%s = %tenth) -> f32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  %r = scf.if %c -> f32 {
    scf.yield %sum : f32
  } else {
    %qnan = arith.constant 0x7FC00000 : f32
    scf.yield %qnan : f32
  }
  %k = arith.constant 0xFF800000 : f32
  cf.cond_br %c, ^bb1(%k : f32), ^bb1(%r : f32)
^bb1(%y: f32):
  return %y : f32
}
"""

# Instructions, intrinsics, attributes and metadata of the LLVM dialect.
LLVM_BODY = """
  %0 = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32}
    : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  llvm.intr.masked.store %v, %p, %m {alignment = 4 : i32}
    : vector<4xf32>, vector<4xi1> into !llvm.ptr
  "llvm.intr.memcpy"(%p, %p, %l) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %1 = llvm.alloca %i x f32 {alignment = 16 : i64} : (i32) -> !llvm.ptr
  llvm.intr.lifetime.start %1 : !llvm.ptr
  llvm.intr.lifetime.end %1 : !llvm.ptr
  llvm.intr.assume %c : i1
  %3 = llvm.intr.fshl(%i, %i, %i) : (i32, i32, i32) -> i32
  %4 = "llvm.intr.umul.with.overflow"(%i, %i) : (i32, i32) -> !llvm.struct<(i32, i1)>
  %5 = "llvm.intr.is.fpclass"(%x) <{bit = 3 : i32}> : (f32) -> i1
  %6 = llvm.intr.ldexp(%x, %i) : (f32, i32) -> f32
  %7 = llvm.intr.frexp(%x) : (f32) -> !llvm.struct<(f32, i32)>
  %8 = llvm.intr.sincos(%x) : (f32) -> !llvm.struct<(f32, f32)>
  %9 = llvm.intr.expect.with.probability %c, %c, 0.3 : i1
  %10 = llvm.intr.ptrmask %p, %l : (!llvm.ptr, i64) -> !llvm.ptr
  %11 = "llvm.intr.vp.fadd"(%v, %v, %m, %i)
    : (vector<4xf32>, vector<4xf32>, vector<4xi1>, i32) -> vector<4xf32>
  %12 = llvm.intr.experimental.constrained.fptrunc %y tonearest ignore : f64 to f32
  %13 = llvm.atomicrmw fadd %p, %x seq_cst : !llvm.ptr, f32
  %14 = llvm.atomicrmw fmaximum %p, %x monotonic : !llvm.ptr, f32
  %15 = llvm.atomicrmw usub_sat %p, %i monotonic : !llvm.ptr, i32
  %16 = llvm.cmpxchg weak volatile %p, %i, %i acq_rel monotonic : !llvm.ptr, i32
  %17 = llvm.load %p {nontemporal} : !llvm.ptr -> f32
  %18 = llvm.getelementptr inbounds|nuw %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %19 = llvm.ptrtoaddr %p : !llvm.ptr to i64
  %20 = llvm.or disjoint %i, %i : i32
  %21 = llvm.fptrunc %y {fastmathFlags = #llvm.fastmath<fast>} : f64 to f32
  %22 = llvm.trunc %l overflow<nsw, nuw> : i64 to i32
  %23 = llvm.mlir.poison : f32
  %24 = llvm.mlir.constant([0.1 : f32, 3 : i32]) : !llvm.struct<(f32, i32)>
  llvm.store %24, %p : !llvm.struct<(f32, i32)>, !llvm.ptr
  %25 = llvm.mlir.constant(dense<[[0.1, 1.5],[0.3, -0.0]]> : vector<2x2xf64>)
    : !llvm.array<2 x vector<2xf64>>
  llvm.store %25, %p : !llvm.array<2 x vector<2xf64>>, !llvm.ptr
  %26 = llvm.load %p {
    access_groups = [#llvm.access_group<id = distinct[0]<>>],
    alias_scopes = [#llvm.alias_scope<id = distinct[1]<>,
                                      domain = #llvm.alias_scope_domain<id = distinct[2]<>>>]
  } : !llvm.ptr -> f32
  llvm.inline_asm has_side_effects "nop ; nop", "" : () -> ()
  llvm.cond_br %c weights([3, 7]), ^one, ^two {
    loop_annotation = #llvm.loop_annotation<vectorize = <disable = true>,
                                            unroll = <count = 4 : i32>, mustProgress = true>}
^one:
  llvm.br ^two
^two:
  llvm.return
"""
LLVM_ARGUMENTS = (
    "%p: !llvm.ptr, %i: i32, %l: i64, %x: f32, %y: f64, %c: i1, %v: vector<4xf32>, %m: vector<4xi1>"
)
FUNCTION_ATTRIBUTES = (
    "memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = none, "
    "errnoMem = none, targetMem0 = none, targetMem1 = none>",
    "memory_effects = #llvm.memory_effects<other = read, argMem = none, inaccessibleMem = none, "
    "errnoMem = write, targetMem0 = read, targetMem1 = none>",
    'passthrough = ["noipa", "nooutline", "flatten"]',
    'passthrough = ["noinline", ["alignstack", "32"], ["note", "float 1.5e-1"]]',
    'passthrough = ["nocreateundeforpoison", "norecurse", "nosync", "nofree", "speculatable"]',
    "denormal_fpenv = #llvm.denormal_fpenv<default_output_mode = ieee, default_input_mode = ieee, "
    "float_output_mode = preservesign, float_input_mode = positivezero>",
    "denormal_fpenv = #llvm.denormal_fpenv<default_output_mode = dynamic, "
    "default_input_mode = ieee, float_output_mode = ieee, float_input_mode = ieee>",
    "prefalign = 64 : i64",
    "frame_pointer = #llvm.framePointerKind<all>",
    "uwtable_kind = #llvm.uwtableKind<async>",
    "vscale_range = #llvm.vscale_range<minRange = 1, maxRange = 16>",
    "no_signed_zeros_fp_math = true",
    "convergent, no_unwind, will_return",
    "optimize_none, no_inline",
    "always_inline, hot",
)
ARGUMENT_ATTRIBUTES = (
    "llvm.noalias, llvm.readonly, llvm.nonnull, llvm.noundef, llvm.nocapture, llvm.nofree",
    "llvm.align = 16 : i64, llvm.dereferenceable = 16 : i64",
    "llvm.dead_on_return",
    "llvm.dead_on_return = 16 : i64",
    "llvm.dead_on_unwind, llvm.writable, llvm.dereferenceable = 16 : i64",
    "llvm.byval = !llvm.struct<(i32)>",
    "llvm.sret = !llvm.struct<(i32)>",
)
DEBUG_INFO = """
#file = #llvm.di_file<"f.mlir" in "/place">
#cu = #llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = #file,
  producer = "float 0.1", isOptimized = true, emissionKind = Full>
#bt = #llvm.di_basic_type<tag = DW_TAG_base_type, name = "float", sizeInBits = 32,
  encoding = DW_ATE_float>
#st = #llvm.di_subroutine_type<types = #bt, #bt>
#sp = #llvm.di_subprogram<id = distinct[1]<>, compileUnit = #cu, scope = #file, name = "f",
  linkageName = "f", file = #file, line = 3, scopeLine = 3,
  subprogramFlags = "Definition|Optimized", type = #st>
#lv = #llvm.di_local_variable<scope = #sp, name = "x", file = #file, line = 4, arg = 1, type = #bt>
llvm.func @with_debug_info(%x: f32) {
  %k = llvm.mlir.constant(0.1 : f32) : f32 loc(#l)
  llvm.intr.dbg.value #lv = %k : f32 loc(#l)
  llvm.intr.dbg.value #lv = %x : f32 loc(#l)
  llvm.return loc(#l)
} loc(fused<#sp>["f.mlir":3:1])
#l = loc(fused<#sp>["f.mlir":4:5])
"""

DEVICE_ARGUMENTS = (
    "%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %sc: !llvm.ptr<7>, %p: !llvm.ptr, %i: i32, %l: i64, "
    "%h: i16, %x: f32, %y: f64, %c: i1, %v2h: vector<2xf16>, %hh: f16, %bb: bf16"
)
DEVICE_BODY = """
nvvm.barrier
nvvm.barrier id = %i number_of_threads = %i
nvvm.bar.warp.sync %i : i32
nvvm.cluster.arrive
nvvm.cluster.wait
nvvm.fence.mbarrier.init
nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
nvvm.memory.barrier #nvvm.mem_scope<gpu>
%r0 = nvvm.shfl.sync bfly %i, %x, %i, %i : f32 -> f32
%r1 = nvvm.shfl.sync up %i, %x, %i, %i {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
%r2 = nvvm.vote.sync ballot %i, %c -> i32
%r3 = nvvm.match.sync any %i, %i : i32 -> i32
%r4 = nvvm.redux.sync umax %i, %i : i32 -> i32
%r5 = nvvm.elect.sync -> i1
nvvm.nanosleep %i
nvvm.setmaxregister increase 232
nvvm.griddepcontrol wait
nvvm.mbarrier.init %s, %i : !llvm.ptr<3>, i32
nvvm.mbarrier.inval %s : !llvm.ptr<3>
%r6 = nvvm.mbarrier.arrive %s : !llvm.ptr<3> -> i64
%r7 = nvvm.mbarrier.arrive %s, %i {relaxed = true} : !llvm.ptr<3> -> i64
%r8 = nvvm.mbarrier.arrive.expect_tx %s, %i : !llvm.ptr<3>, i32 -> i64
%r9 = nvvm.mbarrier.test.wait %s, %l : !llvm.ptr<3>, i64 -> i1
%r10 = nvvm.mbarrier.try_wait %s, %i, %i : !llvm.ptr<3>, i32, i32 -> i1
nvvm.mbarrier.try_wait.parity %s, %i, %i : !llvm.ptr<3>, i32, i32
nvvm.cp.async.shared.global %s, %g, 16, cache = cg, %i : !llvm.ptr<3>, !llvm.ptr<1>, i32
nvvm.cp.async.commit.group
nvvm.cp.async.wait.group 1
nvvm.cp.async.mbarrier.arrive %s : !llvm.ptr<3>
nvvm.cp.async.bulk.shared.cluster.global %sc, %g, %s, %i multicast_mask = %h l2_cache_hint = %l
  : !llvm.ptr<7>, !llvm.ptr<1>
nvvm.cp.async.bulk.global.shared.cta %g, %s, %i : !llvm.ptr<1>, !llvm.ptr<3>
nvvm.cp.async.bulk.commit.group
nvvm.cp.async.bulk.wait_group 0 {read}
nvvm.cp.async.bulk.tensor.shared.cluster.global %sc, %p, %s, box[%i, %i] : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %sc, %p, %s, box[%i] multicast_mask = %h
  l2_cache_hint = %l : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %sc, %p, %s, box[%i, %i, %i] im2col[%h]
  {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.global.shared.cta %p, %s, box[%i, %i] : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i] : !llvm.ptr
nvvm.cp.async.bulk.tensor.reduce %p, %s, box[%i, %i]
  {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.reduce %p, %s, box[%i] l2_cache_hint = %l
  {redKind = #nvvm.tma_redux_kind<min>} : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.reduce %p, %s, box[%i, %i, %i]
  {redKind = #nvvm.tma_redux_kind<xor>, mode = #nvvm.tma_store_mode<im2col>}
  : !llvm.ptr, !llvm.ptr<3>
%r11 = nvvm.mapa %s, %i : !llvm.ptr<3> -> !llvm.ptr<7>
%r12 = nvvm.ldmatrix %s {num = 4 : i32, layout = #nvvm.mma_layout<row>,
  shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
  : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
nvvm.stmatrix %s, %i {layout = #nvvm.mma_layout<row>,
  shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
  : !llvm.ptr<3>, i32
%r13 = nvvm.movmatrix %i {eltType = #nvvm.ld_st_matrix_elt_type<b16>,
  shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : i32
llvm.store %r13, %p : i32, !llvm.ptr
%r14 = nvvm.mma.sync A[%v2h, %v2h, %v2h, %v2h] B[%v2h, %v2h] C[%x, %x, %x, %x]
  {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
   shape = #nvvm.shape<m = 16, n = 8, k = 16>}
  : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
nvvm.wgmma.fence.aligned
nvvm.wgmma.commit.group.sync.aligned
nvvm.wgmma.wait.group.sync.aligned 0
%r15 = nvvm.rcp.approx.ftz.f %x : f32
%r16 = nvvm.fma %hh, %hh, %hh {rnd = #nvvm.fp_rnd_mode<rn>, ftz = true} : f16
%r17 = nvvm.addf %x, %x {rnd = #nvvm.fp_rnd_mode<rz>, ftz = true} : f32
%r18 = nvvm.convert.float.to.tf32 %x {rnd = #nvvm.fp_rnd_mode<rna>}
%r19 = nvvm.inline_ptx "mov.f32 {$w0}, 1.5e0;" -> f32
%r20 = nvvm.read.ptx.sreg.ntid.x range <i32, 1, 1024> : i32
%r21 = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
%r22 = llvm.atomicrmw fadd %p, %x syncscope("device") monotonic : !llvm.ptr, f32
%r23 = llvm.atomicrmw fadd %p, %bb monotonic : !llvm.ptr, bf16
%r24 = llvm.load %g invariant : !llvm.ptr<1> -> f32
llvm.return
"""
KERNEL_ATTRIBUTES = (
    "nvvm.maxntid = array<i32: 128, 1, 1>",
    "nvvm.reqntid = array<i32: 128, 2>, nvvm.minctasm = 2 : i32",
    "nvvm.maxnreg = 64 : i32",
    "nvvm.cluster_dim = array<i32: 2, 1, 1>",
    "nvvm.cluster_max_blocks = 8 : i32",
)


def functions(cases: list[tuple[str, str, str]]) -> str:
    return "\n".join(
        f"func.func @f{index}(%a: {taken}, %b: {taken}) -> {given} {{\n{body}\n"
        f"return %r : {given}\n}}"
        for index, (body, taken, given) in enumerate(cases)
    )


def kernels(cases: list[tuple[str, str, str]]) -> str:
    """The same in kernels: the result goes to memory, or it would be optimized away."""
    return "\n".join(
        f"gpu.func @k{index}(%a: {taken}, %b: {taken}, %out: memref<{given}>) kernel {{\n{body}\n"
        f"memref.store %r, %out[] : memref<{given}>\ngpu.return\n}}"
        for index, (body, taken, given) in enumerate(cases)
    )


def attributed() -> str:
    texts = [
        f"llvm.func @fa{index}(%p: !llvm.ptr) attributes {{{attributes}}} {{ llvm.return }}"
        for index, attributes in enumerate(FUNCTION_ATTRIBUTES)
    ]
    texts += [
        f"llvm.func @aa{index}(%p: !llvm.ptr {{{attributes}}}) {{ llvm.return }}"
        for index, attributes in enumerate(ARGUMENT_ATTRIBUTES)
    ]
    return "\n".join([f"llvm.func @body({LLVM_ARGUMENTS}) {{{LLVM_BODY}}}", *texts])


HOST_CORPUS = {
    "arithmetic": functions(arithmetic()),
    "mathematics": functions(mathematics()),
    "vectors": functions(vectors()),
    "memory": MEMORY,
    "llvm": attributed(),
    "debug-info": DEBUG_INFO,
}
DEVICE_CORPUS = {
    "arithmetic": kernels(arithmetic()),
    "mathematics": kernels(mathematics()),
    "vectors": kernels(vectors()),
    "nvvm": f"llvm.func @k({DEVICE_ARGUMENTS}) attributes {{nvvm.kernel}} {{{DEVICE_BODY}}}",
    "attributes": "\n".join(
        f"llvm.func @k{index}() attributes {{nvvm.kernel, {attributes}}} {{ llvm.return }}"
        for index, attributes in enumerate(KERNEL_ATTRIBUTES)
    ),
}


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return Toolchain(os.environ)


def lowered(source: str, passes: str) -> str:
    """LLVM IR text of a host module, or of its gpu.module if it has one."""
    with mlir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        PassManager.parse(passes).run(module.operation)
        first = module.body.operations[0]
        if first.operation.name == "gpu.module":
            device = ir.Module.parse(
                'module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {}'
            )
            for operation in first.regions[0].blocks[0].operations:
                device.body.append(operation.operation.clone())
            module = device
        left = []

        def check(operation: ir.Operation) -> ir.WalkResult:
            if operation.name.split(".")[0] not in ("builtin", "llvm", "nvvm"):
                left.append(operation.name)
            return ir.WalkResult.ADVANCE

        # The translation would end the process.
        module.operation.walk(check)
        assert left == []
        return str(llvm.translate_module_to_llvmir(module.operation))


def compile_text(text: str, toolchain: Toolchain, folder: Path, *flags: str) -> bytes:
    writer = Version.parse(mlir.bindings().llvm_version)
    text = downlevel(text, writer=writer, reader=toolchain.clang.version)
    command = [*toolchain.clang.command, *flags, "-x", "ir", "-Wno-override-module"]
    command += ["-fno-crash-diagnostics", "-", "-o", "out"]
    try:
        Runner(os.environ).run(command, making="out", input=text.encode(), cwd=folder)
    except ToolError as error:
        line = explain_refusal(error.stderr, text)
        pytest.fail(f"clang refuses {line or error.stderr}")
    return (folder / "out").read_bytes()


@pytest.mark.parametrize("name", HOST_CORPUS)
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_clang_takes_every_host_operation(
    name: str, architecture: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    text = lowered(HOST_CORPUS[name], HOST_PASSES)
    flags = (f"--target={architecture}-linux-gnu", "-c", "-O0")
    output = compile_text(text, toolchain, tmp_path, *flags)
    assert output.startswith(b"\x7fELF")
    assert unknown_intrinsics(output) == []


@pytest.mark.parametrize("name", DEVICE_CORPUS)
def test_clang_and_ptxas_take_every_device_operation(
    name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    text = lowered(f"gpu.module @m {{\n{DEVICE_CORPUS[name]}\n}}", DEVICE_PASSES)
    libdevice = str(toolchain.tool("libdevice").path)
    flags = ["--target=nvptx64-nvidia-cuda", "-march=sm_90a", "-O1", "-S"]
    flags += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", libdevice]
    output = compile_text(text, toolchain, tmp_path, *flags)
    assert unknown_intrinsics(output) == []
    command = [*toolchain.tool("ptxas").command, "-arch=sm_90a", "-O0", "out", "-o", "cubin"]
    Runner(os.environ).run(command, making="cubin", cwd=tmp_path)
    assert (tmp_path / "cubin").read_bytes().startswith(b"\x7fELF")


def test_an_intrinsic_that_clang_does_not_know_is_found(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    text = (
        "declare void @llvm.nvvm.frobnicate(i32)\n"
        "define void @f() {\n  call void @llvm.nvvm.frobnicate(i32 1)\n  ret void\n}\n"
    )
    device = compile_text(text, toolchain, tmp_path, "--target=nvptx64-nvidia-cuda", "-S")
    assert unknown_intrinsics(device) == ["llvm.nvvm.frobnicate"]
    host = compile_text(text, toolchain, tmp_path, "--target=x86_64-linux-gnu", "-c")
    assert unknown_intrinsics(host) == ["llvm.nvvm.frobnicate"]


def test_the_text_must_be_rewritten_for_this_clang(toolchain: Toolchain, tmp_path: Path) -> None:
    """When this fails, clang has caught up, and llvm_text may go."""
    text = lowered(HOST_CORPUS["memory"], HOST_PASSES)
    command = [*toolchain.clang.command, "-c", "-x", "ir", "-Wno-override-module", "-", "-o", "out"]
    with pytest.raises(ToolError) as caught:
        Runner(os.environ).run(command, making="out", input=text.encode(), cwd=tmp_path)
    explained = explain_refusal(caught.value.stderr, text)
    assert explained is not None
    assert "float" in explained
