"""GEMM on Hopper (sm_90a): TMA copies tiles, warpgroups multiply them (wgmma).

`family` is the interface to `choice`, and `kernel` composes a kernel of `aotc.kernels.hopper` and
the other modules: `cluster` (multicast), `mma` and `fragments` (the mainloop), `ping_pong`,
`cluster_split_k` and `grid_split_k`, and `epilogue` with `transposed_store` and
`transpose_of_c_store` (for kernels that compute the transpose of C), `epilogue_operands` and
`column_operands`. `variants` has the parameters of kernels, and `cost` the cost model that selects
among them. `dispatch_table` evaluates the same model in the program, for sizes that are only known
there.
"""
