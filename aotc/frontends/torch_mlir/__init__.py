"""What front ends that use torch-mlir have in common: rewrites of its dialects, and its passes.

Functions on PyTorch's dialect, before `passes.run_passes` lowers it: indices, integers, numbers,
rows, widening. On what the passes leave, linalg on tensors: divisions, nans, reads, shifts, entry.
"""
