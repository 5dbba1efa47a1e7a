"""Finds the fastest matmul kernels of a module by timing them on a GPU, and records them in a file.

`candidates` builds a library of each candidate kernel; `measure` is copied beside them and times
them on a machine with a GPU; `aotc.kernels.matmul.tuned` reads the file that it writes.
"""
