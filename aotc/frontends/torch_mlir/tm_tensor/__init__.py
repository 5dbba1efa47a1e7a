"""torch-mlir's tm_tensor dialect → linalg, tensor and scf, whose loops become kernels.

torch-mlir makes these operations of sorts, of cumulative sums and products, and of writes to places
that are tensors themselves. They are defined in
https://github.com/llvm/torch-mlir/blob/main/include/torch-mlir-dialects/Dialect/TMTensor/IR/TMTensorOps.td
"""
