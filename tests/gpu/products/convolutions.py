"""Convolutions, and contractions whose operands are no matrices as they lie in memory."""

from __future__ import annotations

import random
from itertools import product

from tests.gpu.products.contraction import Contraction, Operand

# Elements of the operands, of the result, and what it is built with.
_TYPES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("f16", "f16", ()),
    ("f16", "f32", ()),
    ("bf16", "bf16", ()),
    ("f32", "f32", ()),
    ("f32", "f32", ("allow_tf32",)),
    ("f64", "f64", ()),
    ("i8", "i32", ()),
)
# Strides and dilations, down and along.
_STEPS = (((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 2), (2, 1)))
# Of linalg: the operation, the dimensions of image, filter and result. Groups are g; D, H and W
# stand for places that windows move along, p, q, r are those in a window.
_OPERATIONS = {
    "conv_1d_ncw_fcw": (("n", "c", "W"), ("f", "c", "r"), ("n", "f", "w")),
    "conv_1d_nwc_wcf": (("n", "W", "c"), ("r", "c", "f"), ("n", "w", "f")),
    "conv_2d_nchw_fchw": (("n", "c", "H", "W"), ("f", "c", "q", "r"), ("n", "f", "h", "w")),
    "conv_2d_nhwc_hwcf": (("n", "H", "W", "c"), ("q", "r", "c", "f"), ("n", "h", "w", "f")),
    "conv_2d_nhwc_fhwc": (("n", "H", "W", "c"), ("f", "q", "r", "c"), ("n", "h", "w", "f")),
    "conv_2d_ngchw_gfchw": (
        ("n", "g", "c", "H", "W"),
        ("g", "f", "c", "q", "r"),
        ("n", "g", "f", "h", "w"),
    ),
    "conv_2d_ngchw_fgchw": (
        ("n", "g", "c", "H", "W"),
        ("f", "g", "c", "q", "r"),
        ("n", "g", "f", "h", "w"),
    ),
    "conv_3d_ncdhw_fcdhw": (
        ("n", "c", "D", "H", "W"),
        ("f", "c", "p", "q", "r"),
        ("n", "f", "d", "h", "w"),
    ),
    "conv_3d_ndhwc_dhwcf": (
        ("n", "D", "H", "W", "c"),
        ("p", "q", "r", "c", "f"),
        ("n", "d", "h", "w", "f"),
    ),
}
# Of these with channels that are a multiple of 64, TMA copies the windows.
_CHANNELS_LAST = (
    "conv_1d_nwc_wcf",
    "conv_2d_nhwc_hwcf",
    "conv_2d_nhwc_fhwc",
    "conv_3d_ndhwc_dhwcf",
)
_HALVES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("f16", "f16", ()),
    ("bf16", "f32", ()),
    ("bf16", "bf16", ()),
)
# `linalg.contract`, a transposition in front of a product, and orders that no matrix has: the
# operation, its loops, and the dimensions of its operands.
_OTHERS = {
    "contract": ("contract", {"m": 0, "n": 0, "k": 0}, "m k", "n k", "m n"),
    # The batch is in the middle, as heads are.
    "contract_heads": (
        "contract", {"h": 12, "i": 77, "j": 93, "d": 64}, "i h d", "j h d", "h i j"
    ),
    "heads": (
        "generic", {"b": 0, "h": 4, "i": 0, "j": 0, "d": 48}, "b i h d", "b j h d", "b h i j"
    ),
    # Rows and columns of two dimensions, which take turns in the result.
    "mixed": ("generic", {"i": 9, "p": 14, "j": 10, "q": 13, "k": 37}, "k i p", "q k j", "i q p j"),
    "two_depths": ("generic", {"i": 70, "j": 81, "k": 12, "l": 20}, "k i l", "l k j", "j i"),
    # Heads of sequences, which TMA copies as windows with a pixel for each head.
    "behind": (
        "generic", {"s": 77, "b": 12, "h": 3, "d": 64, "j": 72}, "b s h d", "j h d", "s b j"
    ),
    "transposed": ("matmul", {"m": 0, "n": 0, "k": 0}, "m k", "n k", "m n"),
    "view": ("generic", {"b": 3, "m": 65, "n": 72, "k": 88}, "b m k", "b k n", "b m n"),
}  # fmt: skip
_MOST_IMAGES = 9
_WINDOW = {"d": "p", "h": "q", "w": "r"}


