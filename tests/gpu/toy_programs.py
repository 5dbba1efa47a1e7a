"""samples/toy's examples as programs of the bundle: their modules, and what they print."""

from __future__ import annotations

from pathlib import Path

from toy_language.evaluate import output

from toy.frontend import FRONTEND

SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"
EXAMPLES = sorted((SAMPLES / "toy" / "examples").glob("*.toy"))


def name_of(example: Path) -> str:
    return f"toy_{example.stem}"


def write_sources(folder: Path) -> list[Path]:
    """NAME.mlirbc for each, as samples/toy makes it. (The bundle is made without installing it.)"""
    sources = []
    for example in EXAMPLES:
        source = folder / f"{name_of(example)}.mlirbc"
        with source.open("wb") as file:
            FRONTEND.load(example, {}).operation.write_bytecode(file)
        sources.append(source)
    return sources


def write_checks(folder: Path) -> list[str]:
    """Lines of cases.sh for both devices; what NumPy says they print goes to `folder`/data."""
    lines = []
    for example in EXAMPLES:
        name = name_of(example)
        (folder / "data" / f"{name}.txt").write_text(output(example.read_text()))
        for device in ("cuda", "cpu"):
            lines.append(f"says {device} {name} 0 data/{name}.txt bin/{name}")
    return lines
