"""Stages from gpu.modules to images: MLIR, LLVM IR, PTX, cubins, fat binaries."""

from __future__ import annotations

import functools
from typing import Any

from aotc.chips import FIRST_WITH_VARIANT
from aotc.delivery import check_room
from aotc.device.early_kernels import early_kernels
from aotc.device.lower import lower_device
from aotc.device.requirements import Need, find_needs
from aotc.emit.c_text import file_stem
from aotc.errors import InputError
from aotc.input.source import input_error
from aotc.lower.kernels.outlining import ANY_GPU, CPU, gpu_modules, runs_on
from aotc.manifest import Resources
from aotc.ops import symbol_of
from aotc.request import KNOWN_CHIPS, Chip, EmitKind, unique
from aotc.stages.build import Build, printed
from aotc.stages.file import StageFile
from aotc.warnings import BuildWarning


def lower_to_nvvm(build: Build) -> list[StageFile]:
    assert build.source is not None
    artifacts: list[StageFile] = []
    modules = gpu_modules(build.module)
    stems = [_stem(build, symbol_of(op)) for op in modules if runs_on(op) != CPU]
    for kind in (EmitKind.DEVICE_MLIR, EmitKind.DEVICE_LL, EmitKind.PTX, EmitKind.FATBIN):
        check_room(build.request, kind, [f"{stem}.{kind.value}" for stem in stems])
    for gpu_module in modules:
        name = symbol_of(gpu_module)
        target = runs_on(gpu_module)
        if target == CPU:
            build.cpu_alone.append(name)
            continue
        if target not in (None, ANY_GPU):
            build.only_for[name] = Chip(target)
        build.early_kernels[name] = early_kernels(gpu_module)
        if (text := _lowered_before(build, name, gpu_module)) is not None:
            build.device_modules[name] = None
            build.device_texts[name] = text
            continue
        module = lower_device(
            gpu_module,
            build.source,
            debug=build.request.debug,
            watch=build.watch("device-mlir"),
        )
        build.device_modules[name] = module
        file_name = f"{_stem(build, name)}.device.mlir"
        artifacts += printed(build, EmitKind.DEVICE_MLIR, file_name, module.operation)
    return artifacts


def _lowered_before(build: Build, name: str, gpu_module: Any) -> str | None:
    """Its LLVM IR, if the cache has it."""
    if build.cache is None or build.cache.device_code is None:
        return None
    return build.cache.device_code.find(_device_ll_name(build, name), gpu_module)


def _stem(build: Build, gpu_module: str) -> str:
    """The start of the file names of what is made from one gpu.module."""
    own = file_stem(gpu_module)
    return own if own.startswith(build.stem) else f"{build.stem}.{own}"


def _device_ll_name(build: Build, gpu_module: str) -> str:
    return f"{_stem(build, gpu_module)}.device.ll"


def begin_device(build: Build) -> None:
    """What the stages for devices need of modules, which other stages work on meanwhile."""
    build.needs = {symbol_of(op): find_needs(op) for op in gpu_modules(build.module)}
    wanted = _ptx_chips(build)
    for name, module in build.device_modules.items():
        build.able[name] = _able(build, name, _of_use(build, name, wanted))
        if module is not None:
            build.translations[name] = build.translation(module)
    # A chip that is there for its PTX alone gets no cubin.
    capabilities = {chip.capability for chip in build.request.cubin_chips}
    jobs = [(name, chip) for name, chips in build.able.items() for chip in chips]
    cubins = [_cubin_name(build, *job) for job in jobs if job[1].capability in capabilities]
    check_room(build.request, EmitKind.CUBIN, cubins)
    check_room(build.request, EmitKind.PTX, [_ptx_name(build, *job) for job in jobs])


