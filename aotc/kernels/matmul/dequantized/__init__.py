"""Products of a vector, or of few, and a matrix that is computed from narrower weights (quantized
by groups).

`contraction` makes one `linalg.generic` of the product and of the operations that make its matrix,
on tensors, before these become a loop of their own. `recognition` finds it on buffers, `dispatch`
chooses its kernel at run time, with the epilogue. The kernels read weights as they are packed, and
compute the matrix's elements in registers (`body`): `mma_sync` and `persistent` multiply them on
tensor cores (`tensor_core`), `kernel` by multiply-adds in f32.
"""
