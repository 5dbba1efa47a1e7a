"""The text of a file's images, and the occupancy of their kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aotc.chips import MAX_BLOCK_THREADS
from aotc.errors import InputError
from aotc.images.image import Image
from aotc.images.view import View, printable
from aotc.inspect.occupancy import Occupancy, limits_of, occupancy
from aotc.inspect.report import Report
from aotc.inspect.text import UNKNOWN, kind_words, table
from aotc.manifest import built_for_text
from aotc.request import Chip
from aotc.target import TARGETS


def image_texts(
    view: View,
    kind: str,
    name: str | None,
    environment: Mapping[str, str],
    overrides: Mapping[str, Path],
) -> Iterator[str]:
    """The images of a kind in a file, as text: all of them, or those for the chip, or with the
    kernel, that `name` is.

    Raises InputError if there is none, and ToolError if the tool for the text is missing or fails.
    """
    seen: list[Image] = []
    count = 0
    for target in TARGETS:
        for found in target.find_images(view):
            image, content = found.image, found.content
            if image.kind != kind or content is None:
                continue
            seen.append(image)
            if name in (None, image.chip, *(kernel.name for kernel in image.kernels)):
                count += 1
                text = target.image_text(image, content, environment, overrides)
                yield f"// {view.name}: {text}"
    if count > 0:
        return
    what = kind_words(kind)
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
    """(image's chip, kernel, occupancy) for the images that run on `chip`, for blocks of `threads`
    threads, by default the largest blocks of the kernel. None if the image lacks information.

    Raises InputError if no image runs on the chip.
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
    """The cubins that the driver would select: those for the chip itself; if there are none, those
    for the nearest smaller minor version of the same major version."""
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
    """The rows as a table."""
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
