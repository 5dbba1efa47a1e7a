"""The functions that today's lowering calls are those that the header declares.

C linkage does not notice a changed signature. So IR that uses everything is lowered, and its
`declare @mgpu...` lines are compared with what clang makes of the header.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runtime.support import HOST_TARGET, RUNTIME, TARGETS, runner, toolchain

from aotc.mlir import PassManager, ir, llvm, make_context

DATA = Path(__file__).parent / "data"
HEADER = RUNTIME / "include" / "mlir_cuda_runtime.h"

# Only upstream's library and hand-written code have these; the lowering calls none of them.
CALLED_BY_HAND = {"mgpuMemHostRegister", "mgpuMemHostUnregister", "mgpuTensorMapEncodeTiled"}

# To the calls of the runtime, and from there to LLVM's dialect.
_TO_CALLS = (
    "convert-nvgpu-to-nvvm, convert-scf-to-cf, convert-nvvm-to-llvm, "
    "nvvm-attach-target{chip=sm_90a}, "
    "gpu.module(convert-gpu-to-nvvm, reconcile-unrealized-casts), gpu-to-llvm"
)
_FROM_CALLS = (
    "finalize-memref-to-llvm, convert-func-to-llvm, convert-arith-to-llvm, convert-cf-to-llvm, "
    "canonicalize, cse, reconcile-unrealized-casts"
)
_ASYNC = (
    "async-to-async-runtime, async-runtime-ref-counting, convert-async-to-llvm, "
    "convert-arith-to-llvm"
)
PIPELINES = {
    "launches": f"builtin.module({_TO_CALLS}, {_FROM_CALLS})",
    "memory": f"builtin.module({_TO_CALLS}, {_FROM_CALLS})",
    "tensor_map": f"builtin.module({_TO_CALLS}, {_FROM_CALLS})",
    "events": (
        f"builtin.module(func.func(gpu-async-region), {_TO_CALLS}, {_ASYNC}, {_FROM_CALLS})"
    ),
}

Signatures = dict[str, str]


def read_signatures(llvm_ir: str) -> Signatures:
    """The `declare @mgpu...` lines as «result (parameters)», without attributes and names."""
    found = {}
    pattern = r"^declare (?P<result>[^@]+)@(?P<name>mgpu\w+)\((?P<parameters>[^)]*)\)"
    for match in re.finditer(pattern, llvm_ir, re.MULTILINE):
        parameters = [p.split()[0] for p in match["parameters"].split(",") if p.strip()]
        result = match["result"].split()[-1]
        found[match["name"]] = f"{result} ({', '.join(parameters)})"
    return found


def header_signatures(header: str, folder: Path, target: str = HOST_TARGET) -> Signatures:
    """What clang makes of the header's prototypes."""
    names = sorted(set(re.findall(r"\b(mgpu\w+)\(", header)))
    folder.joinpath(HEADER.name).write_text(header)
    source = folder / "use.c"
    uses = "\n".join(
        f"void *use_{name}(void) {{ return (void *)(size_t)&{name}; }}" for name in names
    )
    source.write_text(f'#include "{HEADER.name}"\n{uses}\n')
    output = folder / "use.ll"
    command = [
        *toolchain().zig_cc.command,
        *("-target", target, "-std=c11", "-O0", "-S", "-emit-llvm"),
        *(f"-I{folder}", f"-I{HEADER.parent}", str(source), "-o", str(output)),
    ]
    runner().run(command, making="the header's signatures")
    return read_signatures(output.read_text())


def lowered_signatures(name: str) -> Signatures:
    """What the lowering of tests/runtime/data/NAME.mlir declares."""
    with make_context():
        module = ir.Module.parse((DATA / f"{name}.mlir").read_text())
        PassManager.parse(PIPELINES[name]).run(module.operation)
        for operation in list(module.body.operations):
            if operation.operation.name == "gpu.module":
                module.body.append(_embedded(operation.attributes["sym_name"].value))
                operation.operation.erase()
        return read_signatures(llvm.translate_module_to_llvmir(module.operation))


def _embedded(name: str) -> object:
    """A gpu.binary for the gpu.module `name`; `assembly` holds text."""
    key = "assembly" if name == "assembly" else "bin"
    text = (
        f"gpu.binary @{name} <#gpu.select_object<0 : i64>> "
        f'[#gpu.object<#nvvm.target<chip = "sm_90a">, {key} = "image">]'
    )
    return ir.Module.parse(text).body.operations[0].operation.clone()


def mismatches(lowered: Signatures, header: Signatures) -> list[str]:
    return [
        f"{name}: the lowering calls {signature}, the header declares {header.get(name)}"
        for name, signature in sorted(lowered.items())
        if header.get(name) != signature
    ]


def all_lowered() -> Signatures:
    found: Signatures = {}
    for name in PIPELINES:
        found.update(lowered_signatures(name))
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_header_matches_the_lowering(target: str, tmp_path: Path) -> None:
    """Every function that lowered IR declares is in the header, with the same types."""
    header = header_signatures(HEADER.read_text(), tmp_path, target)
    assert mismatches(all_lowered(), header) == []


def test_corpus_calls_every_function(tmp_path: Path) -> None:
    """Nothing in the header is compared with nothing."""
    header = header_signatures(HEADER.read_text(), tmp_path)
    assert set(header) - set(all_lowered()) == CALLED_BY_HAND


@pytest.mark.parametrize("text", ["mgpuModuleLoad", "mgpuMemAlloc", "mgpuModuleLoadJIT"])
def test_lowering_declares_what_it_calls(text: str) -> None:
    """The corpus holds what changed most over LLVM's releases, as it is today."""
    expected = {
        "mgpuModuleLoad": "ptr (ptr, i64)",
        "mgpuMemAlloc": "ptr (i64, ptr, i8)",
        "mgpuModuleLoadJIT": "ptr (ptr, i32, i64)",
    }
    assert all_lowered()[text] == expected[text]


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        ("mgpuModuleLoad", "(void *image, size_t bytes)", "(void *image)"),
        ("mgpuMemset16", "uint16_t value", "uint32_t value"),
        ("mgpuMemAlloc", "uint8_t is_host_shared", "int32_t is_host_shared"),
        ("mgpuStreamCreate", "void *mgpuStreamCreate", "int32_t mgpuStreamCreate"),
        ("mgpuEventRecord", "void mgpuEventRecord", "int mgpuEventRecord"),
        ("mgpuSetDefaultDevice", "int32_t ordinal", "int64_t ordinal"),
    ],
)
def test_changed_prototype_is_noticed(
    function: str, before: str, after: str, tmp_path: Path
) -> None:
    """The comparison sees a parameter less, other types, another result."""
    text = HEADER.read_text()
    start = re.search(rf"^AOTC_API .*\b{function}\(", text, re.MULTILINE)
    assert start is not None
    end = text.index(";", start.start())
    prototype = text[start.start() : end]
    assert before in prototype
    changed = text[: start.start()] + prototype.replace(before, after) + text[end:]
    found = mismatches(all_lowered(), header_signatures(changed, tmp_path))
    assert [line.split(":")[0] for line in found] == [function]


def test_removed_function_is_noticed(tmp_path: Path) -> None:
    text = HEADER.read_text()
    removed = re.sub(r"AOTC_API void mgpuEventDestroy\(.*?;", "", text)
    assert removed != text
    found = mismatches(all_lowered(), header_signatures(removed, tmp_path))
    assert [line.split(":")[0] for line in found] == ["mgpuEventDestroy"]
