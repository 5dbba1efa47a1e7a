"""Passes of torch-mlir on a module that a front end made, one by one, so that one that crashes or
never ends can be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc.errors import InputError
from aotc.frontends.culprit import printed_question
from aotc.frontends.torch_mlir.dialect import load_casts
from aotc.frontends.torch_mlir.entry import check_dialects
from aotc.frontends.torch_mlir.tm_tensor.lower import lower_tm_tensor
from aotc.input.source import bytecode_of, describe_diagnostics
from aotc.pipeline_text import short_name, single_passes
from aotc.processes.fork_server import FORK_SERVER, TaskError, task_progress

# Of processor time for one pass, and for each operation: far more than any pass needs.
_SECONDS, _SECONDS_EACH = 6.0, 0.01


def _explained(error: Exception) -> str:
    said = describe_diagnostics(error, "", ())
    return f"torch-mlir cannot lower this program:\n{said}"


def without_verification(pipeline: str) -> str:
    """The pipeline without the pass at its end that refuses calls of functions, among others."""
    from torch_mlir.passmanager import PassManager  # type: ignore[import-not-found, unused-ignore]

    passes = single_passes(str(PassManager.parse(f"builtin.module({pipeline})")))
    return ",".join(one for one in passes if "torch-verify-linalg-on-tensors" not in one)


def run_passes(
    module: Any, pipeline: str, explained: Callable[[Exception], str] = _explained
) -> Any:
    """The module after the passes of the pipeline, which may be another object: where this process
    is no task of the fork server, a task runs them.

    Raises InputError with what MLIR says as `explained` has it (in a task), by default with the
    place; and if the passes crash or never end.
    """
    progress = task_progress()
    if progress is None:
        return _run_in_a_task(module, pipeline)
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    context = module.context
    context.emit_error_diagnostics = False
    progress.leave(printed_question(module, pipeline))
    seconds = _SECONDS + _SECONDS_EACH * _count(module.operation)
    with context:
        for one in single_passes(str(PassManager.parse(f"builtin.module({pipeline})"))):
            progress.tell(f"torch-mlir's pass {short_name(one)}", seconds)
            try:
                PassManager.parse(f"builtin.module({one})").run(module.operation)
            except ir.MLIRError as error:
                raise InputError(explained(error)) from None
    progress.tell("what follows torch-mlir's passes")
    lower_tm_tensor(module)
    return module


def _count(operation: Any) -> int:
    """The operations in an operation: those that are nested two levels deep, as in a function."""
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
            f"{__name__}:passed", line, bytecode, limits=import_limits(len(bytecode))
        )
    except TaskError as error:
        raise import_failure(error) from None
    return ir.Module.parse(lowered, module.context)


def passed(given: memoryview) -> bytes:
    """The task of the fork server: a pipeline, and the bytecode of a module of torch-mlir's."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect

    context = ir.Context()
    torch_dialect.register_dialect(context)
    load_casts(context)
    # The bytecode is not copied to find the line's end: it has all weights.
    end = next(place for place, byte in enumerate(given) if byte == ord("\n"))
    module = ir.Module.parse(bytes(given[end + 1 :]), context)
    module = run_passes(module, bytes(given[:end]).decode())
    # Who asks has not all of torch-mlir's dialects.
    check_dialects(module.operation)
    return bytecode_of(module.operation)
