"""The command line: what is asked for is done, what is not understood is said, and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.support import HARNESS, Run

HELP_OF_MATMUL = """\
Usage: matmul [OPTIONS]
Calls a function compiled from MLIR, and reports what it wrote and returned.

Arguments of matmul:
  --A SOURCE  memref<4x3xf32>  read           default: random
  --B SOURCE  memref<3x5xf32>  read           default: random
  --C SOURCE  memref<4x5xf32>  read, written  default: zeros
SOURCE is FILE.npy, random[:seed=N,low=X,high=X], zeros, ones, arange or a number.

Options:
"""


def test_help(run: Run) -> None:
    """--help is made from the table, and lists every option."""
    ran = run("matmul", "--help")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(HELP_OF_MATMUL)
    for option in (
        "--arg NAME=SOURCE",
        "--dim NAME=128x64",
        "--out NAME=FILE.npy",
        "--print NAME",
        "--expect NAME=FILE.npy",
        "--rtol X",
        "--atol X",
        "--seed N",
        "--repeat N",
        "--warmup N",
        "--device DEVICE",
        "--json",
        "--describe",
        "--list-devices",
        "-q, --quiet",
        "-h, --help",
        "--version",
    ):
        assert f" {option} " in ran.stdout
    assert all(len(line) <= 100 for line in ran.stdout.splitlines())
    assert run("matmul", "-h").stdout == ran.stdout
    # Who asks for help may not know the rest.
    assert run("matmul", "--wrong", "--help").stdout == ran.stdout


def test_help_of_several(run: Run) -> None:
    """Without an entry the entries are listed, with one its arguments."""
    ran = run("kernels", "--help")
    assert ran.code == 0
    assert "Usage: kernels ENTRY [OPTIONS]" in ran.stdout
    assert "\n  accumulate\n" in ran.stdout
    ran = run("kernels", "options", "--help")
    assert "Usage: kernels options [OPTIONS]" in ran.stdout
    assert "--arg help=SOURCE" in ran.stdout
    assert "--a=b SOURCE" in ran.stdout
    ran = run("kernels", "count", "--help")
    assert "--n SOURCE  index  by value  must be given\n" in ran.stdout
    ran = run("kernels", "copy_f32", "--help")
    assert "memref<?x?xf32>  written  default: left unset; needs --dim or FILE.npy" in ran.stdout


def test_version(run: Run) -> None:
    ran = run("matmul", "--version")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "matmul, made by aotc 0.1.0\n", "")


DESCRIPTION_OF_MATMUL = """\
matmul, made by aotc 0.1.0

entry matmul
  A  memref<4x3xf32>  float32 (4, 3)  read           device memory  default: random
  B  memref<3x5xf32>  float32 (3, 5)  read           device memory  default: random
  C  memref<4x5xf32>  float32 (4, 5)  read, written  device memory  default: zeros

kernels
  matmul_kernel  built for sm_80, sm_90a, PTX compute_80  runs on the cpu
  matmul_wgmma   built for sm_90a                         not on the cpu: it uses wgmma
