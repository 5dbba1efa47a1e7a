"""Depthwise convolutions for the CPU device: each channel of the input has filters of its own.

`recognition` finds them, as a `problem`, with the padding of their input. `cpu` is their kernel.
GPUs keep the loops.
"""
