"""Attention for the CPU device, in one kernel.

`family` has the legality check and the variants. `kernel` builds the kernel, and `softmax` computes
P from scores.
"""
