"""gpu.module → device LLVM IR → PTX → cubin → fatbin."""