def _of_use(build: Build, gpu_module: str, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
    """The chips that the kernels of a gpu.module are launched on: of those that have their code
    written for them, that one alone."""
    only = build.only_for.get(gpu_module)
    if only is None:
        return chips
    return (only,) if any(chip.capability == only.capability for chip in chips) else ()


def _ptx_chips(build: Build) -> tuple[Chip, ...]:
    r = build.request
    return unique([*r.cubin_chips, *([r.ptx] if r.ptx else [])])


def translate_device(build: Build) -> list[StageFile]:
    artifacts = []
    for name in build.device_modules:
        file = _device_ll_name(build, name)
        text = build.device_texts.get(name)
        if text is None:
            text = build.translated(build.translations[name])
            if build.cache is not None and build.cache.device_code is not None:
                build.cache.device_code.keep(file, text)
        artifacts.append(build.file(EmitKind.DEVICE_LL, build.write(file, text)))
    return artifacts


def compile_ptx(build: Build) -> list[StageFile]:
    jobs = [(name, chip) for name, chips in build.able.items() for chip in chips]
    made = build.runner.in_parallel(
        [functools.partial(_compile_ptx_for, build, name, chip) for name, chip in jobs]
    )
    for (name, chip), chosen in zip(jobs, made, strict=True):
        if isinstance(chosen, InputError):
            _leave_out(build, name, chip, chosen)
        else:
            build.ptx[name, chosen] = _ptx_name(build, name, chosen)
    return [build.file(EmitKind.PTX, file) for file in build.ptx.values()]


def _able(build: Build, gpu_module: str, chips: tuple[Chip, ...]) -> list[Chip]:
    """The chips that have every operation of a gpu.module; others of the default set are left out
    with a warning. Raises InputError where the user named one that lacks something."""
    assert build.source is not None
    is_default = build.request.has_default_chips
    problems = []
    for need in build.needs[gpu_module]:
        lacking = [
            chip.name for chip in chips if not any(map(need.is_met_by, _variants(build, chip)))
        ]
        if not lacking:
            continue
        names = ", ".join(lacking)
        problems.append((need.location, f"{need}: {names} lacks it"))
        if is_default:
            text = f"{need}: no code for {names} in {gpu_module}"
            warning = BuildWarning.at(build.source, "chip-left-out", need.location, text)
            build.warnings.append(warning)
    if problems:
        refusal = input_error(build.source, problems, hint=_hint(build.needs[gpu_module]))
        if not is_default:
            raise refusal
        build.refusals.setdefault(gpu_module, []).append(refusal)
    return [chip for chip in chips if _candidates(build, gpu_module, chip)]


def _hint(needs: tuple[Need, ...]) -> str | None:
    """A chip that has all of it, if there is one."""
    having = [name for name in KNOWN_CHIPS if all(need.is_met_by(Chip(name)) for need in needs)]
    return f"--chip {having[0]}" if having else None


def _compile_ptx_for(build: Build, gpu_module: str, chip: Chip) -> Chip | InputError:
    """Makes PTX, and says for which chip: `chip`, or its variant where that alone has what the
    code needs. Where neither has it: why not, for a chip of the default set; a chip that the
    user named must work."""
    for candidate in _candidates(build, gpu_module, chip):
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


def _candidates(build: Build, gpu_module: str, chip: Chip) -> list[Chip]:
    """The chip, and its own variant for one of the default set: those that have what the
    gpu.module's operations need."""
    needs = build.needs[gpu_module]
    return [
        candidate
        for candidate in _variants(build, chip)
        if all(need.is_met_by(candidate) for need in needs)
    ]


def _variants(build: Build, chip: Chip) -> list[Chip]:
    """Where the default set is refused an operation, the architecture's own variant may have it."""
    has_variant = build.request.has_default_chips and chip.capability >= FIRST_WITH_VARIANT
    return [chip, *([Chip(f"{chip.name}a")] if has_variant else [])]


def _ptx_name(build: Build, gpu_module: str, chip: Chip) -> str:
    return f"{_stem(build, gpu_module)}.{chip.name}.ptx"


def _leave_out(build: Build, gpu_module: str, chip: Chip, refusal: InputError) -> None:
    """Notes that there is no code of a module for a chip of the default set."""
    build.refusals.setdefault(gpu_module, []).append(refusal)
    text = f"No code for {chip.name} in {gpu_module}: {refusal.message}"
    build.warnings_beside.append(BuildWarning("chip-left-out", text))


def assemble(build: Build) -> list[StageFile]:
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
    for candidate in _candidates(build, gpu_module, chip):
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


def bundle(build: Build) -> list[StageFile]:
    r = build.request
    for name in build.device_modules:
        cubins = {chip: file for (owner, chip), file in build.cubins.items() if owner == name}
        ptx = None
        if r.ptx is not None and (name, r.ptx) in build.ptx:
            ptx = (r.ptx, build.ptx[name, r.ptx])
        file = f"{_stem(build, name)}.fatbin"
        build.device_compiler.bundle(cubins, ptx, file)
        build.fatbins[name] = file
    for binary in build.given:
        file = f"{_stem(build, binary.name)}.fatbin"
        build.device_compiler.bundle_given(binary, file)
        build.fatbins[binary.name] = file
    return [build.file(EmitKind.FATBIN, file) for file in build.fatbins.values()]
