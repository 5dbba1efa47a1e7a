"""Attention → one kernel, in front of the operations that it was written as.

`recognition` finds it on tensors, from its second matmul back through `elements`; `outline` makes a
function of its operations, and `dispatch` calls that where no kernel can run. `problem` says what
is computed, and `layout` how matrices lie. `choice` takes kernels of the families that there are
(`family` is their base): `wgmma` and `mma_sync` for 16 bits, which share `softmax` and `masks`, and
`simt` for f32, and `decode` for one query.
"""
