"""Attention for the CPU device, in one kernel.

`family` takes variants; `kernel` builds the kernel, `softmax` makes P of scores.
"""
