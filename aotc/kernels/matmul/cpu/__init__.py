"""Matmul on the CPU device: `blocked` packs blocks of both matrices, `streamed` reads the larger
one once where C has one row or column, and `kernel` has what both are made of.
"""
