"""Lowering of functions on tensors to functions on buffers: analyses and rewrites."""
