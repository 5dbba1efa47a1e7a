"""The host module with its images: launches, constructors, exports, shared memory."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import REPOSITORY, Outcome
from helpers.native import build_library
from msgspec.structs import replace

from aotc.host.embed import embed
from aotc.host.kernels import CpuKernel, CpuKernels, SyncPoint, SyncScope
from aotc.host.translate import translate
from aotc.mlir import ir, make_context
from aotc.toolchain import Toolchain

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

TWICE = """
  gpu.module @device {
    gpu.func @twice(%a: memref<?xf32>, %n: index) kernel {
      %b = gpu.block_id x
      %s = gpu.block_dim x
      %t = gpu.thread_id x
      %first = arith.muli %b, %s : index
      %i = arith.addi %first, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %v = memref.load %a[%i] : memref<?xf32>
        %w = arith.addf %v, %v : f32
        memref.store %w, %a[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
"""


def module(body: str, kernels: str = TWICE, arguments: str = "%a: memref<?xf32>") -> str:
    return f"""
module attributes {{gpu.container_module}} {{
  {kernels}
  func.func @f({arguments}) attributes {{llvm.emit_c_interface}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %n = memref.dim %a, %c0 : memref<?xf32>
    {body}
    return
  }}
}}
"""


LAUNCH = """gpu.launch_func @device::@twice blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%a : memref<?xf32>, %n : index)"""
LAUNCH_WITH_MEMORY = f"""%bytes = arith.constant 4096 : i32
    {LAUNCH.replace("args(", "dynamic_shared_memory_size %bytes args(")}"""


@pytest.fixture
def host_ir(aotc: Aotc, mlir_file: MlirFile) -> Callable[[str], dict[str, str]]:
    """The functions of the host LLVM IR that MLIR text becomes, and its globals, by name."""

    def build(text: str) -> dict[str, str]:
        command = ("build", mlir_file(text), "--emit", "host-ll", "--chip", "sm_90", "-o", "-")
        ir = aotc(*command).succeeded().stdout
        found = {
            m[1].strip('"'): m[0] for m in re.finditer(r"^@([^ ]+) = .*$", ir, flags=re.MULTILINE)
        }
        for m in re.finditer(
            r"^define [^@]*@([^(]+)\([^{]*\{\n.*?^\}$", ir, re.MULTILINE | re.DOTALL
        ):
            found[m[1].strip('"')] = m[0]
        for m in re.finditer(r"^declare [^@]*@([^(]+)\(.*$", ir, flags=re.MULTILINE):
            found[m[1]] = m[0]
        return found

    return build


# --- Launches --------------------------------------------------------------------------


def test_a_launch_makes_upstream_s_calls_in_order(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    ir = host_ir(module(LAUNCH))
    calls = re.findall(r"call [^@]*@([\w.]+)\(", ir["f"])
    assert calls == [
        "mgpuStreamCreate",
        "aotc_launch_device.twice",
        "mgpuStreamSynchronize",
        "mgpuStreamDestroy",
    ]
    stub = ir["aotc_launch_device.twice"]
    assert re.findall(r"call [^@]*@([\w.]+)\(", stub) == [
        "mgpuModuleGetFunction",
        "mgpuLaunchKernel",
    ]
    assert stub.startswith("define internal void ")
    # A memref of rank 1 is five parameters, and the index one more.
    assert re.search(r"@mgpuLaunchKernel\(.*, ptr null, i64 6\)", stub)
    assert "i64 2, i64 1, i64 1, i64 32, i64 1, i64 1, i32 0" in ir["f"]


def test_a_launch_in_a_loop_does_not_grow_the_stack(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    """The parameters' slots are the stub's: the function that loops allocates nothing."""
    loop = f"scf.for %k = %c0 to %n step %c1 {{\n {LAUNCH}\n {LAUNCH}\n}}"
    ir = host_ir(module(loop))
    assert "alloca" not in ir["f"]
    assert ir["aotc_launch_device.twice"].count("alloca") == 2
    # One stub serves every launch of a kernel.
    assert [name for name in ir if name.startswith("aotc_launch_")] == ["aotc_launch_device.twice"]
    assert ir["f"].count("@aotc_launch_device.twice(") == 2


def test_a_million_launches_do_not_grow_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 MiB of stack would last for 50 000 launches if each kept its slots."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    text = module(
        """scf.for %k = %c0 to %times step %c1 {
      gpu.launch_func @device::@twice blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<?xf32>, %c0 : index)
    }""",
        arguments="%a: memref<?xf32>, %times: index",
    )
    library = build_library(text, tmp_path, "-O0")
    library.call("f", np.ones(1, np.float32), 300_000)


def test_dynamic_shared_memory_reaches_the_launch(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    launch = LAUNCH.replace("args(", "dynamic_shared_memory_size %bytes args(")
    ir = host_ir(module(f"%bytes = arith.constant 4096 : i32\n{launch}"))
    assert "i32 4096" in ir["f"]


def test_sizes_that_are_computed(host_ir: Callable[[str], dict[str, str]]) -> None:
    launch = LAUNCH.replace("(%c2, %c1, %c1)", "(%n, %c1, %n)")
    ir = host_ir(module(launch))
    assert re.search(
        r"@\"?aotc_launch_device.twice\"?\(i64 (%\d+), i64 1, i64 \1, i64 32,", ir["f"]
    )


def test_a_cluster_launch(host_ir: Callable[[str], dict[str, str]]) -> None:
    """The cluster's sizes come in front of the grid's, as mgpuLaunchClusterKernel takes them."""
    launch = LAUNCH.replace("@twice blocks in", "@twice clusters in (%c2, %c1, %c1) blocks in")
    stub = host_ir(module(launch))["aotc_launch_device.twice"]
    parameters = re.search(r"@\"?aotc_launch_device.twice\"?\(([^)]*)\)", stub)
    call = re.search(r"call void @mgpuLaunchClusterKernel\(ptr %\d+, ([^)]*), ptr null\)", stub)
    assert parameters is not None
    assert call is not None
    grid_block_cluster = [word.split()[-1] for word in parameters[1].split(", ")[:9]]
    passed = [word.split()[-1] for word in call[1].split(", ")[:9]]
    assert passed == grid_block_cluster[6:] + grid_block_cluster[:6]


def test_a_launch_on_a_stream_of_tokens(host_ir: Callable[[str], dict[str, str]]) -> None:
    """An asynchronous launch goes on the stream of its tokens, which is made and ended once. The
    runtime is told that it is concurrent, through a weak reference."""
    body = f"""%start = gpu.wait async
    %one = {LAUNCH.replace("gpu.launch_func", "gpu.launch_func async [%start]")}
    %two = {LAUNCH.replace("gpu.launch_func", "gpu.launch_func async [%one]")}
    gpu.wait [%two]"""
    ir = host_ir(module(body))
    assert re.findall(r"call [^@]*@([\w.]+)\(", ir["f"]) == [
        "mgpuStreamCreate",
        "aotc_launch_device.twice",
        "aotc_launch_device.twice",
        "mgpuStreamSynchronize",
        "mgpuStreamDestroy",
    ]
    stub = ir["aotc_launch_device.twice"]
    assert re.findall(r"call [^@]*@([\w.]+)\(", stub)[1:] == [
        "aotc_concurrent_launch_prepare",
        "mgpuLaunchKernel",
    ]
    assert "icmp ne ptr @aotc_concurrent_launch_prepare, null" in stub


# --- Images ----------------------------------------------------------------------------


def test_an_image_is_registered_before_main(host_ir: Callable[[str], dict[str, str]]) -> None:
    """By a constructor that makes no CUDA call itself, and through a weak reference."""
    ir = host_ir(module(LAUNCH))
    assert re.findall(r"@aotc_\w+", ir["llvm.global_ctors"]) == ["@aotc_load_device"]
    assert re.findall(r"@aotc_\w+", ir["llvm.global_dtors"]) == ["@aotc_unload_device"]
    load = ir["aotc_load_device"]
    assert re.findall(r"call [^@]*@([\w.]+)\(", load) == ["mgpuModuleLoad", "aotc_module_register"]
    assert "icmp ne ptr @aotc_module_register, null" in load
    assert ir["aotc_module_register"].startswith("declare extern_weak ")
    image = re.match(
        r"@aotc_image_device = internal constant \[(\d+) x i8\]", ir["aotc_image_device"]
    )
    assert image is not None
    assert f"@mgpuModuleLoad(ptr @aotc_image_device, i64 {image[1]})" in load


def test_a_module_without_kernels_needs_no_runtime(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    ir = host_ir("func.func @f() attributes {llvm.emit_c_interface} {\n  return\n}\n")
    assert "llvm.global_ctors" not in ir
    assert not [name for name, text in ir.items() if "call" in text and "mgpu" in text]


def test_kernels_are_listed_with_their_cpu_forms(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    two = TWICE.replace(
        "  gpu.module @device {",
        "  gpu.module @device {\n gpu.func @meet() kernel {\n gpu.barrier\n gpu.return\n }",
    )
    ir = host_ir(module(LAUNCH, kernels=two))
    info = ir["aotc_info_device"]
    assert re.search(r"\{ i32 5, i32 2, ptr @aotc_image_device, i64 \d+, ", info)
    table = ir["aotc_kernels_device"]
    names = re.findall(r"\{ ptr @([\w.]+), ptr (\S+), ptr (\S+), ptr (\S+), i64 ", table)
    assert [name for name, *_ in names] == ["aotc_name_device.meet", "aotc_name_device.twice"]
    for _, run, why_not, step in names:
        assert sorted([run == "null", why_not == "null", step == "null"]) == [False, True, True]


CPU_KERNELS = CpuKernels(
    module=None,
    kernels=(
        CpuKernel("device", "whole", "run_whole", None, shared_bytes=1, block_dim=(4, 5, 6)),
        CpuKernel(
            "device",
            "by_step",
            None,
            None,
            step="step_once",
            shared_bytes=2**40,
            thread_bytes=192,
            sync_points=(
                SyncPoint(SyncScope.BLOCK, place='gpu.barrier at "a".mlir:1:2'),
                SyncPoint(SyncScope.WARP, place="gpu.shuffle at b.mlir:3:4"),
            ),
        ),
        CpuKernel("elsewhere", "other", None, "it is of another module"),
        CpuKernel("device", "never", None, "it uses wgmma"),
    ),
)

READER = """
#include <inttypes.h>
#include <stdio.h>
#include "aotc_runtime.h"

