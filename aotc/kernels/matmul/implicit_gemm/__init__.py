"""Implicit GEMM: contractions whose operands are not matrices in memory, such as convolutions.

`recognition` matches them and describes each as a `problem`. If loops can be collapsed in memory,
the contraction becomes a matmul of views (`flattened`). A batch that shares one matrix becomes a
matmul of a view that broadcasts it (`broadcast`). All others have implicit GEMM kernels, in modules
named after the matmul families that they reuse: `wgmma` on Hopper (`wgmma_table` for an unknown
number of images), `mma_sync`, `simt`, and `cpu` for the CPU device, and `direct` for groups of few
channels. `operand` maps indices to offsets of elements, `output` stores to them, `split_k` has the
extents and costs of split-K, and `padding` finds images in front of the operation that pads them.
"""
