"""The stages of a build, in order, as data; and the build that they fill.

A stage takes what stages before it made and makes artifacts of one kind, named alike
everywhere: `--emit NAME` stops there, `--save-temps` writes them, the time report lists them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from aotc import __version__, mlir
from aotc.cpu.kernels import CpuKernel, CpuKernels, build_cpu_kernels
from aotc.cpu.symbols import content, is_kernel
from aotc.device.compile import DeviceCompiler
from aotc.device.lower import lower_device
from aotc.emit.c_text import c_identifier
from aotc.emit.header import generate_header
from aotc.emit.library import generate_library
from aotc.emit.names import exported_functions, name_functions, own_functions
from aotc.emit.package import HEADERS, LIBRARIES, generate_package
from aotc.emit.table import generate_table
from aotc.errors import InputError, ToolError
from aotc.host.compile import DEFAULT_VISIBILITY, HostCompiler
from aotc.host.embed import embed
from aotc.host.link import Linker
from aotc.host.llvm_text import downlevel
from aotc.host.translate import translate
from aotc.load.entries import describe_entries, has_program_main, mark_entries
from aotc.load.source import Source, parse_source, read_source
from aotc.lower.access import describe_accesses
from aotc.lower.host import lower_host
from aotc.lower.leftovers import check_kernel_arguments, check_lowered, check_supported
from aotc.lower.outline import outline
from aotc.lower.outlining import gpu_modules, lowered_kernels
from aotc.lower.schedules import run_schedule
from aotc.lower.tensors import lower_tensors
from aotc.manifest import Entry, Kernel, Manifest, Resources, built_for_text
from aotc.ops import symbol_of
from aotc.request import BuildRequest, Chip, EmitKind, unique
from aotc.toolchain import (
    Runner,
    Toolchain,
    Version,
    data_dir,
    harness_objects,
    runtime_library,
)
from aotc.toolchain.runtime import STATIC_DEFINES


@dataclass(frozen=True)
class Artifact:
    """One thing that a stage made: its kind, the name it likes to have, and its bytes on demand.

    `folder` is its place within a library's package.
    """

    kind: EmitKind
    file_name: str
    content: Callable[[], bytes]
    folder: str = ""


class Observer(Protocol):
    """Told between stages; timing, saving and progress are observers."""

    def stage_started(self, name: str) -> None: ...

    def stage_finished(self, name: str, artifacts: Sequence[Artifact]) -> None: ...


@dataclass
class Build:
    """One build on its way: the request, the tools, and what the stages have made so far.

    Files are made in `folder`, which the caller removes.
    """

    request: BuildRequest
    toolchain: Toolchain
    runner: Runner
    folder: Path
    context: Any
    warnings: list[str] = field(default_factory=list)

    source: Source | None = None
    entries: tuple[Entry, ...] = ()
    is_program: bool = False
    managed_globals: frozenset[str] = frozenset()
    device_modules: dict[str, Any] = field(default_factory=dict)
    # By (gpu.module, chip): file names in `folder`.
    ptx: dict[tuple[str, Chip], str] = field(default_factory=dict)
    cubins: dict[tuple[str, Chip], str] = field(default_factory=dict)
    fatbins: dict[str, str] = field(default_factory=dict)
    # By gpu.module: why it has no code for a chip of the default set.
    refusals: dict[str, list[InputError]] = field(default_factory=dict)
    resources: dict[tuple[str, str], list[Resources]] = field(default_factory=dict)
    cpu: CpuKernels | None = None
    host: Any = None
    manifest: Manifest | None = None

    @property
    def module(self) -> Any:
        assert self.source is not None
        return self.source.module

    @property
    def lines(self) -> tuple[str, ...]:
        assert self.source is not None
        return self.source.lines

    @property
    def device_compiler(self) -> DeviceCompiler:
        r = self.request
        return DeviceCompiler(self.toolchain, self.runner, self.folder, r.optimization, r.debug)

    @property
    def host_compiler(self) -> HostCompiler:
        r = self.request
        return HostCompiler(
            self.toolchain, self.runner, self.folder, r.target, r.optimization, r.debug
        )

    @property
    def linker(self) -> Linker:
        return Linker(
            self.toolchain, self.runner, self.folder, self.request.target, self.request.debug
        )

    def downlevel(self, text: str) -> str:
        """LLVM IR text of the bindings as the clang in use reads it."""
        return downlevel(
            text,
            writer=Version.parse(mlir.bindings().llvm_version),
            reader=self.toolchain.clang.version,
        )

    @property
    def stem(self) -> str:
        """The request's name as the work folder's files start with it: no option to a tool."""
        return c_identifier(self.request.name)

    def file(
        self, kind: EmitKind, name: str, *, called: str | None = None, folder: str = ""
    ) -> Artifact:
        """The artifact that is the file `name` of the work folder."""
        return Artifact(kind, called or name, (self.folder / name).read_bytes, folder)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


@dataclass(frozen=True)
class Stage:
    """A step of the build: its name, the stages whose work it takes, and its work."""

    name: str
    takes: tuple[str, ...]
    run: Callable[[Build], list[Artifact]]


def _printed(kind: EmitKind, name: str, operation: Any, *, debug: bool) -> Artifact:
    # Printed now: later stages change the module.
    text = operation.get_asm(enable_debug_info=debug)
    return Artifact(kind, name, lambda: f"{text}\n".encode())


def _load(build: Build) -> list[Artifact]:
    r = build.request
    name = "<stdin>" if str(r.source) == "-" else str(r.source)
    data = read_source(r.source)
    build.source = parse_source(name, data, build.context, locations=r.debug)
    if r.pipeline is None:
        run_schedule(build.source)
    mark_entries(build.source, r.entries)
    check_supported(build.source, has_pipeline=r.pipeline is not None)
    if r.pipeline is None:
        describe_entries(build.source)  # what has no C form as a tensor has none as a memref
        lower_tensors(build.source)
    build.entries = describe_entries(build.source)
    # A function that the user names is called by the harness, whatever else is there.
    build.is_program = has_program_main(build.module) and not r.entries
    return []


def _outline(build: Build) -> list[Artifact]:
    assert build.source is not None
    r = build.request
    name = c_identifier(r.name)
    build.managed_globals = outline(build.source, name=name, pipeline=r.pipeline)
    check_kernel_arguments(build.source)
    build.entries = name_functions(describe_accesses(build.module, build.entries), r.prefix)
    goes_on = any(kind is not EmitKind.MLIR for kind in r.emit)
    if r.pipeline is not None and goes_on and not gpu_modules(build.module):
        build.warnings.append(
            "The pipeline left no kernel: everything runs on the host. (To have aotc map the "
            "loops that it makes, take them with --emit mlir, and build those.)"
        )
    return [_printed(EmitKind.MLIR, f"{r.name}.gpu.mlir", build.module.operation, debug=r.debug)]


def _lower_device(build: Build) -> list[Artifact]:
    assert build.source is not None
    artifacts = []
    for gpu_module in gpu_modules(build.module):
        name = symbol_of(gpu_module)
        module = lower_device(gpu_module, build.source, debug=build.request.debug)
        build.device_modules[name] = module
        file_name = f"{_stem(build, name)}.device.mlir"
        artifacts.append(
            _printed(EmitKind.DEVICE_MLIR, file_name, module.operation, debug=build.request.debug)
        )
    return artifacts


def _stem(build: Build, gpu_module: str) -> str:
    """The start of the file names of what is made from one gpu.module."""
    own = c_identifier(gpu_module)
    return own if own.startswith(build.stem) else f"{build.stem}.{own}"


def _device_ll_name(build: Build, gpu_module: str) -> str:
    return f"{_stem(build, gpu_module)}.device.ll"


def _translate_device(build: Build) -> list[Artifact]:
    artifacts = []
    for name, module in build.device_modules.items():
        file = build.write(_device_ll_name(build, name), build.downlevel(translate(module)))
        artifacts.append(build.file(EmitKind.DEVICE_LL, file))
    return artifacts


# Where the default set is refused an operation, the architecture's own variant may have it.
_VARIANTS = {"sm_90": "sm_90a", "sm_100": "sm_100a", "sm_120": "sm_120a"}


def _compile_ptx(build: Build) -> list[Artifact]:
    r = build.request
    wanted = unique([*r.cubin_chips, *([r.ptx] if r.ptx else [])])
    jobs = [(name, chip) for name in build.device_modules for chip in wanted]
    made = build.runner.in_parallel(
        [functools.partial(_compile_ptx_for, build, name, chip) for name, chip in jobs]
    )
    for (name, chip), chosen in zip(jobs, made, strict=True):
        if isinstance(chosen, InputError):
            _leave_out(build, name, chip, chosen)
        else:
            build.ptx[name, chosen] = _ptx_name(build, name, chosen)
    return [build.file(EmitKind.PTX, file) for file in build.ptx.values()]


def _compile_ptx_for(build: Build, gpu_module: str, chip: Chip) -> Chip | InputError:
    """Makes PTX, and says for which chip: `chip`, or its variant where that alone has what the
    code needs. Where neither has it: why not, for a chip of the default set; a chip that the
    user named must work."""
    for candidate in _candidates(build, chip):
        try:
            build.device_compiler.compile_ptx(
                _device_ll_name(build, gpu_module),
                candidate,
                _ptx_name(build, gpu_module, candidate),
            )
        except InputError as error:
            if not build.request.has_default_chips:
                raise
            refusal = error
            continue
        return candidate
    return refusal


def _candidates(build: Build, chip: Chip) -> list[Chip]:
    is_default = build.request.has_default_chips
    variant = _VARIANTS.get(chip.name) if is_default else None
    return [chip, *([Chip(variant)] if variant else [])]


def _ptx_name(build: Build, gpu_module: str, chip: Chip) -> str:
    return f"{_stem(build, gpu_module)}.{chip.name}.ptx"


def _leave_out(build: Build, gpu_module: str, chip: Chip, refusal: InputError) -> None:
    """Notes that there is no code of a module for a chip of the default set."""
    build.refusals.setdefault(gpu_module, []).append(refusal)
    build.warnings.append(f"No code for {chip.name} in {gpu_module}: {refusal.message}")


def _assemble(build: Build) -> list[Artifact]:
    # A chip that is there for its PTX alone gets no cubin.
    capabilities = {chip.capability for chip in build.request.cubin_chips}
    jobs = [key for key in build.ptx if key[1].capability in capabilities]
    made = build.runner.in_parallel(
        [functools.partial(_assemble_for, build, name, chip) for name, chip in jobs]
    )
    for (name, chip), result in zip(jobs, made, strict=True):
        if isinstance(result, InputError):
            # ptxas refuses it here, and the driver's assembler would there.
            del build.ptx[name, chip]
            _leave_out(build, name, chip, result)
            continue
        chosen, kernels = result
        build.cubins[name, chosen] = _cubin_name(build, name, chosen)
        for kernel, resources in kernels:
            build.resources.setdefault((name, kernel), []).append(resources)
    for name in build.device_modules:
        if not any(owner == name for owner, _ in build.cubins):
            raise build.refusals[name][0]
    return [build.file(EmitKind.CUBIN, file) for file in build.cubins.values()]


def _assemble_for(
    build: Build, gpu_module: str, chip: Chip
) -> tuple[Chip, list[tuple[str, Resources]]] | InputError:
    """Like `_compile_ptx_for`, for the cubin; with what ptxas says of the kernels."""
    compiler, source = build.device_compiler, _device_ll_name(build, gpu_module)
    for candidate in _candidates(build, chip):
        ptx = _ptx_name(build, gpu_module, candidate)
        try:
            if candidate != chip:
                compiler.compile_ptx(source, candidate, ptx)
            cubin = _cubin_name(build, gpu_module, candidate)
            return candidate, compiler.assemble(ptx, candidate, cubin, ir=source)
        except InputError as error:
            if not build.request.has_default_chips:
                raise
            refusal = error
    return refusal


def _cubin_name(build: Build, gpu_module: str, chip: Chip) -> str:
    return f"{_stem(build, gpu_module)}.{chip.name}.cubin"


def _bundle(build: Build) -> list[Artifact]:
    r = build.request
    for name in build.device_modules:
        cubins = {chip: file for (owner, chip), file in build.cubins.items() if owner == name}
        ptx = None
        if r.ptx is not None and (name, r.ptx) in build.ptx:
            ptx = (r.ptx, build.ptx[name, r.ptx])
        file = f"{_stem(build, name)}.fatbin"
        build.device_compiler.bundle(cubins, ptx, file)
        build.fatbins[name] = file
    return [build.file(EmitKind.FATBIN, file) for file in build.fatbins.values()]


_LEFT_OUT = "it was built with --no-cpu-kernels"
_LOWERED_BEFORE = "it was in the LLVM dialect before aotc saw it"


def _lower_cpu(build: Build) -> list[Artifact]:
    assert build.source is not None
    if not build.request.cpu_kernels:
        build.cpu = _without_cpu_kernels(build)
        return []
    # The reasons that it gives go into the artifact: the file is named without its folder.
    cpu = build_cpu_kernels(build.module, Path(build.source.name).name, debug=build.request.debug)
    lowered = [
        CpuKernel(symbol_of(gpu_module), symbol_of(function), None, _LOWERED_BEFORE)
        for gpu_module in gpu_modules(build.module)
        for function in lowered_kernels(gpu_module)
    ]
    build.cpu = replace(cpu, kernels=(*cpu.kernels, *lowered))
    name = f"{build.request.name}.cpu.mlir"
    return [
        _printed(EmitKind.CPU_MLIR, name, build.cpu.module.operation, debug=build.request.debug)
    ]


def _without_cpu_kernels(build: Build) -> CpuKernels:
    """Every kernel, none with a CPU form: the runtime and the manifest still tell why."""
    kernels = tuple(
        CpuKernel(symbol_of(gpu_module), symbol_of(operation), None, _LEFT_OUT)
        for gpu_module in gpu_modules(build.module)
        for operation in [
            *(op for op in content(gpu_module) if is_kernel(op)),
            *lowered_kernels(gpu_module),
        ]
    )
    if kernels and build.request.target.library == "musl":
        build.warnings.append(
            "The kernels have nowhere to run: a program for musl cannot load NVIDIA's driver, and "
            "--no-cpu-kernels leaves out the CPU's."
        )
    with build.context, mlir.ir.Location.unknown():
        return CpuKernels(mlir.ir.Module.create(), kernels)


def _lower_host(build: Build) -> list[Artifact]:
    assert build.source is not None
    build.host = lower_host(
        build.module, name=build.source.name, lines=build.lines, debug=build.request.debug
    )
    check_lowered(build.host, build.source, ("llvm", "gpu"), what="host code")
    name = f"{build.request.name}.host.mlir"
    return [_printed(EmitKind.HOST_MLIR, name, build.host.operation, debug=build.request.debug)]


def _describe(build: Build) -> list[Artifact]:
    r = build.request
    assert build.cpu is not None
    build.manifest = Manifest(
        name=r.name,
        library=r.library,
        functions=own_functions(r.name, r.prefix),
        aotc=__version__,
        target=r.target.triple,
        entries=build.entries,
        kernels=tuple(
            Kernel(
                kernel.module,
                kernel.kernel,
                _built_for(build, kernel.module),
                kernel.why_not,
                tuple(build.resources.get((kernel.module, kernel.kernel), ())),
            )
            for kernel in build.cpu.kernels
        ),
        optimization=r.optimization,
        tools=_tools_used(build),
    )
    text = build.manifest.to_json()
    return [Artifact(EmitKind.MANIFEST, f"{r.library}.json", text.encode)]


def _built_for(build: Build, gpu_module: str) -> tuple[str, ...]:
    """The images of a gpu.module: chips, and the virtual one whose PTX is there."""
    chips = [chip.name for owner, chip in build.cubins if owner == gpu_module]
    ptx = build.request.ptx
    has_ptx = ptx is not None and (gpu_module, ptx) in build.ptx
    return (*chips, *([ptx.compute] if ptx is not None and has_ptx else []))


def _declare(build: Build) -> list[Artifact]:
    assert build.manifest is not None
    _require_entries(build, "a header")
    exported_functions(build.manifest)
    name, text = generate_header(build.manifest)
    return [Artifact(EmitKind.HEADER, name, text.encode, HEADERS)]


def _package(build: Build) -> list[Artifact]:
    assert build.manifest is not None
    _require_entries(build, "a package")
    return [
        Artifact(EmitKind.PACKAGE, name, text.encode, folder)
        for folder, name, text in generate_package(
            build.manifest,
            has_shared=EmitKind.SHARED in build.request.emit,
            shares_runtime=build.request.shares_runtime,
        )
    ]


def _tools_used(build: Build) -> dict[str, str]:
    """What made the artifacts, by name and version; no paths."""
    t = build.toolchain
    bindings = mlir.bindings()
    device_tools = (t.ptxas, t.fatbinary, t.libdevice) if build.device_modules else ()
    return {
        "mlir": f"{bindings.package} {bindings.version} (LLVM {bindings.llvm_version})",
        **{tool.name: str(tool.version) for tool in (t.clang, t.zig, *device_tools)},
    }


def _translate_host(build: Build) -> list[Artifact]:
    assert build.manifest is not None
    images = {name: (build.folder / file).read_bytes() for name, file in build.fatbins.items()}
    embed(
        build.host.operation,
        images,
        build.cpu,
        build.entries,
        built_for={name: built_for_text(_built_for(build, name)) for name in images},
        managed_globals=build.managed_globals,
    )
    file = build.write(_host_ll_name(build), build.downlevel(translate(build.host)))
    return [build.file(EmitKind.HOST_LL, file, called=f"{build.request.name}.ll")]


def _host_ll_name(build: Build) -> str:
    return f"{build.stem}.ll"


def _compile_asm(build: Build) -> list[Artifact]:
    file = f"{build.stem}.s"
    build.host_compiler.compile_ir(_host_ll_name(build), file, assembly=True)
    return [build.file(EmitKind.ASM, file, called=f"{build.request.name}.s")]


def _object_name(build: Build) -> str:
    return f"{build.stem}.o"


def _compile_object(build: Build) -> list[Artifact]:
    file = _object_name(build)
    build.host_compiler.compile_ir(_host_ll_name(build), file)
    return [build.file(EmitKind.OBJ, file, called=f"{build.request.name}.o")]


def _runtime(build: Build) -> Path:
    """The runtime of a library: a part of it, or a file beside it."""
    kind: Literal["static", "shared"] = "shared" if build.request.shares_runtime else "static"
    return runtime_library(build.toolchain, build.runner, build.request.target.triple, kind=kind)


def _link_static(build: Build) -> list[Artifact]:
    _require_entries(build, "a static library")
    file = f"lib{build.request.library}.a"
    objects = [_object_name(build), _compile_library(build)]
    runtime = None if build.request.shares_runtime else _runtime(build)
    build.linker.archive(objects, runtime, file, _exports(build))
    made = [build.file(EmitKind.STATIC, file, folder=LIBRARIES)]
    is_alone = EmitKind.SHARED not in build.request.emit
    return [*made, *(_shared_runtime(build) if is_alone else [])]


def _link_shared(build: Build) -> list[Artifact]:
    _require_entries(build, "a shared library")
    file = f"lib{build.request.library}.so"
    if build.request.shares_runtime and not build.request.names_folder:
        build.warnings.append(
            "The library needs libmlir_cuda_runtime.so beside it: -o DIRECTORY/ puts both there."
        )
    objects = [_object_name(build), _compile_library(build)]
    build.linker.link_shared(
        objects, _runtime(build), file, _exports(build), soname=build.request.soname
    )
    return [build.file(EmitKind.SHARED, file, folder=LIBRARIES), *_shared_runtime(build)]


def _shared_runtime(build: Build) -> list[Artifact]:
    """The runtime as a file beside the library, for those who want it so."""
    if not build.request.shares_runtime or not build.request.names_folder:
        return []
    runtime = _runtime(build)
    is_shared = EmitKind.SHARED in build.request.emit
    kind = EmitKind.SHARED if is_shared else EmitKind.STATIC
    return [Artifact(kind, runtime.name, runtime.read_bytes, LIBRARIES)]


def _exports(build: Build) -> list[str]:
    """All that a library has for others."""
    assert build.manifest is not None
    return exported_functions(build.manifest)


def _compile_library(build: Build) -> str:
    """The library's C functions; their object."""
    assert build.manifest is not None
    build.write(*generate_header(build.manifest))
    options = () if build.request.shares_runtime else STATIC_DEFINES
    try:
        return _compile_generated(
            build, *generate_library(build.manifest), DEFAULT_VISIBILITY, *options
        )
    except ToolError as error:
        known = re.search(r"redeclaration of library function '(\w+)'", error.stderr)
        if known is None:
            raise
        raise InputError(
            f"The C function of entry '{known[1]}' would be called like one of the C library.",
            hint="Rename the entry, or put something in front of all names: --prefix my_.",
        ) from None


