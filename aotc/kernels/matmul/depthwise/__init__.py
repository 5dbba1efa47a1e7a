"""Depthwise convolutions for the CPU device: each channel of the input has its own filters.

`recognition` matches them, with the padding of their input, and describes each as a `problem`.
`channels_first` and `channels_last` are the kernels for the two layouts. `mainloop` has the tiles
of accumulators of both. GPUs keep the loops.
"""
