"""Kernels that compute with floats → a function for each instruction set that has more to offer.

Host code is for the oldest processors of its architecture. On x86-64 those have no fused
multiply-add and vectors of 16 bytes: a matmul takes six times as long as on what is
usual now. So a kernel that computes with floats has copies of its function for later levels of
x86-64 (v3: AVX2, FMA; v4: AVX-512), and its symbol becomes a function that picks one by what
the runtime says in each block. Nothing is looked up while a program is linked or loaded.

A kernel may ask how long vector registers are (`llvm.intr.vscale`: in units of 16 bytes): each copy
has the answer as a constant.
"""

from __future__ import annotations

from typing import Any

from aotc.host.kernels import CpuKernels
from aotc.mlir import ir
from aotc.ops import body_of_module, create, erase, symbol_of, walk
from aotc.symbols import has_body, reach, symbols_of
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.prologue import LEVEL_FIELD, WORD

# By architecture: from which of aotc_cpu_block's levels on, LLVM's name, and the length of vector
# registers in units of 16 bytes. The highest is first.
_LEVELS = {"x86_64": ((4, "x86-64-v4", 4), (3, "x86-64-v3", 2))}
_UNIT_BITS = 128
_VSCALE = "llvm.intr.vscale"
_FUSED = ("llvm.intr.fma", "llvm.intr.fmuladd")
# What takes fewer instructions there, on longer vectors: maxima are comparisons and masks in SSE2.
# A kernel with fewer of these waits for memory.
_FLOATS = frozenset(
    ("llvm.fmul", "llvm.fadd", "llvm.fdiv", "llvm.intr.maximum", "llvm.intr.minimum")
)
_ENOUGH_FLOATS = 4
_EXTREMES = ("llvm.intr.smax", "llvm.intr.smin", "llvm.intr.umax", "llvm.intr.umin")
# A branch for each element.
_MASKED = ("llvm.intr.masked.load", "llvm.intr.masked.store")


def add_levels(cpu: CpuKernels, architecture: str, *, has_copies: bool) -> None:
    """Changes `cpu.module` in place, for a host of the architecture: without copies, all is for its
    oldest processors."""
    levels = _LEVELS.get(architecture, ()) if has_copies else ()
    with cpu.module.context, ir.Location.unknown():
        symbols = symbols_of(cpu.module.operation)
        for kernel in cpu.kernels:
            if levels and kernel.symbol is not None and _gains(symbols[kernel.symbol], symbols):
                _split(cpu.module, symbols[kernel.symbol], levels)
        _set_register_length(cpu.module.operation, 1)


def _set_register_length(operation: Any, length: int) -> None:
    """Answers what `operation` still asks."""
    for question in [one for one in walk(operation) if one.name == _VSCALE]:
        with ir.InsertionPoint(question):
            type_ = question.results[0].type
            question.results[0].replace_all_uses_with(build.number(length, type_))
        erase(question)


def _gains(function: Any, symbols: dict[str, Any]) -> bool:
    """Whether it computes what older processors take longer for; not where it calls a function with
    vectors: each instruction set passes them in another way."""
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
    if operation.name in _FUSED or operation.name in _MASKED:
        return True
    if operation.name == "llvm.fmul":
        return "contract" in str(operation.attributes["fastmathFlags"])
    # SSE2 multiplies 16 bits, and has the extremes of i16 and, without sign, of i8.
    is_less_there = operation.name == "llvm.mul" or operation.name in _EXTREMES
    return is_less_there and str(operation.results[0].type).endswith("xi32>")


def _split(module: Any, function: Any, levels: tuple[tuple[int, str, int], ...]) -> None:
    """The function becomes the one for the oldest processors; another gets its name."""
    symbol = symbol_of(function)
    oldest = f"{symbol}_v1"
    function.attributes["sym_name"] = ir.StringAttr.get(oldest)
    copies = []
    for level, name, length in levels:
        copy = function.clone()
        body_of_module(module).append(copy)
        copy.attributes["sym_name"] = ir.StringAttr.get(f"{symbol}_v{level}")
        copy.attributes["target_cpu"] = ir.StringAttr.get(name)
        _set_register_length(copy, length)
        # LLVM's own choice is half of it, for processors whose clock slowed down for more.
        width = f'[["prefer-vector-width", "{length * _UNIT_BITS}"]]'
        copy.attributes["passthrough"] = ir.Attribute.parse(width)
        copies.append((level, f"{symbol}_v{level}"))
    types = "!llvm.ptr {llvm.nonnull}, !llvm.ptr {llvm.nonnull}"
    added = build.declare_function(module, symbol, types)
    _choose(added, copies, oldest)
    build.keep_internal(added)


def _choose(function: Any, copies: list[tuple[int, str]], oldest: str) -> None:
    """The body: calls the first copy that the processor can run."""
    blocks = function.regions[0].blocks
    pointer = build.pointer_type()
    here = blocks.append(pointer, pointer)
    arguments = list(here.arguments)
    with ir.InsertionPoint(here):
        level = build.load(build.at(arguments[1], LEVEL_FIELD * WORD), build.i64())
    for least, name in copies:
        then, other = blocks.append(), blocks.append()
        with ir.InsertionPoint(here):
            build.branch(build.compare(build.SGE, level, build.number(least)), then, other)
        with ir.InsertionPoint(then):
            _call(name, arguments)
        here = other
    with ir.InsertionPoint(here):
        _call(oldest, arguments)


def _call(name: str, arguments: list[Any]) -> None:
    create(
        "llvm.call",
        arguments,
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(arguments), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    build.give_back()