def _compile_generated(build: Build, name: str, text: str, *options: str) -> str:
    """A generated C file → its object, which is named."""
    build.write(name, text)
    includes = (data_dir("templates") / "harness", data_dir("runtime_c") / "include")
    output = f"{Path(name).stem}.o"
    build.host_compiler.compile_c(name, output, includes=includes, options=options)
    return output


def _require_entries(build: Build, what: str) -> None:
    if not build.entries:
        if EmitKind.SHARED in build.request.emit:
            what = "a shared library"
        elif EmitKind.STATIC in build.request.emit:
            what = "a static library"
        raise InputError(
            f"Nothing to export: {build.request.source} has a main of its own and no entry, so it "
            f"makes an executable, not {what}."
        )


def _link_executable(build: Build) -> list[Artifact]:
    assert build.manifest is not None
    triple = build.request.target.triple
    harness = harness_objects(build.toolchain, build.runner, triple, program_main=build.is_program)
    objects: list[str | Path] = [_object_name(build), *harness]
    if not build.is_program:
        objects.append(_compile_generated(build, *generate_table(build.manifest)))
    file = f"{build.stem}.exe"
    runtime = runtime_library(build.toolchain, build.runner, triple, kind="static")
    build.linker.link_executable(objects, runtime, file)
    return [build.file(EmitKind.EXE, file, called=build.request.name)]


