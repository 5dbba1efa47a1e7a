"""Thread functions in the LLVM dialect → the functions that run one block, for the runtime.

    void run(void *const *parameters, const aotc_cpu_block *block)

loads the kernel's arguments and the ids once, and calls the thread function, which is always
inlined, in loops over z, y, x. LLVM may vectorize the innermost: threads that do not wait for
each other have no order, so their accesses to memory are marked as parallel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aotc.cpu.bounds import Bound, take_guards
from aotc.cpu.symbols import symbols_of
from aotc.cpu.thread_function import CONTEXT, ThreadFunction
ID_COUNT = len(CONTEXT)
from aotc.mlir import ir
from aotc.ops import walk

# aotc_cpu_block in i64s: block_id, grid_dim, block_dim, each as x, y, z.
_BLOCK_ID, _GRID_DIM, _BLOCK_DIM = 0, 3, 6


def add_block_functions(module: Any, kernels: Iterable[tuple[str, ThreadFunction]]) -> None:
    """Adds a block function for each (symbol of it, thread function)."""
    functions = symbols_of(module.operation)
    texts, declarations = [], []
    kernels = list(kernels)
    for number, (symbol, thread) in enumerate(kernels):
        types = _input_types(functions[thread.symbol])
        declarations.append(f"llvm.func @{_quote(thread.symbol)}({', '.join(types)})")
        bounds = take_guards(functions[thread.symbol], len(types) - ID_COUNT)
        texts.append(_block_text(symbol, thread, types, bounds, f"#threads{number}"))
    aliases = [
        f"#threads{number} = #llvm.access_group<id = distinct[{number}]<>>"
        for number in range(len(kernels))
    ]
    groups = ", ".join(f"#threads{number}" for number in range(len(kernels)))
    parsed = ir.Module.parse(
        "\n".join(
            [
                *aliases,
                f"module attributes {{aotc.groups = [{groups}]}} {{",
                *declarations,
                *texts,
                "}",
            ]
        )
    )
    blocks = symbols_of(parsed.operation)
    group_attributes = list(parsed.operation.attributes["aotc.groups"])
    for (symbol, thread), group in zip(kernels, group_attributes, strict=True):
        _mark_accesses(functions[thread.symbol], group)
        functions[thread.symbol].attributes["always_inline"] = ir.UnitAttr.get()
        module.body.append(blocks[symbol])


def _quote(symbol: str) -> str:
    escaped = symbol.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _input_types(function: Any) -> list[str]:
    """The types of a function's parameters, as text."""
    return [str(argument.type) for argument in function.regions[0].blocks[0].arguments]


@dataclass
class _Writer:
    """Collects the lines of a function; hands out names of values."""

    lines: list[str]
    count: int = 0

    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(text)


def _block_text(
    symbol: str,
    thread: ThreadFunction,
    types: list[str],
    bounds: dict[int, list[Bound]],
    group: str,
) -> str:
    w = _Writer([])
    w.line(
        f"llvm.func internal @{_quote(symbol)}"
        "(%parameters: !llvm.ptr {llvm.nonnull}, %block: !llvm.ptr {llvm.nonnull}) {"
    )
    arguments = []
    for number, type_ in enumerate(types[:-ID_COUNT]):
        place = w.value(
            f"llvm.getelementptr inbounds %parameters[{number}] "
            ": (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        address = w.value(f"llvm.load {place} : !llvm.ptr -> !llvm.ptr")
        # A caller of the runtime may hold a vector anywhere.
        alignment = " {alignment = 1 : i64}" if type_.startswith("vector<") else ""
        arguments.append(w.value(f"llvm.load {address}{alignment} : !llvm.ptr -> {type_}"))

    def load(first: int) -> list[str]:
        values = []
        for number in range(first, first + 3):
            place = w.value(
                f"llvm.getelementptr inbounds %block[{number}] : (!llvm.ptr) -> !llvm.ptr, i64"
            )
            values.append(w.value(f"llvm.load {place} : !llvm.ptr -> i64"))
        return values

    def known(size: tuple[int, int, int]) -> list[str]:
        return [w.value(f"llvm.mlir.constant({number} : i64) : i64") for number in size]

    block_id = load(_BLOCK_ID)
    grid_dim = known(thread.grid_size) if thread.grid_size else load(_GRID_DIM)
    block_dim = known(thread.block_size) if thread.block_size else load(_BLOCK_DIM)
    zero = w.value("llvm.mlir.constant(0 : i64) : i64")
    one = w.value("llvm.mlir.constant(1 : i64) : i64")
    annotation = f"#llvm.loop_annotation<parallelAccesses = {group}>"

    thread_id = [zero, zero, zero]
    loops = [
        d for d in (2, 1, 0) if thread.block_size is None or thread.block_size[d] != 1 or bounds[d]
    ]
    for dimension in loops:
        name = "xyz"[dimension]
        count = block_dim[dimension]
        known_names = [*arguments, *thread_id, *block_id, *grid_dim, *block_dim]
        for bound in bounds[dimension]:
            count = bound.emit_count(count, dict(enumerate(known_names)), w.value)
        w.line(f"  llvm.br ^{name}_next({zero} : i64)")
        w.line(f"^{name}_next(%{name}: i64):")
        more = w.value(f'llvm.icmp "slt" %{name}, {count} : i64')
        w.line(f"  llvm.cond_br {more}, ^{name}_body, ^{name}_end")
        w.line(f"^{name}_body:")
        thread_id[dimension] = f"%{name}"
    operands = ", ".join([*arguments, *thread_id, *block_id, *grid_dim, *block_dim])
    w.line(f"  llvm.call @{_quote(thread.symbol)}({operands}) : ({', '.join(types)}) -> ()")
    for dimension in reversed(loops):
        name = "xyz"[dimension]
        following = w.value(f"llvm.add %{name}, {one} overflow<nsw, nuw> : i64")
        # Two loops must not have the same annotation, and the innermost is what matters.
        attributes = f" {{loop_annotation = {annotation}}}" if dimension == loops[-1] else ""
        w.line(f"  llvm.br ^{name}_next({following} : i64){attributes}")
        w.line(f"^{name}_end:")
    w.line("  llvm.return")
    w.line("}")
    return "\n".join(w.lines)


def _mark_accesses(function: Any, group: Any) -> None:
    """Puts the accesses of a thread function to memory that threads share into `group`.

    An access to the thread's own memory must stay out: inlined into the loops, that memory is
    one allocation for all threads. So only what is known to point elsewhere goes in.
    """
    entry = function.regions[0].blocks[0]
    groups = ir.ArrayAttr.get([group])
    for operation in walk(function):
        if operation.name == "llvm.load":
            address = operation.operands[0]
        elif operation.name == "llvm.store":
            address = operation.operands[1]
        else:
            continue
        if _is_shared(address, entry):
            operation.attributes["access_groups"] = groups


def _is_shared(address: Any, entry: Any) -> bool:
    """Whether an address certainly stems from an argument of the kernel or from a global."""
    while True:
        owner = address.owner
        if isinstance(owner, ir.Block):
            return bool(owner == entry)
        if owner.name == "llvm.mlir.addressof":
            return True
        if owner.name != "llvm.getelementptr":
            return False
        address = owner.operands[0]
