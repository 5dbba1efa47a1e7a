"""The CPU device's benchmark: kernels on the CPU against C loops on the same cores."""
