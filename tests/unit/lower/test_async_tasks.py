"""Tasks of the async dialect in lowered modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

HEAD = """
func.func @main() {
  %c1 = arith.constant 1 : index
"""
TAIL = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1.0 : f32
    memref.store %one, %x[%tx] : memref<4xf32>
    gpu.terminator
  }
  memref.dealloc %x : memref<4xf32>
  return
}
"""
# Where a buffer comes from that a kernel of the caller writes.
ALLOCATIONS = {
    "a task": f"""{HEAD}
  %made, %value = async.execute -> !async.value<memref<4xf32>> {{
    %memory = memref.alloc() : memref<4xf32>
    async.yield %memory : memref<4xf32>
  }}
  %x = async.await %value : !async.value<memref<4xf32>>
{TAIL}""",
    "a function that is a task": f"""
async.func @allocate() -> !async.value<memref<4xf32>> {{
  %memory = memref.alloc() : memref<4xf32>
  return %memory : memref<4xf32>
}}
{HEAD}
  %value = async.call @allocate() : () -> !async.value<memref<4xf32>>
  %x = async.await %value : !async.value<memref<4xf32>>
{TAIL}""",
}


@pytest.mark.parametrize("where", ALLOCATIONS)
def test_what_tasks_allocate_for_kernels_is_theirs(
    aotc: Aotc, mlir_file: MlirFile, where: str
) -> None:
    """The GPU reaches it, wherever the host can follow it or not; and it is freed as such."""
    done = aotc("build", mlir_file(ALLOCATIONS[where]), "--emit", "mlir", "-o", "-").succeeded()
    assert "memref.alloc" not in done.stdout
    assert "memref.dealloc" not in done.stdout
    assert "gpu.alloc" in done.stdout


def test_gpu_tokens_end_with_their_task(aotc: Aotc, mlir_file: MlirFile) -> None:
    """A task that yields a token waits for it: streams do not go from thread to thread."""
    text = """
func.func @main() {
  %done, %token = async.execute -> !async.value<!gpu.async.token> {
    %begin = gpu.wait async
    %memory, %end = gpu.alloc async [%begin] () : memref<4xf32>
    async.yield %end : !gpu.async.token
  }
  %end = async.await %token : !async.value<!gpu.async.token>
  gpu.wait [%end]
  return
}
"""
    done = aotc("build", mlir_file(text), "--emit", "host-mlir", "-o", "-").succeeded()
    _, body = done.stdout.split("llvm.func @async_execute_fn", 1)
    body, _ = body.split("llvm.func", 1)
    assert body.index("@mgpuMemAlloc") < body.index("@mgpuStreamSynchronize")
    assert body.index("@mgpuStreamSynchronize") < body.index("@mlirAsyncRuntimeEmplaceToken")


def test_each_task_has_memory_of_its_own(aotc: Aotc, mlir_file: MlirFile) -> None:
    """What a task has on its stack is neither another's nor its function's."""
    text = """
func.func private @printU64(i64)
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %done = async.execute {
      %x = memref.alloca() : memref<9xindex>
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c9, %sy = %c1, %sz = %c1) {
        memref.store %i, %x[%tx] : memref<9xindex>
        gpu.terminator
      }
      %v = memref.load %x[%c0] : memref<9xindex>
      %u = arith.index_cast %v : index to i64
      func.call @printU64(%u) : (i64) -> ()
      async.yield
    }
  }
  return
}
"""
    done = aotc("build", mlir_file(text), "--emit", "mlir", "-o", "-").succeeded()
    words = ("async.execute", "gpu.alloc ", "launch_func", "gpu.dealloc", "async.yield")
    places = [done.stdout.index(word) for word in words]
    assert places == sorted(places)
