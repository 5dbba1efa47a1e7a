"""Attention on Hopper (sm_90a), in one kernel: TMA brings tiles, warpgroups multiply them (wgmma).

`menu` takes variants; `kernel` writes the kernel, of which `products` and `mask_tiles` are parts.
"""
