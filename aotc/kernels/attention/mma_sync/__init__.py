"""Attention on the tensor cores of sm_80 and later, by `mma.sync`, in one kernel.

`family` takes variants (`tiles`); `kernel` builds what a block does, which goes over K and V as
`mainloop` says. `operands` says how they come to shared memory, `mma` how they are multiplied,
`epilogue` what becomes of O.
"""
