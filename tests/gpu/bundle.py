"""The GPU bundle: what a machine with a GPU and without Python runs to check aotc's programs.

    python tests/gpu/bundle.py OUT

makes the folder OUT: prebuilt executables, inputs and expected results as .npy files, and a
`run` script in plain sh (tests/gpu/scripts/run), whose last line is «N passed, N failed».
Every case-*.sh of tests/gpu/scripts is run, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPTS = HERE / "scripts"
E2E_DATA = HERE.parent / "e2e" / "data"

# As pytest has it.
sys.path[:0] = [str(HERE.parent), str(ROOT / "samples" / "toy")]

from e2e import (  # noqa: E402
    cooperation_programs,
    exchange_programs,
    matrix_programs,
    own_programs,
    tma_programs,
)
from gpu import (  # noqa: E402
    compiled_programs,
    depthwise_programs,
    feature_programs,
    programs,
    random_programs,
    toy_programs,
    weights_programs,
)
from helpers.command import build_here  # noqa: E402

import samples  # noqa: E402
from aotc.toolchain import Toolchain  # noqa: E402

# Whoever copies the bundle, and the machine that runs it, should not wait.
MOST_BYTES = 96 * 2**20

# What the bundle runs on the GPU alone.
_GPU_ALONE = ("--no-cpu-kernels",)

# Modules that are generated. The CPU device runs them in tests of its own: here the GPU does.
_MODULES = (
    matrix_programs,
    exchange_programs,
    cooperation_programs,
    tma_programs,
    feature_programs,
)
GENERATED = {module.PROGRAM: module for module in _MODULES}

# Its inputs are large, and say nothing about a GPU that other cases do not.
LEFT_OUT = {"matmul-accumulates"}


@dataclass(frozen=True)
class Program:
    """An executable of the bundle: bin/NAME[.VARIANT], from `aotc build SOURCE OPTIONS`.

    With `has_weights`, its constants are in bin/NAME[.VARIANT].weights.
    """

    source: Path
    variant: str = ""
    options: tuple[str, ...] = ()
    has_weights: bool = False

    @property
    def file(self) -> str:
        return f"{self.source.stem}.{self.variant}" if self.variant else self.source.stem

    def command(self, folder: Path) -> Command:
        out = str(folder / self.file)
        weights = ("--weights", f"{out}.weights") if self.has_weights else ()
        return Command(self.source, (*self.options, *weights), out)


@dataclass(frozen=True)
class Check:
    """A line of cases.sh: a case, on a device, by one of its program's variants."""

    case: samples.Case
    device: str
    variant: str = ""
    words: tuple[str, ...] = ()

    def line(self) -> str:
        case = self.case
        name = f"{case.name}.{self.variant}" if self.variant else case.name
        file = f"{case.program}.{self.variant}" if self.variant else case.program
        words = [self.device, name, f"bin/{file}", "--device", self.device, *self.words]
        if case.only_major is not None:
            return f"check_only {case.only_major} {shlex.join(words)}"
        if case.least_major > 8:
            return f"check_since {case.least_major} {shlex.join(words)}"
        return f"check {shlex.join(words)}"


UNOPTIMIZED = "O0"
# PTX alone fits the GPUs that the cubin does not: all but compute capability 8.x.
PTX = "ptx"

# The program of tests/gpu/library, over two static libraries of its module, and a shared one.
LIBRARY = HERE / "library"
LIBRARY_TARGET = "x86_64-linux-gnu.2.28"
LIBRARY_MODULE = LIBRARY / "vectors.mlir"
LIBRARY_OPTIONS = ("--chip", "sm_80,sm_90", "--ptx", "none", "--target", LIBRARY_TARGET)
LIBRARY_PREFIX = "one_"
# Linked into it, too: its entry makes TMA descriptors.
TILES_MODULE = programs.source_of("tma_schedule")

# Smaller than with the default set, which the samples at -O3 have.
_TWO_CHIPS = ("--chip", "sm_80,sm_90", "--ptx", "compute_80")