def cases() -> list[Contraction]:
    found = []
    for number, (operation, (types, steps)) in enumerate(
        product(("conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf"), product(_TYPES, _STEPS))
    ):
        chip = "sm_80" if number % 4 == 1 else "sm_90a"
        found.append(_convolution(operation, types, *steps, chip=chip))
    for number, (operation, types) in enumerate(product(_CHANNELS_LAST, _HALVES)):
        for channels in (64, 192):
            found.append(_convolution(operation, types, *_STEPS[number % 3], channels=channels))
    others = [one for one in _OPERATIONS if one not in ("conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf")]
    for number, (operation, types) in enumerate(product(others, _TYPES)):
        found.append(_convolution(operation, types, *_STEPS[number % 3]))
    return [*found, *_others()]


def _convolution(
    operation: str,
    types: tuple[str, str, tuple[str, ...]],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    *,
    chip: str = "sm_90a",
    channels: int | None = None,
) -> Contraction:
    """Of sizes that are drawn for its name; some do not know the number of images. `channels`: of
    an image, if they are not drawn."""
    element, result, options = types
    places = _OPERATIONS[operation]
    spatial = [one for one in "dhw" if one in places[2]]
    strides, dilations = ((2, *two)[-len(spatial) :] for two in (strides, dilations))
    words = ["".join(map(str, numbers)) for numbers in (strides, dilations)]
    name = "_".join([operation, element, result, *words])
    if channels is not None:
        name = f"windows_{name}_c{channels}"
    rng = random.Random(name)
    loops = {loop: _size(loop, rng, len(spatial)) for loop in (*places[2], *_reduced(places))}
    if rng.random() < 0.5:
        loops["n"] = 0
    if channels is not None:
        loops["c"], loops["f"] = channels, rng.choice((64, 136, 256, 320))
    moved = {
        one.upper(): f"{one}*{stride} + {_WINDOW[one]}*{dilation}"
        for one, stride, dilation in zip(spatial, strides, dilations, strict=True)
    }
    image = tuple(moved.get(place, place) for place in places[0])
    attributes = ", ".join(
        f"{key} = dense<[{', '.join(map(str, numbers))}]> : tensor<{len(spatial)}xi64>"
        for key, numbers in (("dilations", dilations), ("strides", strides))
    )
    return Contraction(
        name,
        loops,
        Operand(element, image),
        Operand(element, places[1]),
        Operand(result, places[2]),
        f"{operation} {{{attributes}}}",
        most={"n": _MOST_IMAGES},
        chip=chip,
        options=options,
    )


def _reduced(places: tuple[tuple[str, ...], ...]) -> list[str]:
    return [place for place in places[1] if place not in places[2]]


def _size(loop: str, rng: random.Random, dimensions: int) -> int:
    if loop in "pqr":
        return rng.choice((1, 3, 3, 5)) if loop != "p" else 3
    if loop in "dhw":
        least, most = (2, 6) if loop == "d" else ((60, 400) if dimensions == 1 else (5, 30))
        return rng.randint(least, most)
    return {"n": rng.randint(1, 8), "g": rng.choice((2, 3, 4))}.get(
        loop, rng.choice((rng.randint(3, 80), 8 * rng.randint(1, 10)))
    )


def _others() -> list[Contraction]:
    return [
        Contraction(
            f"{name}_{element}_{result}",
            dict(loops),
            Operand(element, tuple(a.split())),
            Operand(element, tuple(b.split())),
            Operand(result, tuple(c.split())),
            operation,
            turned=name == "transposed",
            strided=name == "view",
            options=options,
        )
        for element, result, options in _TYPES
        for name, (operation, loops, a, b, c) in _OTHERS.items()
    ]
