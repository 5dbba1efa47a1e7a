"""The stages from gpu.modules to images: MLIR, LLVM IR, PTX, cubins, fat binaries."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aotc.analysis.gpu_modules import gpu_modules, runs_on
from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import ArtifactFile
from aotc.attributes import WITHOUT_REDUX
from aotc.building.build import Build, translated
from aotc.building.results import DeviceImage, KernelCode, Outlined
from aotc.chips import FIRST_WITH_REDUX, FIRST_WITH_VARIANT
from aotc.delivery import check_room
from aotc.emit.c_text import file_stem
from aotc.errors import InputError, ToolError
from aotc.input.source import Source, input_error
from aotc.kernels.family import ANY_GPU, CPU
from aotc.manifest import Resources
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import KNOWN_CHIPS, Chip, unique
from aotc.targets.cuda.artifacts import CUBIN, DEVICE_LL, DEVICE_MLIR, FATBIN, KINDS, PTX
from aotc.targets.cuda.compile import DeviceCompiler
from aotc.targets.cuda.lower import lower_device
from aotc.targets.cuda.pdl_kernels import kernels_without_control, pdl_kernels
from aotc.targets.cuda.ptx_levels import level_of, retarget
from aotc.targets.cuda.ptx_waits import FIRST_WITH_WAITS, add_waits
from aotc.targets.cuda.requirements import Need, find_needs
from aotc.targets.cuda.results import (
    CompiledPtx,
    Cubins,
    DeviceModule,
    DeviceModules,
    DeviceUnit,
    DeviceUnits,
    TranslatedDevice,
)
from aotc.warnings import BuildWarning

if TYPE_CHECKING:
    from aotc.targets.cuda.results import Image


def lower_to_nvvm(build: Build, outlined: Outlined) -> DeviceModules:
    r = build.request
    lowered: list[DeviceModule] = []
    files: list[ArtifactFile] = []
    modules = gpu_modules(outlined.module)
    has_waits = any(chip.capability >= FIRST_WITH_WAITS for chip in _ptx_chips(build))
    on_gpu = [symbol_of(op) for op in modules if runs_on(op) != CPU]
    for kind in KINDS:
        # The number of images depends on the chips, which `begin_device` knows.
        if not kind.is_per_chip:
            check_room(r, kind, [_name(build, kind, name) for name in on_gpu])
    for gpu_module in modules:
        name = symbol_of(gpu_module)
        target = runs_on(gpu_module)
        if target == CPU:
            continue
        only_chip = None if target in (None, ANY_GPU) else Chip(target)
        adds_waits = has_waits and name not in outlined.by_hand
        given_waits = tuple(kernels_without_control(gpu_module)) if adds_waits else ()
        with_pdl = tuple(pdl_kernels(gpu_module, given_waits))
        used_on = _ptx_chips(build) if only_chip is None else (only_chip,)
        if any(chip.capability < FIRST_WITH_REDUX for chip in used_on):
            with gpu_module.context:
                gpu_module.attributes[WITHOUT_REDUX] = ir.UnitAttr.get()
        module, text = None, _lowered_before(build, name, gpu_module)
        if text is None:
            watch = build.watch("device-mlir")
            module = lower_device(gpu_module, outlined.source, debug=build.has_lines, watch=watch)
            files += build.printed(DEVICE_MLIR, module.operation, **_words(build, name))
        lowered.append(DeviceModule(name, module, text, only_chip, with_pdl, given_waits))
    return DeviceModules(tuple(lowered), files=tuple(files))


def _lowered_before(build: Build, name: str, gpu_module: Any) -> str | None:
    """The LLVM IR of a gpu.module, if the cache has it and its lowered MLIR is not requested."""
    if build.cache is None or build.cache.device_code is None or DEVICE_MLIR in build.request.emit:
        return None
    return build.cache.device_code.find(_name(build, DEVICE_LL, name), gpu_module)


def _stem(build: Build, gpu_module: str) -> str:
    """The stem of the names of files that are made from one gpu.module."""
    own = file_stem(gpu_module)
    return own if own.startswith(build.stem) else f"{build.stem}.{own}"


def _words(build: Build, gpu_module: str, chip: Chip | None = None) -> dict[str, str]:
    """The words for the path templates of the artifacts of one gpu.module (and chip)."""
    words = {"gpu_module": _stem(build, gpu_module)}
    return words if chip is None else {**words, "chip": chip.name}


def _name(build: Build, kind: ArtifactKind, gpu_module: str, chip: Chip | None = None) -> str:
    """The name of an artifact's file in the work folder."""
    return build.request.paths_of(kind, **_words(build, gpu_module, chip))[0]


