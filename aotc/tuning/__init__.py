"""Kernels of matmuls, timed on a GPU: which is fastest there, noted in a file.

`candidates` builds a library of each kernel that may be; `measure` is copied beside them, and times
them wherever a GPU is; what it writes is read by `aotc.kernels.matmul.tuned`.
"""
