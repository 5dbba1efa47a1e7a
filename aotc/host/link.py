"""Objects + harness + runtime → executable, shared library, static library.

The runtime is linked statically and hidden: what comes out needs libc and what comes with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aotc.errors import InputError, ToolError
from aotc.request import HostTarget, unique
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
        self._link(command, f"the executable {output}")

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
        self._link(command, f"the shared library {output}")

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

    def _link(self, command: Sequence[str], making: str) -> None:
        """Raises InputError for functions that the module declares and nobody defines."""
        try:
            self.runner.run(command, making=making, cwd=self.folder)
        except ToolError as error:
            undefined = unique(re.findall(r"undefined symbol: (\S+)", error.stderr))
            if not undefined:
                raise
            raise InputError(
                f"Cannot link {making}: the module calls {', '.join(undefined)}, which it "
                "declares, but which neither it nor the C library defines.",
                hint="--emit obj leaves them open, for whoever links the object.",
            ) from None

    def _driver(self) -> list[str]:
        return [
            *self.toolchain.zig_cc.command,
            "-target",
            self.target.triple,
            "-fno-sanitize=all",
            *(["-g"] if self.debug else ["-s"]),
        ]