# Built with --verify, for case-cuda-verify.sh, and what it is called with.
_VERIFIED = ("--verify", "--chip", "sm_80,sm_90", "-O1", *_GPU_ALONE)
_VERIFIED_DATA = {
    "x": np.arange(8, dtype=np.float32),
    "good": np.array([7, 0, 3]),
    "bad": np.array([7, 8, 3]),
}

# [[0, 2, 0], [3, 0, 4]] by its elements, for case-cuda-sparse-library.sh.
_SPARSE_DATA = {
    "rows_of": np.array([0, 1, 1]),
    "indices": np.array([1, 0, 2]),
    "values": np.array([2.0, 3.0, 4.0]),
    "x": np.array([1.0, 10.0, 100.0]),
    "y": np.array([1000.0, 2000.0]),
    "expected": np.array([1020.0, 2403.0]),
}

# What the files of programs with a main of their own have behind their names.
OWN = "own"
_OWN_OPTIONS = _TWO_CHIPS

# Thread block clusters and TMA came with this chip; the default set begins before it.
_OPTIONS = {
    **samples.OPTIONS,
    "cluster": ("--chip", "sm_90", "--ptx", "compute_90"),
    "tma_memory": ("--chip", "sm_90", "--ptx", "compute_90"),
    "tma_schedule": ("--chip", "sm_90", "--ptx", "compute_90"),
    "warpgroup": ("--chip", "sm_90a"),
}


def all_cases() -> list[samples.Case]:
    """The cases of the samples and of tests/gpu/data, in this order."""
    cases = [*samples.CASES.values(), *programs.CASES.values()]
    return [case for case in cases if case.name not in LEFT_OUT]


def source_of(program: str) -> Path:
    sample = samples.source_of(program)
    return sample if sample.exists() else programs.source_of(program)


def _options_of(program: str) -> tuple[str, ...]:
    """The samples are built as users build them."""
    default = () if samples.source_of(program).exists() else _TWO_CHIPS
    return _OPTIONS.get(program, default)


def generated_checks(words: dict[str, tuple[str, ...]]) -> list[Check]:
    """The cases of generated modules, on the GPU alone."""
    compiled = [
        Check(case, "cuda", "", words[name]) for name, case in compiled_programs.CASES.items()
    ]
    return compiled + [
        Check(case, "cuda", "", words[name])
        for module in GENERATED.values()
        for name, case in module.CASES.items()
    ]


def weights_checks(words: dict[str, tuple[str, ...]]) -> list[Check]:
    return [
        Check(case, device, "", words[name])
        for name, case in weights_programs.CASES.items()
        for device in ("cuda", "cpu")
    ]


def write_generated(folder: Path) -> list[Program]:
    """Writes the generated modules' sources into `folder`."""
    found = []
    for name, module in GENERATED.items():
        source = folder / f"{name}.mlir"
        source.write_text(module.source())
        options = getattr(module, "OPTIONS", ("--chip", "sm_80,sm_90"))
        found.append(Program(source, "", (*options, *_GPU_ALONE)))
    for name, text in compiled_programs.sources().items():
        source = folder / f"{name}.mlir"
        source.write_text(text)
        found.append(Program(source))
    source = folder / f"{weights_programs.PROGRAM}.mlir"
    source.write_text(weights_programs.TEXT)
    found.append(Program(source, "", _TWO_CHIPS, has_weights=True))
    source = folder / f"{weights_programs.LARGE_PROGRAM}.mlir"
    source.write_text(weights_programs.large_text())
    found.append(Program(source, "", ("--chip", "sm_80,sm_90"), has_weights=True))
    return found


def generated_cases() -> list[samples.Case]:
    cases = [case for module in GENERATED.values() for case in module.CASES.values()]
    return [*cases, *compiled_programs.CASES.values(), *weights_programs.CASES.values()]


