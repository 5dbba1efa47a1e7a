"""Outlined kernels: their gpu.modules, their arguments, and the functions they call."""
