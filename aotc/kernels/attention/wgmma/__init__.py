"""Attention on Hopper (sm_90a), in one kernel: TMA brings tiles, warpgroups multiply them (wgmma).

`family` takes variants; `kernel` writes the kernel, of which `mma` and `mask_tiles` are parts.
"""
