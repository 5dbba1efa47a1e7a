"""Weights in a file beside the artifact: found, read in place, and refused with a reason."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e.support import run
from helpers.command import process_environment
from helpers.native import Library

import aotc
from aotc.images.elf import ElfFile
from aotc.images.view import View
from aotc.inspect.report import report_of
from aotc.weights_file import MAGIC, VERSION, read_weights_file

# Kernels read @big, @small is too small, @host is read by host code alone, @zeros has no bytes.
MODULE = """
memref.global "private" constant @big : memref<40x8xf32> = dense<"0x{big}">
memref.global "private" constant @small : memref<8xf32> = dense<0.5>
memref.global "private" constant @host : memref<300xi64> = dense<"0x{host}">
    {{alignment = 256 : i64}}
memref.global "private" constant @zeros : memref<300xi64> = dense<0>
func.func @scaled(%x: memref<40x8xf32>, %y: memref<40x8xf32>, %i: index) -> i64
    attributes {{llvm.emit_c_interface}} {{
  %big = memref.get_global @big : memref<40x8xf32>
  %small = memref.get_global @small : memref<8xf32>
  %host = memref.get_global @host : memref<300xi64>
  %zeros = memref.get_global @zeros : memref<300xi64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%r, %c) = (%c0, %c0) to (%c40, %c8) step (%c1, %c1) {{
    %a = memref.load %x[%r, %c] : memref<40x8xf32>
    %b = memref.load %big[%r, %c] : memref<40x8xf32>
    %s = memref.load %small[%c] : memref<8xf32>
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %s : f32
    memref.store %q, %y[%r, %c] : memref<40x8xf32>
  }}
  %h = memref.load %host[%i] : memref<300xi64>
  %z = memref.load %zeros[%i] : memref<300xi64>
  %n = arith.addi %h, %z : i64
  return %n : i64
}}
"""
BIG = np.arange(320, dtype=np.float32).reshape(40, 8)
HOST = np.arange(300, dtype=np.int64) * 7
TEXT = MODULE.format(big=BIG.tobytes().hex(), host=HOST.tobytes().hex())
MUSL = f"{platform.machine()}-linux-musl"


def build(folder: Path, emit: str = "exe", **options: Any) -> aotc.Artifact:
    out = folder / "scaled" if emit == "exe" else f"{folder}/"
    options = {"out": out, "weights": folder / "scaled.weights", **options}
    return aotc.build(TEXT, name="scaled", emit=emit, chips="sm_80", **options)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    build(folder, "shared", weights=folder / "lib" / "scaled.weights", replaceable="*")
    return folder


def check_program(program: Path, **env: str) -> None:
    words = ("--device", "cpu", "--i", "3", "--x", "ones", "--json")
    done = run(program, *words, env=env, cwd=Path("/"))
    assert (done.returncode, done.stderr) == (0, "")
    y, number = json.loads(done.stdout)["results"]
    assert (y["min"], y["max"]) == (0.5, 319.5)
    assert number["max"] == 21


def test_the_file_is_as_the_manual_says(program: Path) -> None:
    content = (program / "scaled.weights").read_bytes()
    magic, version, count, size, digest = struct.unpack_from("<8sIIQ32s", content)
    assert (magic, version, count, size) == (MAGIC, VERSION, 2, len(content))
    found, digests, end = {}, [], 0
    for i in range(count):
        row = struct.unpack_from("<32sQQQII", content, 64 + 64 * i)
        sha256, offset, bytes_, name, length, _ = row
        data = content[offset : offset + bytes_]
        found[content[name : name + length].decode()] = offset, data
        assert sha256 == hashlib.sha256(data).digest()
        digests.append(sha256)
        end = max(end, name + length)
    assert digests == sorted(digests)
    assert digest == hashlib.sha256(content[64:end]).digest()
    assert {name: data for name, (_, data) in found.items()} == {
        "big": BIG.tobytes(),
        "host": HOST.tobytes(),
    }
    assert found["big"][0] % 64 == 0
    assert found["host"][0] % 256 == 0
    executable = (program / "scaled").read_bytes()
    assert BIG.tobytes() not in executable
    assert HOST.tobytes() not in executable


@pytest.mark.parametrize(
    "target",
    [pytest.param(None, id="glibc"), pytest.param(MUSL, id="musl", marks=pytest.mark.exhaustive)],
)
def test_programs_find_it_wherever_they_are(target: str | None, tmp_path: Path) -> None:
    first, second = tmp_path / "first place", tmp_path / "second"
    first.mkdir()
    build(first, target=target)
    check_program(first / "scaled")
    first.rename(second)
    check_program(second / "scaled")
    link = tmp_path / "link"
    link.symlink_to(second / "scaled")
    check_program(link)


@pytest.mark.parametrize("is_folder", [False, True])
def test_the_environment_names_another(is_folder: bool, program: Path, tmp_path: Path) -> None:
    shutil.copy(program / "scaled", tmp_path / "alone")
    name = program if is_folder else program / "scaled.weights"
    check_program(tmp_path / "alone", AOTC_WEIGHTS=str(name))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "cannot be opened: No such file or directory"),
        (lambda data: data[:-1], "a part is lost"),
        (lambda data: data[:40], "have 40 bytes, expected "),
        (lambda data: b"", "is no file of weights that aotc made"),
        (lambda data: data[:64] + bytes(1) + data[65:], "are another build's: they lack 1 of 2"),
        (lambda data: data[:8] + b"\7" + data[9:], "are of format 7, expected 2"),
    ],
    ids=["missing", "cut", "cut in its header", "empty", "another", "newer"],
)
def test_a_program_says_what_is_wrong(
    change: Any, reason: str, program: Path, tmp_path: Path
) -> None:
    shutil.copy(program / "scaled", tmp_path)
    weights = tmp_path / "scaled.weights"
    if change is not None:
        weights.write_bytes(change((program / "scaled.weights").read_bytes()))
    done = run(tmp_path / "scaled", "--device", "cpu", "--i", "3")
    assert done.returncode == 2
    assert reason in done.stderr
    assert str(weights) in done.stderr


def test_help_needs_no_weights(program: Path, tmp_path: Path) -> None:
    shutil.copy(program / "scaled", tmp_path)
    assert run(tmp_path / "scaled", "--help").returncode == 0


def test_libraries(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed call is a status; the next one finds what is there by then."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    manifest = json.loads((package / "scaled.json").read_text())
    weights = package / "lib" / "scaled.weights"
    content = weights.read_bytes()
    assert manifest["weights"] == {
        "file": "scaled.weights",
        "bytes": len(content),
        "sha256": content[24:56].hex(),
        "replaceable": [
            {"name": "big", "type": "memref<40x8xf32>", "dtype": "f32", "shape": [40, 8]},
            {"name": "small", "type": "memref<8xf32>", "dtype": "f32", "shape": [8]},
            {"name": "host", "type": "memref<300xi64>", "dtype": "i64", "shape": [300]},
            {"name": "zeros", "type": "memref<300xi64>", "dtype": "i64", "shape": [300]},
        ],
    }
    header = (package / "include" / "scaled.h").read_text()
    assert f"in a file of {len(content)} bytes:\n//\n//   scaled.weights\n" in header
    library = aotc.load(package)
    assert library.manifest.weights is not None
    x, y = np.ones((40, 8), np.float32), np.zeros((40, 8), np.float32)
    moved = weights.rename(package / "elsewhere")
    with pytest.raises(aotc.LibraryError, match=r"scaled: the weights '.*' cannot be opened") as no:
        library.scaled(x, y, 3)
    assert no.value.name == "AOTC_NO_WEIGHTS"
    moved.rename(weights)
    assert library.scaled(x, y, 3) == 21
    np.testing.assert_array_equal(y, BIG + 0.5)


def test_replacing_weights(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that --replaceable named, by its name, whatever its size: for kernels and host code."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    library = aotc.load(package)
    assert list(library.weights) == ["big", "small", "host", "zeros"]

    def scaled() -> tuple[int, np.ndarray]:
        y = np.zeros((40, 8), np.float32)
        return library.scaled(np.ones((40, 8), np.float32), y, 3), y

    library.weights.set_budget(1 << 20)
    big, small = np.flip(BIG).copy(), np.arange(8, dtype=np.float32)
    library.weights.set("big", big)
    library.weights.set("small", small)
    library.weights.set("host", HOST + 1)
    library.weights.set("zeros", np.full(300, 5))
    number, y = scaled()
    assert number == 22 + 5
    np.testing.assert_array_equal(y, big + small)
    np.testing.assert_array_equal(library.weights.read("big"), big)
    library.weights.set("big", big + 1)
    library.weights.restore("zeros")
    number, y = scaled()
    assert number == 22
    np.testing.assert_array_equal(y, big + 1 + small)
    library.weights.restore()
    number, y = scaled()
    assert number == 21
    np.testing.assert_array_equal(y, BIG + 0.5)

    with pytest.raises(aotc.InputError, match=r"No weight 'bigg' .* here; .* big"):
        library.weights.set("bigg", big)
    for array in (big[:39], big.astype(np.float64), big.T):
        with pytest.raises(
            aotc.InputError, match=r"takes a contiguous array of f32 of shape \(40,"
        ):
            library.weights.set("big", array)
    library_file = package / "lib" / "libscaled.so"
    (module,) = report_of(View(library_file.read_bytes(), "it")).modules
    assert [one.name for one in module.replaceable] == list(library.weights)


def test_programs_in_cxx_replace_weights(package: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text("""
#include "scaled.h"

