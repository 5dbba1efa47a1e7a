"""The artifacts for CUDA GPUs, from a gpu.module to the fatbin with its images."""

from __future__ import annotations

from aotc.artifact_kind import MLIR, ArtifactKind, own_kinds

DEVICE_MLIR = ArtifactKind(
    "device-mlir",
    "targets.cuda.stages.lower_to_nvvm",
    ("{gpu_module}.device.mlir",),
    takes=(MLIR,),
    needs="module",
)
DEVICE_LL = ArtifactKind(
    "device-ll",
    "targets.cuda.stages.translate_device",
    ("{gpu_module}.device.ll",),
    takes=(MLIR, DEVICE_MLIR),
    begin="targets.cuda.stages.begin_device",
    is_concurrent=True,
    needs="module",
)
PTX = ArtifactKind(
    "ptx",
    "targets.cuda.stages.compile_ptx",
    ("{gpu_module}.{chip}.ptx",),
    takes=(DEVICE_LL,),
    is_concurrent=True,
    needs="module",
)
CUBIN = ArtifactKind(
    "cubin",
    "targets.cuda.stages.assemble",
    ("{gpu_module}.{chip}.cubin",),
    takes=(MLIR, DEVICE_LL, PTX),
    is_concurrent=True,
    is_text=False,
    needs="module",
)
FATBIN = ArtifactKind(
    "fatbin",
    "targets.cuda.stages.bundle",
    ("{gpu_module}.fatbin",),
    takes=(MLIR, DEVICE_MLIR, CUBIN),
    is_concurrent=True,
    is_text=False,
    needs="module",
)

# All rows above, in the order in which they are made.
KINDS = own_kinds(globals())
