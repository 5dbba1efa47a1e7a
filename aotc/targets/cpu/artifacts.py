"""The artifacts of the CPU: kernels as host functions, and their objects."""

from __future__ import annotations

from aotc.artifact_kind import MLIR, ArtifactKind, own_kinds

CPU_MLIR = ArtifactKind(
    "cpu-mlir",
    "targets.cpu.stages.lower_to_cpu",
    ("{name}.cpu.mlir",),
    takes=(MLIR,),
    needs="module",
)
CPU_OBJ = ArtifactKind(
    "cpu-obj",
    "targets.cpu.stages.compile_cpu",
    ("{unit}.o",),
    takes=(MLIR, CPU_MLIR),
    is_named=False,
    is_text=False,
)

# All rows above, in the order in which they are made.
KINDS = own_kinds(globals())
