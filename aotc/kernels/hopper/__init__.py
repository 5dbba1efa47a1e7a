"""The components of kernels for Hopper (sm_90a), some of which later chips share.

`tma`: tensor maps and bulk copies of tiles. `pipeline`: mbarriers, and the pipeline of stages
between a producer (TMA) and consumers. `smem`: shared memory by address, with ldmatrix and
stmatrix. `operand`: the layout of A's and B's tiles in a stage. `im2col`: TMA's im2col mode.
`mma`: wgmma and accumulators. `cta`: thread ids and warp specialization. `tiles`: tiles of C and
their order.
"""
