"""GEMM on Hopper (sm_90a): TMA copies tiles, warpgroups multiply them (wgmma).

`family` is what `choice` asks, and `kernel` puts a kernel together of `aotc.kernels.hopper` and the
other modules: `cluster` (multicast), `mma` and `fragments` (the mainloop), `ping_pong`,
`cluster_split_k` and `grid_split_k` (K divided over a cluster, or over the grid), and `epilogue`
with `transposed_store` and `transpose_of_c_store` (if C transposed is computed),
`epilogue_operands` and `column_operands`. `variants` has their parameters, `cost` the model of the
chip that chooses among them, `dispatch_table` the same model in a program that knows the sizes
first, `small_m` what is better for few rows.
"""
