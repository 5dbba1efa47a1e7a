"""The specifications of NVIDIA's tools and headers that aotc uses."""

from __future__ import annotations

from aotc.toolchain.spec import ToolSpec

# In «Cuda compilation tools, release 13.5, V13.5.37», the last number is the complete version.
_ANSWER = r", V([\d.]+)"

TOOLS = (
    ToolSpec("ptxas", "assembles PTX", ("nvidia-cuda-nvcc",), ("bin/ptxas",), answer=_ANSWER),
    ToolSpec(
        "fatbinary",
        "bundles device images",
        ("nvidia-cuda-nvcc",),
        ("bin/fatbinary",),
        answer=_ANSWER,
    ),
    ToolSpec(
        "libdevice",
        "has the device's math functions",
        ("nvidia-nvvm", "nvidia-cuda-nvcc"),
        ("nvvm/libdevice/libdevice.10.bc",),
        probe=None,
    ),
    ToolSpec(
        "cuda-include",
        "has the CUDA driver's header, cuda.h",
        ("nvidia-cuda-runtime",),
        ("include/cuda.h",),
        probe=None,
        is_folder=True,
    ),
    ToolSpec(
        "nvdisasm",
        "disassembles device code",
        ("nvidia-cuda-nvdisasm",),
        ("bin/nvdisasm",),
        answer=_ANSWER,
        is_optional=True,
        decides_artifacts=False,
    ),
    ToolSpec(
        "cuobjdump",
        "lists device images",
        ("nvidia-cuda-cuobjdump",),
        ("bin/cuobjdump",),
        answer=_ANSWER,
        is_optional=True,
        decides_artifacts=False,
    ),
)
