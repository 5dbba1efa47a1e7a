"""Building blocks of the LLVM dialect: text that is parsed into a module, and helpers to write it.

Functions that call the runtime are written as text of the dialect. The bindings' builders of this
dialect are the generated ones: each `llvm.call` also takes its operand bundles and their sizes,
each global its linkage and an initializer region, and each branch blocks that exist before it. Each
line of text would be a call with more arguments, in an order that hides the control flow. Single
operations in existing functions are created by `aotc.ops` and `aotc.llvm_ops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aotc import llvm_ops, ops
from aotc.mlir import ir
from aotc.ops import symbol_of

_LAUNCH = "ptr" + ", i64" * 6 + ", i32, ptr, ptr, ptr, i64"
_LAUNCH_WITH_CLUSTER = "ptr" + ", i64" * 9 + ", i32, ptr, ptr, ptr"

# Function → (parameters, result): the functions of the runtime that generated code calls. They are
# declared in mlir_cuda_runtime.h and aotc_runtime.h.
_RUNTIME = {
    "mgpuMemAlloc": ("i64, ptr, i8", "ptr"),
    "mgpuMemFree": ("ptr, ptr", "void"),
    "mgpuModuleLoad": ("ptr, i64", "ptr"),
    "mgpuModuleUnload": ("ptr", "void"),
    "mgpuModuleGetFunction": ("ptr, ptr", "ptr"),
    "mgpuStreamCreate": ("", "ptr"),
    "mgpuStreamSynchronize": ("ptr", "void"),
    "mgpuStreamDestroy": ("ptr", "void"),
    "mgpuLaunchKernel": (_LAUNCH, "void"),
    "mgpuLaunchClusterKernel": (_LAUNCH_WITH_CLUSTER, "void"),
    "mgpuLaunchKernelCooperative": (_LAUNCH_WITH_CLUSTER, "void"),
    "aotc_concurrent_launch_prepare": ("ptr, i64", "void"),
    "aotc_module_register": ("ptr", "void"),
    "aotc_status_get": ("", "i32"),
    "aotc_is_stopped": ("", "i1"),
    "aotc_assertion_failed": ("ptr", "void"),
    "aotc_allocation_failed": ("ptr", "void"),
    "aotc_constant_get": ("ptr", "ptr"),
    "aotc_constant_get_packed": ("ptr, i64", "ptr"),
    "aotc_constant_get_transposed": ("ptr, i64", "ptr"),
    "aotc_constant_get_grouped_words": ("ptr, i64", "ptr"),
    "aotc_constant_get_grouped_halves": ("ptr, i64", "ptr"),
    "aotc_constant_get_grouped_bytes": ("ptr, i64", "ptr"),
    "aotc_constant_get_winograd": ("ptr, i64", "ptr"),
    "aotc_constant_release": ("ptr", "void"),
}
# Functions that upstream's runtime does not have. Objects link against it, too.
WEAK = (
    "aotc_concurrent_launch_prepare",
    "aotc_module_register",
    "aotc_status_get",
    "aotc_is_stopped",
    "aotc_assertion_failed",
    "aotc_allocation_failed",
    "aotc_constant_get",
    "aotc_constant_get_packed",
    "aotc_constant_get_transposed",
    "aotc_constant_get_grouped_words",
    "aotc_constant_get_grouped_halves",
    "aotc_constant_get_grouped_bytes",
    "aotc_constant_get_winograd",
    "aotc_constant_release",
)


def runtime_declarations() -> dict[str, str]:
    """The declarations of the runtime's functions, by name."""
    texts = {}
    for name, (parameters, result) in _RUNTIME.items():
        linkage = "extern_weak " if name in WEAK else ""
        types = [part.replace("ptr", "!llvm.ptr") for part in parameters.split(", ") if part]
        text = declaration(name, types, result.replace("ptr", "!llvm.ptr"))
        texts[name] = text.replace("llvm.func ", f"llvm.func {linkage}", 1)
    return texts


def defined_functions(host: Any) -> dict[str, Any]:
    """The `llvm.func` operations that have a body, by their names."""
    return {
        symbol_of(op): op
        for op in ops.content(host)
        if op.name == "llvm.func" and op.regions[0].blocks
    }


def append(host: Any, text: str) -> list[Any]:
    """Parses top-level operations and moves them to the end of `host`."""
    # The text is not verified on its own: it refers to symbols of `host`.
    parsed = ir.Module.parse(text)
    body = host.regions[0].blocks[0]
    moved = ops.operations_in(parsed.body)
    for operation in moved:
        body.append(operation)
    return moved


