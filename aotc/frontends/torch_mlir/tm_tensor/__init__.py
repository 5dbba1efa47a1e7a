"""Lowers torch-mlir's tm_tensor dialect to linalg, tensor and scf, whose loops become kernels.

torch-mlir generates these operations for sorts, for cumulative sums and products, and for scatters.
They are defined in
https://github.com/llvm/torch-mlir/blob/main/include/torch-mlir-dialects/Dialect/TMTensor/IR/TMTensorOps.td
"""
