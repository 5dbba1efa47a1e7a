"""Which kernels may begin while the one before them ends."""

from __future__ import annotations

import pytest

from aotc.mlir import ir
from aotc.targets.cuda.pdl_kernels import kernels_without_control, pdl_kernels

WAIT = "nvvm.griddepcontrol wait"
LET_GO = "nvvm.griddepcontrol launch_dependents"
LOAD = "%v = memref.load %x[%c0] : memref<4xi32>"
OF_CONSTANT = "%w = vector.load %x[%c0] {aotc.reads_constant} : memref<4xi32>, vector<4xi32>"


def kernel(*lines: str) -> str:
    body = "\n".join(["%c0 = arith.constant 0 : index", *lines])
    return f"""
gpu.module @kernels {{
  gpu.func @one(%x: memref<4xi32>, %is_first: i1) kernel {{
    {body}
    gpu.return
  }}
}}"""


SPACE = "#gpu.address_space<workgroup>"
COPY_OF_CONSTANT = f"""%shared = gpu.dynamic_shared_memory : memref<?xi8, {SPACE}>
%to = memref.view %shared[%c0][] : memref<?xi8, {SPACE}> to memref<4xi32, {SPACE}>
%copy = nvgpu.device_async_copy %x[%c0], %to[%c0], 4 {{aotc.reads_constant}}
    : memref<4xi32> to memref<4xi32, {SPACE}>
%group = nvgpu.device_async_create_group %copy"""


def found(text: str, *, gives_waits: bool = False) -> list[str]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        gpu_module = next(iter(module.body.operations)).operation
        given = kernels_without_control(gpu_module) if gives_waits else []
        return pdl_kernels(gpu_module, given)


@pytest.mark.parametrize(
    "lines",
    [
        (WAIT, LOAD),
        (OF_CONSTANT, WAIT, LOAD),
        (COPY_OF_CONSTANT, WAIT, LOAD),
        (LET_GO, "%t = gpu.thread_id x", WAIT, LOAD),
        ("gpu.barrier", WAIT),
        ("scf.if %is_first {", "%one = arith.constant 1 : index", "}", WAIT, LOAD),
    ],
)
def test_a_kernel_that_waits_first_may_begin(lines: tuple[str, ...]) -> None:
    assert found(kernel(*lines)) == ["one"]


@pytest.mark.parametrize(
    "lines",
    [
        (LOAD,),
        (LOAD, WAIT),
        (COPY_OF_CONSTANT.replace(" {aotc.reads_constant}", ""), WAIT),
        ("memref.store %zero, %x[%c0] : memref<4xi32>", WAIT),
        (LET_GO, LOAD),
        ("scf.if %is_first {", WAIT, "}", LOAD),
        ("scf.if %is_first {", LOAD, "}", WAIT),
        ("func.call @somewhere() : () -> ()", WAIT),
    ],
)
def test_others_may_not(lines: tuple[str, ...]) -> None:
    zero = "%zero = arith.constant 0 : i32"
    text = kernel(zero, *lines).replace(
        "gpu.module @kernels {", "gpu.module @kernels {\nfunc.func private @somewhere()"
    )
    assert found(text) == []


@pytest.mark.parametrize(
    ("lines", "names"),
    [((LOAD,), ["one"]), ((WAIT, LOAD), ["one"]), ((LOAD, WAIT), []), ((LET_GO, LOAD), [])],
)
def test_kernels_that_say_nothing_of_it_may_begin_where_they_get_a_wait(
    lines: tuple[str, ...], names: list[str]
) -> None:
    assert found(kernel(*lines), gives_waits=True) == names
