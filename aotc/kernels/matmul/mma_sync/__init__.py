"""Matmul on the tensor cores of sm_80 and later, by `mma.sync`.

`family` is what `choice` asks. `launch` is the host's part, and `kernel` what a block does: its
mainloop gets tiles by `copies`, and fragments of them by `fragments`; `store` is the epilogue.
`tiles` says how all of that lies in shared memory. `hopper_f64` is the same kernel with
instructions that Hopper alone has.
"""