"""


def test_describe(run: Run) -> None:
    ran = run("matmul", "--describe")
    assert (ran.code, ran.stdout, ran.stderr) == (0, DESCRIPTION_OF_MATMUL, "")
    # All entries, or the one that is named.
    assert run("kernels", "--describe").stdout.count("\nentry ") > 20
    assert run("kernels", "nothing", "--describe").stdout == (
        "kernels, made by aotc 0.1.0\n\nentry nothing (no arguments, no results)\n\nno kernels\n"
    )


def test_describe_json(run: Run) -> None:
    ran = run("matmul", "--describe", "--json")
    value = json.loads(ran.stdout)
    assert value["program"] == "matmul"
    assert value["aotc_version"] == "0.1.0"
    (entry,) = value["entries"]
    assert entry["arguments"][2] == {
        "name": "C",
        "type": "memref<4x5xf32>",
        "dtype": "float32",
        "is_scalar": False,
        "shape": [4, 5],
        "strides": None,
        "offset": 0,
        "is_read": True,
        "is_written": True,
        "memory": "device",
        "default": "zeros",
    }
    assert entry["results"] == []
    assert value["kernels"][1] == {
        "name": "matmul_wgmma",
        "built_for": "sm_90a",
        "has_cpu_form": False,
        "why_no_cpu_form": "it uses wgmma",
    }
    value = json.loads(run("kernels", "strides", "--describe", "--json").stdout)
    (entry,) = value["entries"]
    assert entry["arguments"][0]["shape"] == [None, None]
    assert entry["arguments"][0]["strides"] == [None, 2]
    assert entry["arguments"][0]["offset"] is None


ENTRIES = (
    "copy_i1, copy_i8, copy_i16, copy_i32, copy_i64, copy_ui8, copy_ui16, copy_ui32, copy_ui64, "
    "copy_f16, copy_bf16, copy_f32, copy_f64, copy_c64, copy_c128, copy_index, scalars, count, "
    "layout, strides, returns, managed, lies, lies_static, accumulate, half, options, places, "
    "huge, nothing, fails"
)

USAGE_ERRORS = {
    # program and words: message
    "matmul --ouut C=c.npy": "unknown option '--ouut', did you mean '--out'?",
    "matmul --frobnicate": "unknown option '--frobnicate'; --help lists them",
    "matmul -x": "unknown option '-x'; --help lists them",
    "matmul -qq": "unknown option '-qq'; --help lists them",
    "matmul -A zeros": "unknown option '-A', did you mean '--A'?",
    "matmul --": "unknown option '--'; --help lists them",
    "matmul --D=zeros": "unknown option '--D'; --help lists them",
    "matmul --json=1": "--json takes no value, not '1'",
    "matmul --A": "--A needs a value: SOURCE",
    "matmul --A --json": "--A needs a value: SOURCE",
    "matmul --out": "--out needs a value: NAME=FILE.npy",
    "matmul gemm": "no entry 'gemm'. This program has: matmul",
    "matmul matmull": "no entry 'matmull', did you mean 'matmul'? This program has: matmul",
    "matmul matmul a.npy": "unexpected word 'a.npy'; arguments are given by name, as --NAME SOURCE",
    "kernels": f"say which entry to call: {ENTRIES}",
    "kernels --json": f"say which entry to call: {ENTRIES}",
    "kernels --frob": "unknown option '--frob'; --help lists them",
    "kernels --frob accumulate": "unknown option '--frob'; --help lists them",
    "kernels -z": "unknown option '-z', did you mean '--z'?",
    "kernels --jsn": "unknown option '--jsn', did you mean '--json'?",
    "kernels --n 3": f"say which entry to call: {ENTRIES}",
    "kernels acumulate": f"no entry 'acumulate', did you mean 'accumulate'? "
    f"This program has: {ENTRIES}",
    "matmul --A zeros --A ones": "--arg gives 'A' twice: 'zeros' and 'ones'",
    "matmul --A zeros --arg A=ones": "--arg gives 'A' twice: 'zeros' and 'ones'",
    "matmul --out C=1.npy --out C=2.npy": "--out gives 'C' twice: '1.npy' and '2.npy'",
    "matmul --out c.npy": "--out takes NAME=FILE.npy, not 'c.npy'",
    "matmul --out D=c.npy": "--out: no 'D' in entry 'matmul'. It has: A, B, C",
    "matmul --print D": "--print: no 'D' in entry 'matmul'. It has: A, B, C",
    "matmul --expect D=c.npy": "--expect: no 'D' in entry 'matmul'. It has: A, B, C",
    "matmul --dim D=4": "--dim: no 'D' in entry 'matmul'. It has: A, B, C",
    "kernels count --arg result0=1": "--arg: no 'result0' in entry 'count'. It has: n",
    "matmul --rtol small": "--rtol must be a number of 0 or more, not 'small'",
    "matmul --rtol -1": "--rtol must be a number of 0 or more, not '-1'",
    "matmul --atol nan": "--atol must be a number of 0 or more, not 'nan'",
    "matmul --seed -1": "--seed must be an integer from 0 to 18446744073709551615, not '-1'",
    "matmul --seed 18446744073709551616": "--seed must be an integer from 0 to "
    "18446744073709551615, not '18446744073709551616'",
    "matmul --repeat 1.5": "--repeat must be an integer from 0 to 1000000, not '1.5'",
    "matmul --warmup 9999999": "--warmup must be an integer from 0 to 1000000, not '9999999'",
    "matmul --device gpu": "--device must be auto, cuda, cuda:N or cpu, not 'gpu'",
    "matmul --device cuda:x": "--device must be auto, cuda, cuda:N or cpu, not 'cuda:x'",
    "matmul --device cuda:": "--device must be auto, cuda, cuda:N or cpu, not 'cuda:'",
    # sources
    "matmul --A zeroes": "--A: 'zeroes' is not a source (did you mean 'zeros'?): give FILE.npy, "
    "random[:seed=N,low=X,high=X], zeros, ones, arange or a number ('A' is memref<4x3xf32>)",
    "matmul --A a.npz": "--A: cannot read 'a.npz': No such file or directory",
    "kernels copy_i32 --source inf --dim source=1x1 --dim target=1x1": "--source: inf does not fit "
    "int32 (-2147483648 to 2147483647) ('source' is memref<?x?xi32>)",
    "matmul --A a.txt": "--A: 'a.txt' is not a source: give FILE.npy, "
    "random[:seed=N,low=X,high=X], zeros, ones, arange or a number ('A' is memref<4x3xf32>)",
    "matmul --A=": "--A: '' is not a source: give FILE.npy, "
    "random[:seed=N,low=X,high=X], zeros, ones, arange or a number ('A' is memref<4x3xf32>)",
    "matmul --A 1.5x": "--A: '1.5x' is not a number ('A' is memref<4x3xf32>)",
    "matmul --A 1e39": "--A: 1e39 does not fit float32 ('A' is memref<4x3xf32>)",
    "matmul --A 1e999": "--A: 1e999 does not fit float32 ('A' is memref<4x3xf32>)",
    "matmul --A random:seed=x": "--A: the seed must be an integer from 0 to "
    "18446744073709551615, not 'x' ('A' is memref<4x3xf32>)",
    "matmul --A random:sigma=2": "--A: random takes seed=N, low=X and high=X, separated by "
    "commas, not 'sigma=2' ('A' is memref<4x3xf32>)",
    "matmul --A random:low=1,high=1": "--A: low must be less than high, both finite, not 1 and 1 "
    "('A' is memref<4x3xf32>)",
    "matmul --A random:high=inf": "--A: low must be less than high, both finite, not 0 and inf "
    "('A' is memref<4x3xf32>)",
    "matmul --A random:": "--A: random takes seed=N, low=X and high=X, separated by "
    "commas, not '' ('A' is memref<4x3xf32>)",
    "kernels scalars --i 2.5": "--i: '2.5' is not an integer ('i' is i32)",
    "kernels scalars --i 2147483648": "--i: 2147483648 does not fit int32 "
    "(-2147483648 to 2147483647) ('i' is i32)",
    "kernels scalars --i 1e99": "--i: 1e99 does not fit int32 "
    "(-2147483648 to 2147483647) ('i' is i32)",
    "kernels scalars --u -1": "--u: -1 does not fit uint8 (0 to 255) ('u' is ui8)",
    "kernels scalars --u 0x100": "--u: 0x100 does not fit uint8 (0 to 255) ('u' is ui8)",
    "kernels scalars --b 2": "--b: 2 does not fit bool (0 to 1) ('b' is i1)",
    "kernels scalars --i random:low=5,high=5": "--i: low must be less than high, not 5 and 5 "
    "('i' is i32)",
    "kernels scalars --z 1+2": "--z: '1+2' is not a complex number, as 1-2j is "
    "('z' is complex<f64>)",
    "kernels scalars --z (1+2j": "--z: '(1+2j' is not a complex number, as 1-2j is "
    "('z' is complex<f64>)",
    "kernels count": "'n' is of type index, and a guess could lead outside of a buffer: "
    "give it, as --n NUMBER",
    # shapes
    "kernels accumulate": "the shape of 'x' is not known, it is memref<?xf32>: "
    "give --dim x=N, or --x FILE.npy",
    "kernels accumulate --dim x=-1": "--dim x: '-1' is not a shape, as 128x64 is",
    "kernels accumulate --dim x=": "--dim x: '' is not a shape, as 128x64 is",
    "kernels accumulate --dim x=4x": "--dim x: '4x' is not a shape, as 128x64 is",
    "kernels accumulate --dim x=4x4": "--dim x: 4x4 does not fit 'x', which is memref<?xf32>",
    "kernels scalars --dim i=4": "--dim i: 'i' is i32 and has no dimensions",
    "matmul --dim A=4x4": "--dim A: 4x4 does not fit 'A', which is memref<4x3xf32>",
    "kernels accumulate --dim x=9223372036854775807": "'x' of shape (9223372036854775807,) is "
    "larger than memory can be",
    # outputs
    "matmul --out C=none/c.npy": "cannot write 'none/c.npy': No such file or directory",
    "matmul --out C=.": "cannot write '.': Is a directory",
    "matmul --out C=": "cannot write '': Is a directory",
    "matmul --out C=c.npy --out A=c.npy": "--out names 'c.npy' for both 'A' and 'C'",
}


@pytest.mark.parametrize("line", USAGE_ERRORS)
def test_usage_error(run: Run, tmp_path: Path, line: str) -> None:
    """Exit 2, nothing on stdout, one line on stderr, and no device is touched."""
    program, *words = line.split()
    ran = run(program, *words, FAKE_LOG="log")
    assert ran.stderr == f"{program}: error: {USAGE_ERRORS[line]}\n"
    assert (ran.code, ran.stdout) == (2, "")
    assert not (tmp_path / "log").exists()


def test_independent_problems_are_told_together(run: Run) -> None:
    ran = run("kernels", "copy_f32", "--source", "1e99", "--out", "target=none/t.npy")
    assert ran.code == 2
    assert ran.stderr.splitlines() == [
        "kernels: error: --source: 1e99 does not fit float32 ('source' is memref<?x?xf32>)",
        "kernels: error: the shape of 'target' is not known, it is memref<?x?xf32>: "
        "give --dim target=NxM, or --target FILE.npy",
        "kernels: error: cannot write 'none/t.npy': No such file or directory",
    ]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["--describe"]])
def test_nothing_happens_before_it_is_asked_for(run: Run, tmp_path: Path, words: list[str]) -> None:
    """What only tells of the table calls nothing of the runtime."""
    assert run("matmul", *words, FAKE_LOG="log").code == 0
    assert not (tmp_path / "log").exists()


def test_entry_by_name(run: Run) -> None:
    """The entry may stand anywhere, and a value is never taken for it."""
    for words in (
        ["count", "--n", "4", "--print", "result0"],
        ["--n", "4", "count", "--print", "result0"],
        ["--print=result0", "--n=4", "count"],
        ["--quiet", "--arg", "n=4", "--print", "result0", "count"],
    ):
        ran = run("kernels", *words)
        assert ran.code == 0, ran.stderr
        assert "result0 = 5\n" in ran.stdout
    assert run("matmul", "matmul").stdout == run("matmul").stdout


def test_names_of_options(run: Run) -> None:
    """--arg reaches arguments whose names are options' or hold an equals sign."""
    words = ["--arg", "help=1", "--arg=out=2", "--arg", "a=b=3", "--print", "result0"]
    ran = run("kernels", "options", *words)
    assert ran.code == 0, ran.stderr
    assert "result0 = 123\n" in ran.stdout


def test_standard_output_that_is_full(run: Run, build: object) -> None:
    """A report that cannot be written is an error."""
    import subprocess

    from harness.support import Build

    assert isinstance(build, Build)
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [build.program("matmul")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=build.environment,
        )
    assert ran.returncode == 2
    message = "matmul: error: cannot write to standard output: No space left on device\n"
    assert ran.stderr == message


def test_report_is_documented(run: Run) -> None:
    """The report in docs/harness.md is that of a program."""
    manual = (HARNESS.parent.parent / "docs" / "harness.md").read_text()
    assert f"```text\n{run('matmul').stdout}```" in manual


def test_options_are_documented() -> None:
    """docs/harness.md has every option of the table in options.c."""
    import re

    source = (HARNESS / "options.c").read_text()
    names = re.findall(r"\{OPTION_\w+, +\"([a-z-]+)\"", source)
    assert len(names) == 17
    manual = (HARNESS.parent.parent / "docs" / "harness.md").read_text()
    for name in names:
        assert f"`--{name}" in manual, name
