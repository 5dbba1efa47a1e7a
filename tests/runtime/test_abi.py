"""The functions that today's lowering calls are those that the header declares.

C linkage does not notice a changed signature. So IR that uses everything is lowered, and its
`declare @mgpu...` lines are compared with what clang makes of the header.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from runtime.support import (
    HOST_TARGET,
    RUNTIME,
    TARGETS,
    compile_c,
    include_flags,
    program_environment,
    runner,
    toolchain,
)

from aotc.mlir import PassManager, ir, llvm, make_context
from aotc.toolchain import runtime_library

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
    "program": f"builtin.module({_TO_CALLS}, {_FROM_CALLS})",
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


def lowered_ir(name: str, image: str = "image") -> str:
    """What tests/runtime/data/NAME.mlir becomes, in LLVM IR, with `image` for its device code."""
    with make_context():
        module = ir.Module.parse((DATA / f"{name}.mlir").read_text())
        PassManager.parse(PIPELINES[name]).run(module.operation)
        for operation in list(module.body.operations):
            if operation.operation.name == "gpu.module":
                module.body.append(_embedded(operation.attributes["sym_name"].value, image))
                operation.operation.erase()
        text: str = llvm.translate_module_to_llvmir(module.operation)
        return text


def lowered_signatures(name: str) -> Signatures:
    """What the lowering of tests/runtime/data/NAME.mlir declares."""
    return read_signatures(lowered_ir(name))


def _embedded(name: str, image: str) -> object:
    """A gpu.binary for the gpu.module `name`; `assembly` holds text."""
    key = "assembly" if name == "assembly" else "bin"
    text = (
        f"gpu.binary @{name} <#gpu.select_object<0 : i64>> "
        f'[#gpu.object<#nvvm.target<chip = "sm_90a">, {key} = "{image}">]'
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


# Says at the end of the program what it did; a destructor that runs before the image's own.
_REPORT = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "aotc_runtime.h"
#include "fake_driver.h"
__attribute__((destructor)) static void report(void) {
  printf("%s %s\\n", aotc_status_name(aotc_status_get()), aotc_error_message());
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *address = library != NULL ? dlsym(library, "fake_driver_get") : NULL;
  fake_driver *(*get)(void) = NULL;
  memcpy(&get, &address, sizeof(get));
  if (get == NULL) {
    printf("no driver\\n");
    return;
  }
  const fake_driver *driver = get();
  const fake_launch *l = &driver->last_launch;
  printf("%d launches, last %s %u %u %u, %u %u %u, of %#x\\n", driver->launch_count, l->kernel,
         l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
         (unsigned)l->first_parameter);
  printf("%d left, %s\\n", driver->live_memory + driver->live_events, driver->violation);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What translation and clang make of a program, linked against libmlir_cuda_runtime.so."""
    folder = tmp_path_factory.mktemp("program")
    image = "\\7FFAKE chips=90, kernels=kernel,"
    (folder / "program.ll").write_text(lowered_ir("program", f"{image}\\00"))
    (folder / "report.c").write_text(_REPORT)
    compile_c(
        [
            *("-O2", "-Wno-override-module", "-D_GNU_SOURCE", *include_flags()),
            *(folder / "program.ll", folder / "report.c"),
            runtime_library(toolchain(), runner(), HOST_TARGET, kind="shared"),
            *("-pthread", "-ldl", "-o", folder / "program"),
        ],
        making="program",
    )
    return folder / "program"


def _run(program: Path, driver: Path, **more: str) -> tuple[int, list[str], str]:
    library = runtime_library(toolchain(), runner(), HOST_TARGET, kind="shared")
    environment = program_environment(driver, library.parent, **more)
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_lowered_program_runs(program: Path, drivers: Path) -> None:
    """A program that nobody registered anything for calls the runtime as it means to."""
    assert _run(program, drivers / "new") == (
        0,
        [
            "AOTC_OK ",
            "2 launches, last kernel 2 1 1, 3 1 1, of 0x12345678",
            "0 left, ",
        ],
        "",
    )


def test_lowered_program_without_a_driver(program: Path, drivers: Path) -> None:
    """It has no CPU kernels: nothing runs, nothing is printed, the status says why."""
    code, lines, errors = _run(program, drivers / "none")
    assert code == 1  # the program's own: its values are not there
    assert errors == ""
    assert lines[0].startswith("AOTC_NO_DEVICE mgpuStreamCreate: device 'auto': no GPU can be used")
    assert lines[1:] == ["no driver"]
