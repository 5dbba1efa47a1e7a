"""Modules whose wrong lines say what is to be reported there.

`// ERROR name` and `// WARNING name` stand at the end of those lines; lines without are not to be.
"""

from __future__ import annotations

import re
from pathlib import Path

from aotc import mlir
from aotc.input.source import parse_source
from aotc.lower.checks import check_input
from aotc.request import BuildRequest, Chip
from aotc.warnings import BuildWarning, WarningOptions

BUFFER = "memref<8xf32>"
# Names that the bodies of functions below use.
HEAD = f"""
func.func private @unknown({BUFFER})
func.func private @looks(%m: {BUFFER}) -> index {{
  %zero = arith.constant 0 : index
  %n = memref.dim %m, %zero : {BUFFER}
  return %n : index
}}
func.func private @writes(%m: {BUFFER}) {{
  %zero = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  memref.store %f, %m[%zero] : {BUFFER}
  return
}}
func.func @f(%a: {BUFFER}, %n: index, %cond: i1) attributes {{llvm.emit_c_interface}} {{
  %c-1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c20 = arith.constant 20 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %x = arith.constant 1.0 : f32
""".replace("%c-1", "%m1")


def expected(text: str) -> list[tuple[int, str, str]]:
    """(line, severity, name) of the markers in `text`."""
    return [
        (number, found[1].lower(), found[2])
        for number, line in enumerate(text.split("\n"), start=1)
        for found in re.finditer(r"// (ERROR|WARNING) ([a-z-]+)", line)
    ]


def reported(found: list[BuildWarning]) -> list[tuple[int, str, str]]:
    options = WarningOptions()
    return [
        (
            warning.place.line if warning.place else 0,
            options.severity(warning.name, is_sure=warning.is_sure).value,
            warning.name,
        )
        for warning in found
    ]


def check(text: str, chips: str = "") -> None:
    source = parse_source("input.mlir", text.encode(), mlir.make_context())
    request = BuildRequest(Path("input.mlir"), chips=tuple(map(Chip, chips.split())))
    assert reported(check_input(source, request)) == expected(text)
