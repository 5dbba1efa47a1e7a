"""The findings of `aotc inspect` about a file, as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aotc.emit.signatures import prototypes, signature
from aotc.errors import InputError
from aotc.host.note import NOTE_MANIFEST, NOTE_OWNER
from aotc.images.elf import MAGIC, ElfFile
from aotc.images.image import Found, Image
from aotc.images.view import View
from aotc.inspect import archive
from aotc.manifest import Entry, Kernel, Manifest, NamedWeight, Resources, parse_manifest
from aotc.request import version_numbers
from aotc.target import TARGETS

REPORT_VERSION = 1

_ET_DYN = 3
_TYPES = {1: "object", 2: "executable", _ET_DYN: "shared library", 4: "core dump"}
# e_machine, System V gABI.
_MACHINES = {3: "i386", 20: "ppc", 21: "ppc64le", 40: "arm", 62: "x86_64", 183: "aarch64"}
_MACHINES |= {224: "amdgcn", 243: "riscv64", 247: "bpf", 258: "loongarch64"}
_GNU_BUILD_ID = 3
_MOST_MODULES = 1 << 12
_MOST_MANIFEST_BYTES = 1 << 26


class Function(Struct, frozen=True):
    """A C function of an entry: its purpose `does` (call, async, memref, c_interface), its symbol,
    its C declaration (None for MLIR's own), and whether the file exports it.
    """

    does: str
    symbol: str
    prototype: str | None
    is_exported: bool


class EntryReport(Struct, frozen=True):
    """An entry, as it is in the module and in C."""

    name: str
    signature: str
    functions: tuple[Function, ...]


class KernelReport(Struct, frozen=True):
    """A kernel of a module; `why_no_cpu_form` is None if it has a CPU form."""

    module: str
    name: str
    built_for: tuple[str, ...]
    has_cpu_form: bool
    why_no_cpu_form: str | None


class ModuleReport(Struct, frozen=True):
    """A module that aotc built into the file; `weights` is the weights file that it needs,
    `replaceable` names the weights in it that a program can replace."""

    name: str
    aotc: str
    target: str
    optimization: int
    tools: dict[str, str]
    entries: tuple[EntryReport, ...]
    kernels: tuple[KernelReport, ...]
    weights: str | None
    replaceable: tuple[NamedWeight, ...] = ()


class Host(Struct, frozen=True):
    """The part of the file for the CPU. `glibc` is the newest version that it requires, `made_by`
    has the identifications of compilers and linkers (.comment), `members` are an archive's."""

    architecture: str
    needed: tuple[str, ...] = ()
    glibc: str | None = None
    soname: str | None = None
    interpreter: str | None = None
    build_id: str | None = None
    made_by: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


class Report(Struct, frozen=True):
    """The report on a file. `format` is executable, shared library, object, static library, fatbin,
    cubin or ptx; `host` is None for the last three, `modules` are aotc's."""

    file: str
    bytes: int
    format: str
    host: Host | None
    modules: tuple[ModuleReport, ...]
    images: tuple[Image, ...]
    problems: tuple[str, ...]

    def to_json(self) -> str:
        return (
            json.dumps({"inspect_version": REPORT_VERSION, **msgspec.to_builtins(self)}, indent=2)
            + "\n"
        )


class _HostParts(Struct, frozen=True):
    format: str
    host: Host
    manifests: tuple[Manifest, ...]
    problems: tuple[str, ...]


def report_of(view: View) -> Report:
    """The report on a file. Raises InputError for a file that cannot contain device code."""
    parts = None
    form = _image_format(view)
    if view.starts_with(archive.MAGIC) or view.starts_with(archive.THIN_MAGIC):
        parts, form = _read_archive(view), "static library"
    elif view.starts_with(MAGIC) and not form:
        parts = _read_host(ElfFile(view))
        form = parts.format
    elif not form:
        head = view.read(0, min(view.size, 8), "it").hex(" ")
        raise InputError(
            f"{view.name} is no file that aotc inspects: it begins with '{head}'.",
            hint="It reads executables, shared and static libraries, objects, fatbins, cubins and "
            "PTX.",
        )
    manifests = parts.manifests if parts is not None else ()
    wanted = {
        symbol
        for manifest in manifests
        for entry in manifest.entries
        for symbol in entry.functions.values()
    }
    exported = _exported(view, wanted) if wanted else frozenset()
    images = _with_spills([found.image for found in images_in(view)], manifests)
    damaged = tuple(image.problem for image in images if image.problem is not None)
    return Report(
        file=view.name,
        bytes=view.size,
        format=form,
        host=parts.host if parts is not None else None,
        modules=tuple(_module(manifest, exported) for manifest in manifests),
        images=tuple(images),
        problems=(*(parts.problems if parts is not None else ()), *damaged),
    )


def _image_format(view: View) -> str:
    """The format of a file that is entirely an image; "" for other files."""
    return next(filter(None, (target.image_format(view) for target in TARGETS)), "")


def images_in(view: View) -> Iterator[Found]:
    """The images of a file, with their contents, in order."""
    return (found for target in TARGETS for found in target.find_images(view))


def _read_host(elf: ElfFile) -> _HostParts:
    build_id = None
    manifests: list[Manifest] = []
    problems: list[str] = []
    left = _MOST_MANIFEST_BYTES
    for note in elf.notes():
        if note.owner == "GNU" and note.type == _GNU_BUILD_ID:
            build_id = note.content[:64].hex()
        elif note.owner == NOTE_OWNER and note.type == NOTE_MANIFEST:
            left -= len(note.content)
            if left < 0:
                raise elf.view.damaged("its manifests are too long")
            try:
                text = note.content.decode("utf-8", "replace")
                manifests.append(parse_manifest(text, f"The note of aotc in {elf.view.name}"))
            except InputError as error:
                problems.append(error.message)
    interpreter = elf.named(".interp")
    form = _TYPES.get(elf.type, f"ELF file of type {elf.type}")
    dynamic = elf.dynamic
    # Old linkers do not mark position-independent executables; libc.so.6 has an interpreter, too.
    looks_so = interpreter is not None and dynamic.soname is None
    if elf.type == _ET_DYN and (dynamic.is_program or looks_so):
        form = "executable"
    glibc = re.findall(r"\bGLIBC_(\d{1,4}(?:\.\d{1,4}){1,3})\b", " ".join(elf.versions_needed()))
    host = Host(
        architecture=_MACHINES.get(elf.machine, f"machine {elf.machine}"),
        needed=dynamic.needed,
        glibc=max(glibc, key=version_numbers, default=None),
        soname=dynamic.soname,
        interpreter=interpreter.string(0, "the interpreter") if interpreter else None,
        build_id=build_id,
        made_by=elf.comments(),
    )
    return _HostParts(form, host, tuple(manifests), tuple(problems))


def _read_archive(view: View) -> _HostParts:
    parts: list[_HostParts] = []
    names: list[str] = []
    for name, content in archive.members(view):
        names.append(name)
        if content.starts_with(MAGIC) and not _image_format(content):
            parts.append(_read_host(ElfFile(content)))
    architectures = dict.fromkeys(part.host.architecture for part in parts)
    manifests = tuple(manifest for part in parts for manifest in part.manifests)
    if len(manifests) > _MOST_MODULES:
        raise view.damaged("it would have too many modules")
    host = Host(
        architecture=", ".join(architectures) or "unknown",
        made_by=tuple(dict.fromkeys(text for part in parts for text in part.host.made_by)),
        members=tuple(names),
    )
    problems = tuple(problem for part in parts for problem in part.problems)
    return _HostParts("static library", host, manifests, problems)


def _exported(view: View, wanted: set[str]) -> frozenset[str]:
    """Those of the symbols `wanted` that the file exports."""
    is_archive = view.starts_with(archive.MAGIC)
    contents = (content for _, content in archive.members(view)) if is_archive else iter((view,))
    return frozenset(
        name
        for content in contents
        if content.starts_with(MAGIC)
        for name in ElfFile(content).defined()
        if name in wanted
    )


def _module(manifest: Manifest, exported: frozenset[str]) -> ModuleReport:
    return ModuleReport(
        name=manifest.name,
        aotc=manifest.aotc,
        target=manifest.target,
        optimization=manifest.optimization,
        tools=manifest.tools,
        entries=tuple(_entry(entry, exported) for entry in manifest.entries),
        kernels=tuple(map(_kernel, manifest.kernels)),
        weights=manifest.weights.file if manifest.weights is not None else None,
        replaceable=manifest.replaceable,
    )


def _entry(entry: Entry, exported: frozenset[str]) -> EntryReport:
    declared = prototypes(entry)
    functions = tuple(
        Function(does, symbol, declared.get(does), symbol in exported)
        for does, symbol in entry.functions.items()
    )
    return EntryReport(entry.name, signature(entry), functions)


def _kernel(kernel: Kernel) -> KernelReport:
    has_cpu_form = kernel.why_no_cpu_form is None
    return KernelReport(
        kernel.module, kernel.name, kernel.built_for, has_cpu_form, kernel.why_no_cpu_form
    )


def _with_spills(images: Iterable[Image], manifests: Iterable[Manifest]) -> list[Image]:
    """The images with the spills of their kernels that ptxas reported when they were built, which
    cubins do not contain. If two modules have different kernels with one name, there are none."""
    told: dict[tuple[str, str], set[Resources]] = {}
    for manifest in manifests:
        for kernel in manifest.kernels:
            for resources in kernel.resources:
                told.setdefault((kernel.name, resources.chip), set()).add(resources)
    result = []
    for image in images:
        kernels = []
        for kernel_in_image in image.kernels:
            known = told.get((kernel_in_image.name, image.chip), set())
            of_this = {r for r in known if r.registers == kernel_in_image.registers}
            if len(of_this) == 1:
                (resources,) = of_this
                kernel_in_image = replace(
                    kernel_in_image,
                    spill_stores=resources.spill_stores,
                    spill_loads=resources.spill_loads,
                )
            kernels.append(kernel_in_image)
        result.append(replace(image, kernels=tuple(kernels)))
    return result
