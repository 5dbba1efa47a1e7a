"""A module of two gpu.modules, in variants, and builds of it with a cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from helpers.command import Outcome, own_process

Aotc = Callable[..., Outcome]

_KERNEL = """  gpu.module @{name} {{
    gpu.func @run(%x: memref<?xf32>) kernel {{
      %i = gpu.thread_id x
      %k = arith.constant {addend} : f32
      %v = memref.load %x[%i] : memref<?xf32>
      %s = arith.addf %v, %k : f32
      memref.store %s, %x[%i] : memref<?xf32>
      gpu.return
    }}
  }}
"""
_HOST = """  func.func @f(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
    %c1 = arith.constant 1 : index
    %n = arith.constant {threads} : index
    gpu.launch_func @first::@run blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%x : memref<?xf32>)
    gpu.launch_func @second::@run blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%x : memref<?xf32>)
    return
  }}
"""


def module(*, first: str = "1.0", second: str = "2.0", threads: int = 32) -> str:
    """Two kernels, each in a gpu.module of its own, and a host function that launches both."""
    return (
        "module attributes {gpu.container_module} {\n"
        + _KERNEL.format(name="first", addend=first)
        + _KERNEL.format(name="second", addend=second)
        + _HOST.format(threads=threads)
        + "}\n"
    )


class Cached:
    """`aotc build INPUT --chip sm_90` with a cache in the test's folder, in this process."""

    def __init__(self, aotc: Aotc, folder: Path) -> None:
        self._aotc = aotc
        self.folder = folder
        self.cache = folder / "cache"
        self.source = folder / "input.mlir"
        self.out = folder / "out"
        self.outcome = Outcome(0, "", "")

    def build(
        self, text: str | None = None, *options: str | Path, emit: str = "exe", code: int = 0
    ) -> dict[str, str]:
        """Builds the input, after `text` was written to it; what became of each step, by its name,
        with the reason."""
        if text is not None:
            self.source.write_text(text)
        self.outcome = self._aotc(*self.command(*options, emit=emit))
        assert self.outcome.code == code, self.outcome.stderr
        return steps(self.outcome.stderr)

    def command(self, *options: str | Path, emit: str = "exe") -> list[str | Path]:
        command: list[str | Path] = ["build", self.source, "--emit", emit, "--chip", "sm_90"]
        command += ["-o", self.out, "--cache", self.cache, "--explain-cache", *options]
        return command

    def files(self, *parts: str) -> list[Path]:
        """The files of some of the cache's folders, by default of all."""
        folders = [self.cache / part for part in parts] or [self.cache]
        return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def steps(said: str) -> dict[str, str]:
    return dict(re.findall(r"^aotc: cache: (.+?): (.*)$", said, re.MULTILINE))


def found(said: dict[str, str]) -> set[str]:
    return {step for step, outcome in said.items() if outcome.startswith("found")}


def missed(said: dict[str, str]) -> set[str]:
    return {step for step, outcome in said.items() if outcome.startswith("missed")}


def in_its_own(arguments: Sequence[str | Path], cwd: Path | None = None) -> Outcome:
    """The command as a process of its own."""
    return own_process(arguments, cwd=cwd)
