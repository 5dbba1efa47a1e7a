"""gpu.modules → host functions: the same kernels, run on the CPU."""

from __future__ import annotations

from aotc.cpu.kernels import CpuKernel, CpuKernels, build_cpu_kernels
from aotc.cpu.merge import merge_cpu_kernels

__all__ = ["CpuKernel", "CpuKernels", "build_cpu_kernels", "merge_cpu_kernels"]
