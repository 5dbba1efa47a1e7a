"""Device LLVM IR → PTX → cubin → fatbin, by clang's NVPTX back end, ptxas and fatbinary.

Every function works on files in a build's work folder and names them relative to it, so that no
path of the machine gets into an image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from aotc.errors import AotcError, InputError, InternalError, ToolError
from aotc.input.given import GivenBinary
from aotc.manifest import Resources
from aotc.request import Chip
from aotc.targets.cuda.lower import TRIPLE
from aotc.toolchain import Runner, Toolchain
from aotc.toolchain.llvm_text import check_intrinsics, explain_refusal

# Chips to suggest if another one lacks an operation, from the most to the least common.
_CANDIDATES = ("sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a")


# How clang marks inline assembly in PTX.
_ASM_BEGIN, _ASM_END = "// begin inline asm", "// end inline asm"


class DeviceCompiler(Struct, frozen=True):
    """Compiles device code in `folder` with one set of options. With `debug`, the output has the
    names of its source files, so that these matter."""

    toolchain: Toolchain
    runner: Runner
    folder: Path
    optimization: int
    debug: bool

    def compile_ptx(self, source: str, chip: Chip, output: str) -> None:
        """Compiles LLVM IR text `source` to PTX for `chip`.

        Raises InputError if the code has an operation that the chip does not support.
        """
        try:
            self._run_clang(source, chip, output)
        except ToolError as error:
            raise self._explain_clang(error, source, chip) from None
        check_intrinsics((self.folder / output).read_bytes())

    def _run_clang(self, source: str, chip: Chip, output: str) -> None:
        command = [
            *self.toolchain.clang.command,
            f"--target={TRIPLE}",
            f"-march={chip.name}",
            f"-O{self.optimization}",
            "-S",
            "-x",
            "ir",
            # The module has no data layout: clang adds it.
            "-Wno-override-module",
            # aotc reports a refusal, so there are no crash report files.
            "-fno-crash-diagnostics",
            # For llvm.intr.matrix.*
            "-fenable-matrix",
            # f32 square roots are correctly rounded, as on the CPU and as nvcc has them.
            "-mllvm",
            "-nvvm-reflect-add=__CUDA_PREC_SQRT=1",
            "-Xclang",
            "-mlink-builtin-bitcode",
            "-Xclang",
            str(self.toolchain.tool("libdevice").path),
            source,
            "-o",
            output,
        ]
        self.runner.run(
            command,
            making=f"PTX for {chip.name}",
            cwd=self.folder,
            reads=[source, self.toolchain.tool("libdevice").path],
            writes=[output],
            names_matter=self.debug,
        )

    def _explain_clang(self, error: ToolError, source: str, chip: Chip) -> AotcError:
        unselected = re.search(r"Cannot select: (?:intrinsic %llvm\.)?(\S.*)", error.stderr)
        if unselected is not None:
            return InputError(
                f"The kernel code uses {unselected[1].strip()}, which {chip.name} lacks."
                + self._other_chips(source)
            )
        line = explain_refusal(error.stderr, (self.folder / source).read_text())
        if line is not None:
            return InternalError(
                "clang refuses the LLVM IR that the MLIR bindings wrote for the device:\n" + line,
                hint="This is a gap between two LLVM versions: please report it, with the input.",
            )
        return error

    def _other_chips(self, source: str) -> str:
        """A sentence for a message, with the chips for which the LLVM IR `source` compiles."""
        having = []
        for chip in map(Chip, _CANDIDATES):
            stem = f"{source}.candidate.{chip.name}"
            try:
                self._run_clang(source, chip, f"{stem}.ptx")
                self._run_ptxas(f"{stem}.ptx", chip, f"{stem}.cubin")
            except ToolError:
                continue
            having.append(chip.name)
        return f" Chips that have it: {', '.join(having)}." if having else ""

    def assemble(
        self, source: str, chip: Chip, output: str, *, ir: str
    ) -> list[tuple[str, Resources]]:
        """Assembles PTX to a cubin for `chip`; returns the resources of each kernel, by ptxas.

        `ir` is the LLVM IR that the PTX was made from. Raises InputError if the PTX has an
        instruction that the chip does not support.
        """
        try:
            said = self._run_ptxas(source, chip, output)
        except ToolError as error:
            unresolved = re.search(r"Unresolved extern function '([^']+)'", error.stderr)
            if unresolved is not None:
                raise InputError(
                    f"A kernel calls '{unresolved[1].removeprefix('_mlir_ciface_')}', which is "
                    "declared, but has no body: there is nothing to link device code with."
                ) from None
            lacking = re.search(
                r"error\s*:\s*(.*(?:not supported on|requires) \.target.*)", error.stderr
            )
            if lacking is None:
                raise self._explain_assembly(error, source) from None
            raise InputError(
                f"The kernel code has an instruction that {chip.name} lacks: {lacking[1]}."
                + self._other_chips(ir)
            ) from None
        return parse_resources(said, chip.name)

    def _explain_assembly(self, error: ToolError, source: str) -> AotcError:
        """The error; an InputError if the first line that ptxas rejects is inline assembly."""
        found = re.search(r"line (\d+); (error\s*:.*)", error.stderr)
        if found is None:
            return error
        before = (self.folder / source).read_text().splitlines()[: int(found[1])]
        marks = [line for line in before if line.strip() in (_ASM_BEGIN, _ASM_END)]
        if not marks or marks[-1].strip() != _ASM_BEGIN:
            return error
        return InputError(
            "ptxas does not take the inline assembly of a kernel:\n"
            f"  {before[-1].strip()}\n{found[2]}"
        )

    def _run_ptxas(self, source: str, chip: Chip, output: str) -> str:
        command = [
            *self.toolchain.tool("ptxas").command,
            f"-arch={chip.name}",
            f"-O{self.optimization}",
            "-v",
            *(["-lineinfo"] if self.debug else []),
            source,
            "-o",
            output,
        ]
        done = self.runner.run(
            command,
            making=f"the cubin for {chip.name}",
            cwd=self.folder,
            reads=[source],
            writes=[output],
            names_matter=self.debug,
        )
        return done.stderr + done.stdout

    def bundle(self, cubins: dict[Chip, str], ptx: tuple[Chip, str] | None, output: str) -> None:
        """Bundles cubins by chip, and PTX, to one fatbin."""
        images = [("elf", chip.number, file) for chip, file in cubins.items()]
        if ptx is not None:
            images.append(("ptx", ptx[0].number, ptx[1]))
        self._run_fatbinary(images, output)

    def bundle_given(self, binary: GivenBinary, output: str) -> None:
        """Writes the images of a gpu.binary to one file: a single image as it is, else a fatbin."""
        if len(binary.images) == 1:
            (self.folder / output).write_bytes(binary.images[0].data)
            return
        images = []
        for i, image in enumerate(binary.images):
            file = f"{output}.{i}"
            (self.folder / file).write_bytes(image.data)
            images.append((image.kind, image.number, file))
        self._run_fatbinary(images, output)

    def _run_fatbinary(self, images: Sequence[tuple[str, str, str]], output: str) -> None:
        """`images` are (kind, number, file)."""
        command = [
            *self.toolchain.tool("fatbinary").command,
            "--64",
            f"--create={output}",
            *(f"--image3=kind={kind},sm={number},file={file}" for kind, number, file in images),
        ]
        self.runner.run(
            command,
            making="the fatbin",
            cwd=self.folder,
            reads=[file for _, _, file in images],
            writes=[output],
            names_matter=self.debug,
        )


def parse_resources(text: str, chip: str) -> list[tuple[str, Resources]]:
    """(kernel, resources) for each kernel, from the output of `ptxas -v`."""
    found = []
    for part in re.split(r"(?=Compiling entry function ')", text)[1:]:
        name = re.match(r"Compiling entry function '([^']*)'", part)
        frame = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
        )
        used = re.search(r"Used (\d+) registers(?:, used (\d+) barriers)?", part)
        shared = re.search(r"(\d+) bytes smem", part)
        if name is None or used is None:
            continue
        stack, stores, loads = (int(n) for n in frame.groups()) if frame else (0, 0, 0)
        resources = Resources(
            chip=chip,
            registers=int(used[1]),
            shared_bytes=int(shared[1]) if shared else 0,
            stack_bytes=stack,
            spill_stores=stores,
            spill_loads=loads,
            barriers=int(used[2] or 0),
        )
        found.append((name[1], resources))
    return found
