"""Window functions of PyTorch that torch-mlir does not support, as constants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from aotc.frontends.torch.constants import constant

Tensor = Any


def window_decompositions(aten: Any) -> dict[Any, Any]:
    """The decompositions of all overloads. Some overloads lack the last parameters."""
    functions: dict[str, Callable[..., Any]] = {
        "hamming_window": _hamming,
        "blackman_window": np.blackman,
        "bartlett_window": np.bartlett,
        "kaiser_window": _kaiser,
    }
    return {
        getattr(packet, overload): functools.partial(_window, function)
        for name, function in functions.items()
        for packet in (getattr(aten, name),)
        for overload in packet.overloads()
        if "out" not in overload
    }


def _window(
    function: Callable[..., Any],
    window_length: int,
    periodic: bool = True,
    *numbers: float,
    dtype: Any = None,
    **named: Any,
) -> Tensor:
    """The symmetric window. A periodic one is the symmetric one with one more point, without its
    last point."""
    import torch

    dtype = dtype or torch.get_default_dtype()
    if window_length == 1:
        return torch.ones(1, dtype=dtype)
    return constant(function(window_length + periodic, *numbers)[:window_length], dtype)


def _hamming(length: int, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return alpha - beta * np.cos(2 * np.pi * np.arange(length) / (length - 1))


def _kaiser(length: int, beta: float = 12.0) -> Any:
    return np.kaiser(length, beta)
