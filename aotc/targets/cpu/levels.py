"""Function multiversioning: kernels that gain from newer instruction sets get a copy for each.

Host code is for the oldest processors of its architecture. On x86-64 these have no FMA and vectors
of 16 bytes: a matmul takes six times as long as on today's usual processors. So a kernel that
computes with floats gets copies of its function for later levels of x86-64 (v3: AVX2, FMA; v4:
AVX-512). Its symbol becomes a function that selects a copy in each block, by the level that the
runtime reports. Nothing is resolved at link or load time (no ifunc).

A kernel may query the level (`llvm.intr.vscale`, see `kernels/cpu/levels.py`). In each copy the
answer is a constant, and branches that depend on it are folded. For levels beyond v4, a kernel gets
copies only if it uses their instructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.host.kernels import CpuKernels
from aotc.kernels.cpu.levels import AMX, AVX2, AVX512, BF16, SSE2, VNNI
from aotc.llvm_ops import call_llvm
from aotc.mlir import ir
from aotc.ops import (
    body_of_module,
    content,
    element_type,
    erase,
    find,
    integer,
    operand_groups,
    replace,
    symbol_of,
    walk,
)
from aotc.rewrites.unreachable import erase_unreachable_blocks
from aotc.symbols import has_body, reach, symbols_of
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.prologue import LEVEL_FIELD, TILES_FIELD, WORD, call_field


class _Level(Struct, frozen=True):
    """An instruction set level: the level of aotc_cpu_block from which on it is used; LLVM's name
    of the processor; the bits of vector registers; further features of the processor; and, for
    levels that few kernels gain from, the prefix of the LLVM intrinsics that they use.
    `has_tiles`: the system must allow tile registers."""

    number: int
    processor: str
    bits: int
    features: tuple[str, ...] = ()
    intrinsics: str = ""
    has_tiles: bool = False


_V4, _VNNI, _BF16 = "x86-64-v4", "+avx512vnni", "+avx512bf16"
_TILES = ("+amx-tile", "+amx-bf16", "+amx-int8")
# Architecture → its levels, the highest first.
_LEVELS = {
    "x86_64": (
        _Level(AMX, _V4, 512, (_VNNI, _BF16, *_TILES), "llvm.x86.ldtilecfg", has_tiles=True),
        _Level(BF16, _V4, 512, (_VNNI, _BF16), "llvm.x86.avx512bf16."),
        _Level(VNNI, _V4, 512, (_VNNI,), "llvm.x86.avx512.vpdp"),
        _Level(AVX512, _V4, 512),
        _Level(AVX2, "x86-64-v3", 256),
    )
}
_QUESTION, _INTRINSIC = "llvm.intr.vscale", "llvm.call_intrinsic"
# llvm.icmp's predicates: eq, and slt, sle, sgt, sge of signed numbers.
_HOLDS: dict[int, Callable[[int, int], bool]] = {
    0: operator.eq,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
}
_FUSED = ("llvm.intr.fma", "llvm.intr.fmuladd")
# Operations that take fewer instructions on later levels, on longer vectors (in SSE2, maxima are
# comparisons and masks). A kernel with fewer of them than `_ENOUGH_FLOATS` is memory-bound.
_FLOATS = frozenset(
    (
        *("llvm.fmul", "llvm.fadd", "llvm.fdiv", "llvm.intr.maximum", "llvm.intr.minimum"),
        *("llvm.intr.maxnum", "llvm.intr.minnum"),
    )
)
_ENOUGH_FLOATS = 4
_EXTREMES = ("llvm.intr.smax", "llvm.intr.smin", "llvm.intr.umax", "llvm.intr.umin")
# On the oldest processors, these call a function for each f16 that they read or make. (A bf16 is
# made by integer operations, which are as fast in short vectors.)
_OF_FLOATS = ("llvm.f", "llvm.sitofp", "llvm.uitofp", "llvm.intr.")
# On the oldest processors, these are a call for each element.
_ROUNDINGS = tuple(
    f"llvm.intr.{name}" for name in ("ceil", "floor", "rint", "round", "roundeven", "trunc")
)
# On the oldest processors, these are a branch for each element.
_MASKED = ("llvm.intr.masked.load", "llvm.intr.masked.store")


def add_levels(cpu: CpuKernels, architecture: str, *, has_copies: bool) -> None:
    """Changes `cpu.module` in place, for a host of the architecture. Without copies, all code is
    for its oldest processors."""
    levels = _LEVELS.get(architecture, ()) if has_copies else ()
    with cpu.module.context, ir.Location.unknown():
        symbols = symbols_of(cpu.module.operation)
        for kernel in cpu.kernels:
            if levels and kernel.symbol is not None and _gains(symbols[kernel.symbol], symbols):
                _split(cpu.module, symbols[kernel.symbol], levels)
        for function in content(cpu.module.operation):
            if function.name == "llvm.func":
                _set_level(function, 0)


def _set_level(function: Any, level: int) -> None:
    """Replaces the function's queries of the level by a constant, and folds the branches."""
    questions = find(function, _QUESTION)
    for question in questions:
        for use in list(question.results[0].uses):
            _set_condition(use.owner, level)
        with ir.InsertionPoint(question):
            answer = build.number(level, question.results[0].type)
        replace(question, [answer])
    if questions:
        erase_unreachable_blocks(function)