STAGES: tuple[Stage, ...] = (
    Stage("load", (), _load),
    Stage("mlir", ("load",), _outline),
    Stage("device-mlir", ("mlir",), _lower_device),
    Stage("device-ll", ("device-mlir",), _translate_device),
    Stage("ptx", ("device-ll",), _compile_ptx),
    Stage("cubin", ("ptx",), _assemble),
    Stage("fatbin", ("cubin",), _bundle),
    Stage("cpu-mlir", ("mlir",), _lower_cpu),
    Stage("host-mlir", ("mlir",), _lower_host),
    # What ptxas says of each kernel is part of it.
    Stage("manifest", ("cubin", "cpu-mlir"), _describe),
    Stage("header", ("manifest",), _declare),
    Stage("package", ("manifest",), _package),
    Stage("host-ll", ("host-mlir", "fatbin", "cpu-mlir", "manifest"), _translate_host),
    Stage("asm", ("host-ll",), _compile_asm),
    Stage("obj", ("host-ll",), _compile_object),
    Stage("static", ("obj", "manifest"), _link_static),
    Stage("shared", ("obj", "manifest"), _link_shared),
    Stage("exe", ("obj", "manifest"), _link_executable),
)


def stages_for(kinds: Iterable[EmitKind]) -> tuple[Stage, ...]:
    """The stages that make `kinds`, with all that they take, in order."""
    by_name = {stage.name: stage for stage in STAGES}
    needed: set[str] = set()
    pending = [kind.value for kind in kinds]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending.extend(by_name[name].takes)
    return tuple(stage for stage in STAGES if stage.name in needed)


def run_build(build: Build, observers: Sequence[Observer] = ()) -> list[Artifact]:
    """Runs the stages that the request asks for; the artifacts that it asks for."""
    wanted: list[Artifact] = []
    for stage in stages_for(build.request.emit):
        for observer in observers:
            observer.stage_started(stage.name)
        artifacts = stage.run(build)
        for observer in observers:
            observer.stage_finished(stage.name, artifacts)
        wanted += [artifact for artifact in artifacts if artifact.kind in build.request.emit]
    missing = [
        kind.value
        for kind in build.request.emit
        if not any(artifact.kind is kind for artifact in wanted)
    ]
    if missing:
        raise InputError(
            f"Nothing to emit for {', '.join(missing)}: {build.request.source} has no kernel."
        )
    return wanted
