"""Runs passes of a plan alone, on a module of text."""

from __future__ import annotations

from pathlib import Path

from aotc.input.source import Source, parse_source
from aotc.lower.passes.base import Lowering
from aotc.lower.plan.pipeline import parse_plan
from aotc.mlir import make_context
from aotc.pipeline_text import pipeline_text
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip


def run_passes_on(text: str, *passes: str, name: str = "test.mlir", chip: str = "sm_90") -> Source:
    """What `text` is after these passes, spelled as `--pipeline` takes them; it is verified."""
    source = parse_source(name, text.encode(), make_context())
    request = BuildRequest(source=Path(name), chips=(Chip(chip),), ptx=None)
    Lowering(source, request, Remarks(source)).run(parse_plan(pipeline_text(passes)))
    source.module.operation.verify()
    return source
