"""Attention → one kernel, in front of the operations that it was written as.

`recognise` finds it on tensors, from its second product back through `elements`; `outline` makes a
function of its operations, and `dispatch` calls that where no kernel can run. `problem` says what
is computed, and `lying` how matrices lie. `choice` takes kernels of the families that there are
(`family`): `hopper_menu` has Hopper's, which `hopper` writes, of which `products`, `softmax` and
`masks` are parts; `simt` is the room of the one for f32.
"""