def _file(
    build: Build, kind: ArtifactKind, gpu_module: str, chip: Chip | None = None
) -> ArtifactFile:
    words = _words(build, gpu_module, chip)
    return build.file(kind, _name(build, kind, gpu_module, chip), **words)


def begin_device(build: Build, outlined: Outlined, device: DeviceModules) -> DeviceUnits:
    """Takes what the device stages need from the modules, on which other stages work meanwhile."""
    needs = {symbol_of(op): find_needs(op) for op in gpu_modules(outlined.module)}
    units = []
    for module in device.modules:
        wanted = _of_use(module, _ptx_chips(build))
        chips, refusals = _able(build, outlined.source, module.name, needs[module.name], wanted)
        translation = None if module.module is None else build.translation(module.module)
        needed, text, waits = needs[module.name], module.llvm_ir, module.given_waits
        units.append(DeviceUnit(module.name, needed, chips, refusals, text, translation, waits))
    jobs = [(unit.name, chip) for unit in units for chip in unit.chips]
    for kind in KINDS:
        if kind.is_per_chip:
            images = jobs if kind is PTX else _for_cubins(build, jobs)
            check_room(build.request, kind, [_name(build, kind, *image) for image in images])
    return DeviceUnits(tuple(units))


def _for_cubins(build: Build, images: Iterable[Image]) -> list[Image]:
    """The images for which a cubin is made. A chip that is only wanted for PTX has none."""
    capabilities = {chip.capability for chip in build.request.cubin_chips}
    return [image for image in images if image[1].capability in capabilities]