def _set_condition(comparison: Any, level: int) -> None:
    """Folds the branches on a comparison of the level with a number."""
    if comparison.name != "llvm.icmp":
        return
    limit = build.known_number(comparison.operands[1])
    holds = _HOLDS.get(ir.IntegerAttr(comparison.attributes["predicate"]).value)
    if holds is None or limit is None:
        return
    is_true = holds(level, limit)
    for use in list(comparison.results[0].uses):
        branch = use.owner
        if branch.name == "llvm.cond_br":
            _, *groups = operand_groups(branch)
            with branch.location, ir.InsertionPoint(branch):
                taken = 0 if is_true else 1
                ir.Operation.create(
                    "llvm.br", operands=groups[taken], successors=[branch.successors[taken]]
                )
            erase(branch)


def _gains(function: Any, symbols: dict[str, Any]) -> bool:
    """Whether the function computes what takes older processors longer. A function that passes
    vectors to another one does not gain: their calling convention depends on the instruction
    set."""
    others = [op for op in reach(function, symbols).values() if op is not function]
    operations = walk(function)
    floats = sum(operation.name in _FLOATS for operation in operations)
    is_for_later = floats >= _ENOUGH_FLOATS or any(map(_is_for_later, operations))
    return is_for_later and not any(
        has_body(other) and "vector<" in str(other.attributes["function_type"])
        for other in others
        if other.name == "llvm.func"
    )


def _is_for_later(operation: Any) -> bool:
    if operation.name in (*_FUSED, *_ROUNDINGS, *_MASKED):
        return True
    if operation.name.startswith(_OF_FLOATS):
        values = [*operation.operands, *operation.results]
        if any(element_type(value.type) == ir.F16Type.get() for value in values):
            return True
    if operation.name == "llvm.fmul":
        return "contract" in str(operation.attributes["fastmathFlags"])
    # Those of i16 are extremes of f16 or bf16, with several operations on each element.
    if operation.name in _EXTREMES and element_type(operation.results[0].type) == integer(16):
        return True
    # SSE2 multiplies 16-bit integers, and has the extremes of i16 and of unsigned i8.
    is_less_there = operation.name == "llvm.mul" or operation.name in _EXTREMES
    return is_less_there and str(operation.results[0].type).endswith("xi32>")


def _split(module: Any, function: Any, levels: tuple[_Level, ...]) -> None:
    """Adds copies of the function for the levels. The function itself is for the oldest processors
    and renamed; a new function with its name selects one."""
    symbol = symbol_of(function)
    oldest = f"{symbol}_v1"
    function.attributes["sym_name"] = ir.StringAttr.get(oldest)
    used = {
        ir.StringAttr(operation.attributes["intrin"]).value
        for operation in walk(function)
        if operation.name == _INTRINSIC
    }
    copies = []
    for level in levels:
        if level.intrinsics and not any(name.startswith(level.intrinsics) for name in used):
            continue
        copy = function.clone()
        body_of_module(module).append(copy)
        copy.attributes["sym_name"] = ir.StringAttr.get(f"{symbol}_v{level.number}")
        copy.attributes["target_cpu"] = ir.StringAttr.get(level.processor)
        if level.features:
            features = ", ".join(f'"{one}"' for one in level.features)
            attribute = ir.Attribute.parse(f"#llvm.target_features<[{features}]>")
            copy.attributes["target_features"] = attribute
        _set_level(copy, level.number)
        # LLVM's default is half of it, because older processors reduced their clock for more.
        width = f'[["prefer-vector-width", "{level.bits}"]]'
        copy.attributes["passthrough"] = ir.Attribute.parse(width)
        copies.append((level, f"{symbol}_v{level.number}"))
    _set_level(function, SSE2)
    types = "!llvm.ptr {llvm.nonnull}, !llvm.ptr {llvm.nonnull}"
    added = build.declare_function(module, symbol, types)
    _choose(added, copies, oldest)
    build.keep_internal(added)


def _choose(function: Any, copies: list[tuple[_Level, str]], oldest: str) -> None:
    """Builds the body: it calls the first copy that the processor can run."""
    blocks = function.regions[0].blocks
    pointer = build.pointer_type()
    here = blocks.append(pointer, pointer)
    arguments = list(here.arguments)
    with ir.InsertionPoint(here):
        number = build.load(build.at(arguments[1], LEVEL_FIELD * WORD), build.i64())
    for level, name in copies:
        then, other = blocks.append(), blocks.append()
        with ir.InsertionPoint(here):
            reached = build.compare(build.SGE, number, build.number(level.number))
            build.branch(reached, then, other)
        if level.has_tiles:
            allowed = blocks.append()
            with ir.InsertionPoint(then):
                answer = call_field(TILES_FIELD, arguments[1:], [build.i32()])
                is_allowed = build.compare(build.NE, answer.result, build.number(0, build.i32()))
                build.branch(is_allowed, allowed, other)
            then = allowed
        with ir.InsertionPoint(then):
            _end_with(name, arguments)
        here = other
    with ir.InsertionPoint(here):
        _end_with(oldest, arguments)


def _end_with(name: str, arguments: list[Any]) -> None:
    call_llvm(name, arguments)
    build.return_values()
