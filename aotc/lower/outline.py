"""Any input → the outlined module: host functions that launch the kernels of gpu.modules."""

from __future__ import annotations

from aotc import ops
from aotc.emit.c_text import c_identifier
from aotc.errors import InputError
from aotc.load.entries import functions_of
from aotc.load.source import Source
from aotc.lower.access import Functions
from aotc.lower.aliasing import Roots, overlapping_loops_kept_sequential
from aotc.lower.copies import expand_copies
from aotc.lower.device_functions import separate_device_functions
from aotc.lower.mapping import map_parallel_loops
from aotc.lower.memory import hoist_globals, place_memory, sink_vectors
from aotc.lower.outlining import gpu_modules, merge_outlined, spell_kernel_names
from aotc.lower.passes import run_passes
from aotc.lower.remarks import Remarks
from aotc.mlir import PassManager
from aotc.ops import symbol_of
from aotc.request import BuildRequest

# What says that the author decided what runs in parallel.
_PARALLEL_OPS = ("gpu.launch", "gpu.launch_func", "scf.parallel", "affine.parallel", "scf.forall")

_BEFORE_MAPPING = (
    # lower-vector-multi-reduction runs on functions alone, so before there are kernels.
    "func.func(lower-affine,lower-vector-multi-reduction)",
    # Loops that carry a mapping of their own (gpu.loop_dim_map) keep it: they become launches
    # before canonicalize merges them, which would drop their mappings.
    "convert-parallel-loops-to-gpu",
    "func.func(lower-affine)",
    # Merges a parallel loop whose whole body is one more into one loop of more dimensions.
    "canonicalize",
    "func.func(loop-invariant-code-motion)",
    "canonicalize",
)
_AFTER_MAPPING = (
    "canonicalize",
    "cse",
)
_OUTLINING = (
    # Constants and sizes are computed in the kernel rather than passed to it.
    "gpu-launch-sink-index-computations",
    "gpu-kernel-outlining",
    # Functions that only kernels called are in the gpu.modules now.
    "symbol-dce",
    "canonicalize",
    "cse",
)


def outline(source: Source, request: BuildRequest, remarks: Remarks) -> frozenset[str]:
    """Changes the source's module in place, by aotc's own passes or by the user's pipeline.

    Returns the names of the globals that kernels are given.
    """
    pipeline = request.pipeline
    module = source.module
    if pipeline is not None:
        _run_user_pipeline(source, pipeline)
    else:
        by_hand = {symbol_of(op) for op in gpu_modules(module)}
        _parallelize(source)
        _run(source, _BEFORE_MAPPING)
        map_parallel_loops(
            module, separate_device_functions(module), block=request.block, remarks=remarks
        )
        _run(source, _AFTER_MAPPING)
        hoist_globals(module)
        sink_vectors(module)
        _run(source, _OUTLINING)
        merge_outlined(module, by_hand, f"{c_identifier(request.name)}_kernels")
    spell_kernel_names(module)
    # Makes allocations and copies, which what follows must see.
    _run(source, ("expand-realloc",))
    expand_copies(module)
    return place_memory(module, request.memory, remarks)


def _run(source: Source, passes: tuple[str, ...]) -> None:
    run_passes(source.module, passes, name=source.name, lines=source.lines)


def _parallelize(source: Source) -> None:
    """Finds the parallel loops of functions that do not say themselves which are."""
    with source.module.context:
        roots = Roots(Functions(source.module))
        for function in functions_of(source.module):
            says_so = any(
                op.name in _PARALLEL_OPS or "mapping" in op.attributes for op in ops.walk(function)
            )
            if function.name == "func.func" and not says_so:
                with overlapping_loops_kept_sequential(function, roots):
                    PassManager.parse("func.func(affine-parallelize)").run(function)


def _run_user_pipeline(source: Source, pipeline: str) -> None:
    text = pipeline.strip()
    opening, closing = "builtin.module(", ")"
    if not text.startswith(opening) or not text.endswith(closing):
        raise InputError(f"--pipeline expects 'builtin.module(...)', and got '{pipeline}'.")
    run_passes(
        source.module,
        (text[len(opening) : -len(closing)],),
        name=source.name,
        lines=source.lines,
        blame=InputError,
        doing="the pipeline given by --pipeline",
    )
