"""The generated C that is linked with a module's object: an executable's table, a library's
functions.

It is compiled once, together with the object, whatever is linked with it.
"""

from __future__ import annotations

import re
from pathlib import Path

from aotc.building.build import Build
from aotc.emit.header import generate_header
from aotc.emit.library import generate_library
from aotc.emit.names import exported_functions
from aotc.emit.table import generate_table
from aotc.errors import InputError, ToolError
from aotc.host.compile import DEFAULT_VISIBILITY
from aotc.manifest import Manifest
from aotc.toolchain import data_dir
from aotc.toolchain.runtime import STATIC_DEFINES


def table_object(build: Build, manifest: Manifest) -> str:
    """Compiles the harness's table of entries; returns the name of the object."""
    return _compile(build, *generate_table(manifest))


def library_object(build: Build, manifest: Manifest) -> str:
    """Compiles the library's C functions; returns the name of the object."""
    exported_functions(manifest)  # reports invalid names before the C compiler does
    header = build.write(*generate_header(manifest))
    options = () if build.request.shares_runtime else STATIC_DEFINES
    try:
        return _compile(
            build,
            *generate_library(manifest),
            DEFAULT_VISIBILITY,
            *options,
            headers=(header,),
        )
    except ToolError as error:
        known = re.search(r"redeclaration of library function '(\w+)'", error.stderr)
        if known is None:
            raise
        raise InputError(
            f"The C function of entry '{known[1]}' would be called like one of the C library.",
            hint="Rename the entry, or put something in front of all names: --prefix my_.",
        ) from None


def _compile(
    build: Build, name: str, text: str, *options: str, headers: tuple[str, ...] = ()
) -> str:
    """Compiles a generated C file; returns the name of the object."""
    output = f"{Path(name).stem}.o"
    build.write(name, text)
    includes = (data_dir("templates") / "harness", data_dir("runtime_c") / "include")
    build.host_compiler.compile_c(name, output, includes=includes, headers=headers, options=options)
    return output
