"""`aotc.load`: arrays of every kind, results, errors in words, on the CPU device."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

import aotc
from aotc.library.arrays import array_of

SCALE = """\
func.func @scale_{name}(%x: memref<?x4x{type}>, %s: {type}, %y: memref<?x4x{type}>)
    attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%x : memref<?x4x{type}>) outs(%y : memref<?x4x{type}>) {{
  ^bb0(%a: {type}, %o: {type}):
    %r = arith.{operation} %a, %s : {type}
    linalg.yield %r : {type}
  }}
  return
}}
"""
# By name: the element type in MLIR, the operation, NumPy's type.
TYPES: dict[str, tuple[str, str, Any]] = {
    "f16": ("f16", "mulf", np.float16),
    "f32": ("f32", "mulf", np.float32),
    "f64": ("f64", "mulf", np.float64),
    "i8": ("i8", "muli", np.int8),
    "i16": ("i16", "muli", np.int16),
    "i32": ("i32", "muli", np.int32),
    "i64": ("i64", "muli", np.int64),
}
REBUILT = """\
func.func @number() -> i32 attributes {{llvm.emit_c_interface}} {{
  %n = arith.constant {number} : i32
  return %n : i32
}}
"""
OTHERS = """\
!rows = memref<?x4xf32, strided<[?, ?], offset: ?>>
#id = affine_map<(i, j) -> (i, j)>
func.func @negate(%x: !rows) attributes {llvm.emit_c_interface} {
  linalg.negf ins(%x : !rows) outs(%x : !rows)
  return
}
func.func @bits(%x: memref<?xbf16>, %y: memref<?xbf16>) attributes {llvm.emit_c_interface} {
  linalg.negf ins(%x : memref<?xbf16>) outs(%y : memref<?xbf16>)
  return
}
func.func @flags(%x: memref<?xi1>, %y: memref<?xi1>) attributes {llvm.emit_c_interface} {
  linalg.copy ins(%x : memref<?xi1>) outs(%y : memref<?xi1>)
  return
}
func.func @complex(%x: memref<?xcomplex<f32>>, %y: memref<?xcomplex<f32>>)
    attributes {llvm.emit_c_interface} {
  linalg.copy ins(%x : memref<?xcomplex<f32>>) outs(%y : memref<?xcomplex<f32>>)
  return
}
func.func @whole(%x: memref<f32>) -> (f32, i32, i1) attributes {llvm.emit_c_interface} {
  %v = memref.load %x[] : memref<f32>
  %i = arith.constant -3 : i32
  %t = arith.constant true
  return %v, %i, %t : f32, i32, i1
}
func.func @made(%x: memref<?xf32>) -> memref<?xf32> attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return %y : memref<?xf32>
}
func.func @same(%x: memref<?xf32>) -> memref<?xf32> attributes {llvm.emit_c_interface} {
  return %x : memref<?xf32>
}
func.func @nothing() attributes {llvm.emit_c_interface} {
  return
}
func.func @choose(%c: i1, %a: i32, %h: bf16, %z: complex<f32>, %x: memref<2xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %i = arith.sitofp %a : i32 to f32
  %f = arith.extf %h : bf16 to f32
  %t = arith.select %c, %i, %f : f32
  memref.store %t, %x[%zero] : memref<2xf32>
  %r = complex.im %z : complex<f32>
  memref.store %r, %x[%one] : memref<2xf32>
  return
}
func.func @asserts(%n: index) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %ok = arith.cmpi sgt, %n, %zero : index
  cf.assert %ok, "n is positive"
  return
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> aotc.Artifact:
    text = OTHERS + "".join(
        SCALE.format(name=name, type=type_, operation=operation)
        for name, (type_, operation, _) in TYPES.items()
    )
    out = tmp_path_factory.mktemp("loaded")
    return aotc.build(text, emit="shared", out=f"{out}/", name="many", chips="sm_80")


@pytest.fixture(scope="module")
def library(artifact: aotc.Artifact) -> aotc.Library:
    library = aotc.load(artifact)
    library.set_device("cpu")
    return library


