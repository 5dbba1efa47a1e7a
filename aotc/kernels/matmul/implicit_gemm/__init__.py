"""Contractions whose operands are no matrices as they lie in memory: convolutions, and others.

`recognition` finds them, as a `problem`. Where loops are one in memory, it is a product of views
(`flattened`); a batch with one matrix in common is one of a view that repeats it (`repeated`). Else
there are the kernels of the families that these modules are named after, with addresses of their
own: `wgmma` on Hopper (`wgmma_table` for images of any number), `mma_sync`, `simt`, and `cpu` for
the CPU device. `operand` is where their elements are, `split_k` says how blocks divide K, and
`padding` finds images before a loop pads them.
"""
