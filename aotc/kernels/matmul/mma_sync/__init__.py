"""Matmul on the tensor cores of sm_80 and later, by `mma.sync`.

`family` is the interface to `choice`. `launch` is the host code, and `kernel` the code of a block.
Its mainloop copies tiles by `copies`, and loads fragments by `fragments`; `store` is the epilogue.
`tiles` defines the layouts in shared memory. `hopper_f64` is the same kernel with instructions that
are fast on Hopper only.
"""
