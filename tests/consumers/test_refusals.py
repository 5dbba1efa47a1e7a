"""A call that cannot be: a status, and a message that names the argument; nothing is launched."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
from consumers.support import Package

INVALID_ARGUMENT = 1
NULL = None
FLOATS = ctypes.c_float * 24
MOST = 2**63 - 1


class Memref2(ctypes.Structure):
    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * 2),
        ("strides", ctypes.c_int64 * 2),
    )


Refused = Callable[..., str]


@pytest.fixture
def library(every_type_package: Package, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    loaded = ctypes.CDLL(str(every_type_package.shared))
    loaded.every_type_last_error.restype = ctypes.c_char_p
    return loaded


@pytest.fixture
def refused(library: ctypes.CDLL) -> Refused:
    """The message of a call that must be refused; the call after it works, and forgets it."""

    def call(function: str, *arguments: Any) -> str:
        assert library[function](*map(_argument, arguments)) == INVALID_ARGUMENT
        message = library.every_type_last_error().decode()
        assert library.nothing() == 0
        assert library.every_type_last_error() == b""
        return message

    return call


def _argument(value: Any) -> Any:
    if value is NULL:
        return ctypes.c_void_p()
    return ctypes.c_int64(value) if isinstance(value, int) else value


def memref(elements: Any, sizes: Any, strides: Any, offset: int = 0) -> Any:
    place = ctypes.addressof(elements) if elements is not NULL else None
    return ctypes.byref(Memref2(place, place, offset, tuple(sizes), tuple(strides)))


def at(elements: Any, byte: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(elements) + byte)


@pytest.mark.parametrize("form", ["copy_f32", "copy_f32_async"])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda x: (NULL, 4), ["NULL"]),
        (lambda x: (at(x, 2), 4), ["aligned", "4 bytes"]),
        (lambda x: (x, -1), ["dimension 0", "negative", "-1"]),
        (lambda x: (x, -MOST - 1), ["negative"]),
        (lambda x: (x, MOST), ["memory"]),
        (lambda x: (x, 2**62), ["memory"]),
        (lambda x: (x, 2**61 - 1), ["memory"]),
    ],
    ids=["null", "misaligned", "negative", "most negative", "largest", "2^64 bytes", "2^63 bytes"],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_pointers_and_sizes(
    form: str, what: Callable[[Any], Any], words: list[str], name: str, refused: Refused
) -> None:
    elements, good = FLOATS(*[7] * 24), FLOATS(*[7] * 24)
    bad = what(elements)
    arguments = (*bad, good, 4) if name == "x" else (good, 4, *bad)
    stream = [NULL] if form.endswith("_async") else []
    message = refused(form, *arguments, *stream)
    assert message.startswith(f"copy_f32: argument '{name}' (memref<?xf32>): "), message
    assert [word for word in words if word not in message] == []
    assert list(elements) == list(good) == [7] * 24


def test_alignment_is_that_of_the_element(library: ctypes.CDLL, refused: Refused) -> None:
    """complex<f32> lies where a float may; f64 does not."""
    x, y = FLOATS(*range(24)), FLOATS()
    four = ctypes.c_int64(4)
    assert library.copy_c64(at(x, 4), four, at(y, 4), four) == 0
    assert list(y)[1:9] == list(range(1, 9))
    assert "'y'" in refused("copy_f64", at(x, 0), 4, at(y, 4), 4)


def test_no_elements_may_be_anywhere(library: ctypes.CDLL) -> None:
    zero, null = ctypes.c_int64(0), ctypes.c_void_p()
    assert library.copy_f32(null, zero, null, zero) == 0
    assert library.any_strides(null, zero, ctypes.c_int64(3), null, zero) == 0


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "words"),
    [
        ((2, 4), (3, 1), 0, ["dimension 1", "size 4", "says 3"]),
        ((-2, 3), (3, 1), 0, ["dimension 0", "-2"]),
        ((2, 3), (4, 1), 0, ["dimension 0", "stride 4", "says 3"]),
        ((2, 3), (3, 1), 1, ["offset"]),
    ],
    ids=["size", "negative", "stride", "offset"],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_descriptors_are_what_the_type_says(
    sizes: Any, strides: Any, offset: int, words: list[str], name: str, refused: Refused
) -> None:
    x, y = FLOATS(*[7] * 24), FLOATS(*[7] * 24)
    good = memref(x, (2, 3), (3, 1))
    bad = memref(y, sizes, strides, offset)
    message = refused("fixed_memref", *((bad, good) if name == "x" else (good, bad)))
    assert message.startswith(f"fixed: argument '{name}' (memref<2x3xf32>): "), message
    assert [word for word in words if word not in message] == []
    assert list(x) == list(y) == [7] * 24


def test_descriptors_that_say_too_much(refused: Refused) -> None:
    """Sizes and strides whose elements no memory holds, in either direction."""
    x, y = FLOATS(), FLOATS()
    good = memref(y, (2, 3), (3, 1))
    for sizes, strides in (
        ((2, 3), (2**62, 1)),
        ((2, 3), (-(2**62), 1)),
        ((2**32, 2**32), (2**32, 1)),
        ((MOST, 2), (MOST, MOST)),
    ):
        message = refused("any_strides_memref", memref(x, sizes, strides), good)
        assert "'x'" in message


def test_a_descriptor_that_is_not_there(refused: Refused) -> None:
    x = FLOATS()
    assert "'y'" in refused("fixed_memref", memref(x, (2, 3), (3, 1)), NULL)
    assert "'x'" in refused("fixed_memref", memref(NULL, (2, 3), (3, 1)), NULL)


def test_a_result_that_nobody_wants(library: ctypes.CDLL) -> None:
    """No place for a result is no mistake: what would be in it is given back."""
    null = ctypes.c_void_p()
    assert library.negate(ctypes.c_bool(True), null) == 0
    assert library.count(ctypes.c_int64(1000), null) == 0
    assert library.every_type_last_error() == b""


def test_a_device_that_cannot_be(refused: Refused) -> None:
    assert "-7" in refused("every_type_set_device", ctypes.c_int32(-7))
