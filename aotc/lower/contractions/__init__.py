"""Products of matrices → kernels of their own, instead of a loop for each element.

`problem` says what is computed, `recognise` finds it in a module. A family (a module each:
`hopper`, `tensor_cores`, `simt`) writes the host function that launches a kernel for it, as MLIR
text, from parameters; `choice` picks families and parameters, and `dispatch` puts their kernels
beside the loops, which the CPU device keeps. `fusion` finds what is done with a product, which an
`epilogue` computes in its kernel.

What is no product of two matrices as they lie (`recognise_gathered`) is one of views (`flattened`),
or has kernels that look up where elements are: `gathered` says where, and the families of that name
are those above with addresses of their own.
"""
