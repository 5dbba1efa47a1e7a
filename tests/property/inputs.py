"""What programs are called with: the files of inputs, and the words of the command line."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np

from property.arithmetic import DTYPES, Array
from property.generate import INPUT_SIZE, INPUT_TYPES
from property.mlir_text import size_arguments
from property.program import FLOATS, INTEGER_BITS, Program

_FLOATS_OF_INTEREST = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 0.1, 1e-3, 1e6, -1e9, 65504.0, 2.0**24),
    *(2.0**-126, 2.0**-140, -(2.0**-149), 3e38, -3e38, float("inf"), float("-inf"), float("nan")),
)


def input_files() -> dict[str, Array]:
    """The inputs of all programs: numbers near the ends of each type, and small ones."""
    rng = Random("inputs")
    files = {}
    for type_ in INPUT_TYPES:
        values: list[float] = []
        while len(values) < INPUT_SIZE:
            roll = rng.random()
            if type_ in FLOATS:
                some = rng.choice(_FLOATS_OF_INTEREST)
                values.append(some if roll < 0.4 else rng.uniform(-100, 100))
            else:
                largest = 2 ** (INTEGER_BITS[type_] - 1) - 1
                near = rng.choice((largest, -largest - 1, largest - 1, 0, 1, -1))
                small = rng.randint(-100, 100)
                anything = rng.randint(-largest - 1, largest)
                values.append(near if roll < 0.2 else small if roll < 0.7 else anything)
        files[f"{type_}.npy"] = np.array(values, DTYPES[type_])
    return files


def inputs_of(program: Program, files: dict[str, Array]) -> dict[str, Array]:
    """What is in the program's arguments before the launch."""
    return {
        memory.name: files[memory.source]
        if memory.source.endswith(".npy")
        else np.full(memory.shape, int(memory.source), DTYPES[memory.type])
        for memory in program.memories
        if memory.is_argument
    }


def argument_words(program: Program, folder: str) -> list[str]:
    """The command line that calls the program's entry; the files are in `folder`."""
    words = [program.name]
    for memory in program.memories:
        if not memory.is_argument:
            continue
        is_file = memory.source.endswith(".npy")
        source = f"{folder}/{memory.source}" if is_file else memory.source
        words += ["--arg", f"{memory.name}={source}"]
        if memory.is_dynamic and not is_file:
            words += ["--dim", f"{memory.name}={'x'.join(map(str, memory.shape))}"]
    for variable, value in program.scalars:
        words += ["--arg", f"{variable.name}={value!r}"]
    for name, size in size_arguments(program).items():
        words += ["--arg", f"{name}={size}"]
    return words


def compared(program: Program) -> list[str]:
    """The arguments whose values after the launch are compared: integers, and exact sums."""
    return [
        memory.name
        for memory in program.memories
        if memory.space in ("output", "sum")
        or (memory.space == "scratch" and memory.type not in FLOATS)
    ]


def path_of(folder: Path, program: Program, memory: str) -> Path:
    """The file with what is expected in a memory."""
    return folder / f"{program.name}.{memory}.npy"
