"""The matmuls of a module → a folder with a library of each candidate kernel.

candidates.json   what is to be timed: see `measure`
run               times it, on a machine with a GPU and Python, and writes the file
NAME.so           the kernels
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import fields, replace

from aotc.artifact_kind import MLIR
from aotc.artifacts import SHARED
from aotc.errors import InputError
from aotc.kernels.matmul.choice import candidates
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.kernels.matmul.tuned import Sizes, matrices, problem_words, timed_sizes
from aotc.manifest import parse_manifest
from aotc.output import write_file
from aotc.processes.record import temporary_folder
from aotc.request import BuildRequest, Chip, HostTarget, unique
from aotc.warnings import WarningOptions

RUN = "run"
_LIST = "candidates.json"
_MEASURE = "measure.py"
# The batch size for timing a batch of unknown size.
_BATCHES = 8


class MatmulCase(Struct, frozen=True):
    """A problem on a chip, with the sizes that it is timed with, and the kernels to be timed; the
    cost model selects the first one."""

    problem: Problem
    chip: Chip
    sizes: Sizes
    kernels: tuple[Choice, ...]

    def __str__(self) -> str:
        return f"{problem_words(self.problem)}, at {'x'.join(map(str, self.sizes))}"


def find_matmuls(
    request: BuildRequest, tools: Mapping[str, Path], chips: Iterable[Chip]
) -> list[MatmulCase]:
    """The matmuls of the request's module with a choice of kernels on these chips."""
    from aotc.pipeline import new_build, run_build

    found = []
    # Lower up to the choice of kernels, without the results of earlier measurements.
    lowered = replace(request, emit=(MLIR,), tuned=None, save_temps=None)
    with temporary_folder() as folder:
        build = new_build(lowered, folder, tools=tools)
        run_build(build)
        assert build.log.explanation is not None
        problems = unique(build.log.explanation.remarks.matmuls)
        for problem in problems:
            for chip in chips:
                for sizes in timed_sizes(problem):
                    kernels = candidates(problem, chip, sizes)
                    if len(kernels) > 1:
                        own = Chip(kernels[0].target)
                        found.append(MatmulCase(problem, own, sizes, tuple(kernels)))
    # The same problem with two types of buffers is timed once.
    return list({(str(one), one.chip): one for one in found}.values())


def write_candidates(
    cases: Sequence[MatmulCase],
    folder: Path,
    tools: Mapping[str, Path],
    *,
    target: HostTarget,
    jobs: int,
) -> int:
    """Fills the folder; returns the number of kernels. Raises InputError if a kernel cannot be
    built."""
    folder.mkdir(parents=True, exist_ok=True)
    # If sizes are not known, the same kernel is timed with several sizes.
    work = unique(_plain(kernel) for case in cases for kernel in case.kernels)
    build = functools.partial(_build, folder, tools, target)
    with ThreadPoolExecutor(jobs) as pool:
        made = dict(zip(work, pool.map(build, range(len(work)), work), strict=True))
    document = [
        _described(case, [made[_plain(kernel)] for kernel in case.kernels]) for case in cases
    ]
    write_file(folder / _LIST, json.dumps(document, indent=1).encode())
    shutil.copyfile(Path(__file__).with_name(_MEASURE), folder / _MEASURE)
    run = '#!/bin/sh\nexec python3 "$(dirname "$0")/measure.py" "$@"\n'
    write_file(folder / RUN, run.encode(), executable=True)
    return len(work)


def bundle_files(folder: Path) -> list[Path]:
    """The files that `write_candidates` writes, without the kernels' libraries."""
    return [folder / name for name in (_LIST, _MEASURE, RUN)]


def _plain(kernel: Choice) -> Choice:
    """The choice without the sizes that it is limited to."""
    return replace(kernel, least_tiles=0)


def _build(
    folder: Path, tools: Mapping[str, Path], target: HostTarget, number: int, kernel: Choice
) -> dict[str, Any]:
    """Builds the library of one kernel; returns its description for candidates.json."""
    from aotc.pipeline import new_build, run_build

    name = f"kernel{number}"
    request = BuildRequest(
        source=Path(name),
        content=_module(kernel, name).encode(),
        emit=(SHARED,),
        chips=(Chip(kernel.target),),
        ptx=None,
        target=target,
        cpu_kernels=False,
        warnings=WarningOptions(),
    )
    with temporary_folder() as place:
        build = new_build(request, place, tools=tools, jobs=1)
        built = run_build(build)
        (library,) = built.files
        write_file(folder / f"{name}.so", library.content(), executable=True)
    assert built.manifest is not None
    manifest = parse_manifest(built.manifest, name)
    (entry,) = manifest.entries
    if "async" not in entry.functions:
        raise InputError(f"{kernel} cannot be enqueued: {entry.why_not_async}.")
    return {
        "library": f"{name}.so",
        "function": entry.functions["async"],
        "last_error": manifest.functions["last_error"],
        "label": label(kernel),
        "kernel": kernel.family.name,
        "variant": to_builtins(kernel.variant),
    }


