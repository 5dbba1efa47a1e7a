"""GEMM: operations that are matmuls are replaced by launches of kernels, instead of loops.

Reading order: `dispatch` implements the pass `aotc-choose-matmul-kernels`, which visits the
`linalg.generic` operations of a module. `recognition` matches matmuls (`vectors`: those of a matrix
and a vector) and describes each as a `problem`. `fusion` fuses the operations that follow a matmul
into the `epilogue` of its kernel. `choice` selects families and variants for the problem and the
chips, from cost models or from measurements (`tuned`; `small_m`: for few rows); `peaks` and
`explanation` give the reasons. `dispatch` then inserts the launches, under conditions on the GPU
and on addresses.

A `family` is an algorithm: `wgmma` (Hopper), `mma_sync`, `simt` (multiply-adds), `gemv` (few
rows or columns), `tcgen05` (Blackwell), `operand_packing` (another family's kernel on copies), and
`cpu`. In a family's package, the module `family` has its variants, legality checks and costs, and
`kernel` builds the kernel. The mainloop and the stores are modules beside it.

`implicit_gemm` has convolutions and other contractions whose operands are not matrices in memory.
`depthwise` has depthwise convolutions, which are not matmuls. `scalar` and
`split_k_reduction` are shared by families.
"""
