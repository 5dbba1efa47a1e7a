"""Depthwise convolutions for the CPU device: each channel of the input has filters of its own.

`recognition` finds them, as a `problem`, with the padding of their input. `channels_first` and
`channels_last` are the kernels for the two layouts, whose tiles of accumulators `mainloop` has.
GPUs keep the loops.
"""
