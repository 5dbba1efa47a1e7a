"""The .npy files that the harness reads and writes are NumPy's; others are refused."""

from __future__ import annotations

import io
import random
import subprocess
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Array, Build, Run, Save, sample


def file_bytes(header: bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    size = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + header + data


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["<", ">", "="])
@pytest.mark.parametrize("name", COPIED_DTYPES)
def test_round_trip(
    run: Run, save: Save, tmp_path: Path, name: str, order: str, version: tuple[int, int]
) -> None:
    """Every type, byte order and version, in C and in Fortran order, comes through unchanged."""
    array = sample(COPIED_DTYPES[name], (3, 5))
    stored = array.astype(np.dtype(order + array.dtype.str[1:]))
    for elements in (np.ascontiguousarray(stored), np.asfortranarray(stored)):
        save("a.npy", elements, version)
        words = ["--source", "a.npy", "--dim", "target=3x5", "--out", "target=t.npy"]
        ran = run("kernels", f"copy_{name}", *words)
        assert ran.code == 0, ran.stderr
        got = np.load(tmp_path / "t.npy")
        if name == "bf16":
            assert got.dtype == np.dtype("V2")
            got = got.view(np.uint16)
        assert got.dtype == array.dtype
        assert np.array_equal(got, array)


def test_written_bytes_are_numpys(run: Run, tmp_path: Path) -> None:
    """What is written is byte for byte what numpy.save writes, for the shapes that it can have."""
    for words, array in (
        (["copy_f32", "--source", "arange", "--dim", "source=2x3", "--dim", "target=2x3"],
         np.arange(6, dtype="f4").reshape(2, 3)),
        (["copy_i8", "--source", "7", "--dim", "source=0x3", "--dim", "target=0x3"],
         np.zeros((0, 3), "i1")),
        (["accumulate", "--dim", "x=5"], np.ones(5, "f4")),
        (["count", "--n", "4"], np.array(5)),
    ):  # fmt: skip
        name = {"accumulate": "x", "count": "result0"}.get(words[0], "target")
        ran = run("kernels", *words, "--out", f"{name}=t.npy")
        assert ran.code == 0, ran.stderr
        expected = io.BytesIO()
        np.save(expected, array)
        assert (tmp_path / "t.npy").read_bytes() == expected.getvalue()


def test_bfloat16_as_ml_dtypes_stores_it(run: Run, tmp_path: Path) -> None:
    """<V2 and |V2 are bfloat16; what is written starts as ml_dtypes' own files do."""
    data = np.array([[0x3F80, 0x4000]], "<u2").tobytes()
    for descr in (b"<V2", b"|V2"):
        header = b"{'descr': '" + descr + b"', 'fortran_order': False, 'shape': (1, 2), }\n"
        (tmp_path / "a.npy").write_bytes(file_bytes(header, data))
        words = ["--source", "a.npy", "--dim", "target=1x2", "--out", "target=t.npy"]
        ran = run("kernels", "copy_bf16", *words, "--print", "target")
        assert ran.code == 0, ran.stderr
        assert "target = [[1 2]]" in ran.stdout
        written = (tmp_path / "t.npy").read_bytes()
        assert b"{'descr': '<V2', 'fortran_order': False, 'shape': (1, 2), }" in written
        assert written.endswith(data)


