"""The runtime, the runner utilities and the harness, compiled for a host target on first use, and
cached.

The name of a cache entry is a hash of everything that the bytes depend on: the sources, the flags
and the compiler's version. Its files are checked by their hashes before they are used.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Literal

from aotc.cache_folder import cache_root, make_once, zig_cache
from aotc.errors import InternalError
from aotc.toolchain.data import RUNTIME_NAME, SHARED_RUNTIME, data_dir
from aotc.toolchain.runner import Runner
from aotc.toolchain.tools import Toolchain

Kind = Literal["static", "shared"]

# Also used by SConstruct.
C_FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    # zig cc enables UBSan by default, and with it a runtime that aborts.
    "-fno-sanitize=all",
)
# For the static runtime, whose symbols executables and libraries must not export.
STATIC_DEFINES = ("-DAOTC_RUNTIME_HIDDEN",)
# The runner utilities and the async runtime, with upstream's symbol names.
UTILITIES_NAME = "mlir_runner_utils"
_FILE_NAMES: dict[Kind, str] = {
    "static": f"lib{RUNTIME_NAME}.a",
    "shared": SHARED_RUNTIME,
}
SHARED_LINK_FLAGS = (
    f"-Wl,-soname,{_FILE_NAMES['shared']}",
    "-Wl,-z,defs",
    "-Wl,--gc-sections",
    "-s",
)
# Separate libraries before glibc 2.34.
SYSTEM_LIBRARIES = ("pthread", "dl", "m")
# The `main` for a module that defines its own; all other files belong to the harness.
_PROGRAM_MAIN = "program_main.c"


def runtime_library(
    toolchain: Toolchain,
    runner: Runner,
    target: str,
    *,
    kind: Kind,
    source: Path | None = None,
) -> Path:
    """`libmlir_cuda_runtime.a` or `.so` for `target`, a triple as `zig cc -target` accepts it.

    `source` is a folder to use instead of aotc's `runtime_c`, for tests.
    """
    source = source or data_dir("runtime_c")
    sources = _sources(source / "src")
    headers = [*source.glob("include/*.h"), *source.glob("src/**/*.h")]
    defines = STATIC_DEFINES if kind == "static" else ()
    name = _FILE_NAMES[kind]
    # Only types and constants are used: drivers are loaded at run time.
    drivers = toolchain.driver_headers()
    versions = (f"{tool.name} {tool.version}" for tool in drivers)
    flags = (kind, *versions, *C_FLAGS, *defines)
    key = _key(toolchain, [*sources, *headers], flags)
    place = cache_root(toolchain.environment) / "runtime" / key / f"{target}-{kind}"

    flags = (*defines, f"-I{source / 'include'}", *(f"-isystem{tool.path}" for tool in drivers))
    return _make_library(toolchain, runner, target, source / "src", flags, place / name)


def utilities_library(
    toolchain: Toolchain, runner: Runner, target: str, *, source: Path | None = None
) -> Path:
    """`libmlir_runner_utils.a` for `target`; a program links those of its files that it calls.

    It works with the static and with the shared runtime, whose symbol visibility it has.
    """
    source = source or data_dir("runtime_c")
    sources = _sources(source / "programs")
    headers = [*source.glob("include/*.h"), *source.glob("programs/*.h")]
    name = f"lib{UTILITIES_NAME}.a"
    key = _key(toolchain, [*sources, *headers], C_FLAGS)
    place = cache_root(toolchain.environment) / "utilities" / key / target

    flags = (f"-I{source / 'include'}",)
    return _make_library(toolchain, runner, target, source / "programs", flags, place / name)


def _make_library(
    toolchain: Toolchain,
    runner: Runner,
    target: str,
    sources: Path,
    flags: Iterable[str],
    library: Path,
) -> Path:
    """Builds `library`, an archive or a shared library, from the sources in a folder, if it does
    not exist."""
    name = library.name
    is_shared = library.suffix == ".so"

    def make(draft: Path) -> None:
        objects = _compile(toolchain, runner, target, sources, draft, flags)
        command = [*toolchain.zig_ar.command, "rcsD", name, *objects]
        if is_shared:
            command = [
                *toolchain.zig_cc.command,
                *("-target", target, "-shared", "-fno-sanitize=all"),
                *SHARED_LINK_FLAGS,
                *objects,
                *(f"-l{one}" for one in SYSTEM_LIBRARIES),
                *("-o", name),
            ]
        prepare = partial(prepare_links, toolchain, runner, target) if is_shared else None
        runner.run(command, making=f"{name} for {target}", cwd=draft, prepare=prepare)
        for file in objects:
            (draft / file).unlink(missing_ok=True)

    tell = partial(runner.tell_made_again, f"{name} for {target}")
    return make_once(library.parent, make, expected=(name,), tell=tell) / name


def harness_objects(
    toolchain: Toolchain,
    runner: Runner,
    target: str,
    *,
    program_main: bool,
    source: Path | None = None,
    runtime_source: Path | None = None,
) -> list[Path]:
    """The objects that make an executable with a module's object and the runtime, for `target`.

    With `program_main`, the module has its own main, and the objects only call it. The folders
    replace aotc's own in tests.
    """
    source = source or data_dir("templates") / "harness"
    include = (runtime_source or data_dir("runtime_c")) / "include"
    sources = _sources(source)
    headers = [*source.glob("*.h"), *include.glob("*.h")]
    key = _key(toolchain, [*sources, *headers], (*C_FLAGS, *STATIC_DEFINES))
    place = cache_root(toolchain.environment) / "harness" / key / target
    objects = [_object_name(file, source) for file in sources]

    def make(draft: Path) -> None:
        _compile(toolchain, runner, target, source, draft, (*STATIC_DEFINES, f"-I{include}"))

    tell = partial(runner.tell_made_again, f"the harness for {target}")
    make_once(place, make, expected=objects, tell=tell)
    wanted = [file for file in sources if (file.name == _PROGRAM_MAIN) == program_main]
    if not wanted:
        raise InternalError(f"{source} has no file for program_main={program_main}.")
    return [place / _object_name(file, source) for file in wanted]


def prepare_links(
    toolchain: Toolchain, runner: Runner, target: str, *, debug: bool = False
) -> dict[str, str]:
    """Makes the files that zig adds to programs for `target`, start-up code and stubs of the C
    library, if they do not exist. Returns the variable by which `zig cc` finds them when it links.

    Otherwise zig would make them in the first link, and in each of several concurrent first links.
    """
    kind = "debug" if debug else "stripped"
    name = f"{toolchain.zig.version}-{target}-{kind}"
    place = zig_cache(toolchain.environment, str(toolchain.zig.path)) / name
    making = f"zig's part of programs for {target}"

    def make(draft: Path) -> None:
        program = draft / "program.c"
        program.write_text("int main(void) { return 0; }\n")
        command = [
            *toolchain.zig_cc.command,
            *("-target", target, "-fno-sanitize=all", "-pie", "-g" if debug else "-s"),
            program.name,
            *(f"-l{library}" for library in SYSTEM_LIBRARIES),
            *("-o", "program"),
        ]
        runner.run(command, making=making, cwd=draft, env=_found_at(draft))
        # Left over: mostly compiled forms of zig's own sources.
        for folder in ("tmp", "z"):
            shutil.rmtree(draft / folder, ignore_errors=True)
        for file in (program, draft / "program"):
            file.unlink(missing_ok=True)

    tell = partial(runner.tell_made_again, making)
    return _found_at(make_once(place, make, expected=(), tell=tell))


def _found_at(place: Path) -> dict[str, str]:
    """The variable that names the folder of the files that zig makes for all programs."""
    return {"ZIG_GLOBAL_CACHE_DIR": str(place)}


def _sources(folder: Path) -> list[Path]:
    sources = sorted(folder.rglob("*.c"))
    if not sources:
        raise InternalError(f"aotc's own sources are missing: no .c file in {folder}.")
    return sources


def _object_name(source: Path, folder: Path) -> str:
    """The name of the object for a source: `cuda_context.o` for `cuda/context.c` in `folder`."""
    return "_".join(source.relative_to(folder).with_suffix(".o").parts)


def _key(toolchain: Toolchain, files: Iterable[Path], flags: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in (f"zig {toolchain.zig.version}", f"clang {toolchain.clang.version}", *flags):
        digest.update(part.encode() + b"\0")
    # By name, not by path: the same sources in another folder give the same bytes.
    for file in sorted(files, key=lambda file: (file.parent.name, file.name)):
        content = file.read_bytes()
        digest.update(f"{file.parent.name}/{file.name} {len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _compile(
    toolchain: Toolchain,
    runner: Runner,
    target: str,
    folder: Path,
    draft: Path,
    flags: Iterable[str],
) -> list[str]:
    """Compiles the sources in `folder` into `draft`; returns the names of the objects."""
    tasks = []
    names = []
    for source in _sources(folder):
        name = _object_name(source, folder)
        names.append(name)
        command = [
            *toolchain.zig_cc.command,
            *("-target", target),
            *C_FLAGS,
            *flags,
            # Keeps paths of this machine out of the object, as by __FILE__.
            f"-ffile-prefix-map={source.parent}=.",
            *("-c", str(source), "-o", name),
        ]
        tasks.append(partial(runner.run, command, making=f"{name} for {target}", cwd=draft))
    runner.in_parallel(tasks)
    return names
