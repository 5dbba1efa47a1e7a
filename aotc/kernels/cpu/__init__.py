"""What kernels for the CPU device are made of: vectors, packed operands, and the mainloop of a
product of matrices."""
