"""What kernels for Hopper (sm_90a) are built of, and those for later chips that have the same.

`tma`: tensor maps and bulk copies of tiles. `pipeline`: mbarriers, and the pipeline of stages
between a producer (TMA) and consumers. `smem`: shared memory by address, with ldmatrix and
stmatrix. `operand`: the layout of A's and B's tiles in a stage. `im2col`: windows of images as A.
`mma`: wgmma and accumulators. `cta`: thread ids and warp specialization. `tiles`: tiles of C and
their order.
"""
