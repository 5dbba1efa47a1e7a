"""Depthwise convolutions: each channel of the input has its own filters.

`recognition` matches them, with the padding of their input, and describes each as a `problem`.
`channels_first` and `channels_last` are the CPU device's kernels for the two layouts,
`small_planes` is that for small images of the first one, and `mainloop` has the tiles of
accumulators. `simt` has the kernel for GPUs.
"""
