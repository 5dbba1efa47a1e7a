"""Parallel loops → kernels: which threads do what. `loops` decides, the others build."""
