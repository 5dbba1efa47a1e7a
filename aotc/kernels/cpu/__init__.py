"""The components of kernels for the CPU device: vectors, packed operands, and the mainloop of a
matmul."""
