"""Large inputs: modules of many kernels, and modules of large constants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MIB = 1 << 20
CONSTANT_FORMS = ("dense", "resource", "bytecode", "splat")
_FLOATS = MIB // 4


def many_entries(count: int) -> str:
    """`count` functions of one kernel each: y = x + their number and a half."""
    return "".join(
        f"""func.func @k{number}(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %k = arith.constant {number}.5 : f32
{_loop("%y", "%k")}
  return
}}
"""
        for number in range(count)
    )


def one_entry(count: int) -> str:
    """One function of `count` kernels, which add 1.5, 2.5, ... to x, one after the other: every
    second one but to the last element, as loops over the same points would be one kernel."""
    loops = "\n".join(
        f"  %k{number} = arith.constant {number + 1}.5 : f32\n"
        + _loop("%x", f"%k{number}", "%before" if number % 2 else "%n")
        for number in range(count)
    )
    return f"""func.func @all(%x: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %before = arith.subi %n, %c1 : index
{loops}
  return
}}
"""


def _loop(result: str, addend: str, end: str = "%n") -> str:
    return f"""  scf.parallel (%i) = (%c0) to ({end}) step (%c1) {{
    %a = memref.load %x[%i] : memref<?xf32>
    %s = arith.addf %a, {addend} : f32
    memref.store %s, {result}[%i] : memref<?xf32>
  }}"""


def weights(part: int) -> NDArray[np.float32]:
    """A mebibyte of the constants' numbers in [0.5, 1), no two parts alike."""
    return np.random.default_rng(part).uniform(0.5, 1, _FLOATS).astype(np.float32)


def write_constants(place: Path, mebibytes: int, form: str) -> None:
    """A module that adds `mebibytes` of constants of a form to x: `add(x) -> result0`."""
    type_ = f"tensor<{mebibytes * _FLOATS}xf32>"
    if form == "bytecode":
        text = place.with_suffix(".text.mlir")
        write_constants(text, mebibytes, "resource")
        _write_bytecode(text, place)
        text.unlink()
        return
    digits = (weights(part).tobytes().hex().upper() for part in range(mebibytes))
    with place.open("w") as out:
        if form == "dense":
            out.writelines(_add(type_, 'dense<"0x', digits, '">'))
        elif form == "resource":
            out.writelines(_add(type_, "dense_resource<weights>", iter(()), ""))
            out.write('{-#\n  dialect_resources: { builtin: { weights: "0x04000000')
            out.writelines(digits)
            out.write('" } }\n#-}\n')
        else:
            out.writelines(_add(type_, "dense<1.5>", iter(()), ""))


def _add(type_: str, opening: str, content: Iterator[str], closing: str) -> Iterator[str]:
    yield f"""#id = affine_map<(i) -> (i)>
func.func @add(%x: {type_}) -> {type_} attributes {{llvm.emit_c_interface}} {{
  %w = arith.constant {opening}"""
    yield from content
    yield f"""{closing} : {type_}
  %none = tensor.empty() : {type_}
  %sum = linalg.add ins(%x, %w : {type_}, {type_}) outs(%none : {type_}) -> {type_}
  return %sum : {type_}
}}
"""


def _write_bytecode(text: Path, place: Path) -> None:
    from aotc.input.source import parse_source
    from aotc.mlir import make_context

    source = parse_source(str(text), text.read_bytes(), make_context())
    with place.open("wb") as out:
        source.module.operation.write_bytecode(out)
