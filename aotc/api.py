"""`aotc.build`: the Python function that corresponds to the command `aotc build`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.artifact_kind import ArtifactKind
from aotc.cache.opening import CacheChoice, open_cache
from aotc.delivery import check_output, deliver
from aotc.errors import InputError
from aotc.manifest import Manifest, parse_manifest
from aotc.processes.memory import check_stack, rare_collections
from aotc.processes.record import temporary_folder
from aotc.request import BuildRequest
from aotc.request_words import make_request
from aotc.warnings import BuildWarning, Severity

if TYPE_CHECKING:
    from aotc.cache.builds import BuildCache
    from aotc.pipeline import Observer


class Artifact(Struct, frozen=True):
    """The result of a build.

    `path` is the first file of the first requested kind. `paths` maps the name of each kind in
    `--emit` to its first file, and `files` to all of its files: a build for two chips makes two
    `cubin` files. `manifest` describes what the module offers; it is None if the build stopped
    before the manifest was made. `times` maps each stage to its wall-clock seconds; `cache` among
    them is the time spent in the cache.
    """

    path: Path
    paths: Mapping[str, Path]
    files: Mapping[str, tuple[Path, ...]]
    manifest: Manifest | None
    warnings: tuple[BuildWarning, ...]
    times: Mapping[str, float]

    def __fspath__(self) -> str:
        return str(self.path)


def build(
    source: str | os.PathLike[str] | bytes | Any,
    *,
    emit: str | Iterable[str] = "exe",
    out: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    add_weights: bool = False,
    replaceable: str | Iterable[str] = (),
    name: str | None = None,
    chips: str | Iterable[str] = (),
    ptx: str | None = None,
    target: str | None = None,
    cpu: str | None = None,
    optimization: int = 3,
    debug: bool = False,
    lineinfo: bool = False,
    entries: str | Iterable[str] = (),
    pipeline: str | None = None,
    memory: str = "auto",
    block: str | None = None,
    cpu_kernels: bool = True,
    verify: bool = False,
    allow_tf32: bool = False,
    allow_3xtf32: bool = False,
    untested_kernels: bool = False,
    allow_file_directives: bool = False,
    prefix: str = "",
    runtime: str = "static",
    tuned: str | os.PathLike[str] | None = None,
    save_temps: str | os.PathLike[str] | None = None,
    warnings: Iterable[str] = (),
    frontend: str | None = None,
    frontend_options: Mapping[str, str] | None = None,
    tools: Mapping[str, str | os.PathLike[str]] | None = None,
    cache: bool | str | os.PathLike[str] = True,
) -> Artifact:
    """Builds a module, as `aotc build` does; the options are those of the command.

    `source` is a path, the text of a module (a `str` with a line break or a brace in it), text or
    bytecode as `bytes`, or an `ir.Module` of either package of bindings, which is not modified.
    `name` names a module without a file (default: the module's symbol, else `module`).

    `out` is a file or a folder. It is a folder if it exists as one, if it ends in /, or if several
    kinds are made. A library alone is written to the file `out`; in a folder it becomes a package.
    By default files are written to the current folder. `weights` is a file for large constants,
    which are then not part of the artifact; with `add_weights` the file keeps the constants it
    has, so that several artifacts can share it. Constants whose names match `replaceable` can be
    replaced (see `Library.weights`). `tuned` is a file that `aotc tune` wrote.

    `frontend` reads a format other than MLIR (see `aotc.frontends`); the default is the front end
    for the file's suffix. `warnings` has the values of `-W` (`no-NAME`, `error=NAME`); `tools`
    maps names to the programs to use. `cache` is the folder of cached builds (True: the command's;
    False: no cache). Nothing is printed: the warnings are part of the result.

    Raises InputError, with the place in the module, ToolError or InternalError. May be called
    from several threads at once.
    """
    check_stack()
    place, content, is_module = _source(source, name)
    request = make_request(
        place,
        content,
        is_module=is_module,
        emit=_words(emit),
        out=None if out is None else _spelled(out),
        weights=None if weights is None else Path(weights),
        add_weights=add_weights,
        replaceable=_words(replaceable),
        chips=_words(chips),
        ptx=ptx,
        target=target,
        cpu=cpu,
        optimization=optimization,
        debug=debug,
        lineinfo=lineinfo,
        entries=_words(entries),
        pipeline=pipeline,
        memory=memory,
        block=block,
        cpu_kernels=cpu_kernels,
        verify=verify,
        allow_tf32=allow_tf32,
        allow_3xtf32=allow_3xtf32,
        untested_kernels=untested_kernels,
        allow_file_directives=allow_file_directives,
        prefix=prefix,
        runtime=runtime,
        tuned=None if tuned is None else Path(tuned),
        save_temps=None if save_temps is None else Path(save_temps),
        warnings=_words(warnings),
        frontend=frontend,
        frontend_options=[f"{key}={value}" for key, value in (frontend_options or {}).items()],
    )
    if request.out == "-":
        raise InputError("out='-' is the command line's: name a file or a folder.")
    check_output(request)
    choice = CacheChoice(
        is_on=cache is not False,
        folder=None if isinstance(cache, bool) else Path(cache),
        environment=os.environ,
    )
    return _run(request, {key: Path(path) for key, path in (tools or {}).items()}, choice)


class _Done(Struct, frozen=True):
    """The files of a build with their paths, its warnings, its manifest as JSON, and the seconds
    of each stage."""

    places: Sequence[tuple[ArtifactKind, Path]]
    warnings: Iterable[BuildWarning]
    manifest: str | None
    times: Mapping[str, float]


def _run(request: BuildRequest, tools: Mapping[str, Path], choice: CacheChoice) -> Artifact:
    cache = open_cache(choice, request, tools)
    with cache or contextlib.nullcontext():
        done = _done(request, tools, cache)
    files: dict[ArtifactKind, list[Path]] = {}
    for kind, path in done.places:
        files.setdefault(kind, []).append(path)
    shown = [
        warning
        for warning in dict.fromkeys(done.warnings)
        if request.warnings.severity(warning.name) is Severity.WARNING
    ]
    manifest = None
    if done.manifest is not None:
        manifest = parse_manifest(done.manifest, f"'{request.source}'")
    return Artifact(
        path=files[request.emit[0]][0],
        paths={kind.name: paths[0] for kind, paths in files.items()},
        files={kind.name: tuple(paths) for kind, paths in files.items()},
        manifest=manifest,
        warnings=tuple(shown),
        times=dict(done.times),
    )


def _done(request: BuildRequest, tools: Mapping[str, Path], cache: BuildCache | None) -> _Done:
    if cache is None:
        return _make(request, tools)
    started = time.perf_counter()
    found, content = cache.find_build()
    if found is None:
        return _make(request, tools, cache=cache, content=content)
    seconds = time.perf_counter() - started
    return _Done(deliver(request, found.files), found.warnings, found.manifest, {"cache": seconds})


def _make(
    request: BuildRequest,
    tools: Mapping[str, Path],
    *,
    cache: BuildCache | None = None,
    content: bytes | None = None,
) -> _Done:
    # Imported here because they load the MLIR bindings, which a cached build does not need.
    from aotc.observers import SaveTemps, TimeReport
    from aotc.pipeline import new_build, run_build

    times = TimeReport()
    observers: list[Observer] = [times]
    if request.save_temps is not None:
        observers.append(SaveTemps(request.save_temps))
    with temporary_folder() as folder, rare_collections():
        build = new_build(request, folder, tools=tools, cache=cache, content=content)
        made = run_build(build, observers)
        places = deliver(request, made.files)
    return _Done(places, build.log.warnings, made.manifest, dict(times.times))


def _words(words: str | Iterable[str]) -> tuple[str, ...]:
    """A sequence of words, or the words of a comma-separated text, as on the command line."""
    if isinstance(words, str):
        return tuple(words.split(","))
    return tuple(words)


def _spelled(path: str | os.PathLike[str]) -> str:
    """The path as given; a / at the end means a folder, which `Path` would drop."""
    return os.fspath(path)


def _source(source: Any, name: str | None) -> tuple[Path, bytes | None, bool]:
    """The path that names the module, its content if it is not a file, and whether the bindings in
    use have just written that content."""
    if isinstance(source, str) and any(mark in source for mark in "\n{}"):
        return Path(name or "module"), source.encode(), False
    if isinstance(source, bytes):
        return Path(name or "module"), source, False
    if isinstance(source, str | os.PathLike):
        if name is not None:
            raise InputError("A file has its own name: 'name' is for modules without one.")
        return Path(source), None, False
    operation = getattr(source, "operation", source)
    if not hasattr(operation, "write_bytecode"):
        raise InputError(
            f"Cannot build {type(source).__name__}: expected a path, MLIR as text or bytes, or an "
            "ir.Module."
        )
    from aotc.input.source import bytecode_of, describe_diagnostics
    from aotc.mlir import ir

    place = Path(name or _symbol(operation) or "module")
    try:
        operation.verify()  # writing an operation without a required part would crash
    except Exception as error:
        if not hasattr(error, "error_diagnostics"):
            raise
        # An MLIRError, of either package of bindings.
        said = describe_diagnostics(error, str(place), ())
        raise InputError(f"MLIR refuses the module '{place}':\n{said}") from None
    return place, bytecode_of(operation), isinstance(operation, ir.Operation)


def _symbol(operation: Any) -> str | None:
    """The name that a module gives itself."""
    if "sym_name" not in operation.attributes:
        return None
    return str(operation.attributes["sym_name"]).strip('"')
