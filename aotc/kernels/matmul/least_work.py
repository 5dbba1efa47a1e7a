"""How large a matmul is that gets a kernel."""

# Below so many multiply-adds a loop, which takes in what comes after the product, is as fast as a
# kernel.
LEAST_WORK = 64 * 64 * 64
