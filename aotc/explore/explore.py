"""`explore`: records a build → `Exploration`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aotc.artifacts import HOST_LL, MANIFEST, ArtifactFile
from aotc.errors import InputError, ToolError
from aotc.explore.facts import Outline, buffers_of, kernels_of, matmuls_of, outline_of
from aotc.explore.page import Decision, Exploration, ImageFacts
from aotc.explore.recorder import Recorder
from aotc.explore.text import Text, located_sass
from aotc.explore.timeline import Run
from aotc.input.entries import KernelsAloneError
from aotc.manifest import built_for_text, parse_manifest
from aotc.observers import TimeReport
from aotc.pipeline import new_build, run_build
from aotc.request import BuildRequest
from aotc.toolchain import Runner, Toolchain

# All other kinds are made as inputs of these, if the module needs them.
_KINDS = (HOST_LL, MANIFEST)
# The kind that nvdisasm reads, and the other kinds of images.
_CUBIN, _IMAGES = "cubin", ("ptx", "cubin", "fatbin")
# nvdisasm takes a third of a second for a cubin.
_MOST_DISASSEMBLED = 64
_NO_OUTLINE = Outline({}, {}, {}, ())


def explore(
    request: BuildRequest, folder: Path, tools: Mapping[str, Path], run: Run | None
) -> tuple[Exploration, list[Any]]:
    """Builds the request up to the host's LLVM IR, in `folder`; returns everything that the page
    shows, and the warnings. Raises the errors of a build."""
    try:
        return _explore(replace(request, emit=_KINDS), folder, tools, run)
    except KernelsAloneError:
        return _explore(replace(request, emit=(MANIFEST,)), folder, tools, run)


def _explore(
    request: BuildRequest, folder: Path, tools: Mapping[str, Path], run: Run | None
) -> tuple[Exploration, list[Any]]:
    outlines = [_NO_OUTLINE]

    def outlined(module: Any, index: int) -> None:
        outlines.append(outline_of(module, f"{request.name}.gpu.mlir"))

    recorder, times = Recorder(outlined), TimeReport()
    build = new_build(request, folder, tools=tools, recorder=recorder)
    recorder.begin(build)
    built = run_build(build, [times, recorder])
    assert built.manifest is not None
    assert build.log.explanation is not None
    manifest = parse_manifest(built.manifest, f"'{request.source}'")
    explanation = build.log.explanation
    texts = recorder.with_reasons(explanation.passes)
    notes: list[str] = []
    texts += _machine_code(build.toolchain, build.runner, folder, recorder, notes)
    matmuls = matmuls_of(explanation.remarks.chosen)
    exploration = Exploration(
        title=Path(request.source).name,
        aotc=manifest.aotc,
        target=manifest.target,
        chips=built_for_text(
            list(dict.fromkeys(chip for kernel in manifest.kernels for chip in kernel.built_for))
        ),
        tools=tuple(manifest.tools.items()),
        stages=tuple(
            (name, max(0.0, seconds - recorder.seconds.get(name, 0.0)))
            for name, seconds in times.times
        ),
        texts=tuple(texts),
        kernels=kernels_of(manifest, outlines[-1], matmuls),
        matmuls=matmuls,
        images=tuple(_images(recorder)),
        buffers=buffers_of(manifest, explanation.remarks.buffers),
        copies=tuple(outlines[-1].copies),
        decisions=tuple(
            Decision(
                remark.step,
                str(remark.place or ""),
                remark.place.line if remark.place else None,
                remark.text.strip(),
            )
            for remark in explanation.remarks.taken
        ),
        notes=tuple(notes),
        run=run,
    )
    return exploration, build.log.warnings


def _images(recorder: Recorder) -> list[ImageFacts]:
    return [
        ImageFacts(
            recorder.unit_of(file),
            file.kind.name,
            recorder.chip_of(file),
            len(file.content()),
        )
        for file in recorder.artifacts
        if file.kind.name in _IMAGES
    ]


def _machine_code(
    toolchain: Toolchain,
    runner: Runner,
    folder: Path,
    recorder: Recorder,
    notes: list[str],
) -> list[Text]:
    """The disassembled cubins, if nvdisasm is available."""
    cubins = [file for file in recorder.artifacts if file.kind.name == _CUBIN]
    if not cubins:
        return []
    try:
        tool = toolchain.tool("nvdisasm")
    except (ToolError, InputError) as error:
        notes.append(f"There is no machine code here: {error.message}")
        return []
    if len(cubins) > _MOST_DISASSEMBLED:
        notes.append(
            f"Machine code is here for {_MOST_DISASSEMBLED} of {len(cubins)} cubins: 'aotc inspect "
            "--sass' prints that of all."
        )

    def disassembled(file: ArtifactFile) -> Text:
        done = runner.run(
            [*tool.command, "-c", "-g", str(file.path)],
            making=f"the disassembly of {file.file_name}",
            cwd=folder,
        )
        chip = recorder.chip_of(file)
        lines = located_sass(done.stdout, recorder.files)
        unit = recorder.unit_of(file)
        return Text(f"sass {chip}", "sass", "sass", lines, unit, chip, is_final=True)

    return runner.in_parallel(
        [functools.partial(disassembled, file) for file in cubins[:_MOST_DISASSEMBLED]]
    )
