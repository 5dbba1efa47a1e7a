"""Small-M and small-N matmuls (GEMV among them), which are bound by memory bandwidth: `family` says
which there are and launches, `kernel` is what a block does, `shape` its numbers."""
