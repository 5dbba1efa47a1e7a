"""Matrix-vector products whose matrix is computed from narrower weights (quantized by groups).

`contraction` makes one `linalg.generic` of the product and of the operations that make its matrix,
on tensors, before these become a loop of their own. `recognition` finds it on buffers, `dispatch`
chooses its kernel at run time, and `kernel` builds that: it reads weights as they are packed, and
computes the matrix's elements in registers.
"""