def all_programs() -> list[Program]:
    """Every executable of the bundle."""
    names = dict.fromkeys(case.program for case in all_cases())
    vector_add = source_of("vector_add")
    return [
        *(Program(source_of(name), "", _options_of(name)) for name in names),
        *(
            Program(source_of(name), UNOPTIMIZED, ("-O0", *_OPTIONS.get(name, _TWO_CHIPS)))
            for name in names
        ),
        *(Program(programs.source_of(name)) for name in ("faults", "printing", "llvm_dialect")),
        Program(programs.source_of("warpgroup_main"), "", ("--chip", "sm_90a")),
        Program(E2E_DATA / "own_main.mlir"),
        Program(E2E_DATA / "verification.mlir", "checked", _VERIFIED),
        Program(E2E_DATA / "sparse_library.mlir", "", _TWO_CHIPS),
        Program(E2E_DATA / "vectors.mlir", "printed", ("--chip", "sm_90")),
        *(Program(own.source, OWN, _OWN_OPTIONS) for own in own_programs.PROGRAMS.values()),
        *(
            Program(own.source, f"{OWN}.{UNOPTIMIZED}", (*_OWN_OPTIONS, "-O0"))
            for own in own_programs.PROGRAMS.values()
        ),
        Program(vector_add, PTX, ("--chip", "sm_80", "--ptx", "compute_80")),
        *(
            Program(vector_add, chip, ("--chip", chip, "--ptx", "none"))
            for chip in ("sm_80", "sm_90")
        ),
    ]


def all_checks(words: dict[str, tuple[str, ...]]) -> list[Check]:
    """The cases on each device; `words` has the command line of each."""
    checks = []
    for case in all_cases():
        devices = ["cuda", *(["cpu"] if case.runs_on_cpu else [])]
        for variant in ("", UNOPTIMIZED):
            checks += [Check(case, device, variant, words[case.name]) for device in devices]
    for name in ("vector_add-0", "vector_add-1000"):
        checks.append(Check(samples.CASES[name], "cuda", PTX, words[name]))
    return checks


def _copy(source: Path, target: Path) -> None:
    """Copies a file into the bundle. Raises FileExistsError where another one of its name is."""
    if target.exists() and target.read_bytes() != source.read_bytes():
        raise FileExistsError(f"{source} would overwrite another {target.name}")
    shutil.copy(source, target)


def own_program_lines(folder: Path) -> list[str]:
    """Lines of cases.sh for the programs with a main of their own; their texts go to `folder`."""
    lines = []
    for own in own_programs.PROGRAMS.values():
        _copy(own.expected, folder / own.expected.name)
        for variant in ("", f".{UNOPTIMIZED}"):
            file = f"bin/{own.name}.{OWN}{variant}"
            for device in ("cuda", "cpu"):
                words = [f"{own.name}{variant}", str(own.code), f"data/{own.expected.name}", file]
                lines.append(f"says {device} {shlex.join([*words, *own.arguments])}")
    return lines


@dataclass(frozen=True)
class Command:
    """`aotc build SOURCE OPTIONS -o OUT`."""

    source: Path
    options: tuple[str, ...]
    out: str

    def run(self) -> None:
        build_here(self.source, *self.options, "-o", self.out)


def run_all(commands: Iterable[Command]) -> None:
    """Runs the commands in processes that build one after the other: most of the time of a small
    build is the start of Python and of the bindings."""
    # Not forked: this process may have threads of MLIR's.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=fresh) as workers:
        try:
            # list: so that a failure ends this here.
            list(workers.map(Command.run, commands))
        except AssertionError as error:
            sys.exit(f"bundle.py: {error}")


def library_commands(packages: Path, folder: Path) -> list[Command]:
    """What makes bin/libvectors.so, and in `packages` what bin/library is linked with."""
    name = LIBRARY_MODULE.stem
    kinds = {
        f"{packages / 'plain'}/": ("--emit", "static"),
        f"{packages / 'prefixed'}/": ("--emit", "static", "--prefix", LIBRARY_PREFIX),
        str(folder / f"lib{name}.so"): ("--emit", "shared"),
    }
    tiles = ("--emit", "static", *_OPTIONS[TILES_MODULE.stem], "--target", LIBRARY_TARGET)
    return [
        *(
            Command(LIBRARY_MODULE, (*options, *LIBRARY_OPTIONS), out)
            for out, options in kinds.items()
        ),
        Command(TILES_MODULE, tiles, f"{packages / 'tiles'}/"),
    ]


