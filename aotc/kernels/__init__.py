"""The kernel library: IR that aotc writes in place of an operation that it recognizes.

`matmul` computes contractions and convolutions, `attention` computes softmax(Q K^T) V, and
`fourier` computes the Fourier transforms of rows. `family` is the interface of the first two,
`tensor_core` and `hopper` have instructions and pipelines for their kernels, and `aotc.builder`
builds the IR.
"""