void *mgpuModuleLoad(void *image, size_t bytes) { (void)bytes; return image; }
void mgpuModuleUnload(void *module) { (void)module; }

static const char *text(const char *t) { return t ? t : "-"; }

void aotc_module_register(const aotc_module_info *info) {
  printf("%u %s, %s; PDL:", (unsigned)info->version, info->name, info->built_for);
  for (uint32_t i = 0; i < info->pdl_kernel_count; ++i) {
    printf(" %s", info->pdl_kernels[i]);
  }
  puts("");
  for (uint32_t i = 0; i < info->kernel_count; ++i) {
    const aotc_cpu_kernel *k = &info->kernels[i];
    if (k->run) { k->run(NULL, NULL); }
    printf("%s: %d %s %d, %" PRIu64 " %" PRIu64 ", %d %d %d,", k->name, k->run != NULL,
           text(k->why_not), k->step ? (int)k->step(NULL, NULL, 70, 7) : 0, k->shared_bytes,
           k->thread_bytes, (int)k->block_dim[0], (int)k->block_dim[1], (int)k->block_dim[2]);
    for (uint64_t p = 0; p < k->sync_point_count; ++p) {
      printf(" %d %s", (int)k->sync_points[p].scope, k->sync_points[p].place);
    }
    puts(k->sync_points ? "." : " none");
  }
}

