"""Fusion of a matmul's producers and consumers into its kernel, as an epilogue.

`fuse` finds and fuses the operations, `elementwise` translates their bodies to steps of an
`epilogue`, `gates` fuses the combination of gates, `collapsed` views buffers as matrices, `narrow`
rounds a result where it is computed, and `reduction_dimensions` collapses several reduction
dimensions to one.
"""
