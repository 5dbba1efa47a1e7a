"""The smallest matmul that gets a kernel."""

# With fewer multiply-adds, a loop nest, into which the operations after the matmul are fused, is as
# fast as a kernel.
LEAST_WORK = 64 * 64 * 64
# In a loop nest, one thread adds the products of an element, each of which is a load from another
# row. With so many, a kernel, which shares them among threads, is faster for less work.
_LONG_SUM = 128
_LEAST_OF_LONG_SUMS = 128 * 128


def is_worth_a_kernel(work: int, k: int) -> bool:
    """Whether a kernel beats loops for a matmul of `work` multiply-adds, `k` for each element."""
    return work >= (_LEAST_OF_LONG_SUMS if k >= _LONG_SUM else LEAST_WORK)
