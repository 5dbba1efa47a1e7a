"""Runs passes of torch-mlir on an imported module, one by one, so that a pass that crashes or does
not terminate can be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc.errors import InputError
from aotc.frontends.culprit import CONSTANTS, refused_operation, serialized_module
from aotc.frontends.torch_mlir.dialect import load_casts
from aotc.frontends.torch_mlir.entry import check_dialects
from aotc.frontends.torch_mlir.tm_tensor.lower import lower_tm_tensor
from aotc.input.source import bytecode_of, describe_diagnostics, find_place
from aotc.pipeline_text import short_name, single_passes
from aotc.processes.fork_server import FORK_SERVER, TaskError, task_progress

# The limit of processor time for one pass: a constant, and an amount for each operation. It is far
# more than any pass needs.
_SECONDS, _SECONDS_EACH = 6.0, 0.01


def _describe_error(error: Exception) -> str:
    said = describe_diagnostics(error, "", ())
    return f"torch-mlir cannot lower this program:\n{said}"


# torch-mlir's pass that verifies the result, and refuses calls of functions, among others.
VERIFICATION = "torch-verify-linalg-on-tensors"
# It makes quantized operations of those between `dequantize` and `quantize`, if there is one scale
# for the whole tensor. Depthwise ones get transposes and sums of i32, for which there is no kernel.
# `aotc-fuse-quantized-matmuls` multiplies the bytes, for any number of scales.
QUANTIZED_FUSION = "torch-fuse-quantized-ops"


def without_passes(pipeline: str, *names: str) -> str:
    """The pipeline without the passes whose text contains one of the names."""
    from torch_mlir.passmanager import PassManager  # type: ignore[import-not-found, unused-ignore]

    passes = single_passes(str(PassManager.parse(f"builtin.module({pipeline})")))
    return ",".join(one for one in passes if not any(name in one for name in names))


def run_passes(
    module: Any, pipeline: str, describe_error: Callable[[Exception], str] = _describe_error
) -> Any:
    """Returns the module after the passes of the pipeline, which may be another object. If this
    process is not a task of the fork server, such a task runs them.

    Raises InputError if a pass fails, with MLIR's diagnostics as `explained` formats them (only in
    a task; by default with the place), and if the passes crash or do not terminate.
    """
    progress = task_progress()
    if progress is None:
        return _run_in_a_task(module, pipeline)
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    context = module.context
    context.emit_error_diagnostics = False
    progress.leave(serialized_module(module, pipeline))
    seconds = _SECONDS + _SECONDS_EACH * _count(module.operation)
    with context:
        for one in single_passes(str(PassManager.parse(f"builtin.module({pipeline})"))):
            progress.tell(f"torch-mlir's pass {short_name(one)}", seconds)
            try:
                PassManager.parse(f"builtin.module({one})").run(module.operation)
            except ir.MLIRError as error:
                raise InputError(_with_operation(describe_error(error), module, one)) from None
    progress.tell("what follows torch-mlir's passes")
    lower_tm_tensor(module)
    return module


def _with_operation(message: str, module: Any, failed_pass: str) -> str:
    """The message, with the operation that has no lowering where MLIR names only its constants."""
    if not any(f"failed to legalize operation '{name}" in message for name in CONSTANTS):
        return message
    found = refused_operation(module, failed_pass)
    if found is None:
        return message
    operation, location = found
    place = find_place(location, "")
    where = f"{place}: error: " if place else ""
    return f"{message}\n{where}failed to legalize operation '{operation}'"


def _count(operation: Any) -> int:
    """The number of operations nested in an operation, up to two levels deep, as in a function."""
    blocks = [block for region in operation.regions for block in region]
    nested = [inner.operation for block in blocks for inner in block.operations]
    return len(nested) + sum(
        len(block.operations) for one in nested for region in one.regions for block in region
    )


def _run_in_a_task(module: Any, pipeline: str) -> Any:
    from torch_mlir import ir

    from aotc.frontends.importing import import_failure, import_limits

    bytecode = bytecode_of(module.operation)
    line = f"{pipeline}\n".encode()
    try:
        lowered = FORK_SERVER.call(
            f"{__name__}:run_passes_task", line, bytecode, limits=import_limits(len(bytecode))
        )
    except TaskError as error:
        raise import_failure(error) from None
    return ir.Module.parse(lowered, module.context)


def run_passes_task(given: memoryview) -> bytes:
    """The task of the fork server. Its input is a pipeline, a newline, and the bytecode of a module
    of torch-mlir's."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect

    context = ir.Context()
    torch_dialect.register_dialect(context)
    load_casts(context)
    # Searching the view avoids a copy of the bytecode, which has all weights.
    end = next(place for place, byte in enumerate(given) if byte == ord("\n"))
    module = ir.Module.parse(bytes(given[end + 1 :]), context)
    module = run_passes(module, bytes(given[:end]).decode())
    # The calling process does not have all dialects of torch-mlir.
    check_dialects(module.operation)
    return bytecode_of(module.operation)
