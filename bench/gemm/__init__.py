"""Matmuls against cuBLAS."""
