"""A thread function in the LLVM dialect → a host function that runs a block of threads."""
