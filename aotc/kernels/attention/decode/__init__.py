"""Attention of one query over a cache of keys and values, which is bound by memory bandwidth.

`family` has the legality check and the variants. `kernel` builds the kernel that reads K and V,
whose blocks split the keys, and `combine` the kernel that combines their partial results.
"""
