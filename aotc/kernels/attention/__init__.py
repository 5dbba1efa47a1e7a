"""Attention: one kernel replaces the operations of softmax(scale · Q · Kᵀ + mask) · V.

`recognition` matches attention on tensors, from its second matmul backward through `elements`;
`factors` multiplies Q instead of scores.
`outline` moves its operations to a function. `dispatch` inserts the kernels, and a call of that
function for devices that no kernel supports. `problem` describes the computation, and `layout` the
layouts of matrices. `choice` selects kernels of the families (`family` is their base): `wgmma` and
`mma_sync` for 16-bit elements, which share `softmax` and `masks`, `simt` for f32, `decode` for one
query, and `cpu` for the CPU device.
"""
