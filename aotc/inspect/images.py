"""Text of a file's images: PTX as it is, machine code by nvdisasm, and kernels' occupancy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aotc.chips import MAX_BLOCK_THREADS
from aotc.errors import InputError, ToolError
from aotc.images.image import Image
from aotc.images.view import View, printable
from aotc.inspect.occupancy import Occupancy, limits_of, occupancy
from aotc.inspect.report import Report, images_in
from aotc.inspect.text import UNKNOWN, table
from aotc.manifest import built_for_text
from aotc.processes.record import temporary_folder
from aotc.request import Chip
from aotc.targets.cuda.images.ptx import text_of
from aotc.toolchain import Runner, Toolchain


def ptx_texts(view: View, name: str | None) -> Iterator[str]:
    """The PTX in a file: all of it, or that for a chip or with a kernel of that name.

    Raises InputError where there is none.
    """
    for image, content in _chosen(view, "ptx", name):
        yield f"// {view.name}: PTX {image.ptx_version} for {image.chip}\n{text_of(content)}"


def sass_texts(
    view: View,
    name: str | None,
    environment: Mapping[str, str],
    overrides: Mapping[str, Path],
) -> Iterator[str]:
    """The machine code in a file as nvdisasm prints it, likewise.

    Raises ToolError where there is no nvdisasm, or it fails.
    """
    tool = Toolchain(environment, overrides).look_for("nvdisasm")
    if tool is None:
        raise ToolError(
            "nvdisasm is missing, which disassembles device code. The package "
            "'nvidia-cuda-nvdisasm' brings it: it is not installed beside aotc.",
            hint="pip install nvidia-cuda-nvdisasm, or name another with --nvdisasm or "
            "AOTC_NVDISASM",
        )
    runner = Runner(environment)
    with temporary_folder() as folder:
        for number, (image, content) in enumerate(_chosen(view, "cubin", name)):
            file = f"{number}.cubin"
            (folder / file).write_bytes(content.all())
            done = runner.run(
                [*tool.command, "-c", file],
                making=f"the disassembly for {image.chip}",
                cwd=folder,
            )
            (folder / file).unlink()
            yield f"// {view.name}: {image.chip}\n{done.stdout}"


def _chosen(view: View, kind: str, name: str | None) -> Iterator[tuple[Image, View]]:
    seen: list[Image] = []
    count = 0
    for found in images_in(view):
        if found.image.kind != kind or found.content is None:
            continue
        seen.append(found.image)
        names = {found.image.chip, *(kernel.name for kernel in found.image.kernels)}
        if name is None or name in names:
            count += 1
            yield found.image, found.content
    if count > 0:
        return
    what = "PTX" if kind == "ptx" else "cubin"
    if not seen:
        raise InputError(f"There is no {what} in {view.name}.")
    chips = built_for_text([image.chip for image in seen])
    kernels = dict.fromkeys(printable(kernel.name) for image in seen for kernel in image.kernels)
    raise InputError(
        f"No {what} in {view.name} is for a chip or has a kernel '{name}'. There is: {chips}; "
        f"{', '.join(kernels) or 'no kernel'}."
    )


def occupancy_rows(
    report: Report, chip: Chip, threads: int | None
) -> list[tuple[str, str, Occupancy | None]]:
    """(image's chip, kernel, occupancy) for the images that run on `chip`; with blocks of `threads`
    threads, else the largest that the kernel takes. None where the image does not say enough.

    Raises InputError where no image runs there.
    """
    limits = limits_of(chip)
    images = _images_for(report, chip)
    rows: list[tuple[str, str, Occupancy | None]] = []
    for image in images:
        for kernel in image.kernels:
            known = None
            size = threads or min(kernel.max_threads or MAX_BLOCK_THREADS, MAX_BLOCK_THREADS)
            if kernel.registers is not None and kernel.shared_bytes is not None:
                known = occupancy(
                    limits,
                    threads=size,
                    registers=kernel.registers,
                    shared_bytes=kernel.shared_bytes,
                    barriers=kernel.barriers or 0,
                )
            rows.append((image.chip, kernel.name, known))
    return rows


def _images_for(report: Report, chip: Chip) -> list[Image]:
    """The cubins that the driver would take: those for the chip itself or, for lack of them, for
    the nearest smaller minor version of its major one."""
    cubins = [image for image in report.images if image.kind == "cubin" and image.problem is None]
    if own := [image for image in cubins if image.chip == chip.name]:
        return own
    able = [
        (int(found[1]), image)
        for image in cubins
        if (found := re.fullmatch(r"sm_(\d+)", image.chip)) is not None
        and int(found[1]) // 10 == chip.capability // 10
        and int(found[1]) <= chip.capability
    ]
    if not able:
        chips = built_for_text(list(dict.fromkeys(image.chip for image in report.images)))
        raise InputError(
            f"No cubin in {report.file} runs on {chip.name}: occupancy is counted from a cubin's "
            f"registers. There is: {chips or 'no device code'}."
        )
    nearest = max(number for number, _ in able)
    return [image for number, image in able if number == nearest]


def occupancy_text(rows: Sequence[tuple[str, str, Occupancy | None]], chip: Chip) -> str:
    """A table of them."""
    cells: list[tuple[str, ...]] = [
        ("image", "kernel", "block", "blocks", "warps", "occupancy", "limited by")
    ]
    for image, kernel, found in rows:
        if found is None:
            cells.append((image, kernel, *[UNKNOWN] * 5))
            continue
        cells.append(
            (
                image,
                kernel,
                str(found.threads),
                str(found.blocks),
                f"{found.warps}/{found.most_warps}",
                f"{100 * found.warps / found.most_warps:.0f}%",
                ", ".join(found.limits),
            )
        )
    lines = [f"occupancy of a multiprocessor of {chip.name}", *table(cells)]
    return "\n".join(map(printable, lines))
