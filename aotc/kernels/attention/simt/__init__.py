"""Attention in f32 on the ordinary units, in one kernel.

`family` takes variants; `kernel` builds the kernel, `tiles` says which rows, keys and columns are a
thread's, `softmax` makes P of scores.
"""