int main(void) { return 0; }
"""


def test_the_runtime_reads_the_table_of_cpu_kernels(tmp_path: Path) -> None:
    """Every field of a kernel arrives in C as it was given."""
    with make_context():
        host = ir.Module.parse(
            'gpu.binary @device <#gpu.select_object<0 : i64>> [#gpu.object<#nvvm.target, bin = "">]'
        )
        functions = ir.Module.parse(
            """
            llvm.func internal @run_whole(%p: !llvm.ptr, %b: !llvm.ptr) { llvm.return }
            llvm.func internal @step_once(%p: !llvm.ptr, %b: !llvm.ptr, %t: i64, %s: i32) -> i32 {
              %n = llvm.trunc %t : i64 to i32
              %sum = llvm.add %n, %s : i32
              llvm.return %sum : i32
            }
            """
        )
        cpu = replace(CPU_KERNELS, module=functions)
        embed(
            host.operation,
            {"device": b"an image"},
            cpu,
            [],
            built_for={"device": "sm_90"},
            pdl_kernels={"device": ["add", "scale"]},
        )
        toolchain = Toolchain(os.environ)
        (tmp_path / "host.ll").write_text(translate(host, toolchain.clang.version))
    (tmp_path / "reader.c").write_text(READER)
    command = [
        *toolchain.zig_cc.command,
        *("-Wno-override-module", f"-I{REPOSITORY / 'runtime_c' / 'include'}"),
        *("host.ll", "reader.c", "-o", "reader"),
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    read = subprocess.run([tmp_path / "reader"], capture_output=True, text=True, check=True)
    assert read.stdout.splitlines() == [
        "5 device, sm_90; PDL: add scale",
        "whole: 1 - 0, 1 0, 4 5 6, none",
        "by_step: 0 - 77, 1099511627776 192, 0 0 0,"
        ' 0 gpu.barrier at "a".mlir:1:2 1 gpu.shuffle at b.mlir:3:4.',
        "never: 0 it uses wgmma 0, 0 0, 0 0 0, none",
    ]


# --- Exports ---------------------------------------------------------------------------


def test_only_c_interfaces_are_visible(host_ir: Callable[[str], dict[str, str]]) -> None:
    ir = host_ir(
        """