class DLPackOnly:
    """An array that has nothing but DLPack's protocol, as other packages' arrays do."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wrap", [np.asarray, DLPackOnly], ids=["numpy", "dlpack"])
def test_types(name: str, wrap: Any, library: aotc.Library) -> None:
    dtype = TYPES[name][2]
    x = np.arange(12, dtype=dtype).reshape(3, 4)
    y = np.full_like(x, 99)
    assert library[f"scale_{name}"](wrap(x), 3, wrap(y)) is None
    np.testing.assert_array_equal(y, x * dtype(3))


def test_the_default_stream() -> None:
    """PyTorch's is 0, as CUDA's; its `__dlpack__` takes that as 1 alone, as DLPack has it."""
    streams = []

    class OnGpu(DLPackOnly):
        def __dlpack__(self, *, stream: int) -> Any:
            streams.append(stream)
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    for stream in (None, 0, 1, 77):
        array_of(OnGpu(np.ones(3, np.float32)), stream)
    assert streams == [1, 1, 1, 77]


def test_strides_and_places(library: aotc.Library) -> None:
    """Transposed, reversed, every other: elements are where the array says."""
    base = np.arange(96, dtype=np.float32).reshape(8, 12)
    expected = base.copy()
    for view in (np.s_[::2, 4:8], np.s_[::-1, 8:4:-1]):
        library.negate(base[view])
        expected[view] *= -1
    library.negate(DLPackOnly(base[:4, :].T))
    expected[:4, :] *= -1
    np.testing.assert_array_equal(base, expected)


def test_names_and_numbers(library: aotc.Library) -> None:
    x, y = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
    library.scale_f32(x, y=y, s=np.float32(2.5))
    assert y[1, 3] == 2.5
    assert library.whole(np.array(7.5, np.float32)) == (7.5, -3, True)
    assert library.nothing() is None
    assert list(library)[:2] == ["negate", "bits"]
    assert "scale_i8" in dir(library)
    assert repr(library.same) == "<entry same(x: memref<?xf32>) -> memref<?xf32>>"
    assert library.same.__doc__.startswith("same(x: memref<?xf32>)")
    with pytest.raises(AttributeError, match=r"no entry 'absent'\. This library has: negate, bits"):
        _ = library.absent


def test_numbers_of_other_packages(library: aotc.Library) -> None:
    """Flags and numbers of NumPy's are scalars, also as arrays without dimensions."""
    x = np.zeros(2, np.float32)
    for flag in (True, np.True_, np.array(True), 1):
        library.choose(flag, np.int64(7), np.float64(2), np.complex128(3j), x)
        np.testing.assert_array_equal(x, [7, 3])
    library.choose(np.False_, 7, np.float16(2), -np.inf * 1j, x)
    np.testing.assert_array_equal(x, [2, -np.inf])


def test_pickling_says_what_to_do(library: aotc.Library) -> None:
    for thing in (library, library.negate):
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=r"each process opens it, by aotc\.load\('"):
                copied(thing)


def test_numbers_without_a_finite_value_and_unmasked_arrays(library: aotc.Library) -> None:
    """What is not finite fits, and an array whose mask hides nothing is an array."""
    x = np.ma.masked_equal(np.ones((1, 4), np.float32), 2)
    y = np.zeros((1, 4), np.float32)
    for number in (np.inf, -np.inf, 2.0):
        library.scale_f32(x, number, y)
        assert y[0, 3] == number


def test_types_that_numpy_lacks(library: aotc.Library) -> None:
    x = np.linspace(-1, 1, 9).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    library.bits(x, y)
    np.testing.assert_array_equal(y.astype(np.float32), -x.astype(np.float32))
    bits = np.zeros(9, np.uint16)
    library.bits(x, bits)
    np.testing.assert_array_equal(bits, y.view(np.uint16))


def test_flags_and_complex_numbers(library: aotc.Library) -> None:
    flags, out = np.array([True, False, True]), np.zeros(3, bool)
    library.flags(flags, out)
    np.testing.assert_array_equal(out, flags)
    numbers = np.array([1 + 2j, -3j], np.complex64)
    copied = np.zeros_like(numbers)
    library.complex(numbers, copied)
    np.testing.assert_array_equal(copied, numbers)


