"""Functions on tensors → functions on buffers."""