int main() {
  float big[40 * 8] = {};
  const std::array<int64_t, 2> shape{40, 8};
  bool is_set = static_cast<bool>(aotc::scaled::set_weight("big", "f32", shape, big));
  bool is_restored = static_cast<bool>(aotc::scaled::restore_weight("big"));
  return is_set && is_restored && !aotc::scaled::set_weight("big", "f16", shape, big) ? 0 : 1;
}
""")
    library, program = package / "lib" / "libscaled.so", tmp_path / "main"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{package / 'include'}"]
    command = [sys.executable, "-m", "ziglang", "c++", *flags, str(tmp_path / "main.cpp")]
    subprocess.run(
        [*command, str(library), f"-Wl,-rpath,{library.parent}", "-o", program], check=True
    )
    assert run(program, env={"AOTC_DEVICE": "cpu"}).returncode == 0


def test_replaceable_constants_are_not_folded(tmp_path: Path, monkeypatch: Any) -> None:
    """Of two layers' weights in one resource, and a norm that would be folded into numbers, each
    use has what was set. A pattern that matches none is refused."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    text = """
func.func @layers(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {llvm.emit_c_interface} {
  %w = arith.constant dense_resource<fc.weight> : tensor<4x4xf32>
  %t = arith.constant dense_resource<fc.scale> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %turned = linalg.transpose ins(%w : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)
      permutation = [1, 0]
  %s = tensor.empty() : tensor<4xf32>
  %root = linalg.sqrt ins(%t : tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  %o = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<2x4xf32>) -> tensor<2x4xf32>
  %a = linalg.matmul ins(%x, %turned : tensor<2x4xf32>, tensor<4x4xf32>)
      outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = linalg.matmul ins(%a, %w : tensor<2x4xf32>, tensor<4x4xf32>)
      outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %wide = linalg.broadcast ins(%root : tensor<4xf32>) outs(%o : tensor<2x4xf32>) dimensions = [0]
  %c = linalg.mul ins(%b, %wide : tensor<2x4xf32>, tensor<2x4xf32>)
      outs(%o : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %c : tensor<2x4xf32>
}
{-# dialect_resources: { builtin: {
  fc.weight: "0x04000000WEIGHT", fc.scale: "0x04000000SCALE" } } #-}
"""
    rng = np.random.default_rng(0)
    weight, scale = rng.random((4, 4), np.float32), rng.random(4, np.float32)
    text = text.replace("WEIGHT", weight.tobytes().hex()).replace("SCALE", scale.tobytes().hex())
    options: dict[str, Any] = {
        "name": "layers",
        "chips": "sm_80",
        "weights": tmp_path / "lib" / "w",
    }
    with pytest.raises(aotc.InputError, match=r"no weight of layers.* so. There are: fc.*weight"):
        aotc.build(text, out=f"{tmp_path}/", emit="shared", replaceable="fc.weights", **options)
    aotc.build(text, out=f"{tmp_path}/", emit="shared", replaceable="fc.*", **options)
    library = aotc.load(tmp_path)
    x = rng.random((2, 4), np.float32)
    np.testing.assert_allclose(library.layers(x), x @ weight.T @ weight * np.sqrt(scale), 1e-5)
    weight, scale = rng.random((4, 4), np.float32), rng.random(4, np.float32)
    library.weights.set("fc.weight", weight)
    library.weights.set("fc.scale", scale)
    np.testing.assert_allclose(library.layers(x), x @ weight.T @ weight * np.sqrt(scale), 1e-5)


_USE_SHARED_WEIGHTS = """
import sys
from pathlib import Path
import aotc, numpy as np
folder = Path(sys.argv[1])
expected = dict(np.load(folder / "expected.npz"))
libraries = {name: aotc.load(folder / name) for name in expected}
libraries["prefill"].weights.set("big", expected["prefill"])
for name, big in expected.items():
    library = libraries[name]
    x, y = np.ones((40, 8), np.float32), np.zeros((40, 8), np.float32)
    assert library[next(iter(library))](x, y, 3) == 21
    np.testing.assert_array_equal(y, big + np.float32(0.5))
# The three have one runtime, and so one mapping.
maps = Path("/proc/self/maps").read_text().splitlines()
assert len([line for line in maps if line.endswith(str(folder / "all.weights"))]) == 1
"""


def test_artifacts_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second build of the same weights leaves the file as it is; another's are added, and the
    first one works as before."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    weights = tmp_path / "all.weights"
    other = np.arange(320, dtype=np.float32)[::-1].copy()
    texts = {
        "prefill": TEXT,  # whose weights can be replaced
        "decode": TEXT.replace("@scaled", "@decoded"),
        "tuned": TEXT.replace(BIG.tobytes().hex(), other.tobytes().hex()),
    }
    states = []
    for name, text in texts.items():
        options: dict[str, Any] = {"weights": weights, "add_weights": True, "runtime": "shared"}
        options["replaceable"] = ("big", "host") if name == "prefill" else ()
        built = aotc.build(text, name=name, emit="shared", out=f"{tmp_path}/{name}/", **options)
        assert built.files["weights"] == (weights,)
        states.append((weights.stat().st_ino, weights.stat().st_size))
    assert states[0] == states[1]
    assert 0 < states[2][1] - states[1][1] - BIG.nbytes < 512
    assert sorted(read_weights_file(weights)) == sorted(
        hashlib.sha256(data.tobytes()).digest() for data in (BIG, HOST, other)
    )
    assert sorted(place.name for place in tmp_path.iterdir()) == ["all.weights", *sorted(texts)]
    np.savez(tmp_path / "expected.npz", prefill=BIG + 1, tuned=other.reshape(40, 8), decode=BIG)
    # Another test's process may have another runtime of that name.
    script = [sys.executable, "-c", _USE_SHARED_WEIGHTS, str(tmp_path)]
    subprocess.run(script, env=process_environment(), check=True, timeout=60)

    weights.write_bytes(b"aotc-wts of another kind")
    with pytest.raises(aotc.InputError, match="is no file of weights that this aotc made"):
        build(tmp_path, weights=weights, add_weights=True)
    assert weights.read_bytes() == b"aotc-wts of another kind"
    with pytest.raises(aotc.InputError, match="--add-weights goes with --weights FILE"):
        build(tmp_path, weights=None, add_weights=True)


def test_replaceable_goes_with_weights() -> None:
    with pytest.raises(aotc.InputError, match="--replaceable big: what can be replaced is in a f"):
        build(Path(), weights=None, replaceable="big")


def test_a_folder_for_several_libraries(package: Path, tmp_path: Path) -> None:
    """In a process of its own: the environment is read when weights are first used."""
    folder = tmp_path / "all"
    folder.mkdir()
    shutil.copytree(package, tmp_path / "package")
    (tmp_path / "package" / "lib" / "scaled.weights").rename(folder / "scaled.weights")
    script = f"""
import aotc, numpy as np
library = aotc.load({str(tmp_path / "package")!r})
library.set_device("cpu")
x = np.ones((40, 8), np.float32)
print(library.scaled(x, x.copy(), 3))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=process_environment({"AOTC_WEIGHTS": str(folder)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("21\n", "")


def test_static_libraries_and_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linked into a shared object here, they look beside that."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    built = build(tmp_path, "static,obj,manifest", weights=None)
    assert "aotc_weight_get" not in str(built.paths["obj"].read_bytes())
    built = build(tmp_path, "obj", weights=tmp_path / "w", replaceable="*")
    hidden = ElfFile(View(built.path.read_bytes(), "it"))
    assert not [name for name in hidden.defined() if "named_weight" in name]
    weights = tmp_path / "lib" / "scaled.weights"
    built = build(tmp_path, "static", weights=weights)
    whole = ["-Wl,--whole-archive", str(built.path), "-Wl,--no-whole-archive"]
    linked = tmp_path / "lib" / "libscaled.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", *whole, "-o", str(linked)]
    subprocess.run([*command, "-lpthread", "-ldl", "-lm"], check=True)
    library = Library(linked, tmp_path / "scaled.json")
    y = np.zeros((40, 8), np.float32)
    assert library.call("scaled", np.ones((40, 8), np.float32), y, 5) == 35
    np.testing.assert_array_equal(y, BIG + 0.5)


def test_the_same_input_makes_the_same_files(program: Path, tmp_path: Path) -> None:
    build(tmp_path)
    for name in ("scaled", "scaled.weights"):
        assert (tmp_path / name).read_bytes() == (program / name).read_bytes()


def test_where_there_is_nothing_for_it(tmp_path: Path) -> None:
    text = "func.func @f() attributes {llvm.emit_c_interface} {\n  return\n}"
    weights = tmp_path / "w"
    with pytest.raises(aotc.InputError, match="has no constants of 1024 bytes or more"):
        aotc.build(text, out=tmp_path / "x", weights=weights)
    assert not weights.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "ptx,manifest"}, "--weights goes with exe, shared, static and obj, not with ptx"),
        ({"emit": "exe,shared"}, "build them one by one"),
        ({"weights": "DIR"}, "is a directory: name a file"),
        ({"weights": "DIR/scaled"}, "are one file"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_refusals(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    if options.get("weights"):
        options = {**options, "weights": options["weights"].replace("DIR", str(tmp_path))}
    with pytest.raises(aotc.InputError, match=message):
        build(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_all_or_nothing(tmp_path: Path) -> None:
    """Where the program cannot be written, the weights of the last build stay."""
    weights = tmp_path / "weights"
    weights.write_bytes(b"of the last build")
    (tmp_path / "scaled").mkdir()
    (tmp_path / "scaled" / "scaled").mkdir()
    with pytest.raises(aotc.InputError, match="it is a directory"):
        build(tmp_path, weights=weights)
    assert weights.read_bytes() == b"of the last build"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["scaled", "weights"]
