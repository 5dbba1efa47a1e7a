"""gpu.modules → host functions: the same kernels, run on the CPU."""