def test_ml_dtypes(run: Run, save: Save, tmp_path: Path) -> None:
    """A bfloat16 array of ml_dtypes comes through unchanged."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([[0.5, -3, 1e30]]).astype(ml_dtypes.bfloat16)
    save("a.npy", array)
    words = ["--source", "a.npy", "--dim", "target=1x3", "--out", "target=t.npy"]
    assert run("kernels", "copy_bf16", *words).code == 0
    got = np.load(tmp_path / "t.npy").view(ml_dtypes.bfloat16)
    assert np.array_equal(got, array)


def test_pipe(run: Run, build: Build) -> None:
    """A pipe has no size to look at beforehand, and is read all the same."""
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 3), "f4"))
    words = ["--A", "/dev/stdin", "--B", "ones", "--print", "C"]
    ran = subprocess.run(
        [build.program("matmul"), *words], input=stream.getvalue(), capture_output=True,
        env=build.environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert b"[[3 3 3 3 3]" in ran.stdout
    short = subprocess.run(
        [build.program("matmul"), *words], input=stream.getvalue()[:-1], capture_output=True,
        env=build.environment,
    )  # fmt: skip
    assert short.returncode == 2
    message = b"matmul: error: --A: cannot read '/dev/stdin': it ends inside its data\n"
    assert short.stderr == message


GOOD = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }"
DATA = bytes(48)
MALFORMED = {
    "empty": (b"", "it is not a .npy file"),
    "another format": (b"\x89HDF\r\n\x1a\n and more of it", "it is not a .npy file"),
    "an archive": (
        b"PK\x03\x04 and more of it",
        "it is an archive (.npz): save one of its arrays as .npy, by numpy.save",
    ),
    "version 4": (
        file_bytes(GOOD, DATA, (4, 0)),
        "it is of .npy version 4.0; this program reads 1.0, 2.0 and 3.0",
    ),
    "version 1.1": (
        file_bytes(GOOD, DATA, (1, 1)),
        "it is of .npy version 1.1; this program reads 1.0, 2.0 and 3.0",
    ),
    "no header size": (b"\x93NUMPY\x01\x00\x10", "it ends inside its header"),
    "cut header": (file_bytes(GOOD)[:-10], "it ends inside its header"),
    "huge header": (
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + GOOD,
        "its header is longer than any array's",
    ),
    "no dict": (file_bytes(b"[1, 2]", DATA), "its header is malformed"),
    "no header": (file_bytes(b"", DATA), "its header is malformed"),
    "unknown key": (file_bytes(GOOD[:-1] + b"'x': 1}", DATA), "its header is malformed"),
    "key twice": (file_bytes(GOOD[:-1] + b"'descr': '<f4'}", DATA), "its header is malformed"),
    "key missing": (
        file_bytes(b"{'descr': '<f4', 'shape': (4, 3)}", DATA),
        "its header is malformed",
    ),
    "after the dict": (file_bytes(GOOD + b" 1", DATA), "its header is malformed"),
    "no comma": (file_bytes(GOOD.replace(b"False,", b"False"), DATA), "its header is malformed"),
    "lower case": (file_bytes(GOOD.replace(b"False", b"false"), DATA), "its header is malformed"),
    "escape": (file_bytes(GOOD.replace(b"<f4", b"<\\x664"), DATA), "its header is malformed"),
    "open string": (file_bytes(b"{'descr: 1}", DATA), "its header is malformed"),
    "zero byte": (file_bytes(GOOD.replace(b" ", b"\0"), DATA), "its header is malformed"),
    "records": (
        file_bytes(GOOD.replace(b"'<f4'", b"[('a', '<f4')]"), DATA),
        "it holds records, and an argument has one type",
    ),
    "negative size": (
        file_bytes(GOOD.replace(b"(4, 3)", b"(-4, 3)"), DATA),
        "the shape in its header is malformed or too large",
    ),
    "one number": (
        file_bytes(GOOD.replace(b"(4, 3)", b"(12)"), DATA),
        "the shape in its header is malformed or too large",
    ),
    "size of 2^64": (
        file_bytes(GOOD.replace(b"(4, 3)", b"(18446744073709551616,)"), DATA),
        "the shape in its header is malformed or too large",
    ),
    "many dimensions": (
        file_bytes(GOOD.replace(b"(4, 3)", b"(" + b"1, " * 65 + b")"), DATA),
        "the shape in its header is malformed or too large",
    ),
    "short data": (
        file_bytes(GOOD, DATA[1:]),
        "its shape and dtype take 48 bytes, and 47 follow its header",
    ),
    "no data": (file_bytes(GOOD), "its shape and dtype take 48 bytes, and 0 follow its header"),
    "trailing data": (
        file_bytes(GOOD, DATA + b"x"),
        "its shape and dtype take 48 bytes, and 49 follow its header",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(run: Run, tmp_path: Path, case: str) -> None:
    """A file that is no array is an error that says why, before a device is touched."""
    content, problem = MALFORMED[case]
    (tmp_path / "a.npy").write_bytes(content)
    ran = run("matmul", "--A", "a.npy", FAKE_LOG="log")
    assert ran.stderr == f"matmul: error: --A: cannot read 'a.npy': {problem}\n"
    assert (ran.code, ran.stdout) == (2, "")
    assert not (tmp_path / "log").exists()


def test_bools_are_0_or_1(run: Run, tmp_path: Path) -> None:
    """Compiled code may do anything with another byte."""
    header = b"{'descr': '|b1', 'fortran_order': False, 'shape': (1, 2), }"
    (tmp_path / "a.npy").write_bytes(file_bytes(header, b"\x01\x02"))
    ran = run("kernels", "copy_i1", "--source", "a.npy", "--dim", "target=1x2")
    assert ran.code == 2
    message = "--source: cannot read 'a.npy': it holds a bool that is neither 0 nor 1\n"
    assert ran.stderr == f"kernels: error: {message}"


def test_huge_shape(run: Run, tmp_path: Path) -> None:
    """A header that claims more than memory is refused without asking for it."""
    for shape, problem in (
        (b"(4611686018427387904, 4)", "'source' of shape (4611686018427387904, 4) is larger than"),
        (b"(1099511627776, 1024)", "its shape and dtype take 4503599627370496 bytes, and 48"),
    ):
        (tmp_path / "a.npy").write_bytes(file_bytes(GOOD.replace(b"(4, 3)", shape), DATA))
        ran = run("kernels", "copy_f32", "--source", "a.npy", "--dim", "target=1x1")
        assert ran.code == 2
        assert problem in ran.stderr


@pytest.mark.parametrize(
    "told",
    [(), ("--print", "source"), ("--json",), ("--out", "target=t.npy"), ("--expect", "target={}")],
    ids=lambda told: " ".join(told[:1]),
)
def test_many_empty_rows(run: Run, told: tuple[str, ...]) -> None:
    """A file that the fuzzer found, of shape (4294967296, 0): nobody goes through its rows."""
    file = Path(__file__).parent / "data" / "npy_hang_668.npy"
    words = [word.format(file) for word in told]
    began = time.monotonic()
    ran = run("kernels", "copy_f32", "--source", file, "--dim", "target=4294967296x0", *words)
    assert ran.code == 0, ran.stderr
    ran = run("matmul", "--A", file)
    assert (ran.code, "holds float32 of shape (4294967296, 0)" in ran.stderr) == (2, True)
    assert time.monotonic() - began < 20


def test_unreadable(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    ran = run("matmul", "--A", "folder.npy", "--B", "none.npy")
    assert ran.code == 2
    assert ran.stderr == (
        "matmul: error: --A: cannot read 'folder.npy': Is a directory\n"
        "matmul: error: --B: cannot read 'none.npy': No such file or directory\n"
    )


MISFITS: dict[str, tuple[Array, str]] = {
    "dtype": (np.zeros((4, 3)), "float64 of shape (4, 3)"),
    "shape": (np.zeros((3, 4), "f4"), "float32 of shape (3, 4)"),
    "rank": (np.zeros(12, "f4"), "float32 of shape (12,)"),
    "big-endian": (np.zeros((4, 3), ">i2"), "int16 of shape (4, 3)"),
    "text": (np.array(["ab"]), "<U2 of shape (1,)"),
    "time": (np.zeros(1, "M8[s]"), "<M8[s] of shape (1,)"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_misfit(run: Run, save: Save, case: str) -> None:
    """Another dtype or shape: the message has the argument, what it takes, what the file holds."""
    array, held = MISFITS[case]
    save("a.npy", array)
    takes = "is memref<4x3xf32> and takes float32 of shape (4, 3)"
    ran = run("matmul", "--A", "a.npy")
    assert ran.code == 2
    assert ran.stderr == f"matmul: error: --A: 'A' {takes}; 'a.npy' holds {held}\n"


def mutated_bytes(content: bytes, generator: random.Random) -> bytes:
    """A file with a few of its first bytes replaced, dropped or doubled."""
    result = bytearray(content)
    for _ in range(generator.randint(1, 3)):
        at = generator.randrange(min(len(result), 128))
        choice = generator.randrange(5)
        if choice == 0:
            result[at] = generator.randrange(256)
        elif choice == 1:
            result[at : at + 1] = generator.choice(b"0123456789(),'{}<>|LT ").to_bytes(1, "little")
        elif choice == 2:
            del result[at : at + generator.randint(1, 4)]
        elif choice == 3:
            result[at:at] = result[at : at + generator.randint(1, 8)]
        else:
            del result[at:]
            break
    return bytes(result)


def mutated_header(generator: random.Random) -> bytes:
    """A file whose header is unusual, or wrong in one place, with data of the right size."""

    def pick(usual: str, *others: str) -> str:
        return usual if generator.random() < 0.8 else generator.choice(others)

    def space() -> str:
        return generator.choice(["", "", " ", "  ", "\n", "\t"])

    def quoted(text: str) -> str:
        quote = pick("'", '"')
        return quote + text + pick(quote, "'", "")

    code = generator.choice(["f4", "i8", "b1", "c16", "f2", "V2", "u2"])
    order = generator.choice("<>=|") if code[-1] == "1" else generator.choice("<>=")
    sizes = [generator.randint(0, 3) for _ in range(generator.randint(0, 3))]
    elements = f",{space()}".join(str(size) + pick("", "L", ".0", "_0", " ") for size in sizes)
    shape = f"({elements}{pick(',' if len(sizes) == 1 else '', ',', '')})"
    items = [
        (pick("descr", "Descr"), quoted(pick(order + code, code, "|" + code, "<f3", "O"))),
        (pick("fortran_order", "fortran"), pick(generator.choice(["True", "False"]), "0", "None")),
        (pick("shape", "shap"), pick(shape, "[]", "()", "-1")),
    ]
    generator.shuffle(items)
    texts = [f"{space()}{quoted(key)}{space()}:{space()}{value}{space()}" for key, value in items]
    header = "{" + ",".join(texts) + pick(",", "", ",,") + pick("}", "} }", "")
    count = int(np.prod(sizes, dtype=int)) * int(code[1:])
    version = generator.choice([(1, 0), (2, 0), (3, 0)])
    text = (space() + header + space()).encode()
    return file_bytes(text, generator.randbytes(count + int(pick("0", "1"))), version)


def read_by_numpy(path: Path) -> tuple[str, str, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python 2's integers
            array = np.load(path, allow_pickle=False)
    except Exception:
        return None
    if array.dtype == np.dtype("V2"):
        name, array = "bfloat16", array.view("<u2")
    else:
        name = array.dtype.newbyteorder("=").name
    data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return f"{zlib.crc32(data):08x}", name, str(array.shape)


def test_mutated_files(build: Build, tmp_path: Path) -> None:
    """No file crashes the reader, and what it accepts, NumPy reads as the same array."""
    generator = random.Random(2)
    originals = []
    for dtype in ("<f4", ">i8", "|b1", "<c16", "<f2"):
        array = sample(dtype[1:], (3, 2)).astype(dtype)
        for elements in (array, np.asfortranarray(array)):
            stream = io.BytesIO()
            np.lib.format.write_array(stream, elements, version=generator.choice([(1, 0), (2, 0)]))
            originals.append(stream.getvalue())
    paths = []
    for i in range(3000):
        path = tmp_path / f"{i}.npy"
        if i % 2 == 0:
            content = mutated_bytes(generator.choice(originals), generator)
        else:
            content = mutated_header(generator)
        path.write_bytes(content)
        paths.append(path)
    ran = subprocess.run(
        [build.program("unit"), "npy", *(path.name for path in paths)],
        cwd=tmp_path, env=build.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == len(paths)
    accepted = 0
    for path, line in zip(paths, lines, strict=True):
        if line.startswith("!"):
            continue
        accepted += 1
        assert tuple(line.split(" ", 2)) == read_by_numpy(path), path.read_bytes()
    # Or the comparison would be of nothing.
    assert accepted > 100
