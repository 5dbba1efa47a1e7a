"""GEMV and small-M GEMM with dequantization: the matrix is computed from narrower weights, which
are quantized by groups.

`contraction` fuses the matmul and the operations that dequantize its matrix to one
`linalg.generic`, on tensors. `recognition` matches it on buffers, and `dispatch` inserts the choice
of its kernel at run time, with the epilogue. The kernels read the packed weights, and compute the
elements of the matrix in registers (`body`). `mma_sync` and `persistent` multiply them on tensor
cores (`tensor_core`), `kernel` by multiply-adds in f32, and `cpu` on the CPU device.
"""
