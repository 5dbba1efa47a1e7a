"""Outlined kernels: their one gpu.module, what they are handed, and the functions they call."""