func.func private @helper(%a: f32) -> f32 { return %a : f32 }
func.func @other(%a: f32) -> f32 { return %a : f32 }
func.func @f(%a: f32) -> f32 attributes {llvm.emit_c_interface} {
  %b = func.call @helper(%a) : (f32) -> f32
  %c = func.call @other(%b) : (f32) -> f32
  return %c : f32
}
"""
    )
    linkage = {name: text.split()[1] for name, text in ir.items() if text.startswith("define")}
    visible = {name for name, word in linkage.items() if word not in ("internal", "hidden")}
    assert {name for name in visible if "weak" not in linkage[name]} == {"_mlir_ciface_f"}
    assert linkage["aotc_call_f"] == "hidden"


@pytest.mark.parametrize(
    ("main", "call", "status"),
    [
        ("func.func @main() { return }", "call void @aotc_user_main()", "ret i32 0"),
        (
            "func.func @main() -> i32 {\n %c = arith.constant 3 : i32\n return %c : i32 }",
            "call i32 @aotc_user_main()",
            "ret i32 %",
        ),
        (
            "func.func @main() -> index {\n %c = arith.constant 3 : index\n return %c : index }",
            "call i64 @aotc_user_main()",
            "trunc i64 %",
        ),
        (
            "func.func @main(%c: i32, %v: !llvm.ptr) -> i32 { return %c : i32 }",
            "call i32 @aotc_user_main(i32 %0, ptr %1)",
            "ret i32 %",
        ),
        (
            "llvm.func @main(%c: i32, %v: !llvm.ptr) -> i32 { llvm.return %c : i32 }",
            "call i32 @aotc_user_main(i32 %0, ptr %1)",
            "ret i32 %",
        ),
    ],
)
def test_mains_of_all_types(
    main: str, call: str, status: str, host_ir: Callable[[str], dict[str, str]]
) -> None:
    """program_main.c calls one function, whatever the module's main takes and returns."""
    ir = host_ir(main)
    wrapper = ir["aotc_program_main"]
    assert wrapper.startswith("define hidden i32 @aotc_program_main(i32 %0, ptr %1)")
    assert call in wrapper
    assert status in wrapper
    assert ir["aotc_user_main"].startswith("define internal ")
    assert "main" not in ir


# --- Shared memory on the device -------------------------------------------------------


