"""The smallest matmul that gets a kernel."""

# With fewer multiply-adds, a loop nest, into which the operations after the matmul are fused, is as
# fast as a kernel.
LEAST_WORK = 64 * 64 * 64
