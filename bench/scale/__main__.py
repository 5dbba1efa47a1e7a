"""The scale benchmark: how long, and with how much memory, `aotc build` takes for large inputs.

    python -m bench.scale [--kernels 10,100,1000] [--constants 16,256,1024]

prints two tables. Goals: the processors' time for each kernel does not grow with their number;
1 GiB of constants builds in a minute and in 4 GiB. Memory is what the process and its tools have
together, each shared page counted once, at its largest; it is looked at ten times a second.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.scale.inputs import CONSTANT_FORMS, many_entries, one_entry, write_constants
from bench.scale.measure import Measured, build

_SHAPES: dict[str, Callable[[int], str]] = {
    "one to an entry": many_entries,
    "all in one entry": one_entry,
}
_CHIPS: dict[str, tuple[str, ...]] = {"sm_90a": ("--chip", "sm_90a"), "default": ()}


def _kernels(counts: list[int], folder: Path) -> None:
    print(f"{'kernels':>8}  {'how':<17}{'chips':<9}{'s':>7}{'cpu s':>7}{'ms/kernel':>11}{'MiB':>7}")
    for shape, text in _SHAPES.items():
        for chips, options in _CHIPS.items():
            for count in counts:
                source = folder / "kernels.mlir"
                source.write_text(text(count))
                got = build(source, *options)
                each = 1000 * got.cpu_seconds / count
                print(
                    f"{count:>8}  {shape:<17}{chips:<9}{got.seconds:>7.1f}"
                    f"{got.cpu_seconds:>7.1f}{each:>11.1f}{got.mebibytes:>7.0f}",
                    flush=True,
                )


def _constants(sizes: list[int], folder: Path) -> None:
    print(f"{'MiB':>8}  {'form':<17}{'s':>7}{'cpu s':>7}{'MiB':>7}")
    for form in CONSTANT_FORMS:
        for size in sizes:
            source = folder / f"constants.{'mlirbc' if form == 'bytecode' else 'mlir'}"
            write_constants(source, size, form)
            got: Measured = build(source, "--chip", "sm_90a")
            source.unlink()
            print(
                f"{size:>8}  {form:<17}{got.seconds:>7.1f}{got.cpu_seconds:>7.1f}"
                f"{got.mebibytes:>7.0f}",
                flush=True,
            )


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="bench.scale", description=__doc__)
    parser.add_argument("--kernels", type=_numbers, default=[10, 100, 1000])
    parser.add_argument("--constants", type=_numbers, default=[16, 256, 1024])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.kernels:
            _kernels(arguments.kernels, Path(name))
        if arguments.constants:
            _constants(arguments.constants, Path(name))
