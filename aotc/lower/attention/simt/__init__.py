"""Attention in f32 on the ordinary units: `family` writes the kernel, `tiles` says which rows, keys
and columns are a thread's, `softmax` makes scores into terms."""
