"""Programs of several processes, by the MPI of the package mpich: on the CPU device."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import SAMPLES, Outcome, build_here

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

DATA = Path(__file__).parent / "data"
MPIRUN = shutil.which("mpirun", path=str(Path(sys.executable).parent))
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun: pip install mpich")
OPTIONS = ("--chip", "sm_80", "-O1")


def mpirun(count: int, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` in `count` processes, in its folder.

    MPICH's launcher is at times ended by SIGPIPE, and what the processes said is lost, where
    several of them fail at once: then it is started again.
    """
    # Nothing but the launcher says where the library is.
    home = os.environ.get("HOME", "/")
    environment = {"PATH": "/usr/bin:/bin", "AOTC_DEVICE": "cpu", "HOME": home}
    for _ in range(4):
        done = subprocess.run(
            [str(MPIRUN), "-n", str(count), str(program), *words],
            cwd=program.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != -signal.SIGPIPE:
            break
    return done


@pytest.mark.parametrize("count", [1, 2, 4])
def test_sharded_matmul(count: int, tmp_path: Path) -> None:
    """The sample: by columns, without an exchange, and along K, whose parts are added."""
    source = tmp_path / "sharded.mlir"
    text = (SAMPLES / "sharded_matmul.mlir").read_text()
    assert "(shape = 4)" in text
    source.write_text(text.replace("(shape = 4)", f"(shape = {count})"))
    program = tmp_path / "sharded"
    build_here(source, *OPTIONS, "-o", program)
    random = np.random.default_rng(5)
    a, b, c = (
        random.standard_normal(shape).astype(np.float32)
        for shape in [(64, 96), (96, 128), (64, 128)]
    )
    expected = c + a.astype(float) @ b
    # C is in Fortran order, and A later: a part is read from either.
    for name, array in (("A", a), ("B", b), ("C", np.asfortranarray(c))):
        np.save(tmp_path / f"{name}.npy", array)
    out = ("--out", "result0=D.{rank}.npy")
    files = ("--A", "A.npy", "--B", "part:1:B.npy", "--C", "part:1:C.npy")
    done = mpirun(count, program, "columns", *files, *out)
    assert done.returncode == 0, done.stderr
    parts = [np.load(tmp_path / f"D.{rank}.npy") for rank in range(count)]
    np.testing.assert_allclose(np.concatenate(parts, 1), expected, rtol=1e-4, atol=1e-4)
    np.save(tmp_path / "A.npy", np.asfortranarray(a))
    files = ("--A", "part:1:A.npy", "--B", "part:0:B.npy", "--C", "C.npy")
    done = mpirun(count, program, "inner", *files, *out)
    assert done.returncode == 0, done.stderr
    for rank in range(count):
        found = np.load(tmp_path / f"D.{rank}.npy")
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_number_of_processes(mlir_file: MlirFile, tmp_path: Path) -> None:
    """A grid of two is refused in three processes, and so is a program without MPI's library."""
    program = tmp_path / "two"
    build_here(
        mlir_file(
            "shard.grid @two(shape = 2)\n"
            "func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> "
            "attributes {llvm.emit_c_interface} {\n"
            "  %s = shard.sharding @two split_axes = [[0]] : !shard.sharding\n"
            "  %b = shard.shard %a to %s : tensor<8xf32>\n"
            "  %c = shard.shard %b to %s annotate_for_users : tensor<8xf32>\n"
            "  %d = linalg.add ins(%c, %c : tensor<8xf32>, tensor<8xf32>) "
            "outs(%c : tensor<8xf32>) -> tensor<8xf32>\n"
            "  %e = shard.shard %d to %s : tensor<8xf32>\n"
            "  %f = shard.shard %e to %s annotate_for_users : tensor<8xf32>\n"
            "  return %f : tensor<8xf32>\n"
            "}\n"
        ),
        *OPTIONS,
        "-o",
        program,
    )
    assert mpirun(2, program).returncode == 0
    np.save(tmp_path / "a.npy", np.ones(8, np.float32))
    for source, why in (
        ("part:1:a.npy", "--a: cannot read a part of 'a.npy': it has no dimension 1"),
        ("part:x:a.npy", "--a: expected part:DIMENSION:FILE.npy, got 'part:x:a.npy'"),
        ("part:0:a.npy", "dimension 0, of size 8, has no 3 equal parts"),
    ):
        assert why in mpirun(3, program, "--a", source).stderr
    done = mpirun(3, program)
    assert done.returncode != 0
    assert "the program is for 2 processes, and runs in 3: start it by mpirun -n 2" in done.stderr
    environment = {"AOTC_DEVICE": "cpu", "AOTC_MPI": "/none/libmpi_abi.so.1"}
    alone = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert alone.returncode == 3
    assert "AOTC_MPI names no library" in alone.stderr


def test_mpi_dialect(tmp_path: Path) -> None:
    """What processes send around a ring, add in groups and gather; and the end of one that fails
    while the others wait."""
    program = tmp_path / "ring"
    build_here(DATA / "ring.mlir", *OPTIONS, "-o", program)
    done = mpirun(4, program)
    assert (done.returncode, done.stdout.split()) == (0, ["4", "2", "4", "2", "1"]), done.stderr
    done = mpirun(4, program, "fail")
    assert done.returncode != 0
    assert "ring: error: assertion failed: the last rank fails" in done.stderr


def test_buffers_that_are_not_contiguous(tmp_path: Path) -> None:
    """Columns are sent, gathered and added, of f16 where nothing is computed; what is between them
    stays."""
    program = tmp_path / "strided"
    build_here(DATA / "strided.mlir", *OPTIONS, "-o", program)
    x = np.arange(12, dtype=np.float16).reshape(2, 3, 2)
    s = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    for rank in range(2):
        np.save(tmp_path / f"x.{rank}.npy", x[rank])
        np.save(tmp_path / f"s.{rank}.npy", s[rank])
    files = [f"--{name}={name}.{{rank}}.npy" for name in "xs"]
    outs = [f"--out={name}=new.{name}.{{rank}}.npy" for name in ("x", "s", "all")]
    done = mpirun(2, program, *files, "--all", "zeros", *outs)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        new = {name: np.load(tmp_path / f"new.{name}.{rank}.npy") for name in ("x", "s", "all")}
        expected = np.stack([x[rank, :, 0], x[1 - rank, :, 0]], 1)
        np.testing.assert_array_equal(new["x"], expected)
        np.testing.assert_array_equal(new["all"][:, :, 1], x[:, :, 0])
        np.testing.assert_array_equal(new["all"][:, :, 0], 0)
        np.testing.assert_array_equal(new["s"], np.stack([s[rank, :, 0], s[:, :, 1].sum(0)], 1))


def test_refusals(aotc: Aotc, mlir_file: MlirFile) -> None:
    """What has no lowering is an error at its place."""
    path = mlir_file(
        "func.func @f(%m: memref<4xf16>) attributes {llvm.emit_c_interface} {\n"
        "  %c = mpi.comm_world : !mpi.comm\n"
        "  mpi.allreduce(%m, %m, MPI_SUM, %c) : memref<4xf16>, memref<4xf16>\n"
        "  return\n"
        "}\n"
    )
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert done.code == 2
    assert f"{path}:3:3: error: mpi.allreduce has elements of f16; MPI's are f32, " in done.stderr
    path.write_text(path.read_text().replace("memref<4xf16>", "memref<4xf32, 1>"))
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert done.code == 2
    assert "mpi.allreduce has a buffer in the memory 1" in done.stderr
    path = mlir_file(
        "shard.grid @g(shape = ?)\n"
        "func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {\n"
        "  %0 = shard.all_reduce %a on @g grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>\n"
        "  return %0 : tensor<8xf32>\n"
        "}\n"
    )
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert done.code == 2
    assert f"{path}:3:8: error: Dynamic grid shape not supported" in done.stderr