def _of_use(module: DeviceModule, chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
    """The chips on which the kernels of a gpu.module are launched: if its code was written for one
    chip, only this one."""
    only = module.only_chip
    if only is None:
        return chips
    return (only,) if any(chip.capability == only.capability for chip in chips) else ()


def _ptx_chips(build: Build) -> tuple[Chip, ...]:
    r = build.request
    return unique([*r.cubin_chips, *([r.ptx] if r.ptx else [])])


def translate_device(
    build: Build, outlined: Outlined, device: DeviceModules, begun: DeviceUnits
) -> TranslatedDevice:
    for unit in begun.units:
        file, text = _name(build, DEVICE_LL, unit.name), unit.llvm_ir
        if unit.translation is not None:
            text = translated(unit.translation, outlined.source)
            if build.cache is not None and build.cache.device_code is not None:
                build.cache.device_code.keep(file, text)
        assert text is not None
        build.write(file, text)
    files = tuple(_file(build, DEVICE_LL, unit.name) for unit in begun.units)
    return TranslatedDevice(begun.units, files=files)


def _compiler(build: Build) -> DeviceCompiler:
    r = build.request
    return DeviceCompiler(
        build.toolchain, build.runner, build.folder, r.optimization, build.has_lines
    )


def compile_ptx(build: Build, device: TranslatedDevice) -> CompiledPtx:
    jobs = [(unit, chip) for unit in device.units for chip in unit.chips]
    levels = _levels(build, device.units)
    units = {unit.name: unit for unit in device.units}
    wanted = unique((unit.name, levels[unit.name, chip]) for unit, chip in jobs)
    compiled = build.runner.in_parallel(
        [functools.partial(_compile_level, build, units[name], level) for name, level in wanted]
    )
    able = {one for one, is_compiled in zip(wanted, compiled, strict=True) if is_compiled}
    made = build.runner.in_parallel(
        [
            functools.partial(
                _compile_ptx_for, build, unit, chip, level if (unit.name, level) in able else None
            )
            for unit, chip in jobs
            for level in [levels[unit.name, chip]]
        ]
    )
    images: list[Image] = []
    refusals = []
    for (unit, chip), chosen in zip(jobs, made, strict=True):
        if isinstance(chosen, InputError):
            _leave_out(build, unit.name, chip, chosen)
            refusals.append((unit.name, chosen))
        else:
            images.append((unit.name, chosen))
    images = list(unique(images))
    files = tuple(_file(build, PTX, *image) for image in images)
    return CompiledPtx(tuple(images), tuple(refusals), files=files)


def _able(
    build: Build, source: Source, gpu_module: str, needs: tuple[Need, ...], chips: tuple[Chip, ...]
) -> tuple[tuple[Chip, ...], tuple[InputError, ...]]:
    """The chips that support every operation of a gpu.module, and why others of the default set are
    left out, which is also a warning. Raises InputError if the user named a chip that does not."""
    is_default = build.request.has_default_chips
    problems = []
    for need in needs:
        lacking = [
            chip.name for chip in chips if not any(map(need.is_met_by, _variants(build, chip)))
        ]
        if not lacking:
            continue
        names = ", ".join(lacking)
        problems.append((need.location, f"{need}: {names} lacks it"))
        if is_default:
            text = f"{need}: no code for {names} in {gpu_module}"
            warning = BuildWarning.at(source, "chip-left-out", need.location, text)
            build.log.warnings.append(warning)
    able = tuple(chip for chip in chips if _candidates(build, needs, chip))
    if not problems:
        return able, ()
    refusal = input_error(source, problems, hint=_hint(needs))
    if not is_default:
        raise refusal
    return able, (refusal,)


def _hint(needs: tuple[Need, ...]) -> str | None:
    """An option with a chip that meets all requirements, if there is one."""
    having = [name for name in KNOWN_CHIPS if all(need.is_met_by(Chip(name)) for need in needs)]
    return f"--chip {having[0]}" if having else None


def _levels(build: Build, units: Iterable[DeviceUnit]) -> dict[tuple[str, Chip], Chip]:
    """(gpu.module, chip) → the chip for which clang compiles."""
    levels = {}
    for unit in units:
        llvm_ir = (build.folder / _name(build, DEVICE_LL, unit.name)).read_text()
        for chip in unit.chips:
            candidate = _candidates(build, unit.needs, chip)[0]
            levels[unit.name, chip] = level_of(candidate, llvm_ir, unit.needs)
    return levels


def _compile_level(build: Build, unit: DeviceUnit, level: Chip) -> bool:
    """Compiles the PTX that chips share; False if this chip does not support the code."""
    try:
        _compile(build, unit, level)
    except InputError:
        return False
    return True


def _compile_ptx_for(
    build: Build, unit: DeviceUnit, chip: Chip, level: Chip | None
) -> Chip | InputError:
    """Makes PTX for `chip`, or for its variant if only that one supports the code; returns the
    chip.

    If neither supports it, returns the reason for a chip of the default set, and raises it for a
    chip that the user named. `level` is the chip whose PTX can be shared, if it was compiled."""
    if level is not None:
        candidate = _candidates(build, unit.needs, chip)[0]
        if candidate != level:
            ptx = (build.folder / _name(build, PTX, unit.name, level)).read_bytes()
            _write_ptx(build, unit, candidate, retarget(ptx, candidate))
        return candidate
    for candidate in _candidates(build, unit.needs, chip):
        try:
            _compile(build, unit, candidate)
        except InputError as error:
            if not build.request.has_default_chips:
                raise
            refusal = error
            continue
        return candidate
    return refusal


def _compile(build: Build, unit: DeviceUnit, chip: Chip) -> None:
    """Makes the PTX for the chip, with the waits that its kernels are launched with. All PTX comes
    from here."""
    file = _name(build, PTX, unit.name, chip)
    _compiler(build).compile_ptx(_name(build, DEVICE_LL, unit.name), chip, file)
    _write_ptx(build, unit, chip, (build.folder / file).read_bytes())


def _write_ptx(build: Build, unit: DeviceUnit, chip: Chip, ptx: bytes) -> None:
    file = build.folder / _name(build, PTX, unit.name, chip)
    file.write_bytes(add_waits(ptx, chip, unit.given_waits))


def _candidates(build: Build, needs: tuple[Need, ...], chip: Chip) -> list[Chip]:
    """The chip, and for the default set its variant, if they meet the requirements of a
    gpu.module's operations."""
    return [
        candidate
        for candidate in _variants(build, chip)
        if all(need.is_met_by(candidate) for need in needs)
    ]


def _variants(build: Build, chip: Chip) -> list[Chip]:
    """The chip, and for the default set its architecture-specific variant, which may have more
    operations."""
    has_variant = build.request.has_default_chips and chip.capability >= FIRST_WITH_VARIANT
    return [chip, *([Chip(f"{chip.name}a")] if has_variant else [])]


def _leave_out(build: Build, gpu_module: str, chip: Chip, refusal: InputError) -> None:
    """Warns that a module has no code for a chip of the default set."""
    build.warn("chip-left-out", f"No code for {chip.name} in {gpu_module}: {refusal.message}")


def assemble(
    build: Build, outlined: Outlined, device: TranslatedDevice, compiled: CompiledPtx
) -> Cubins:
    units = {unit.name: unit for unit in device.units}
    jobs = _for_cubins(build, compiled.images)
    made = build.runner.in_parallel(
        [functools.partial(_assemble_for, build, units[name], chip) for name, chip in jobs]
    )
    refusals = [*((unit.name, one) for unit in device.units for one in unit.refusals)]
    refusals += compiled.refusals
    refused: list[Image] = []
    cubins: list[Image] = []
    resources: dict[tuple[str, str], tuple[Resources, ...]] = {}
    for (name, chip), result in zip(jobs, made, strict=True):
        if isinstance(result, InputError):
            # ptxas refuses the PTX; the driver's assembler would refuse it, too.
            refused.append((name, chip))
            refusals.append((name, result))
            _leave_out(build, name, chip, result)
            continue
        chosen, kernels = result
        cubins.append((name, chosen))
        for kernel, needed in kernels:
            resources[name, kernel] = (*resources.get((name, kernel), ()), needed)
    for unit in device.units:
        if not any(name == unit.name for name, _ in cubins):
            raise next(refusal for name, refusal in refusals if name == unit.name)
    cubins = list(unique(cubins))
    ptx = tuple(image for image in compiled.images if image not in refused)
    built_for = {
        **{unit.name: _built_for(build, unit.name, cubins, ptx) for unit in device.units},
        **{binary.name: binary.built_for for binary in outlined.given},
    }
    files = tuple(_file(build, CUBIN, *image) for image in cubins)
    return Cubins(
        built_for=built_for,
        resources=resources,
        tools=_tools(device, outlined),
        cubins=tuple(cubins),
        ptx=ptx,
        files=files,
    )


def _tools(device: TranslatedDevice, outlined: Outlined) -> tuple[str, ...]:
    if device.units:
        return ("ptxas", "fatbinary", "libdevice")
    has_several = any(len(binary.images) > 1 for binary in outlined.given)
    return ("fatbinary",) if has_several else ()


def _built_for(
    build: Build, gpu_module: str, cubins: Iterable[Image], ptx: Iterable[Image]
) -> tuple[str, ...]:
    wanted = build.request.ptx
    chips = [chip.name for name, chip in cubins if name == gpu_module]
    has_ptx = wanted is not None and (gpu_module, wanted) in ptx
    return (*chips, *([wanted.compute] if wanted is not None and has_ptx else []))


def _assemble_for(
    build: Build, unit: DeviceUnit, chip: Chip
) -> tuple[Chip, list[tuple[str, Resources]]] | InputError:
    """As `_compile_ptx_for`, for the cubin. The result includes the resources of the kernels."""
    compiler, source = _compiler(build), _name(build, DEVICE_LL, unit.name)
    for candidate in _candidates(build, unit.needs, chip):
        ptx = _name(build, PTX, unit.name, candidate)
        try:
            if candidate != chip:
                _compile(build, unit, candidate)
            cubin = _name(build, CUBIN, unit.name, candidate)
            try:
                return candidate, compiler.assemble(ptx, candidate, cubin, ir=source)
            except ToolError as error:
                if not error.is_crash or compiler.optimization <= 1:
                    raise
            careful = replace(compiler, optimization=1)
            resources = careful.assemble(ptx, candidate, cubin, ir=source)
            build.warn(
                "assembler-crash",
                f"ptxas crashed on {unit.name} for {candidate.name}: its kernels are assembled "
                "with -O1, and may be slower.",
            )
            return candidate, resources
        except InputError as error:
            if not build.request.has_default_chips:
                raise
            refusal = error
    return refusal


def bundle(build: Build, outlined: Outlined, device: DeviceModules, cubins: Cubins) -> KernelCode:
    wanted = build.request.ptx
    images = []
    for module in device.modules:
        name, file = module.name, _name(build, FATBIN, module.name)
        own = {chip: _name(build, CUBIN, name, chip) for one, chip in cubins.cubins if one == name}
        ptx = None
        if wanted is not None and (name, wanted) in cubins.ptx:
            ptx = (wanted, _name(build, PTX, name, wanted))
        _compiler(build).bundle(own, ptx, file)
        images.append(
            DeviceImage(name, file, cubins.built_for[name], module.only_chip, module.pdl_kernels)
        )
    for binary in outlined.given:
        file = _name(build, FATBIN, binary.name)
        _compiler(build).bundle_given(binary, file)
        images.append(DeviceImage(binary.name, file, cubins.built_for[binary.name]))
    files = tuple(_file(build, FATBIN, image.name) for image in images)
    return KernelCode(tuple(images), files=files)
