"""tensor.gather and tensor.scatter in all their forms: the numbers of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import Library, build_library
from numpy.typing import NDArray

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

# By name: the whole tensor's shape, that of the coordinates, the dimensions that they name, and
# whether what is moved keeps those as ones.
Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]
CASES: dict[str, Case] = {
    "elements": ((4, 5, 6), (1, 2, 3), (0, 1, 2), False),
    "elements_with_ones": ((4, 5, 6), (1, 2, 3), (0, 1, 2), True),
    "slices": ((3, 44, 5), (6, 7, 1), (1,), False),
    "slices_with_ones": ((3, 44, 5), (6, 7, 1), (1,), True),
    "first_and_last": ((7, 33, 9), (5, 2), (0, 2), False),
    "one_element": ((7, 3), (2,), (0, 1), False),
    "one_row": ((7, 3), (1,), (0,), True),
}
ELEMENTS = {"index": np.int64, "i32": np.int32, "i8": np.int8}
FORMS = [(name, "index", False) for name in CASES]
FORMS += [
    ("slices", "i8", False),
    ("first_and_last", "i32", True),
    ("slices_with_ones", "i32", True),
]


def _moved(case: Case) -> tuple[int, ...]:
    whole, coordinates, named, keeps = case
    behind = [1 if i in named else n for i, n in enumerate(whole) if keeps or i not in named]
    return (*coordinates[:-1], *behind)


def _type(shape: Sequence[int], element: str, fixed: Sequence[int] | None) -> str:
    """With a `?` for each size but those at the axes `fixed`; None: all are written."""
    sizes = [str(n) if fixed is None or i in fixed else "?" for i, n in enumerate(shape)]
    return f"tensor<{'x'.join([*sizes, element])}>"


def _functions(name: str, element: str, is_dynamic: bool) -> str:
    whole, coordinates, named, keeps = case = CASES[name]
    moved, leading = _moved(case), len(coordinates) - 1
    ones = [leading + i for i in named] if keeps else []
    w = _type(whole, "f32", [] if is_dynamic else None)
    i = _type(coordinates, element, [leading] if is_dynamic else None)
    m = _type(moved, "f32", ones if is_dynamic else None)
    suffix = f"{name}_{element}"
    return f"""
func.func @gather_{suffix}(%w: {w}, %i: {i}) -> {m} attributes {{llvm.emit_c_interface}} {{
  %r = tensor.gather %w[%i] gather_dims({list(named)}) : ({w}, {i}) -> {m}
  return %r : {m}
}}
func.func @scatter_{suffix}(%m: {m}, %w: {w}, %i: {i}) -> {w}
    attributes {{llvm.emit_c_interface}} {{
  %r = tensor.scatter %m into %w[%i] scatter_dims({list(named)}) unique : ({m}, {w}, {i}) -> {w}
  return %r : {w}
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = "".join(_functions(*form) for form in FORMS)
    return build_library(text, tmp_path_factory.mktemp("gather"), "-O1")


def _values(case: Case, element: str) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """The whole tensor, and coordinates of which no two are the same."""
    whole, coordinates, named, _ = case
    random = np.random.default_rng(7)
    places = [whole[i] for i in named]
    count = int(np.prod(coordinates[:-1], dtype=int))
    chosen = np.stack(
        np.unravel_index(random.permutation(int(np.prod(places)))[:count], places), axis=-1
    )
    values = random.random(whole, np.float32)
    return values, chosen.reshape(coordinates).astype(ELEMENTS[element])


def _at(whole: NDArray[np.generic], case: Case) -> NDArray[np.generic]:
    """A view of the whole tensor whose first dimensions are those that coordinates name."""
    return np.moveaxis(whole, case[2], range(len(case[2])))


@pytest.mark.parametrize(("name", "element", "is_dynamic"), FORMS)
def test_gather(name: str, element: str, is_dynamic: bool, library: Library) -> None:
    case = CASES[name]
    whole, chosen = _values(case, element)
    expected = _at(whole, case)[tuple(np.moveaxis(chosen, -1, 0))].reshape(_moved(case))
    if is_dynamic:
        got = library.call(f"gather_{name}_{element}", whole, chosen)
    else:
        got = np.zeros_like(expected)
        library.call(f"gather_{name}_{element}", whole, chosen, got)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "element", "is_dynamic"), FORMS)
def test_scatter(name: str, element: str, is_dynamic: bool, library: Library) -> None:
    case = CASES[name]
    whole, chosen = _values(case, element)
    moved = np.arange(1, 1 + np.prod(_moved(case)), dtype=np.float32).reshape(_moved(case))
    expected = whole.copy()
    at = _at(expected, case)
    behind = at.shape[len(case[2]) :]
    at[tuple(np.moveaxis(chosen, -1, 0))] = moved.reshape((*chosen.shape[:-1], *behind))
    before = whole.copy()
    if is_dynamic:
        got = library.call(f"scatter_{name}_{element}", moved, whole, chosen)
    else:
        got = np.zeros_like(whole)
        library.call(f"scatter_{name}_{element}", moved, whole, chosen, got)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(whole, before)


def test_they_are_kernels(aotc: Aotc, mlir_file: MlirFile) -> None:
    """One for each, and one for the copy of the tensor that is scattered into."""
    path = mlir_file(_functions("slices", "i32", False))
    made = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    assert made.count("gpu.launch_func") == 3
    assert "scf.for" not in made
