"""Attention on Hopper (sm_90a), in one kernel: TMA copies tiles, warpgroups multiply them (wgmma).

`family` has the legality check and the variants. `kernel` builds the kernel, with `mma` and
`mask_tiles` as its parts.
"""
