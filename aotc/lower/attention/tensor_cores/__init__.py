"""Attention on the tensor cores of sm_80 and later, by `mma.sync`, in one kernel.

`menu` takes variants; `kernel` writes what a block does. `operands` says how Q, K and V come to
shared memory, `products` how they are multiplied, `store` what becomes of sums.
"""
