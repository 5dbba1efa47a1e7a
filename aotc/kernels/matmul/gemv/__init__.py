"""Small-M and small-N matmuls (GEMV among them), which are bound by memory bandwidth.

`small` is the matrix with few rows or columns of C, `large` the other one: A and B, or B and A
where C has few columns. Each element of `large` is read once, in the widest accesses that are known
to be aligned, and multiplied with all of `small` that it meets, which caches hold. Threads share K
and add their accumulators in a fixed order: first the lanes of a warp, then warps, then, where
`split_k` says so, blocks, whose sums a second kernel adds.

`family` says which there are and launches, `kernel` is what a block does, `shape` its numbers.
"""
