"""Attention → one kernel, in front of the operations that it was written as.

`recognise` finds it on tensors, from its second product back through `elements`; `outline` makes a
function of its operations, and `dispatch` calls that where no kernel can run. `problem` says what
is computed, and `lying` how matrices lie. `choice` takes kernels of the families that there are,
each a room with a `menu` of its variants: `hopper` and `tensor_cores` for 16 bits, which share
`softmax` and `masks`, and `simt` for f32. `family` is what a menu says.
"""