def test_results(library: aotc.Library) -> None:
    """New memory is freed with the array; an argument that is returned is the caller's own."""
    x = np.arange(1000, dtype=np.float32)
    freed: list[int] = []
    free, library.free = library.free, freed.append  # type: ignore[method-assign]
    try:
        made = library.made(x)
        np.testing.assert_array_equal(made, 2 * x)
        view = made[10:]
        del made
        gc.collect()
        assert freed == []
        del view
        gc.collect()
        assert len(freed) == 1
    finally:
        del library.free
    free(freed[0])
    assert library.same(x) is x


class Bytes:
    """Images of Pillow's have their elements as a Python object."""

    __array_interface__: ClassVar[Any] = {"data": bytes(48), "shape": (3, 4), "typestr": "<f4"}


def frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


BAD_CALLS: list[tuple[str, Any, str]] = [
    ("scale_f32", lambda x: (x, 1), "was given 2 by position: 'y' is missing."),
    ("scale_f32", lambda x: (x, 1, x, x), "was given 4 by position: it takes 3."),
    (
        "scale_f32",
        lambda x: (x, 1, {"z": x, "s": 2}),
        "2 by position, 'z', 's': 'y' is missing, 's' is given twice, 'z' is no argument.",
    ),
    (
        "scale_f32",
        lambda x: (x.astype(np.float64), 1, x),
        "scale_f32: argument 'x' (memref<?x4xf32>): its elements are f64.",
    ),
    ("scale_f32", lambda x: (x[0], 1, x), "its shape is (4,)."),
    ("scale_f32", lambda x: (x[:, :3], 1, x), "its shape is (3, 3)."),
    ("scale_f32", lambda x: (x, "a", x), "'s' (f32) cannot be 'a'"),
    ("scale_f32", lambda x: (x, "2", x), "'s' (f32) cannot be '2': expected a number."),
    ("scale_f32", lambda x: (x, 1e300, x), "'s' (f32) cannot be 1e+300: it does not fit f32."),
    ("scale_f32", lambda x: (np.ma.masked_equal(x, 1), 1, x), "some of its elements are masked"),
    ("scale_i8", lambda x: (x.astype(np.int8), "3", x.astype(np.int8)), "expected a number"),
    ("scale_f32", lambda x: (x, bytearray(b"2"), x), "expected a number."),
    ("scale_f32", lambda x: (x, np.array("2"), x), "expected a number."),
    ("scale_f32", lambda x: (x, np.ma.masked, x), "'s' (f32) cannot be masked: it is masked."),
    ("choose", lambda x: (0, np.ma.array(5, mask=True), 0, 0, x[0, :2]), "it is masked."),
    ("scale_f32", lambda x: (x, np.complex64(1 + 2j), x), "expected a real number."),
    ("choose", lambda x: (1, 1.0, 0, 0, x[0, :2]), "'a' (i32) cannot be 1.0: 'float' object"),
    ("choose", lambda x: (None, 1, 0, 0, x[0, :2]), "'c' (i1) cannot be None: 'NoneType' object"),
    ("choose", lambda x: (2, 1, 0, 0, x[0, :2]), "'c' (i1) cannot be 2: expected True or False."),
    ("choose", lambda x: (0, 1, 3.4e38, 0, x[0, :2]), "it does not fit bf16."),
    ("choose", lambda x: (0, 1, 0, 1e39j, x[0, :2]), "it does not fit c64."),
    ("scale_f32", lambda x: ([1.0], 1, x), "list is no array"),
    ("scale_f32", lambda x: (x.astype(">f4"), 1, x), "its elements are >f4, which no entry takes"),
    ("scale_f32", lambda x: (x, 1, x, {"stream": "x"}), "str is no CUDA stream"),
    ("scale_i8", lambda x: (x.astype(np.int8), 300, x.astype(np.int8)), "it does not fit i8"),
    ("scale_i8", lambda x: (x.astype(np.int8), 1.5, x.astype(np.int8)), "'s' (i8) cannot be 1.5"),
    ("scale_f32", lambda x: (x.astype(object), 1, x), "its elements are object, which no entry"),
    ("scale_f32", lambda x: (x.astype("M8[s]"), 1, x), "its elements are datetime64[s], which no"),
    ("scale_f32", lambda x: (Bytes(), 1, x), "it does not tell where its elements are"),
    ("scale_f32", lambda x: (DLPackOnly(frozen(x)), 1, x), "argument 'x' (memref<?x4xf32>): "),
    ("same", lambda x: (np.float32(1),), "its shape is ()."),
    ("whole", lambda x: (x[0, :1].sum(), {"stream": 0}), "whole cannot be enqueued on a stream: "),
]


