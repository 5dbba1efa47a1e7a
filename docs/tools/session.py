"""The picture in README.md: a terminal in which some commands are run, as SVG.

    python docs/tools/session.py [FILE]

runs them in a folder of its own, and writes FILE (docs/session.svg). Nothing in it is typed by
hand: a command that fails ends the recording.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs" / "session.svg"
COMMANDS = (
    "aotc build samples/matmul.mlir -o matmul",
    "./matmul --A random:seed=7,low=-1 --B ones",
    "aotc build samples/block_sums.mlir -o block_sums --chip sm_80,sm_90a",
    "aotc inspect block_sums | tail -n 4",
)
_COLUMNS = 104
# As rich has it, but for the fonts: these are the viewer's own, and nothing is loaded.
_FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def record(folder: Path) -> list[tuple[str, str]]:
    """The commands, run in `folder` one after another, each with what it printed."""
    (folder / "samples").symlink_to(REPOSITORY / "samples")
    # `aotc` is this checkout's, by this Python. The output is the same with a GPU and without.
    aotc = f'aotc() {{ {shlex.quote(sys.executable)} -m aotc "$@"; }}\n'
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "AOTC_DEVICE": "cpu"}
    recorded = []
    for command in COMMANDS:
        done = subprocess.run(
            ["sh", "-c", aotc + command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"$ {command}\n{done.stdout}exit code {done.returncode}")
        recorded.append((command, done.stdout))
    return recorded


def picture(recorded: list[tuple[str, str]]) -> str:
    """A terminal that shows it, as SVG."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    for command, output in recorded:
        console.print(Text.assemble(("$ ", "green"), (command, "bold")), soft_wrap=True)
        if output:
            console.print(Text(output.rstrip("\n")), soft_wrap=True)
    console.print(Text("$", "green"))
    svg = console.export_svg(
        title="aotc",
        theme=MONOKAI,
        code_format=_FORMAT,
        unique_id="terminal",
        font_aspect_ratio=0.6,
    )
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def main(arguments: list[str]) -> None:
    place = Path(arguments[0]) if arguments else PICTURE
    with tempfile.TemporaryDirectory() as folder:
        recorded = record(Path(folder))
    place.write_text(picture(recorded), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
