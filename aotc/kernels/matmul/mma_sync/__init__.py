"""Products on the tensor cores of sm_80 and later, by `mma.sync`.

`family` is what `choice` asks; `tiles` says how matrices lie in shared memory, `kernel` what a
block does until it has its sums, `store` what becomes of them, `writer` what all that is written
in. `hopper_f64` is the same kernel with instructions that Hopper alone has.
"""
