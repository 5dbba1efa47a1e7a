"""Attention in f32 on the ordinary units, in one kernel.

`menu` takes variants; `kernel` writes the kernel, `tiles` says which rows, keys and columns are a
thread's, `softmax` makes scores into terms.
"""
