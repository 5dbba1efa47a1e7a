"""Attention in f32 without tensor cores, in one kernel.

`family` has the legality check and the variants. `kernel` builds the kernel, `tiles` has the
partition of rows, keys and columns among threads, and `softmax` computes P from scores.
"""