def test_dynamic_shared_memory_lies_behind_the_static(aotc: Aotc, mlir_file: MlirFile) -> None:
    """As an external array. As an internal one it gets one static byte, and overlaps."""
    space = "#gpu.address_space<workgroup>"
    kernel = f"""
  gpu.module @device {{
    gpu.func @twice(%a: memref<?xf32>, %n: index)
        workgroup(%s: memref<33xf32, {space}>) kernel {{
      %c0 = arith.constant 0 : index
      %t = gpu.thread_id x
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, {space}>
      %d = memref.view %bytes[%c0][%n] : memref<?xi8, {space}> to memref<?xf32, {space}>
      %v = memref.load %a[%t] : memref<?xf32>
      memref.store %v, %s[%t] : memref<33xf32, {space}>
      memref.store %v, %d[%t] : memref<?xf32, {space}>
      gpu.barrier
      %w = memref.load %s[%c0] : memref<33xf32, {space}>
      %x = memref.load %d[%c0] : memref<?xf32, {space}>
      %y = arith.addf %w, %x : f32
      memref.store %y, %a[%t] : memref<?xf32>
      gpu.return
    }}
  }}"""
    path = mlir_file(module(LAUNCH_WITH_MEMORY, kernels=kernel))
    ptx = aotc("build", path, "--emit", "ptx", "--chip", "sm_80", "-o", "-").succeeded().stdout
    external = re.findall(r"^\.extern \.shared \.align (\d+) \.b8 (\w+)\[\];$", ptx, re.MULTILINE)
    assert len(external) == 1, ptx
    alignment, name = external[0]
    assert int(alignment) >= 16
    static = re.findall(
        r"^\s*(?!\.extern)\S* ?\.shared \.align \d+ \.b8 (\w+)\[(\d+)\];", ptx, re.MULTILINE
    )
    assert [size for _, size in static] == ["132"]
    assert name in ptx.partition(".entry")[2]


def test_shared_memory_for_tensor_maps_is_aligned_for_swizzling(
    aotc: Aotc, mlir_file: MlirFile
) -> None:
    """Tiles with the 128-byte swizzle must start at multiples of 1024 bytes."""
    space = "#gpu.address_space<workgroup>"
    kernel = f"""
  gpu.module @device {{
    gpu.func @twice(%a: memref<?xf32>, %n: index) kernel {{
      %c0 = arith.constant 0 : index
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, {space}>
      %d = memref.view %bytes[%c0][%n] : memref<?xi8, {space}> to memref<?xf32, {space}>
      %v = memref.load %d[%c0] : memref<?xf32, {space}>
      nvvm.wgmma.fence.aligned
      memref.store %v, %a[%c0] : memref<?xf32>
      gpu.return
    }}
  }}"""
    path = mlir_file(module(LAUNCH_WITH_MEMORY, kernels=kernel))
    ptx = aotc("build", path, "--emit", "ptx", "--chip", "sm_90a", "-o", "-").succeeded().stdout
    assert ".extern .shared .align 1024 .b8 " in ptx


def test_names_of_modules_and_kernels_may_run_together(
    host_ir: Callable[[str], dict[str, str]],
) -> None:
    """`@a::@b_c` and `@a_b::@c` are different kernels."""

    def kernel(module: str, name: str) -> str:
        return f"gpu.module @{module} {{ gpu.func @{name}() kernel {{ gpu.return }} }}"

    def launch(name: str) -> str:
        return f"gpu.launch_func {name} blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)"

    ir = host_ir(f"""
module attributes {{gpu.container_module}} {{
  {kernel("a", "b_c")}
  {kernel("a_b", "c")}
  func.func @f() attributes {{llvm.emit_c_interface}} {{
    %c1 = arith.constant 1 : index
    {launch("@a::@b_c")}
    {launch("@a_b::@c")}
    return
  }}
}}""")
    stubs = {name for name in ir if name.startswith("aotc_launch_")}
    assert stubs == {"aotc_launch_a.b_c", "aotc_launch_a_b.c"}


def test_what_returns_a_constants_copy_is_not_inlined(aotc: Aotc, mlir_file: MlirFile) -> None:
    """An entry with hundreds of weights has few blocks: LLVM's time for them is quadratic."""
    numbers = ", ".join(map(str, range(64)))
    text = f"""
memref.global "private" constant @w : memref<64xi32> = dense<[{numbers}]>
func.func @f(%a: memref<64xi32>) attributes {{llvm.emit_c_interface}} {{
  %w = memref.get_global @w : memref<64xi32>
  linalg.add ins(%a, %w : memref<64xi32>, memref<64xi32>) outs(%a : memref<64xi32>)
  return
}}
"""
    command = ("build", mlir_file(text), "--emit", "host-ll", "--chip", "sm_90", "-o", "-")
    ir = aotc(*command).succeeded().stdout
    getters = re.findall(r"^define internal ptr @aotc_get_\w+\(\) #(\d+) \{", ir, re.MULTILINE)
    assert len(getters) == 2
    for group in getters:
        assert re.search(rf"^attributes #{group} = \{{ noinline", ir, re.MULTILINE)
