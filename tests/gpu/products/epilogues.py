"""What is done with a product: biases, residuals, activations, casts, gates, in chains."""

from __future__ import annotations

from typing import Any

from tests.gpu.products.contraction import Contraction, Operand

# By their names: what is done, with operands that have an element for each column (`row`), for each
# row (`column`), for both, or another B (`gate`).
_STEPS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "silu": (("silu",),),
    "row": (("add", "row"),),
    "column": (("add", "column"),),
    "residual": (("add", "matrix"), ("relu",)),
    "scales": (("times", "column"), ("times", "row")),
    "chain": (("add", "row"), ("silu",), ("times", "matrix"), ("scale", 0.125), ("add", "column")),
    "rounds": (("round", "f16"), ("add", "row"), ("round", "bf16"), ("gelu",)),
    "gate": (("silu",), ("product", "gate")),
    "gate_gelu": (("gelu",), ("product", "gate"), ("add", "matrix")),
}
# Elements of A and B, of sums, and of the result.
_TYPES = (
    ("f16", "f32", "f16"),
    ("f16", "f32", "f32"),
    ("f16", "f16", "f16"),
    ("f16", "f16", "f32"),
    ("bf16", "f32", "bf16"),
    ("bf16", "bf16", "f32"),
    ("bf16", "f32", "f16"),
    ("f32", "f32", "f32"),
    ("f32", "f32", "f16"),
    ("f64", "f64", "f64"),
    ("i8", "i32", "f32"),
    ("i8", "i32", "f16"),
    ("f8E4M3FN", "f32", "bf16"),
)
# More tiles than multiprocessors, of few steps: blocks go from tile to tile, by divisions, and sums
# of one tile are read while operands of the next are on their way.
_MANY_TILES: dict[str, tuple[dict[str, int], str, str, str]] = {
    "narrow": ({"m": 50176, "n": 128, "k": 256}, "m k", "n k", "m n"),
    "odd": ({"m": 50050, "n": 136, "k": 328}, "m k", "k n", "m n"),
    "wide": ({"m": 3000, "n": 5120, "k": 64}, "m k", "n k", "m n"),
    "batched": ({"b": 0, "m": 0, "n": 0, "k": 0}, "b m k", "b n k", "b m n"),
    "of_batch": ({"b": 96, "m": 600, "n": 200, "k": 64}, "b m k", "b k n", "b m n"),
}
_OF_I8 = 2.0**-12
_PLACES = {"row": ("n",), "column": ("m",), "matrix": ("m", "n")}


def cases() -> list[Contraction]:
    found = []
    for number, types in enumerate(_TYPES):
        for count, name in enumerate(_STEPS):
            chip = "sm_80" if (number + count) % 3 == 2 and types[0][:2] != "f8" else "sm_90a"
            found.append(_case(types, name, chip, place=number + count))
    found += [
        Contraction(
            f"cast_{'_'.join(types)}",
            {"m": 0, "n": 0, "k": 0},
            Operand(types[0], ("m", "k")),
            Operand(types[0], ("n", "k")),
            Operand(types[2], ("m", "n")),
            sums=types[1],
            steps=(("scale", _OF_I8 if types[0] == "i8" else 1.0),),
            chip=chip,
        )
        for types in _TYPES
        if types[1] != types[2]
        for chip in ("sm_90a", "sm_80")
        if types[0][:2] != "f8" or chip == "sm_90a"
    ]
    return [*found, *_many_tiles()]


def _many_tiles() -> list[Contraction]:
    """With a norm and an activation behind them, as of a convolution that is a product: with this
    one, ptxas 13.5 read accumulators early where a tile was divided for between MMAs."""
    return [
        Contraction(
            "_".join(["many", name, *types]),
            loops,
            Operand(types[0], tuple(a.split())),
            Operand(types[0], tuple(b.split())),
            Operand(types[2], tuple(c.split())),
            sums=types[1],
            more=(*[Operand("f32", ("n",))] * 2, *[Operand(types[2], ("n",))] * 2),
            steps=(
                *((("round", types[2]),) if types[2] != "f32" else ()),
                *(("add", 2), ("times", 3), ("times", 4), ("add", 5), ("relu",)),
            ),
            most={"b": 200, "m": 700, "n": 400, "k": 96},
        )
        for types in (_TYPES[0], _TYPES[4], _TYPES[7], _TYPES[12])
        for name, (loops, a, b, c) in _MANY_TILES.items()
    ]


def _case(types: tuple[str, str, str], name: str, chip: str, *, place: int) -> Contraction:
    """B is transposed or not, sizes are known or not, steps are one operation or several."""
    element, sums, result = types
    extra = "f32" if element in ("i8", "f8E4M3FN") else element
    b = ("k", "n") if place % 2 else ("n", "k")
    loops = {"m": 0, "n": 0, "k": 0} if place % 4 < 3 else {"m": 200, "n": 136, "k": 328}
    more: list[Operand] = []
    # No sum of i8 is too large for f16 then.
    steps: list[tuple[Any, ...]] = [("scale", _OF_I8)] if element == "i8" else []
    for step, *of in _STEPS[name]:
        if step in ("add", "times"):
            more.append(Operand(extra, _PLACES[of[0]]))
            of = [len(more) + 1]
        elif step == "product":
            more.append(Operand(element, b))
            of = [len(more) + 1]
        steps.append((step, *of))
        if step == "product" and element == "i8":
            steps.append(("scale", _OF_I8))
    return Contraction(
        "_".join([name, *types]),
        loops,
        Operand(element, ("m", "k")),
        Operand(element, b),
        Operand(result, ("m", "n")),
        sums=sums,
        more=tuple(more),
        steps=tuple(steps),
        apart=place % 3 == 0,
        chip=chip,
    )
