"""Attention on the tensor cores of sm_80 and later, by `mma.sync`, in one kernel.

`family` has the legality check and the variants (`tiles`). `kernel` builds the code of a block, and
`mainloop` its loop over K and V. `operands` has the copies to shared memory, `mma` the matmuls, and
`epilogue` the store of O.
"""