def append_with_declarations(host: Any, text: str, declarations: Mapping[str, str]) -> None:
    """As `append`, for text that refers to symbols which `host` defines already."""
    moved = append(host, "\n".join([*declarations.values(), text]))
    for operation in moved[: len(declarations)]:
        ops.erase(operation)


def drop_declarations(moved: Sequence[Any]) -> None:
    """Erases the declarations among `moved`: the host module has its own."""
    for operation in moved:
        if operation.name == "llvm.func" and not operation.regions[0].blocks:
            ops.erase(operation)


def merge(host: Any, other: Any) -> None:
    """Appends copies of the operations of `other`. A symbol that `host` has is not appended."""
    body = host.regions[0].blocks[0]
    existing = {symbol_of(op) for op in ops.content(host) if "sym_name" in op.attributes}
    for operation in ops.content(other):
        if "sym_name" in operation.attributes and symbol_of(operation) in existing:
            continue
        body.append(operation.clone())


def signature(function: Any) -> tuple[list[str], str]:
    """(parameter types, result type) of an llvm.func. The result type is `void` if it has none."""
    text = str(ir.TypeAttr(function.attributes["function_type"]).value)
    parameters = [str(a.type) for a in function.regions[0].blocks[0].arguments]
    result = text.removeprefix("!llvm.func<").split(" (", 1)[0]
    return parameters, result


def declaration(name: str, parameters: Sequence[str], result: str) -> str:
    suffix = "" if result == "void" else f" -> {result}"
    return f'llvm.func @"{name}"({", ".join(parameters)}){suffix}'


def _quote(text: str) -> str:
    """A C string as an MLIR string literal, with its terminating NUL."""
    plain = set(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
    return "".join(chr(b) if b in plain else f"\\{b:02X}" for b in text.encode()) + "\\00"


def string_global(name: str, text: str) -> str:
    size = len(text.encode()) + 1
    return (
        f'llvm.mlir.global internal constant @"{name}"("{_quote(text)}") '
        f"{{addr_space = 0 : i32}} : !llvm.array<{size} x i8>"
    )


def initialized_global(symbol: str, type_: str, lines: Sequence[str]) -> str:
    body = "\n  ".join(lines)
    return (
        f'llvm.mlir.global internal constant @"{symbol}"() {{addr_space = 0 : i32}} : {type_} '
        f"{{\n  {body}\n}}"
    )


def create_call(name: str, arguments: Sequence[Any], result: str | None = None) -> Any:
    call = llvm_ops.call_llvm(name, arguments, [ir.Type.parse(result)] if result else [])
    return call.results[0] if result else None


def create_constant(value: int, bits: int) -> Any:
    number = ir.IntegerAttr.get(ops.integer(bits), value)
    return ops.create("llvm.mlir.constant", (), [number.type], {"value": number}).result


def module_handle(module: str) -> str:
    return f"aotc_module_{module}"


def kernel_name(module: str, kernel: str) -> str:
    # As no kernel's name has a dot, the symbols of @a::@b_c and @a_b::@c differ.
    return f"aotc_name_{module}.{kernel}"


def kernel_handle(module: str, kernel: str) -> str:
    return f"aotc_kernel_{module}.{kernel}"


def handle_text(name: str) -> str:
    return null_pointer_global(module_handle(name))


def null_pointer_global(symbol: str) -> str:
    """An internal variable for a pointer, initially null."""
    return f"""llvm.mlir.global internal @"{symbol}"() {{addr_space = 0 : i32}} : !llvm.ptr {{
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}}"""


class Initializer:
    """The initializer of a constant struct or array. Elements that are not set are zero."""

    def __init__(self, type_: str) -> None:
        self._type = type_
        self._lines = [f"%c0 = llvm.mlir.zero : {type_}"]
        self._count = 0

    def put_address(self, symbol: str, *position: int) -> None:
        self.put(f'llvm.mlir.addressof @"{symbol}" : !llvm.ptr', *position)

    def put_number(self, value: int, type_: str, *position: int) -> None:
        if value != 0:
            self.put(f"llvm.mlir.constant({value} : {type_}) : {type_}", *position)

    def put(self, source: str, *position: int) -> None:
        """Sets an element to the result of an operation, given as text."""
        before, place = f"%c{self._count}", ", ".join(map(str, position))
        self._count += 1
        value = f"%v{self._count}"
        self._lines += [
            f"{value} = {source}",
            f"%c{self._count} = llvm.insertvalue {value}, {before}[{place}] : {self._type}",
        ]

    def text(self, symbol: str) -> str:
        lines = [*self._lines, f"llvm.return %c{self._count} : {self._type}"]
        return initialized_global(symbol, self._type, lines)
