"""Lowering of all input levels to a host module with gpu.modules: loops become launches, and memory
is placed."""
