"""Options of a build as text → `BuildRequest`, for the command line and the Python API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import EXE, HEADER, KINDS, MANIFEST, PACKAGE, WEIGHTS, parse_kind
from aotc.errors import InputError
from aotc.pipes import read_text
from aotc.request import (
    DEFAULT_CHIPS,
    DEFAULT_PTX,
    BuildRequest,
    Chip,
    HostTarget,
    MemoryMode,
    PrintIr,
    parse_block,
    parse_ptx,
    unique,
)
from aotc.targets.cpu.artifacts import CPU_MLIR
from aotc.warnings import WarningOptions

_NATIVE = "native"
_RUNTIMES = ("static", "shared")


def make_request(
    source: Path,
    content: bytes | None = None,
    *,
    is_module: bool = False,
    emit: Iterable[str] = (),
    out: str | None = None,
    weights: Path | None = None,
    add_weights: bool = False,
    replaceable: Iterable[str] = (),
    chips: Iterable[str] = (),
    ptx: str | None = None,
    target: str | None = None,
    cpu: str | None = None,
    optimization: int = 3,
    debug: bool = False,
    lineinfo: bool = False,
    entries: Iterable[str] = (),
    pipeline: str | None = None,
    memory: str = MemoryMode.AUTO.value,
    block: str | None = None,
    cpu_kernels: bool = True,
    verify: bool = False,
    allow_tf32: bool = False,
    allow_3xtf32: bool = False,
    untested_kernels: bool = False,
    allow_file_directives: bool = False,
    prefix: str = "",
    runtime: str = "static",
    tuned: Path | None = None,
    save_temps: Path | None = None,
    print_ir: PrintIr | None = None,
    warnings: Iterable[str] = (),
    frontend: str | None = None,
    frontend_options: Iterable[str] = (),
) -> BuildRequest:
    """The request for these options, which are spelled as on the command line.

    `content` is built instead of the content of the file `source`, which then only names it; it
    `is_module` if it is bytecode that the bindings in use have just written.
    Raises InputError for invalid values, and for options that exclude each other.
    """
    if print_ir is not None and print_ir.folder is not None and not print_ir.is_on:
        raise InputError("--print-ir-dir goes with --print-ir-before and --print-ir-after.")
    kinds = unique(parse_kind(word) for word in emit) or (EXE,)
    if CPU_MLIR in kinds and not cpu_kernels:
        raise InputError("--emit cpu-mlir asks for what --no-cpu-kernels leaves out.")
    kinds = _with_weights(kinds, weights)
    if add_weights and weights is None:
        raise InputError("--add-weights goes with --weights FILE.")
    patterns = unique(replaceable)
    if patterns and weights is None:
        raise InputError(
            f"--replaceable {patterns[0]}: what can be replaced is in a file: give --weights FILE."
        )
    if not 0 <= optimization <= 3:
        raise InputError(f"There is no -O{optimization}: 0 to 3.")
    if out == "":
        raise InputError(
            "The place for the output (-o) is empty: expected a file, a directory or -."
        )
    parsed_chips = _chips(chips)
    request = BuildRequest(
        source=source,
        content=content,
        is_module=is_module,
        frontend=frontend,
        frontend_options=tuple(_key_and_value(word) for word in frontend_options),
        emit=kinds,
        out=out,
        weights=weights,
        adds_weights=add_weights,
        replaceable=patterns,
        chips=parsed_chips,
        default_chips=_default_chips(optimization),
        ptx=parse_ptx(ptx if ptx is not None else "none" if parsed_chips else DEFAULT_PTX),
        target=HostTarget.native() if target is None else HostTarget.parse(target),
        cpu=_cpu(cpu),
        optimization=optimization,
        debug=debug,
        lineinfo=lineinfo,
        entries=tuple(entries),
        pipeline=_pipeline(pipeline),
        memory=MemoryMode(_one_of("memory", memory, [mode.value for mode in MemoryMode])),
        block=None if block is None else parse_block(block),
        cpu_kernels=cpu_kernels,
        verify=verify,
        allow_tf32=allow_tf32,
        allow_3xtf32=allow_3xtf32,
        untested_kernels=untested_kernels,
        allow_file_directives=allow_file_directives,
        prefix=_prefix(prefix),
        shares_runtime=_one_of("runtime", runtime, _RUNTIMES) == "shared",
        tuned=None if tuned is None else read_tuned(tuned),
        save_temps=save_temps,
        print_ir=print_ir or PrintIr(),
        warnings=WarningOptions.parse(warnings),
    )
    if request.is_package:
        # A package has everything that a program needs to use the library.
        package = (MANIFEST, HEADER, PACKAGE)
        return replace(request, emit=unique([*kinds, *package]))
    return request


def _with_weights(
    kinds: tuple[ArtifactKind, ...], weights: Path | None
) -> tuple[ArtifactKind, ...]:
    if weights is None:
        return kinds
    if not any(kind.has_code for kind in kinds):
        *others, last = (kind.name for kind in reversed(KINDS.values()) if kind.has_code)
        names = ", ".join(kind.name for kind in kinds)
        raise InputError(f"--weights goes with {', '.join(others)} and {last}, not with {names}.")
    return unique([*kinds, WEIGHTS])


def _key_and_value(word: str) -> tuple[str, str]:
    key, sign, value = word.partition("=")
    if not sign or not key:
        raise InputError(f"--frontend-option {word}: expected NAME=VALUE.")
    return key, value


def _chips(words: Iterable[str]) -> tuple[Chip, ...]:
    chips: list[Chip] = []
    for word in words:
        if word == _NATIVE:
            from aotc.targets.native import native_chips

            chips += native_chips()
        else:
            chips.append(Chip.parse(word))
    return unique(chips)


def _default_chips(optimization: int) -> tuple[Chip, ...]:
    """The default chips: with -O1 this machine's GPU, or the first default; otherwise all."""
    chips = tuple(Chip(name) for name in DEFAULT_CHIPS)
    if optimization != 1:
        return chips
    from aotc.targets.native import NoGpuError, found_chips

    try:
        return found_chips()[:1]
    except NoGpuError:
        return chips[:1]


def _one_of(option: str, word: str, known: Iterable[str]) -> str:
    if word not in known:
        raise InputError(f"--{option} {word}: expected {' or '.join(known)}.")
    return word


def _pipeline(text: str | None) -> str | None:
    """The pipeline, or the text of the file that `@FILE` names."""
    if text is None or not text.startswith("@"):
        return text
    return read_text(Path(text[1:]), f"the pipeline '{text[1:]}'")


def read_tuned(path: Path) -> str:
    """The text of the measurements in a file. Raises InputError for any other file."""
    from aotc.kernels.matmul.tuned import parse_tuned

    text = read_text(path, f"'{path}' of --tuned")
    parse_tuned(text, f"'{path}'")
    return text


def _prefix(text: str) -> str:
    if text and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise InputError(f"--prefix '{text}' cannot begin a C identifier: use letters, digits, _.")
    return text


def _cpu(word: str | None) -> str | None:
    if word == "native":
        raise InputError(
            "--cpu native: an artifact does not depend on the machine that builds it. Name the "
            "processor: x86-64-v3, skylake-avx512, neoverse-n1, ..."
        )
    if word is not None and not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", word):
        raise InputError(f"--cpu expects LLVM's name of a processor, and got '{word}'.")
    return word
