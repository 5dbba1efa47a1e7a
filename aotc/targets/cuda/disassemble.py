"""Images as text: PTX as it is, cubins disassembled by nvdisasm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aotc.images.image import Image
from aotc.images.view import View
from aotc.processes.record import temporary_folder
from aotc.targets.cuda.images.ptx import text_of
from aotc.toolchain import Runner, Toolchain


def image_text(
    image: Image, content: View, environment: Mapping[str, str], overrides: Mapping[str, Path]
) -> str:
    if image.kind == "ptx":
        return f"PTX {image.ptx_version} for {image.chip}\n{text_of(content)}"
    tool = Toolchain(environment, overrides).tool("nvdisasm")
    with temporary_folder() as folder:
        (folder / "image.cubin").write_bytes(content.all())
        done = Runner(environment).run(
            [*tool.command, "-c", "image.cubin"],
            making=f"the disassembly for {image.chip}",
            cwd=folder,
        )
    return f"{image.chip}\n{done.stdout}"
