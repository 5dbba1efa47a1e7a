"""Objects + harness + runtime → executable, shared library, static library.

The runtime is linked statically and hidden, so that the result needs only libc and the files it
comes with. Of the utilities (printMemrefF32, ...), those that the module calls are linked, and
hidden, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from pathlib import Path

from msgspec import Struct

from aotc.errors import InputError, InternalError, ToolError
from aotc.host.elf import global_symbols, mapped
from aotc.host.localize import localize
from aotc.images.elf import ElfFile
from aotc.images.view import View
from aotc.request import HostTarget, unique, version_numbers
from aotc.toolchain import Runner, Toolchain

_SYSTEM_LIBRARIES = ("-lm", "-lpthread", "-ldl")
# A hash of the content, by which debuggers and profilers identify a file.
_BUILD_ID = "-Wl,--build-id=sha1"


class Linker(Struct, frozen=True):
    """Links in `folder` for one host target."""

    toolchain: Toolchain
    runner: Runner
    folder: Path
    target: HostTarget
    debug: bool

    def link_executable(
        self, objects: Sequence[str | Path], runtime: Path, utilities: Path, output: str
    ) -> None:
        command = [
            *self._driver(),
            *self._debug_of(objects, output),
            "-pie",
            *map(str, objects),
            str(utilities),
            str(runtime),
            *_SYSTEM_LIBRARIES,
            _BUILD_ID,
            "-Wl,--gc-sections",
            "-o",
            output,
        ]
        reads = [*objects, utilities, runtime]
        self._link(command, f"the executable {output}", output, reads)

    def link_shared(
        self,
        objects: Sequence[str | Path],
        runtime: Path,
        utilities: Path,
        output: str,
        exports: Sequence[str],
        *,
        soname: str,
    ) -> None:
        """Links a shared library that exports the symbols `exports` and nothing else.

        A shared `runtime` is searched beside the library.
        """
        script = f"{output}.exports"
        lines = "".join(f'    "{symbol}";\n' for symbol in exports)
        (self.folder / script).write_text(f"{{\n  global:\n{lines}  local:\n    *;\n}};\n")
        command = [
            *self._driver(),
            *self._debug_of(objects, output),
            "-shared",
            *_for_linker("-soname", soname),
            *(["-Wl,-rpath,$ORIGIN"] if runtime.suffix == ".so" else []),
            *_for_linker("--version-script", script),
            *map(str, objects),
            str(utilities),
            str(runtime),
            *_SYSTEM_LIBRARIES,
            _BUILD_ID,
            "-Wl,--gc-sections",
            "-Wl,-z,defs",
            "-o",
            output,
        ]
        reads = [script, *objects, utilities, runtime]
        self._link(command, f"the shared library {output}", output, reads)

    def archive(
        self,
        objects: Sequence[str | Path],
        runtime: Path | None,
        utilities: Path,
        output: str,
        exports: Sequence[str],
    ) -> None:
        """Makes a static library: one object with the module's code, and with the runtime if given.

        All symbols except `exports` become local, so that another library may use the same names.
        """
        merged = f"{output}.merged.o"
        whole = [] if runtime is None else ["--whole-archive", str(runtime), "--no-whole-archive"]
        inputs = [*objects, utilities, *([] if runtime is None else [runtime])]
        self._merge([*map(str, objects), str(utilities), *whole], merged, inputs)
        place = self.folder / merged
        with mapped(place, writable=True) as data:
            localize(data, exports)
            symbols = global_symbols(data)
        undefined = [name for name, is_here in symbols.items() if not is_here]
        self.runner.note(f"{output} leaves undefined: {', '.join(sorted(undefined))}")
        self.runner.run(
            [*self.toolchain.zig_ar.command, "rcsD", output, merged],
            making=f"the static library {output}",
            cwd=self.folder,
            reads=[merged],
            writes=[output],
        )

    def join(self, objects: Sequence[str], output: str, *, hide: Set[str]) -> None:
        """Merges objects into one. The symbols in `hide` become local to it."""
        self._merge(objects, output, objects)
        with mapped(self.folder / output, writable=True) as data:
            localize(data, global_symbols(data).keys() - hide)

    def _merge(self, arguments: Sequence[str], output: str, reads: Sequence[str | Path]) -> None:
        command = [*self.toolchain.zig_ld.command, "-r", "-o", output, *arguments]
        self.runner.run(
            command,
            making=f"the object {output}",
            cwd=self.folder,
            reads=reads,
            writes=[output],
        )

    def _link(
        self, command: Sequence[str], making: str, output: str, reads: Sequence[str | Path]
    ) -> None:
        """Raises InputError for functions that the module declares and no object defines."""
        try:
            self.runner.run(
                command,
                making=making,
                cwd=self.folder,
                reads=reads,
                writes=[output],
                prepare=self._prepare,
            )
        except ToolError as error:
            undefined = unique(re.findall(r"undefined symbol: (\S+)", error.stderr))
            if not undefined:
                raise
            raise InputError(
                f"Cannot link {making}: the module calls {', '.join(undefined)}, which it "
                "declares, but which neither it nor the C library defines.",
                hint="--emit obj leaves them open, for whoever links the object.",
            ) from None
        self._check(output)

    def _prepare(self) -> dict[str, str]:
        from aotc.toolchain.runtime import prepare_links

        return prepare_links(self.toolchain, self.runner, self.target.triple, debug=self.debug)

    def _check(self, output: str) -> None:
        """Checks that the file runs on the host target, and notes what it needs there."""
        with mapped(self.folder / output) as data:
            file = ElfFile(View(data, output))
            versions, needed = file.versions_needed(), file.dynamic.needed
        glibc = re.findall(r"\bGLIBC_([\d.]+)", " ".join(versions))
        newest = max(glibc, key=version_numbers, default=None)
        libraries = ", ".join(needed) or "no library"
        from_glibc = f", of glibc {newest} or newer" if newest else ""
        self.runner.note(f"{output} needs {libraries}{from_glibc}")
        oldest = self.target.version
        if newest and oldest and version_numbers(newest) > version_numbers(oldest):
            raise InternalError(
                f"{output} is for glibc {oldest}, and needs glibc {newest}: something was linked "
                "that was compiled for a newer one."
            )

    def _debug_of(self, objects: Sequence[str | Path], output: str) -> list[str]:
        """The option that keeps debug information of the build's own objects only.

        zig compiles start-up code with debug information that has the name of its own folder, and
        of the folder of the first build that needed that code.
        """
        if not self.debug:
            return []
        own = " ".join(name for name in objects if isinstance(name, str))
        script = f"{output}.debug.ld"
        (self.folder / script).write_text(
            "SECTIONS {\n"
            f"  /DISCARD/ : {{ *(EXCLUDE_FILE({own}) .debug_*) }}\n"
            "}\nINSERT AFTER .comment;\n"
        )
        return _for_linker("-T", script)

    def _driver(self) -> list[str]:
        return [
            *self.toolchain.zig_cc.command,
            "-target",
            self.target.triple,
            "-fno-sanitize=all",
            *(["-g"] if self.debug else ["-s"]),
        ]


def _for_linker(*words: str) -> list[str]:
    """The driver's options that pass these words to the linker. (-Wl would split them at
    commas.)"""
    return [option for word in words for option in ("-Xlinker", word)]
