"""Mapping of parallel loops to kernels: which thread computes what. `loops` decides; the other
modules plan and build."""
