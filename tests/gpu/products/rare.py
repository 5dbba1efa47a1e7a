"""Products that have kernels of their own: with vectors, of few rows, of one matrix for a batch, of
f8 of two kinds, of three products of tf32."""

from __future__ import annotations

from itertools import product

from tests.gpu.products.contraction import Contraction, Operand

_TYPES = (
    ("f16", "f16"),
    ("f16", "f32"),
    ("bf16", "bf16"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("i8", "i32"),
    ("f8E4M3FN", "f32"),
    ("f8E5M2", "f16"),
)
_CHIPS = ("sm_90a", "sm_80")
_F8 = ("f8E4M3FN", "f8E5M2")


def cases() -> list[Contraction]:
    found = []
    for number, (element, result) in enumerate(_TYPES):
        chip = _CHIPS[number % 2]
        types = f"{element}_{result}"
        for name, a, b, c in (
            ("matvec", "m k", "k", "m"),
            ("matvec_turned", "k m", "k", "m"),
            ("vecmat", "k", "k n", "n"),
            ("batch_matvec", "b m k", "b k", "b m"),
            ("batch_vecmat", "b k", "b k n", "b n"),
            # One matrix for each of a batch.
            ("broadcast", "b m k", "k n", "b m n"),
            ("broadcast_left", "m k", "b n k", "b m n"),
            ("batch_strided", "b m k", "b n k", "b m n"),
        ):
            loops = dict.fromkeys("".join((c + a).split()), 0)
            if name == "matvec_turned":
                loops = {"m": 300, "k": 1000}
            found.append(_contraction(f"{name}_{types}", loops, a, b, c, element, result, chip))
        for rows, layout in product((0, 1, 3, 8, 16, 33, 64), ("k n", "n k")):
            if rows in (3, 33) and layout == "k n":
                continue
            # Of a number of rows that is not known, the program takes one of several kernels.
            loops = {"m": rows, "n": 0, "k": 0} if rows in (0, 3, 33) else {
                "m": rows, "n": 1032 if rows % 3 else 1000, "k": 2048 if rows % 3 else 1100
            }  # fmt: skip
            name = f"rows{rows}_{'nt' if layout == 'n k' else 'nn'}_{types}"
            found.append(_contraction(name, loops, "m k", layout, "m n", element, result, "sm_90a"))
    return [*found, *_begun(), *_of_f8(), *thrice()]


def _begun() -> list[Contraction]:
    """From what C has, or from a bias."""
    return [
        Contraction(
            f"{begins}_{name}_{element}_{result}",
            loops,
            Operand(element, tuple(a.split())),
            Operand(element, tuple(b.split())),
            Operand(result, tuple(c.split())),
            more=(Operand(result, (c.split()[-1],)),) if begins == "row" else (),
            begins=begins,
            chip=chip,
        )
        for number, (element, result) in enumerate(_TYPES)
        for begins in ("adds", "row")
        for name, loops, a, b, c in (
            ("plain", {"m": 0, "n": 0, "k": 0}, "m k", "n k", "m n"),
            ("split", {"m": 64, "n": 136, "k": 4096}, "m k", "k n", "m n"),
            ("batch", {"b": 0, "m": 40, "n": 72, "k": 200}, "b m k", "b k n", "b m n"),
            ("vector", {"n": 0, "k": 0}, "k", "n k", "n"),
            ("mixed", {"i": 9, "j": 33, "q": 13, "k": 77}, "k i", "q k j", "i q j"),
        )
        for chip in (_CHIPS[number % 2],)
    ]


def _of_f8() -> list[Contraction]:
    """Both kinds in each place, with each type of a result."""
    return [
        _contraction(
            f"f8_{left[2:]}_{right[2:]}_{result}_{'nt' if layout == 'n k' else 'nn'}",
            {"m": 0, "n": 0, "k": 0}, "m k", layout, "m n", left, result, "sm_90a", right,
        )
        for left, right, result, layout in product(
            _F8, _F8, ("f32", "f16", "bf16"), ("n k", "k n")
        )
    ]  # fmt: skip


def thrice() -> list[Contraction]:
    """f32 as the sum of two of tf32: of large products alone, and of any."""
    return [
        Contraction(
            f"thrice_{m}x{n}x{k}_{'nt' if b == 'n k' else 'nn'}{'_tn' if a == 'k m' else ''}",
            {"m": m, "n": n, "k": k},
            Operand("f32", tuple(a.split())),
            Operand("f32", tuple(b.split())),
            Operand("f32", ("m", "n")),
            chip=chip,
            options=("allow_3xtf32",),
        )
        for chip in ("sm_80", "sm_90a")
        for m, n, k, a, b in (
            (512, 512, 512, "m k", "k n"),
            (520, 776, 1000, "m k", "n k"),
            (1000, 512, 600, "k m", "k n"),
            (513, 777, 555, "m k", "k n"),
            (0, 0, 0, "m k", "n k"),
        )
    ]


def _contraction(
    name: str,
    loops: dict[str, int],
    a: str,
    b: str,
    c: str,
    element: str,
    result: str,
    chip: str,
    right: str = "",
) -> Contraction:
    return Contraction(
        name,
        loops,
        Operand(element, tuple(a.split())),
        Operand(right or element, tuple(b.split())),
        Operand(result, tuple(c.split())),
        strided="strided" in name,
        chip=chip,
    )
