"""Host module + images + CPU kernels → one host module in the LLVM dialect, ready to translate.

Each `gpu.binary` becomes

* a constant with the fatbin, and a constructor that hands it to `mgpuModuleLoad` (which only
  remembers it) before `main`, or when a library is opened;
* a table of the kernels' CPU forms, given to `aotc_module_register` by the same constructor
  through a weak reference: linked against upstream's runtime, the object does without.

Each `gpu.launch_func` becomes a call of the kernel's launch stub, an internal function that
makes the same `mgpu*` calls as upstream's translation. The parameters' stack slots are the
stub's, so that a launch in a loop does not grow the stack. Each entry gets a packed form,
`aotc_call_NAME(void **values)`, for the harness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from aotc.cpu.kernels import CpuKernel, CpuKernels
from aotc.emit.table import packed_symbol
from aotc.errors import InputError
from aotc.load.entries import ENTRY_ATTRIBUTE, PROGRAM_MAIN, symbol_of
from aotc.lower import ops
from aotc.lower.outlining import launched_kernel
from aotc.manifest import Entry
from aotc.mlir import ir

MODULE_INFO_VERSION = 1  # AOTC_MODULE_INFO_VERSION of runtime_c/include/aotc_runtime.h
# The driver reads fat binaries in place, as 8-byte words; a cache line is friendlier.
_IMAGE_ALIGNMENT = 64
_PRIORITY = 123  # upstream's translation of gpu.binary uses the same
_USER_MAIN = "aotc_user_main"
_KERNEL_ENTRY = "!llvm.struct<(ptr, ptr, ptr)>"
_MODULE_INFO = "!llvm.struct<(i32, i32, ptr, i64, ptr, ptr, ptr)>"

_RUNTIME = """
llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
llvm.func @mgpuModuleLoad(!llvm.ptr, i64) -> !llvm.ptr
llvm.func @mgpuModuleUnload(!llvm.ptr)
llvm.func @mgpuModuleGetFunction(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
llvm.func @mgpuStreamCreate() -> !llvm.ptr
llvm.func @mgpuStreamSynchronize(!llvm.ptr)
llvm.func @mgpuStreamDestroy(!llvm.ptr)
llvm.func @mgpuLaunchKernel(!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
llvm.func @mgpuLaunchClusterKernel(!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr)
llvm.func @mgpuLaunchKernelCooperative(!llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr)
llvm.func extern_weak @aotc_module_register(!llvm.ptr)
"""


def embed(
    host: Any,
    images: Mapping[str, bytes],
    cpu: CpuKernels | None,
    entries: Sequence[Entry],
    *,
    built_for: str,
    managed_globals: frozenset[str] = frozenset(),
) -> None:
    """Changes `host` in place.

    `images` maps a gpu.module's name to its fatbin; `managed_globals` are the variables that
    kernels are given.
    """
    with host.context, ir.Location.unknown():
        _keep_to_itself(host, entries)
        if cpu is not None:
            _merge(host, cpu.module.operation)
        _merge(host, ir.Module.parse(_RUNTIME).operation)
        for name in sorted(managed_globals):
            _make_global_managed(host, name)
        kernels = cpu.kernels if cpu is not None else ()
        binaries = [op for op in _operations(host) if op.name == "gpu.binary"]
        for binary in binaries:
            name = symbol_of(binary)
            own = [kernel for kernel in kernels if kernel.module == name]
            _embed_image(host, name, images[name], own, built_for)
        stubs = _LaunchStubs(host)
        for launch in ops.find(host, "gpu.launch_func"):
            with launch.location, ir.InsertionPoint(launch):
                _lower_launch(launch, stubs)
            launch.erase()
        for binary in binaries:
            binary.erase()
        for entry in entries:
            _add_packed_call(host, entry)
        host.verify()


def _operations(module: Any) -> list[Any]:
    return [op.operation for op in module.regions[0].blocks[0].operations]


def _append(host: Any, text: str) -> list[Any]:
    """Parses top-level operations and moves them to the end of `host`."""
    # Verification waits: what the text refers to is in `host`.
    parsed = ir.Module.parse(text)
    body = host.regions[0].blocks[0]
    moved = [op.operation for op in parsed.body.operations]
    for operation in moved:
        body.append(operation)
    return moved


def _merge(host: Any, other: Any) -> None:
    """Appends copies of the operations of `other`; what both declare is declared once."""
    body = host.regions[0].blocks[0]
    existing = {symbol_of(op) for op in _operations(host) if "sym_name" in op.attributes}
    for operation in _operations(other):
        if "sym_name" in operation.attributes and symbol_of(operation) in existing:
            continue
        body.append(operation.clone())


def _keep_to_itself(host: Any, entries: Sequence[Entry]) -> None:
    """Gives every function internal linkage but the C interfaces of the entries."""
    exported = {entry.symbol for entry in entries}
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for function in _operations(host):
        if function.name != "llvm.func" or not function.regions[0].blocks:
            continue
        name = symbol_of(function)
        if name == PROGRAM_MAIN and ENTRY_ATTRIBUTE not in function.attributes:
            _wrap_main(host, function)
        if name not in exported:
            function.attributes["linkage"] = internal


def _signature(function: Any) -> tuple[list[str], str]:
    """(parameter types, result type) of an llvm.func; the result is `void` where there is none."""
    text = str(ir.TypeAttr(function.attributes["function_type"]).value)
    parameters = [str(a.type) for a in function.regions[0].blocks[0].arguments]
    result = text.removeprefix("!llvm.func<").split(" (", 1)[0]
    return parameters, result


def _wrap_main(host: Any, main: Any) -> None:
    """Renames the module's own main, and adds the form of it that program_main.c calls."""
    main.attributes["sym_name"] = ir.StringAttr.get(_USER_MAIN)
    for call in ops.find(host, "llvm.call"):
        if "callee" in call.attributes and _callee(call) == PROGRAM_MAIN:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_USER_MAIN)
    parameters, result = _signature(main)
    if parameters not in ([], ["i32", "!llvm.ptr"]) or result not in ("void", "i32", "i64"):
        raise InputError(
            f"The module's main has the type ({', '.join(parameters)}) -> {result}, which no C "
            "program can start. It may take nothing or (i32, !llvm.ptr), and return nothing, "
            f"i32 or index; or carry '{ENTRY_ATTRIBUTE}' to be an entry."
        )
    arguments = "%argc, %argv" if parameters else ""
    call = f"llvm.call @{_USER_MAIN}({arguments}) : ({', '.join(parameters)})"
    lines = {
        "void": [f"{call} -> ()", "%status = llvm.mlir.constant(0 : i32) : i32"],
        "i32": [f"%status = {call} -> i32"],
        "i64": [f"%value = {call} -> i64", "%status = llvm.trunc %value : i64 to i32"],
    }[result]
    body = "\n  ".join(lines)
    _append_with_declarations(
        host,
        f"""llvm.func hidden @aotc_program_main(%argc: i32, %argv: !llvm.ptr) -> i32 {{
  {body}
  llvm.return %status : i32
}}""",
        {_USER_MAIN: _declaration(_USER_MAIN, parameters, result)},
    )


def _callee(call: Any) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def _declaration(name: str, parameters: Sequence[str], result: str) -> str:
    suffix = "" if result == "void" else f" -> {result}"
    return f'llvm.func @"{name}"({", ".join(parameters)}){suffix}'


def _append_with_declarations(host: Any, text: str, declarations: Mapping[str, str]) -> None:
    """Like `_append`, for text that refers to symbols which `host` defines already."""
    moved = _append(host, "\n".join([*declarations.values(), text]))
    for operation in moved[: len(declarations)]:
        operation.erase()


def _quote(text: str) -> str:
    """A C string as an MLIR string literal, with its terminating NUL."""
    plain = {c for c in range(0x20, 0x7F)} - {ord('"'), ord("\\")}
    return "".join(chr(b) if b in plain else f"\\{b:02X}" for b in text.encode()) + "\\00"


def _string_global(name: str, text: str) -> str:
    size = len(text.encode()) + 1
    return (
        f'llvm.mlir.global internal constant @"{name}"("{_quote(text)}") '
        f"{{addr_space = 0 : i32}} : !llvm.array<{size} x i8>"
    )


def _module_handle(module: str) -> str:
    return f"aotc_module_{module}"


def _kernel_name(module: str, kernel: str) -> str:
    return f"aotc_name_{module}_{kernel}"


def _embed_image(
    host: Any, name: str, image: bytes, kernels: Sequence[CpuKernel], built_for: str
) -> None:
    image_symbol, info_symbol = f"aotc_image_{name}", f"aotc_info_{name}"
    moved = _append(
        host,
        "\n".join(
            [
                f'llvm.mlir.global internal constant @"{image_symbol}"("") '
                f"{{addr_space = 0 : i32, alignment = {_IMAGE_ALIGNMENT} : i64}} "
                ": !llvm.array<0 x i8>",
                _handle_text(name),
                *_info_text(name, image_symbol, info_symbol, len(image), kernels, built_for),
                _constructor_text(name, image_symbol, info_symbol, len(image)),
            ]
        ),
    )
    constant = moved[0]
    constant.attributes["value"] = ir.StringAttr.get(image)
    constant.attributes["global_type"] = ir.TypeAttr.get(
        ir.Type.parse(f"!llvm.array<{len(image)} x i8>")
    )
    _drop_declarations(host, moved)


def _make_global_managed(host: Any, name: str) -> None:
    """Lets every function use a managed copy of a variable, which is made on first use.

    Two threads may make it at once: one copy wins, the other is freed. Without memory for it
    the variable itself is used: the failure is noted by then, and no kernel is launched.
    """
    variable = next(
        op
        for op in _operations(host)
        if op.name == "llvm.mlir.global" and symbol_of(op) == name
    )
    type_ = str(ir.TypeAttr(variable.attributes["global_type"]).value)
    pointer, getter = f"aotc_managed_{name}", f"aotc_get_{name}"
    uses = [
        op
        for function in _operations(host)
        if function.name == "llvm.func"
        for op in ops.find(function, "llvm.mlir.addressof")
        if ir.FlatSymbolRefAttr(op.attributes["global_name"]).value == name
    ]
    declarations = {line: line for line in _RUNTIME.strip().splitlines()}
    declarations[name] = f'llvm.mlir.global external @"{name}"() {{addr_space = 0 : i32}} : {type_}'
    _append_with_declarations(
        host,
        f"""llvm.mlir.global internal @"{pointer}"() {{addr_space = 0 : i32}} : !llvm.ptr {{
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}}
llvm.func internal @"{getter}"() -> !llvm.ptr {{
  %place = llvm.mlir.addressof @"{pointer}" : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %known = llvm.load %place atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> !llvm.ptr
  %is_known = llvm.icmp "ne" %known, %null : !llvm.ptr
  llvm.cond_br %is_known, ^done(%known : !llvm.ptr), ^allocate
^allocate:
  %variable = llvm.mlir.addressof @"{name}" : !llvm.ptr
  %end = llvm.getelementptr %null[1] : (!llvm.ptr) -> !llvm.ptr, {type_}
  %size = llvm.ptrtoint %end : !llvm.ptr to i64
  %shared = llvm.mlir.constant(1 : i8) : i8
  %copy = llvm.call @mgpuMemAlloc(%size, %null, %shared) : (i64, !llvm.ptr, i8) -> !llvm.ptr
  %is_there = llvm.icmp "ne" %copy, %null : !llvm.ptr
  llvm.cond_br %is_there, ^fill, ^done(%variable : !llvm.ptr)
^fill:
  "llvm.intr.memcpy"(%copy, %variable, %size) <{{isVolatile = false}}>
      : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %exchange = llvm.cmpxchg %place, %null, %copy acq_rel acquire {{alignment = 8 : i64}}
      : !llvm.ptr, !llvm.ptr
  %before = llvm.extractvalue %exchange[0] : !llvm.struct<(ptr, i1)>
  %is_ours = llvm.extractvalue %exchange[1] : !llvm.struct<(ptr, i1)>
  llvm.cond_br %is_ours, ^done(%copy : !llvm.ptr), ^late
^late:
  llvm.call @mgpuMemFree(%copy, %null) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^done(%before : !llvm.ptr)
^done(%result: !llvm.ptr):
  llvm.return %result : !llvm.ptr
}}""",
        declarations,
    )
    for use in uses:
        with use.location, ir.InsertionPoint(use):
            managed = _call(getter, [], "!llvm.ptr")
        use.results[0].replace_all_uses_with(managed)
        use.erase()


def _drop_declarations(host: Any, moved: Sequence[Any]) -> None:
    """Erases the declarations among `moved`: `host` has its own."""
    for operation in moved:
        if operation.name == "llvm.func" and not operation.regions[0].blocks:
            operation.erase()


def _handle_text(name: str) -> str:
    return f"""llvm.mlir.global internal @"{_module_handle(name)}"() {{addr_space = 0 : i32}} : !llvm.ptr {{
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}}"""


def _info_text(
    name: str,
    image_symbol: str,
    info_symbol: str,
    image_bytes: int,
    kernels: Sequence[CpuKernel],
    built_for: str,
) -> list[str]:
    """aotc_module_info and what it points to; see runtime_c/include/aotc_runtime.h."""
    table_symbol = f"aotc_kernels_{name}"
    texts = [
        _string_global(f"aotc_modname_{name}", name),
        _string_global(f"aotc_builtfor_{name}", built_for),
    ]
    table_type = f"!llvm.array<{len(kernels)} x {_KERNEL_ENTRY.removeprefix('!llvm.')}>"
    lines = [f"%t0 = llvm.mlir.zero : {table_type}"]
    value = "%t0"

    def put(symbol: str, position: str) -> None:
        nonlocal value
        number = len(lines)
        lines.append(f'%p{number} = llvm.mlir.addressof @"{symbol}" : !llvm.ptr')
        lines.append(f"%t{number} = llvm.insertvalue %p{number}, {value}[{position}] : {table_type}")
        value = f"%t{number}"

    for i, kernel in enumerate(kernels):
        name_symbol = _kernel_name(name, kernel.kernel)
        texts.append(_string_global(name_symbol, kernel.kernel))
        put(name_symbol, f"{i}, 0")
        if kernel.symbol is not None:
            # The function itself came with the CPU kernels.
            texts.append(f'llvm.func @"{kernel.symbol}"(!llvm.ptr, !llvm.ptr)')
            put(kernel.symbol, f"{i}, 1")
        else:
            reason_symbol = f"aotc_why_{name}_{kernel.kernel}"
            texts.append(_string_global(reason_symbol, kernel.why_not or "it has no CPU form"))
            put(reason_symbol, f"{i}, 2")
    lines.append(f"llvm.return {value} : {table_type}")
    texts.append(_initialized_global(table_symbol, table_type, lines))

    fields = (
        ("i32", MODULE_INFO_VERSION),
        ("i32", len(kernels)),
        ("!llvm.ptr", image_symbol),
        ("i64", image_bytes),
        ("!llvm.ptr", f"aotc_modname_{name}"),
        ("!llvm.ptr", f"aotc_builtfor_{name}"),
        ("!llvm.ptr", table_symbol),
    )
    lines = [f"%s0 = llvm.mlir.zero : {_MODULE_INFO}"]
    for i, (type_, content) in enumerate(fields):
        source = (
            f'llvm.mlir.addressof @"{content}" : !llvm.ptr'
            if type_ == "!llvm.ptr"
            else f"llvm.mlir.constant({content} : {type_}) : {type_}"
        )
        lines.append(f"%f{i} = {source}")
        lines.append(f"%s{i + 1} = llvm.insertvalue %f{i}, %s{i}[{i}] : {_MODULE_INFO}")
    lines.append(f"llvm.return %s{len(fields)} : {_MODULE_INFO}")
    texts.append(_initialized_global(info_symbol, _MODULE_INFO, lines))
    return texts


def _initialized_global(symbol: str, type_: str, lines: Sequence[str]) -> str:
    body = "\n  ".join(lines)
    return (
        f'llvm.mlir.global internal constant @"{symbol}"() {{addr_space = 0 : i32}} : {type_} '
        f"{{\n  {body}\n}}"
    )


def _constructor_text(name: str, image_symbol: str, info_symbol: str, image_bytes: int) -> str:
    load, unload, handle = f"aotc_load_{name}", f"aotc_unload_{name}", _module_handle(name)
    return f"""{_RUNTIME}
llvm.func internal @"{load}"() {{
  %image = llvm.mlir.addressof @"{image_symbol}" : !llvm.ptr
  %size = llvm.mlir.constant({image_bytes} : i64) : i64
  %handle = llvm.call @mgpuModuleLoad(%image, %size) : (!llvm.ptr, i64) -> !llvm.ptr
  %place = llvm.mlir.addressof @"{handle}" : !llvm.ptr
  llvm.store %handle, %place : !llvm.ptr, !llvm.ptr
  %register = llvm.mlir.addressof @aotc_module_register : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %register, %null : !llvm.ptr
  llvm.cond_br %is_there, ^register, ^done
^register:
  %info = llvm.mlir.addressof @"{info_symbol}" : !llvm.ptr
  llvm.call @aotc_module_register(%info) : (!llvm.ptr) -> ()
  llvm.br ^done
^done:
  llvm.return
}}
llvm.func internal @"{unload}"() {{
  %place = llvm.mlir.addressof @"{handle}" : !llvm.ptr
  %handle = llvm.load %place : !llvm.ptr -> !llvm.ptr
  llvm.call @mgpuModuleUnload(%handle) : (!llvm.ptr) -> ()
  llvm.return
}}
llvm.mlir.global_ctors ctors = [@"{load}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]
llvm.mlir.global_dtors dtors = [@"{unload}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]"""


class _LaunchKind(Enum):
    """How a kernel is launched, by the runtime function that does it."""

    PLAIN = "mgpuLaunchKernel"
    CLUSTER = "mgpuLaunchClusterKernel"
    COOPERATIVE = "mgpuLaunchKernelCooperative"


class _LaunchStubs:
    """The launch stubs of one host module: one for each kernel, types and kind of launch."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self._names: dict[tuple[str, str, tuple[str, ...], _LaunchKind], str] = {}
        self._kernel_names = {
            symbol_of(op) for op in _operations(host) if op.name == "llvm.mlir.global"
        }

    def get(self, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind) -> str:
        key = (module, kernel, types, kind)
        if key not in self._names:
            variant = sum(1 for other in self._names if other[:2] == key[:2])
            name = f"aotc_launch_{module}_{kernel}" + (f"_{variant}" if variant else "")
            self._names[key] = name
            self._create(name, *key)
        return self._names[key]

    def _create(
        self, name: str, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind
    ) -> None:
        declarations = {}
        name_symbol = _kernel_name(module, kernel)
        name_text = _string_global(name_symbol, kernel)
        if name_symbol in self._kernel_names:
            declarations[name_symbol] = name_text
        else:
            self._kernel_names.add(name_symbol)
            _append(self._host, name_text)
            declarations[name_symbol] = name_text
        declarations[_module_handle(module)] = _handle_text(module)
        for line in _RUNTIME.strip().splitlines():
            declarations[line] = line
        text = _stub_text(name, module, kernel, types, kind)
        _append_with_declarations(self._host, text, declarations)


def _stub_text(
    name: str, module: str, kernel: str, types: tuple[str, ...], kind: _LaunchKind
) -> str:
    sizes = [f"%{what}{axis}" for what in ("g", "b") for axis in "xyz"]
    cluster = [f"%c{axis}" for axis in "xyz"] if kind is not _LaunchKind.PLAIN else []
    parameters = [f"{size}: i64" for size in [*sizes, *cluster]]
    parameters += ["%shared: i32", "%stream: !llvm.ptr"]
    parameters += [f"%v{i}: {type_}" for i, type_ in enumerate(types)]
    slots = f"!llvm.struct<({', '.join(t.removeprefix('!llvm.') for t in types)})>"
    lines = [
        "%one = llvm.mlir.constant(1 : i64) : i64",
        f"%count = llvm.mlir.constant({len(types)} : i64) : i64",
        "%null = llvm.mlir.zero : !llvm.ptr",
    ]
    values = "%null"
    if types:
        values = "%values"
        lines.append(f"%slots = llvm.alloca %one x {slots} : (i64) -> !llvm.ptr")
        lines.append("%values = llvm.alloca %count x !llvm.ptr : (i64) -> !llvm.ptr")
    for i, type_ in enumerate(types):
        lines += [
            f"%s{i} = llvm.getelementptr %slots[0, {i}] : (!llvm.ptr) -> !llvm.ptr, {slots}",
            f"llvm.store %v{i}, %s{i} : {type_}, !llvm.ptr",
            f"%a{i} = llvm.getelementptr %values[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
            f"llvm.store %s{i}, %a{i} : !llvm.ptr, !llvm.ptr",
        ]
    lines += [
        f'%place = llvm.mlir.addressof @"{_module_handle(module)}" : !llvm.ptr',
        "%module = llvm.load %place : !llvm.ptr -> !llvm.ptr",
        f'%name = llvm.mlir.addressof @"{_kernel_name(module, kernel)}" : !llvm.ptr',
        "%kernel = llvm.call @mgpuModuleGetFunction(%module, %name) "
        ": (!llvm.ptr, !llvm.ptr) -> !llvm.ptr",
    ]
    # The plain launch has a count at its end, the others have the cluster: in front of the grid,
    # or (cooperative) behind it.
    order = [*sizes[:3], *cluster, *sizes[3:]] if kind is _LaunchKind.COOPERATIVE else [
        *cluster,
        *sizes,
    ]
    count, count_type = (", %count", ", i64") if kind is _LaunchKind.PLAIN else ("", "")
    lines.append(
        f"llvm.call @{kind.value}(%kernel, {', '.join(order)}, %shared, %stream, "
        f"{values}, %null{count}) : (!llvm.ptr, {', '.join(['i64'] * len(order))}, i32, "
        f"!llvm.ptr, !llvm.ptr, !llvm.ptr{count_type}) -> ()"
    )
    lines.append("llvm.return")
    body = "\n  ".join(lines)
    return f'llvm.func internal @"{name}"({", ".join(parameters)}) {{\n  {body}\n}}'


def _lower_launch(launch: Any, stubs: _LaunchStubs) -> None:
    """Calls the stub in place of `launch`, at the insertion point in front of it."""
    groups = ops.operand_groups(launch)
    # Groups: tokens, grid and block (three each), cluster (three), shared bytes, operands, stream.
    sizes = [group[0] for group in groups[1:7]]
    cluster = [group[0] for group in groups[7:10] if group]
    shared, operands, stream = groups[10], groups[11], groups[12]
    if groups[0] or len(launch.results) > 0:
        raise AssertionError("gpu-to-llvm leaves no token on a launch")
    module, kernel = launched_kernel(launch)
    types = tuple(str(operand.type) for operand in operands)
    kind = _LaunchKind.CLUSTER if cluster else _LaunchKind.PLAIN
    if "cooperative" in launch.attributes:
        kind = _LaunchKind.COOPERATIVE
        cluster = cluster or [_constant(0, 64)] * 3
    stub = stubs.get(module, kernel, types, kind)
    handle = stream[0] if stream else _call("mgpuStreamCreate", [], "!llvm.ptr")
    arguments = [
        *(_as_i64(size) for size in [*sizes, *cluster]),
        shared[0] if shared else _constant(0, 32),
        handle,
        *operands,
    ]
    _call(stub, arguments)
    if not stream:
        _call("mgpuStreamSynchronize", [handle])
        _call("mgpuStreamDestroy", [handle])


def _call(name: str, arguments: Sequence[Any], result: str | None = None) -> Any:
    call = ir.Operation.create(
        "llvm.call",
        results=[ir.Type.parse(result)] if result else [],
        operands=list(arguments),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(arguments), 0]),
        },
    )
    return call.results[0] if result else None


def _constant(value: int, bits: int) -> Any:
    type_ = ir.IntegerType.get_signless(bits)
    return ir.Operation.create(
        "llvm.mlir.constant",
        results=[type_],
        attributes={"value": ir.IntegerAttr.get(type_, value)},
    ).results[0]


def _as_i64(value: Any) -> Any:
    if str(value.type) == "i64":
        return value
    i64 = ir.IntegerType.get_signless(64)
    return ir.Operation.create("llvm.sext", results=[i64], operands=[value]).results[0]


def _add_packed_call(host: Any, entry: Entry) -> None:
    """`aotc_call_NAME(values)`: values[i] is the address of scalar argument i, or of the memref
    descriptor i; behind the arguments, likewise for what the entry returns."""
    symbol = entry.symbol
    function = next(
        (
            op
            for op in _operations(host)
            if op.name == "llvm.func" and symbol_of(op) == symbol and op.regions[0].blocks
        ),
        None,
    )
    if function is None:
        raise InputError(
            f"After --pipeline, entry '{entry.name}' has no C interface '{symbol}'. "
            f"Keep '{ENTRY_ATTRIBUTE}' on the function until convert-func-to-llvm."
        )
    parameters, result = _signature(function)
    result_mlir = result if result.startswith(("i", "f", "bf", "h")) else f"!llvm.{result}"
    lines: list[str] = []
    arguments: list[str] = []
    returns_by_pointer = len(parameters) == len(entry.arguments) + 1

    def slot(index: int) -> str:
        lines.append(f"%q{index} = llvm.getelementptr %values[{index}] "
                     ": (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
        lines.append(f"%p{index} = llvm.load %q{index} : !llvm.ptr -> !llvm.ptr")
        return f"%p{index}"

    count = len(entry.arguments)
    packed = f"!llvm.struct<({', '.join(_result_type(r) for r in entry.results)})>"
    if returns_by_pointer:
        if len(entry.results) == 1:
            arguments.append(slot(count))
        else:
            lines.append("%one = llvm.mlir.constant(1 : i64) : i64")
            lines.append(f"%packed = llvm.alloca %one x {packed} : (i64) -> !llvm.ptr")
            arguments.append("%packed")
    for i, (value, type_) in enumerate(
        zip(entry.arguments, parameters[int(returns_by_pointer) :], strict=True)
    ):
        pointer = slot(i)
        if value.is_scalar:
            lines.append(f"%v{i} = llvm.load {pointer} : !llvm.ptr -> {type_}")
            pointer = f"%v{i}"
        arguments.append(pointer)
    call = f'llvm.call @"{symbol}"({", ".join(arguments)}) : ({", ".join(parameters)})'
    if result == "void":
        lines.append(f"{call} -> ()")
    else:
        lines.append(f"%result = {call} -> {result_mlir}")
        lines.append(f"llvm.store %result, {slot(count)} : {result_mlir}, !llvm.ptr")
    if returns_by_pointer and len(entry.results) > 1:
        lines.append(f"%all = llvm.load %packed : !llvm.ptr -> {packed}")
        for i, value in enumerate(entry.results):
            type_ = _result_type(value)
            full = type_ if not type_.startswith("struct") else f"!llvm.{type_}"
            lines.append(f"%r{i} = llvm.extractvalue %all[{i}] : {packed}")
            lines.append(f"llvm.store %r{i}, {slot(count + i)} : {full}, !llvm.ptr")
    lines.append("llvm.return")
    body = "\n  ".join(lines)
    _append_with_declarations(
        host,
        f'llvm.func hidden @{packed_symbol(entry)}(%values: !llvm.ptr) {{\n  {body}\n}}',
        {symbol: _declaration(symbol, parameters, "void" if result == "void" else result_mlir)},
    )


def _result_type(value: Any) -> str:
    """The LLVM type of a result inside the struct that returns several."""
    if value.shape is None:
        scalars = {"index": "i64", "complex<f32>": "struct<(f32, f32)>",
                   "complex<f64>": "struct<(f64, f64)>"}
        text = scalars.get(value.type, value.type)
        return text[1:] if text.startswith(("si", "ui")) else text
    rank = len(value.shape)
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    return f"struct<(ptr, ptr, i64{arrays})>"
