"""Attention of one query over a cache of keys and values, which is bound by memory bandwidth.

`family` takes variants; `kernel` builds the kernel that reads K and V, whose blocks share the keys
(split-K), and `combine` the one that adds their results.
"""
