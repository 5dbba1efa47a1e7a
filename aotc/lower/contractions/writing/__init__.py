"""What kernels of several families are written in: `indices`, and on top `writer`; `scalar` has
their types, `split_sums` the second kernel where blocks divide K.
"""
