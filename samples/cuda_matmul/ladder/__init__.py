"""Matrix products on CUDA, step by step, as Python functions that make MLIR."""
