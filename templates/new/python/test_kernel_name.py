"""Compares `kernel_name` with NumPy."""

import unittest

import numpy as np

from kernel_name import kernel_name


class TestKernelName(unittest.TestCase):
    """The kernel, on the GPU if there is one, else on the CPU."""

    def test_result(self) -> None:
        x = np.arange(1000, dtype=np.float32)
        y = np.full(1000, 0.5, np.float32)
        expected = 2 * x + y
        kernel_name(2.0, x, y)
        np.testing.assert_array_equal(y, expected)


if __name__ == "__main__":
    unittest.main()
