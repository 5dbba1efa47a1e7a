"""Programs → MLIR: for each a kernel, what it calls, and an entry that launches it."""

from __future__ import annotations

from collections.abc import Iterable

from property.expression_text import memref_type
from property.program import Program
from property.statement_text import Printer


def module_text(programs: Iterable[Program]) -> str:
    """One module with all of them. The entries have the programs' names."""
    programs = list(programs)
    kernels = [line for p in programs if p.form == "func" for line in _kernel_lines(p)]
    helpers = [line for p in programs if p.form == "launch" for line in _function_lines(p)]
    entries = [line for program in programs for line in _entry_lines(program)]
    lines = ["module attributes {gpu.container_module} {"]
    if kernels:
        lines += ["gpu.module @kernels {", *kernels, "}"]
    return "\n".join([*lines, *helpers, *entries, "}", ""])


def _arguments(program: Program) -> list[tuple[str, str]]:
    """The kernel's arguments: names and types."""
    memories = [(m.name, memref_type(m)) for m in program.memories if m.is_argument]
    return [*memories, *((variable.name, variable.type) for variable, _ in program.scalars)]


def size_arguments(program: Program) -> dict[str, int]:
    """What the entry is called with beside the kernel's arguments."""
    if program.has_constant_sizes:
        return {}
    sizes = {f"grid_{d}": size for d, size in zip("xyz", program.grid, strict=True)}
    sizes |= {f"block_{d}": size for d, size in zip("xyz", program.block, strict=True)}
    return sizes | ({"dynamic_bytes": program.dynamic_bytes} if program.dynamic_bytes else {})


def _typed(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"%{name}: {type_}" for name, type_ in pairs)


def _attributions(program: Program) -> str:
    texts = []
    for space in ("workgroup", "private"):
        found = [(m.name, memref_type(m)) for m in program.memories if m.space == space]
        if found:
            typed = ", ".join(f"%{name} : {type_}" for name, type_ in found)
            texts.append(f" {space}({typed})")
    return "".join(texts)


def _entry_lines(program: Program) -> list[str]:
    arguments = _arguments(program)
    own = dict(arguments)
    for name in size_arguments(program):
        own[name] = "i32" if name == "dynamic_bytes" else "index"
    lines = [
        f"func.func @{program.name}({_typed(own.items())}) attributes {{llvm.emit_c_interface}} {{"
    ]
    sizes = []
    for what, size in (("grid", program.grid), ("block", program.block)):
        for dimension, count in zip("xyz", size, strict=True):
            name = f"%{what}_{dimension}"
            sizes.append(name)
            if program.has_constant_sizes:
                lines.append(f"  {name} = arith.constant {count} : index")
    dynamic = ""
    if program.dynamic_bytes:
        if program.has_constant_sizes:
            lines.append(f"  %dynamic_bytes = arith.constant {program.dynamic_bytes} : i32")
        dynamic = " dynamic_shared_memory_size %dynamic_bytes"
    if program.form == "func":
        passed = ", ".join(f"%{name} : {type_}" for name, type_ in arguments)
        lines += [
            f"  gpu.launch_func @kernels::@{program.name}_kernel",
            f"    blocks in ({', '.join(sizes[:3])}) threads in ({', '.join(sizes[3:])}){dynamic}",
            f"    args({passed})",
        ]
    else:
        attributions = _attributions(program)
        grid = [f"%g{d} = {size}" for d, size in zip("xyz", sizes[:3], strict=True)]
        block = [f"%s{d} = {size}" for d, size in zip("xyz", sizes[3:], strict=True)]
        lines += [
            f"  gpu.launch blocks(%bx, %by, %bz) in ({', '.join(grid)})",
            f"    threads(%tx, %ty, %tz) in ({', '.join(block)}){dynamic}{attributions} {{",
            *_body_lines(program, "gpu.terminator"),
            "  }",
        ]
    return [*lines, "  return", "}"]


def _kernel_lines(program: Program) -> list[str]:
    known = ""
    if program.has_known_block_size:
        known = (
            f" attributes {{known_block_size = array<i32: {', '.join(map(str, program.block))}>}}"
        )
    return [
        *_function_lines(program),
        f"gpu.func @{program.name}_kernel({_typed(_arguments(program))})"
        f"{_attributions(program)} kernel{known} {{",
        *_body_lines(program, "gpu.return"),
        "}",
    ]


def _body_lines(program: Program, ending: str) -> list[str]:
    printer = Printer(program, ending)
    for variable, _ in program.scalars:
        printer.values[variable.name] = (f"%{variable.name}", variable.type)
    printer.make_memories()
    printer.body(program.body, may_branch=True)
    return [*printer.lines, f"    {ending}"]


def _function_lines(program: Program) -> list[str]:
    lines = []
    for function in program.functions:
        parameters = [(p.name, p.type) for p in function.parameters]
        parameters += [(m.name, memref_type(m)) for m in function.memories]
        types = ", ".join(result.type for result in function.results)
        printer = Printer(program, "return", function)
        for name, type_ in parameters[: len(function.parameters)]:
            printer.values[name] = (f"%{name}", type_)
        printer.body(function.body, may_branch=True)
        printer.line(printer.ending())
        arrow = f" -> ({types})" if types else ""
        header = f"func.func private @{function.name}({_typed(parameters)}){arrow} {{"
        lines += [header, *printer.lines, "}"]
    return lines
