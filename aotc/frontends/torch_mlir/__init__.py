"""The code that all front ends based on torch-mlir share: rewrites of its dialects, and its passes.

These modules rewrite the torch dialect before `passes.run_passes` lowers it: indices, integers,
numbers, rows, widening. These rewrite its result, linalg on tensors: divisions, nans, reads,
shifts, entry.
"""
