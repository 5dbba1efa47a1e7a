"""GEMM: operations that are matrix products become calls of kernels, not a loop for each element.

Read it in this order. `dispatch` is what the pass `aotc-choose-matmul-kernels` calls: it goes
through the `linalg.generic` operations of a module. `recognition` says which of them are products
(`vectors`: with a vector), as a `problem`. `fusion` finds what is done with a product next, which
becomes an `epilogue` of its kernel. `choice` takes families and variants for the problem and the
chips, from their cost models or from measurements (`tuned`); `peaks` and `explanation` say why.
`dispatch` then inserts their launches, under conditions on the GPU and on addresses.

A `family` is a way to multiply: `wgmma` (Hopper), `mma_sync`, `simt` (multiply-adds), `gemv` (few
rows or columns), `tcgen05` (Blackwell), `operand_packing` (another family's kernel on copies), and
`cpu`. In a family's package, `family` has its variants, what they can take and what they cost, and
`kernel` builds the kernel: its mainloop and its stores are modules beside it.

`implicit_gemm` has convolutions and other contractions whose operands are not matrices in memory,
`depthwise` has depthwise convolutions, which are no products of matrices, for the CPU device.
`scalar` and `split_k_reduction` are shared by families.
"""
