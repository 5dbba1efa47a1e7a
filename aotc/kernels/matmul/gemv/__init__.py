"""Small-M and small-N matmuls (GEMV among them), which are bound by memory bandwidth: `family` has
the legality check and the variants, `kernel` the launch and the code of a block, and `shape` the
parameters and sizes."""
