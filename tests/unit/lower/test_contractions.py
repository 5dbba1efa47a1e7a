"""vector.contract of all kinds and shapes: the numbers of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.native import Library, build_library
from numpy.typing import NDArray

SIZES = {"m": 2, "n": 3, "k": 4, "b": 5}
ALL = "mk,k->m"
SHAPES = (ALL, "mk,kn->mn", "mk,nk->nm", "bmk,bkn->nbm", "k,k->", "mkn,nk->m")
FLOATS = {
    "mul": np.multiply,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}
INTEGERS = {
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": np.minimum,
    "maxui": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
CASES = [
    (shape, element, kind)
    for element, kinds in (("f32", FLOATS), ("i32", INTEGERS))
    for kind in kinds
    for shape in SHAPES
    if shape == ALL or kind in ("mul", "maxnumf", "minui")
]


def _name(shape: str, element: str, kind: str) -> str:
    return "_".join(("f", *shape.replace("->", ",").split(","), element, kind))


def _function(shape: str, element: str, kind: str) -> str:
    groups = shape.replace("->", ",").split(",")
    letters = sorted({letter for group in groups for letter in group})
    maps = ", ".join(f"affine_map<({', '.join(letters)}) -> ({', '.join(g)})>" for g in groups)
    steps = ", ".join(f'"{"parallel" if x in groups[2] else "reduction"}"' for x in letters)
    sizes = ["x".join([*(str(SIZES[x]) for x in group), element]) for group in groups]
    vectors = [f"vector<{size}>" if "x" in size else size for size in sizes]
    zeros = [", ".join(["%c0"] * len(group)) for group in groups]
    reads = [
        f"%{name}v = vector.transfer_read %{name}[{at}], %zero {{in_bounds = "
        f"[{', '.join(['true'] * len(group))}]}} : memref<{size}>, {vector}"
        if group
        else f"%{name}v = memref.load %{name}[] : memref<{size}>"
        for name, group, at, size, vector in zip("abc", groups, zeros, sizes, vectors, strict=True)
    ]
    write = (
        f"vector.transfer_write %r, %c[{zeros[2]}] : {vectors[2]}, memref<{sizes[2]}>"
        if groups[2]
        else f"memref.store %r, %c[] : memref<{sizes[2]}>"
    )
    arguments = ", ".join(f"%{n}: memref<{s}>" for n, s in zip("abc", sizes, strict=True))
    zero = "0.0" if element == "f32" else "0"
    return f"""
func.func @{_name(shape, element, kind)}({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero} : {element}
  {reads[0]}
  {reads[1]}
  {reads[2]}
  %r = vector.contract {{indexing_maps = [{maps}], iterator_types = [{steps}],
    kind = #vector.kind<{kind}>}} %av, %bv, %cv : {vectors[0]}, {vectors[1]} into {vectors[2]}
  {write}
  return
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = "".join(_function(*case) for case in CASES)
    return build_library(text, tmp_path_factory.mktemp("contractions"), "-O1")


def _values(group: str, element: str, seed: int) -> NDArray[np.generic]:
    shape = [SIZES[letter] for letter in group]
    random = np.random.default_rng(seed)
    if element == "i32":
        return random.integers(-9, 9, shape, dtype=np.int32)
    values = random.integers(-9, 9, shape).astype(np.float32)
    # One in each: it counts in some kinds and is passed over in others.
    values[(-1,) * len(shape)] = np.nan if seed == 1 else values.min()
    return values


@pytest.mark.parametrize(("shape", "element", "kind"), CASES)
def test_contractions(shape: str, element: str, kind: str, library: Library) -> None:
    factors, result = shape.split("->")
    a, b, c = (_values(g, element, i) for i, g in enumerate((*factors.split(","), result)))
    reduce = {**FLOATS, **INTEGERS}[kind]
    reduced = "".join(sorted(set(factors) - {","} - set(result)))
    products = np.einsum(f"{factors}->{result}{reduced}", a, b)
    expected = c
    for index in np.ndindex(products.shape[len(result) :]):
        product = products[(..., *index)]
        if kind in ("minui", "maxui"):
            expected = reduce(expected.view(np.uint32), product.view(np.uint32)).view(np.int32)
        else:
            expected = reduce(expected, product)
    got = c.copy()
    library.call(_name(shape, element, kind), a, b, got)
    np.testing.assert_array_equal(got, expected)
