"""Attention on the tensor cores of sm_80 and later, by `mma.sync`, in one kernel.

`menu` takes variants (`tiles`); `kernel` writes what a block does, which goes over K and V as
`blocks` says. `operands` says how they come to shared memory, `products` how they are multiplied,
`store` what becomes of sums.
"""
