"""Matmuls without tensor cores: `family` has the legality check, the variants, the costs and the
launch, `kernel` and `mainloop` the code of a block, and `tiles` the layouts in shared memory."""
