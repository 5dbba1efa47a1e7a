"""Objects + harness + runtime → executable, shared library, static library.

The runtime is linked statically and hidden: what comes out needs libc and what comes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain

_SYSTEM_LIBRARIES = ("-lm", "-lpthread", "-ldl")


@dataclass(frozen=True)
class Linker:
    """Links in `folder` for one host target."""

    toolchain: Toolchain
    runner: Runner
    folder: Path
    target: HostTarget
    debug: bool

    def link_executable(self, objects: Sequence[str | Path], runtime: Path, output: str) -> None:
        command = [
            *self._driver(),
            "-pie",
            *map(str, objects),
            str(runtime),
            *_SYSTEM_LIBRARIES,
            "-Wl,--gc-sections",
            "-o",
            output,
        ]
        self.runner.run(command, making=f"the executable {output}", cwd=self.folder)

    def link_shared(
        self, objects: Sequence[str | Path], runtime: Path, output: str, exports: Sequence[str]
    ) -> None:
        """A library that exports the symbols `exports` and nothing else."""
        script = f"{output}.exports"
        lines = "".join(f'    "{symbol}";\n' for symbol in exports)
        (self.folder / script).write_text(f"{{\n  global:\n{lines}  local:\n    *;\n}};\n")
        command = [
            *self._driver(),
            "-shared",
            f"-Wl,-soname,{output}",
            f"-Wl,--version-script={script}",
            *map(str, objects),
            str(runtime),
            *_SYSTEM_LIBRARIES,
            "-Wl,--gc-sections",
            "-Wl,-z,defs",
            "-o",
            output,
        ]
        self.runner.run(command, making=f"the shared library {output}", cwd=self.folder)

    def archive(self, objects: Sequence[str | Path], runtime: Path, output: str) -> None:
        """A static library: one object holding the module's code and the runtime."""
        merged = f"{output}.merged.o"
        command = [
            *self.toolchain.zig_ld.command,
            "-r",
            "-o",
            merged,
            *map(str, objects),
            "--whole-archive",
            str(runtime),
            "--no-whole-archive",
        ]
        self.runner.run(command, making=f"the object of {output}", cwd=self.folder)
        self.runner.run(
            [*self.toolchain.zig_ar.command, "rcsD", output, merged],
            making=f"the static library {output}",
            cwd=self.folder,
        )

    def _driver(self) -> list[str]:
        return [
            *self.toolchain.zig_cc.command,
            "-target",
            self.target.triple,
            "-fno-sanitize=all",
            *(["-g"] if self.debug else ["-s"]),
        ]