def label(kernel: Choice) -> str:
    """Identifies the kernel among those of its problem: its family's description, and each
    parameter of the variant that differs from the default."""
    variant = kernel.variant
    parts = [
        f"{field.name} {getattr(variant, field.name)}"
        for field in fields(variant)
        if getattr(variant, field.name) != field.default
    ]
    return f"{kernel.family.describe(variant)} ({', '.join(parts)})"


def _described(case: MatmulCase, kernels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "problem": problem_words(case.problem),
        "chip": case.chip.name,
        "capability": case.chip.capability,
        "sizes": case.sizes,
        "batches": _batches(case.problem),
        "adds": case.problem.adds,
        "operands": [_operand(case, number) for number in range(3)],
        "candidates": list(kernels),
    }


def _batches(problem: Problem) -> int:
    if not problem.batched:
        return 1
    size = _shape(problem.c)[0]
    return _BATCHES if size == "?" else int(size)


def _shape(matrix: Matrix) -> list[str]:
    """The sizes in its type, as they are written."""
    return matrix.type.removeprefix("memref<").split(",")[0].removesuffix(">").split("x")[:-1]


def _operand(case: MatmulCase, number: int) -> dict[str, Any]:
    """The operand in the format of `measure.TimedMatmul`."""
    problem = case.problem
    matrix = matrices(problem)[number]
    m, n, k = case.sizes
    rows, columns = ((m, k), (k, n), (m, n))[number]
    if matrix.transposed:
        rows, columns = columns, rows
    pitch = matrix.pitch or columns
    full = [*([_batches(problem)] if problem.batched else []), rows, columns]
    known = _argument(matrix)
    return {
        "element": matrix.element,
        "transposed": matrix.transposed,
        "elements": prod(full[:-1]) * pitch,
        "strides": [rows * pitch, pitch],
        "passed": [size for size, word in zip(full, _shape_of(known), strict=True) if word == "?"],
    }


def _argument(matrix: Matrix) -> str:
    """The type of the contiguous buffer that the entry takes."""
    shape = _shape(matrix)
    if matrix.pitch is not None:
        shape[-1] = str(matrix.pitch)
    return f"memref<{'x'.join(shape)}x{matrix.element}>"


def _shape_of(type_: str) -> list[str]:
    return type_.removeprefix("memref<").removesuffix(">").split("x")[:-1]


def _module(kernel: Choice, name: str) -> str:
    """The kernel's host function, and an entry that calls it with contiguous buffers."""
    lines: list[str] = []
    types, views = [], []
    for letter, matrix in zip("ABC", matrices(kernel.problem), strict=True):
        types.append(_argument(matrix))
        views.append(_view(lines, letter, matrix))
    arguments = ", ".join(f"%{key}: {type_}" for key, type_ in zip("ABC", types, strict=True))
    of = ", ".join(matrix.type for matrix in matrices(kernel.problem))
    return f"""{kernel.function("kernel")}
func.func @{name}({arguments}) attributes {{llvm.emit_c_interface}} {{
{chr(10).join(lines)}
  call @kernel({", ".join(views)}) : ({of}) -> ()
  return
}}
"""


def _view(lines: list[str], letter: str, matrix: Matrix) -> str:
    """A view of a buffer with the kernel's layout: its first columns, if rows are padded."""
    type_ = _argument(matrix)
    name, shape = f"%{letter}", _shape(matrix)
    if type_ == matrix.type:
        return name
    if shape != _shape_of(type_):
        offsets, ones = ", ".join("0" * len(shape)), ", ".join("1" * len(shape))
        sizes = []
        for axis, size in enumerate(shape):
            if size == "?":
                at = f"%at{letter}{axis}"
                size = f"%size{letter}{axis}"
                lines.append(f"  {at} = arith.constant {axis} : index")
                lines.append(f"  {size} = memref.dim {name}, {at} : {type_}")
            sizes.append(size)
        strides = _strides(_shape_of(type_))
        part = f"memref<{'x'.join(shape)}x{matrix.element}, strided<[{', '.join(strides)}]>>"
        lines.append(
            f"  %part{letter} = memref.subview {name}[{offsets}] [{', '.join(sizes)}] [{ones}] "
            f": {type_} to {part}"
        )
        name, type_ = f"%part{letter}", part
    if type_ == matrix.type:
        return name
    lines.append(f"  %cast{letter} = memref.cast {name} : {type_} to {matrix.type}")
    return f"%cast{letter}"


def _strides(shape: Sequence[str]) -> list[str]:
    strides = ["1"]
    for size in reversed(shape[1:]):
        known = "?" not in (size, strides[0])
        strides.insert(0, str(int(size) * int(strides[0])) if known else "?")
    return strides