def link_library(packages: Path, folder: Path, toolchain: Toolchain) -> None:
    """Makes bin/library of tests/gpu/library and the packages."""
    name = LIBRARY_MODULE.stem
    command = [
        *toolchain.zig_cc.command,
        *("-target", LIBRARY_TARGET, "-std=c11", "-D_GNU_SOURCE", "-O1", "-s"),
        *("-fno-sanitize=all", "-Wall", "-Wextra", "-Werror"),
        *(f"-I{packages / package / 'include'}" for package in ("plain", "prefixed", "tiles")),
        f"-isystem{toolchain.tool('cuda-include').path}",
        *(str(source) for source in sorted(LIBRARY.glob("*.c"))),
        str(packages / "plain" / "lib" / f"lib{name}.a"),
        str(packages / "prefixed" / "lib" / f"lib{LIBRARY_PREFIX}{name}.a"),
        str(packages / "tiles" / "lib" / f"lib{TILES_MODULE.stem}.a"),
        *("-lm", "-lpthread", "-ldl", "-o", str(folder / "library")),
    ]
    subprocess.run(command, check=True, cwd=ROOT)


def write_bundle(out: Path) -> None:
    """Fills the empty folder `out`."""
    (out / "bin").mkdir()
    (out / "data").mkdir()
    with tempfile.TemporaryDirectory() as sources, tempfile.TemporaryDirectory() as packages:
        random = random_programs.write_sources(Path(sources))
        made = [*all_programs(), *write_generated(Path(sources))]
        options = (*random_programs.OPTIONS, *_GPU_ALONE)
        made += [Program(source, "", options) for source in random]
        toys = toy_programs.write_sources(Path(sources))
        made += [Program(source, "", _TWO_CHIPS) for source in toys]
        made.append(Program(depthwise_programs.write_source(Path(sources)), "", _TWO_CHIPS))
        run_all(
            [
                *(one.command(out / "bin") for one in made),
                *library_commands(Path(packages), out / "bin"),
            ]
        )
        link_library(Path(packages), out / "bin", Toolchain(os.environ))
    words = {
        case.name: tuple(samples.write_files(case, out / "data", shown_as="data"))
        for case in (*all_cases(), *generated_cases())
    }
    for name, array in _VERIFIED_DATA.items():
        np.save(out / "data" / f"verify.{name}.npy", array)
    for name, array in _SPARSE_DATA.items():
        np.save(out / "data" / f"sparse.{name}.npy", array)
    # A program with a main of its own has a vectors.txt there.
    _copy(E2E_DATA / "vectors.txt", out / "data" / "vectors.printed.txt")
    checks = [*all_checks(words), *generated_checks(words), *weights_checks(words)]
    lines = [check.line() for check in checks] + random_programs.write_checks(out)
    lines += own_program_lines(out / "data")
    lines += toy_programs.write_checks(out)
    lines += depthwise_programs.write_checks(out)
    (out / "cases.sh").write_text("\n".join(["# Made by tests/gpu/bundle.py.", *lines, ""]))
    for script in sorted(SCRIPTS.iterdir()):
        _copy(script, out / script.name)


def size_of(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files if file.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    out: Path = parser.parse_args(arguments).out.absolute()
    is_ours = (out / "cases.sh").exists()
    if out.exists() and not is_ours and any(out.iterdir()):
        print(f"bundle.py: {out} holds something else: name another folder", file=sys.stderr)
        return 2
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as draft:
        made = Path(draft) / out.name
        made.mkdir()
        write_bundle(made)
        size = size_of(made.rglob("*"))
        if size > MOST_BYTES:
            print(f"bundle.py: {size} bytes, more than {MOST_BYTES}", file=sys.stderr)
            return 1
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    print(f"{out}: {size / 2**20:.1f} MiB; run it with {out}/run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
