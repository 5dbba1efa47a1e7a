"""Device images in a file, wherever they are, as `Image` values.

In programs of aotc and of upstream's MLIR they are constants, in nvcc's they are in sections of
their own, and a section's name can be stripped. So the scan looks for the beginnings of images.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from msgspec.structs import replace

from aotc.errors import InputError
from aotc.images.elf import MAGIC, SHT_NOBITS, ElfFile
from aotc.images.elf_format import SECTION_HEADER, Section
from aotc.images.image import DeviceKernel, Found, Image
from aotc.images.view import View
from aotc.targets.cuda.images import fatbin
from aotc.targets.cuda.images.cubin import EM_CUDA, CubinKernel, read_cubin
from aotc.targets.cuda.images.ptx import is_ptx, read_ptx

# e_ident up to EI_VERSION, and the offset of e_machine.
_ELF_START = b"\x7fELF\x02\x01\x01"
_MACHINE_AT = 18
_ELF_HEADER_SIZE = 64
# The fields from e_phoff to e_shstrndx.
_ELF_TABLES = struct.Struct("<QQIHHHHHH")
_PTX_START = b".version "
_LONGEST_START = 256
_MOST_IMAGES = 1 << 17
_MOST_CANDIDATES = 1 << 20


def format_of(view: View) -> str | None:
    """The kind of a file that is device code as a whole: fatbin, cubin or ptx; None for any other.
    Raises InputError for a damaged ELF file."""
    if view.starts_with(fatbin.MAGIC):
        return "fatbin"
    if view.starts_with(MAGIC):
        return "cubin" if ElfFile(view).machine == EM_CUDA else None
    return "ptx" if is_ptx(view) else None


def find_images(view: View) -> Iterator[Found]:
    """The images in a file, in order. A damaged image has a `problem`."""
    if is_ptx(view):
        image = Image("ptx", "unknown", view.size, view.size, 0)
        yield _with_content(image, view, fatbin.Budget())
        return
    budget = fatbin.Budget()
    at = images = 0
    places = {start: view.find(start) for start in (fatbin.MAGIC, _ELF_START, _PTX_START)}
    for _ in range(_MOST_CANDIDATES):
        for start, place in places.items():
            if 0 <= place < at:
                places[start] = view.find(start, at)
        candidates = [place for place in places.values() if place >= 0]
        if not candidates:
            return
        place = min(candidates)
        rest = View(view.data, view.name, view.start + place, view.size - place)
        if fatbin.is_fatbin(rest):
            size, found = _fatbin_at(rest, place, budget)
        elif _is_cubin(rest):
            size, found = _cubin_at(rest, place, budget)
        elif is_ptx(rest, _LONGEST_START):
            size, found = _ptx_at(rest, place, budget)
        else:
            size, found = 1, iter(())
        for item in found:
            images += 1
            if images > _MOST_IMAGES:
                raise view.damaged(f"it would have more than {_MOST_IMAGES} images")
            yield item
        at = place + max(size, 1)
    raise view.damaged("it has too many places that look like images")


def _fatbin_at(rest: View, place: int, budget: fatbin.Budget) -> tuple[int, Iterator[Found]]:
    """The size of the fat binary at the start of `rest`, and its images."""
    named = View(rest.data, f"the fat binary at byte {place} of {rest.name}", rest.start, rest.size)
    try:
        size = fatbin.container_size(named)
    except InputError as error:
        # The scan goes on after the magic, to find the images that are left.
        return 1, iter((_damaged_fatbin(place, 0, error),))
    return size, _images_of(named.part(0, size, "it"), place, budget)


def _images_of(container: View, place: int, budget: fatbin.Budget) -> Iterator[Found]:
    try:
        for entry in fatbin.entries(container, budget):
            yield _from_fatbin(entry, place, budget)
    except InputError as error:
        yield _damaged_fatbin(place, container.size, error)


def _damaged_fatbin(place: int, size: int, error: InputError) -> Found:
    return Found(Image("fatbin", "unknown", size, size, place, problem=error.message), None)


def _is_cubin(rest: View) -> bool:
    machine = EM_CUDA.to_bytes(2, "little")
    return rest.starts_with(_ELF_START) and rest.starts_with(machine, _MACHINE_AT)


def _cubin_at(rest: View, place: int, budget: fatbin.Budget) -> tuple[int, Iterator[Found]]:
    name = rest.name if place == 0 else f"the cubin at byte {place} of {rest.name}"
    size = _elf_size(rest)
    cubin = View(rest.data, name, rest.start, size)
    return size, iter((_with_content(Image("cubin", "unknown", size, size, place), cubin, budget),))


def _ptx_at(rest: View, place: int, budget: fatbin.Budget) -> tuple[int, Iterator[Found]]:
    end = rest.find(b"\0")
    size = end if end >= 0 else rest.size
    text = View(rest.data, f"the PTX at byte {place} of {rest.name}", rest.start, size)
    found = _with_content(Image("ptx", "unknown", size, size, place), text, budget)
    # Programs that generate PTX have its first lines among their strings.
    return size, iter((found,) if found.image.kernels else ())


def _elf_size(rest: View) -> int:
    """The size of the ELF file at the start of `rest`: the end of its headers or of its last
    section."""
    if rest.size < _ELF_HEADER_SIZE:
        return rest.size
    programs, headers, _, _, program, programs_count, header, count, _ = rest.unpack(
        _ELF_TABLES, 32, "the ELF header"
    )
    ends = [_ELF_HEADER_SIZE, headers + header * count, programs + program * programs_count]
    table = headers + SECTION_HEADER.size * count
    if header == SECTION_HEADER.size and table <= rest.size:
        content = rest.read(headers, SECTION_HEADER.size * count, "the section headers")
        sections = map(Section._make, SECTION_HEADER.iter_unpack(content))
        ends += [s.offset + s.size for s in sections if s.type != SHT_NOBITS]
    # An impossible end is damage; it is ignored, so that the rest of the file is scanned.
    return max(end for end in ends if end <= rest.size)


def _from_fatbin(entry: fatbin.Entry, place: int, budget: fatbin.Budget) -> Found:
    prefix = {"ptx": "compute", "ltoir": "lto"}.get(entry.kind, "sm")
    image = Image(
        entry.kind,
        f"{prefix}_{entry.number}",
        entry.size,
        entry.stored.size,
        place,
        entry.compression,
        in_fatbin=True,
    )
    if image.kind not in ("cubin", "ptx"):
        # The format of LTO IR is not public.
        return Found(image, None)
    try:
        content = entry.content(budget)
    except InputError as error:
        return _with_problem(image, error)
    return _with_content(image, content, budget)


def _with_content(image: Image, content: View, budget: fatbin.Budget) -> Found:
    try:
        if image.kind == "ptx":
            ptx = read_ptx(content)
            chip = re.sub(r"^sm_", "compute_", ptx.target)
            kernels = tuple(
                DeviceKernel(k.name, max_threads=k.max_threads, required_block=k.required_block)
                for k in ptx.kernels
            )
            image = replace(image, chip=chip, ptx_version=ptx.version, kernels=kernels)
        elif image.kind == "cubin":
            cubin = read_cubin(content)
            kernels = tuple(map(_kernel_of, cubin.kernels))
            image = replace(image, chip=cubin.chip, made_by=cubin.made_by, kernels=kernels)
    except InputError as error:
        return _with_problem(image, error)
    budget.kernels -= len(image.kernels)
    if budget.kernels < 0:
        problem = content.damaged("its file would have too many kernels")
        return _with_problem(replace(image, kernels=()), problem)
    return Found(image, content)


def _with_problem(image: Image, error: InputError) -> Found:
    return Found(replace(image, problem=error.message), None)


def _kernel_of(kernel: CubinKernel) -> DeviceKernel:
    return DeviceKernel(
        kernel.name,
        registers=kernel.registers,
        shared_bytes=kernel.shared_bytes,
        stack_bytes=kernel.stack_bytes,
        barriers=kernel.barriers,
        parameter_bytes=kernel.parameter_bytes,
        code_bytes=kernel.code_bytes,
        max_threads=kernel.max_threads,
        required_block=kernel.required_block,
    )
