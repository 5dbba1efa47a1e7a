"""Host LLVM IR → assembly or object, compiled by zig's clang for the request's host target."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from aotc.errors import InputError, InternalError, ToolError
from aotc.request import HostTarget
from aotc.toolchain import Runner, Toolchain
from aotc.toolchain.llvm_text import check_intrinsics, explain_refusal

# For the symbols that a library exports. All others are hidden.
DEFAULT_VISIBILITY = "-fvisibility=default"
# How clang's messages name inline assembly.
_INLINE_ASSEMBLY = "<inline asm>"
_MOST_LINES = 9
_OF_BACK_END = "error in backend"
_X86 = re.compile(r"call [^\n]*@(llvm\.x86\.[\w.]+)")


def _known_processors(said: str) -> str:
    """The processors that clang's note lists."""
    return "\n".join(line for line in said.splitlines() if "valid target CPU values" in line)


class HostCompiler(Struct, frozen=True):
    """Compiles host code in `folder` with one set of options."""

    toolchain: Toolchain
    runner: Runner
    folder: Path
    target: HostTarget
    optimization: int
    debug: bool
    cpu: str | None = None

    def compile_ir(self, source: str, output: str, *, assembly: bool = False) -> None:
        """LLVM IR text → object (or assembly text), position-independent."""
        # This is plain clang, because zig cc would keep every object in its cache.
        command = [
            *self.toolchain.clang.command,
            f"--target={self.target.architecture}-unknown-linux-{self.target.library}",
            *self._code_options(),
            *self._cpu_options(),
            *(["-g"] if self.debug else ["-g0"]),
            "-S" if assembly else "-c",
            "-x",
            "ir",
            "-Wno-override-module",
            "-fno-crash-diagnostics",
            # For llvm.intr.matrix.*
            "-fenable-matrix",
            # That pass looks at all arguments of a call for each of them, to find the callees of
            # indirect calls. Entries may have thousands of arguments.
            "-mllvm",
            "-opt-disable=called-value-propagation",
            *self._avoided_passes(),
            source,
            "-o",
            output,
        ]
        try:
            self.runner.run(
                command,
                making=output,
                cwd=self.folder,
                reads=[source],
                writes=[output],
                names_matter=self.debug,
            )
            if not assembly:
                check_intrinsics((self.folder / output).read_bytes())
        except ToolError as error:
            if self.cpu is not None and f"unknown target CPU '{self.cpu}'" in error.stderr:
                raise InputError(
                    f"--cpu {self.cpu}: clang has no such processor of {self.target.architecture}."
                    f"\n{_known_processors(error.stderr)}"
                ) from None
            found = _X86.search((self.folder / source).read_text())
            if found is not None and _OF_BACK_END in error.stderr:
                raise InputError(
                    f"The module has instructions ({found[1]}) that not every processor of "
                    f"{self.target.architecture} has, and that {self.cpu or 'the oldest one'} "
                    "lacks.",
                    hint="--cpu NAME builds host code for later ones: x86-64-v3 has AVX2 and FMA, "
                    "x86-64-v4 AVX-512, sapphirerapids AMX.",
                ) from None
            if _INLINE_ASSEMBLY in error.stderr:
                said = "\n".join(error.stderr.splitlines()[:_MOST_LINES])
                raise InputError(
                    f"The module's assembly is refused for {self.target.architecture}:\n{said}"
                ) from None
            line = explain_refusal(error.stderr, (self.folder / source).read_text())
            if line is None:
                raise
            raise InternalError(
                "clang refuses the LLVM IR that the MLIR bindings wrote for the host:\n" + line,
                hint="This is a gap between two LLVM versions: please report it, with the input.",
            ) from None

    def compile_c(
        self,
        source: str,
        output: str,
        *,
        includes: tuple[Path, ...],
        headers: tuple[str, ...] = (),
        options: tuple[str, ...] = (),
    ) -> None:
        """Compiles a generated C file to an object, without debug information, which would contain
        the folder's name.

        `headers` are the headers in the folder that the file includes.
        """
        command = [
            *self.toolchain.zig_cc.command,
            "-target",
            self.target.triple,
            *self._code_options(),
            "-g0",
            # zig cc enables UBSan if the optimization is off.
            "-fno-sanitize=all",
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
        self.runner.run(
            command,
            making=output,
            cwd=self.folder,
            reads=[source, *headers, *includes],
            writes=[output],
        )

    def _avoided_passes(self) -> list[str]:
        """LLVM 22's pass against blocked store forwarding fails for masked loads and stores, whose
        size is unknown: "Cannot implicitly convert a scalable size to a fixed-width size"."""
        return ["-mllvm", "-x86-disable-avoid-SFB"] if self.target.architecture == "x86_64" else []

    def _cpu_options(self) -> list[str]:
        if self.cpu is None:
            return []
        return [f"-m{'arch' if self.target.architecture == 'x86_64' else 'cpu'}={self.cpu}"]

    def _code_options(self) -> list[str]:
        return [
            f"-O{self.optimization}",
            "-fPIC",
            "-fvisibility=hidden",
            "-ffunction-sections",
            "-fdata-sections",
        ]