@pytest.mark.parametrize(("entry", "arguments", "message"), BAD_CALLS)
def test_wrong_calls(entry: str, arguments: Any, message: str, library: aotc.Library) -> None:
    given = list(arguments(np.ones((3, 4), np.float32)))
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    with pytest.raises(aotc.InputError) as raised:
        library[entry](*given, **named)
    assert message in str(raised.value)


def test_read_only_arrays_are_only_read(library: aotc.Library) -> None:
    x = np.ones((3, 4), np.float32)
    x.flags.writeable = False
    library.scale_f32(x, 2, np.zeros_like(x))
    with pytest.raises(aotc.InputError, match="it is read-only, and the entry writes it"):
        library.negate(x)


def test_numbers_of_numpy_are_only_read() -> None:
    """What they show of themselves is a copy, which is kept as long as it is used."""
    array = array_of(np.float32(2.5), None)
    assert array.is_read_only
    assert array.owner[()] == 2.5
    assert array.address == array.owner.ctypes.data


def test_arrays_of_jax_are_only_read() -> None:
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed: pip install 'aotc[jax]'")
    assert array_of(jnp.ones(3), None).is_read_only


def test_devices(library: aotc.Library) -> None:
    with pytest.raises(aotc.InputError, match="Unknown device 'gpu': expected cpu"):
        library.set_device("gpu")


def test_failures_have_the_librarys_words(library: aotc.Library) -> None:
    with pytest.raises(aotc.LibraryError, match="n is positive") as raised:
        library.asserts(0)
    assert raised.value.name == "AOTC_ASSERTION_FAILED"
    library.asserts(1)
    sizes = np.ones((3, 4), np.float32), np.ones((2, 4), np.float32)
    library.scale_f32(sizes[0][:2], 1, sizes[1])


def test_what_is_opened(artifact: aotc.Artifact, tmp_path: Path) -> None:
    """The folder, the library, the manifest; both in one folder without a package's rooms."""
    package = artifact.path.parent.parent
    x = np.ones(3, np.float32)
    for path in (package, artifact.path, artifact.paths["manifest"], str(package)):
        assert aotc.load(path).same(x) is x
    alone = tmp_path / artifact.path.name
    alone.write_bytes(artifact.path.read_bytes())
    with pytest.raises(aotc.InputError, match="has no manifest beside it"):
        aotc.load(alone)
    (tmp_path / "many.json").write_bytes(artifact.paths["manifest"].read_bytes())
    assert aotc.load(alone).manifest == artifact.manifest
    assert aotc.load(tmp_path).path == alone


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("libx.so", None, "there is no such file"),
        ("x.json", None, "Cannot read"),
        ("x.json", b"{}", "is no manifest of aotc's"),
        ("x.json", b'{"manifest_version": 1}', "is a manifest of version 1"),
        ("", None, "has no libraries with a manifest"),
    ],
)
def test_what_cannot_be_opened(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(aotc.InputError, match=message):
        aotc.load(path)


def test_threads(library: aotc.Library) -> None:
    def work(number: int) -> bool:
        x = np.full((50, 4), number, np.float32)
        y = np.zeros_like(x)
        library.scale_f32(x, 2, y)
        return bool((y == 2 * number).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))


def test_a_library_that_was_built_again(tmp_path: Path) -> None:
    """In the same place, in one process: as in a notebook. The one before it stays as it is."""
    source, libraries = tmp_path / "rebuilt.mlir", []
    for number in (1, 2, 3):
        source.write_text(REBUILT.format(number=number), encoding="utf-8")
        built = aotc.build(source, emit="shared", out=f"{tmp_path}/lib/", chips="sm_80")
        libraries.append(aotc.load(built))
        assert aotc.load(f"{tmp_path}/lib/").number() == number
    assert [library.number() for library in libraries] == [1, 2, 3]
