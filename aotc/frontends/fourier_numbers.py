"""The constants of Fourier transforms: roots of unity, DFT matrices, and Bluestein's chirp.

Front ends differ in how they lay out complex numbers and in what they multiply them by.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def roots_of_unity(n: int, powers: Any) -> Any:
    """exp(2πi power / n) for each power."""
    return np.exp(2j * np.pi * ((powers % n) / n))


def dft_blocks(n: int, sign: int) -> Any:
    """The DFT matrix on real numbers, [2, 2, n, n]. Block [a, b] is what part a of the input (0 is
    the real part, 1 the imaginary one) adds to part b of the result."""
    roots = roots_of_unity(n, sign * np.outer(np.arange(n), np.arange(n)))
    return np.array([[roots.real, roots.imag], [-roots.imag, roots.real]])


def chirp_and_filter(n: int, sign: int) -> tuple[Any, Any]:
    """The constants of Bluestein's algorithm for rows of n numbers.

    Since jk = (j² + k² - (j - k)²) / 2, the transform is a convolution with a chirp, with a
    multiplication by the chirp before and after it. The convolution is a transform of rows that are
    padded to the length of the filter, a power of two, a multiplication by the filter, and the
    inverse transform without its scale, which the filter contains.
    """
    chirp = roots_of_unity(2 * n, sign * (np.arange(n) ** 2 % (2 * n)))
    size = 1 << (2 * n - 2).bit_length()
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    return chirp, np.fft.fft(kernel) / size
