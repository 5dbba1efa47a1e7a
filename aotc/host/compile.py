"""Host LLVM IR → assembly or object, by zig's clang for the request's host target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aotc.errors import InternalError, ToolError
from aotc.host.llvm_text import explain_refusal
from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain

# For what a library exports: all else is hidden.
DEFAULT_VISIBILITY = "-fvisibility=default"


@dataclass(frozen=True)
class HostCompiler:
    """Compiles host code in `folder` with one set of options."""

    toolchain: Toolchain
    runner: Runner
    folder: Path
    target: HostTarget
    optimization: int
    debug: bool

    def compile_ir(self, source: str, output: str, *, assembly: bool = False) -> None:
        """LLVM IR text → object (or assembly text), position-independent."""
        command = [
            *self._compiler(),
            "-S" if assembly else "-c",
            "-Wno-override-module",
            source,  # zig cc knows LLVM IR by its ending, .ll, and has no -x ir
            "-o",
            output,
        ]
        try:
            self.runner.run(command, making=output, cwd=self.folder)
        except ToolError as error:
            line = explain_refusal(error.stderr, (self.folder / source).read_text())
            if line is None:
                raise
            raise InternalError(
                "clang refuses the LLVM IR that the MLIR bindings wrote for the host:\n" + line,
                hint="This is a gap between two LLVM versions: please report it, with the input.",
            ) from None

    def compile_c(
        self, source: str, output: str, *, includes: tuple[Path, ...], options: tuple[str, ...] = ()
    ) -> None:
        """A generated C file → object."""
        command = [
            *self._compiler(is_generated=True),
            "-c",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            *(f"-I{folder}" for folder in includes),
            *options,
            source,
            "-o",
            output,
        ]
        self.runner.run(command, making=output, cwd=self.folder)

    def _compiler(self, *, is_generated: bool = False) -> list[str]:
        # Generated C is nothing to debug, and its debug information would name the work folder.
        return [
            *self.toolchain.zig_cc.command,
            "-target",
            self.target.triple,
            f"-O{self.optimization}",
            *(["-g"] if self.debug and not is_generated else ["-g0"]),
            "-fPIC",
            "-fvisibility=hidden",
            "-ffunction-sections",
            "-fdata-sections",
            # zig cc turns UBSan on where the optimization is off.
            "-fno-sanitize=all",
        ]
