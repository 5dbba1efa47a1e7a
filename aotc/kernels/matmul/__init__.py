"""Matmuls → kernels of their own, instead of a loop for each element.

`problem` says what is computed, `recognise` finds it in a module (a product with a vector by
`vectors`). A family writes the host function that launches a kernel for it, as MLIR text, from
parameters: `hopper`, `tensor_cores` and `simt` (what `choice` asks is each one's `family`),
`skinny` for few rows, `copied`, `blackwell`, and `cpu`. `choice` picks families and parameters,
from their models or from what was measured (`tuned`), `peaks` and `reasons` say in words why, and
`dispatch` puts the kernels beside the loops. `fusion` finds what is done with a product, which an
`epilogue` computes in its kernel.

What is no product of two matrices as they lie is in `implicit_gemm`; `writing` has what several
families are written in.
"""
