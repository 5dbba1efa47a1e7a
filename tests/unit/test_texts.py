"""The text of modules, which people print and build again."""

from __future__ import annotations

from aotc.mlir import ir
from aotc.ops import text_of

GROUP = """
func.func @f(%x: memref<4xf32>, %y: memref<4xf32, 3>, %i: index) -> index {
  %copy = nvgpu.device_async_copy %x[%i], %y[%i], 4 : memref<4xf32> to memref<4xf32, 3>
  %group = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
  %next = arith.addi %i, %i : index
  nvgpu.device_async_wait %group
  return %next : index
}
"""


def test_a_group_of_copies_without_tokens_can_be_parsed() -> None:
    with ir.Context():
        module = ir.Module.parse(GROUP)
        for has_places in (False, True):
            text = text_of(module.operation, enable_debug_info=has_places)
            assert text_of(ir.Module.parse(text).operation, enable_debug_info=has_places) == text
