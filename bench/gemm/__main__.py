"""Matmuls, as aotc builds them of linalg, against cuBLAS.

    python -m bench.gemm OUT [--cases WORD,...]

makes the folder OUT: a library for each type, transposition and shape, and `run`. That needs a GPU
and PyTorch, whose matmul is cuBLAS's; it holds results against f64's, and prints a line of JSON for
each. A product with a bias and gelu is timed against cuBLAS and a second kernel, and against
torch.compile. `run --help` says what can be asked for.
"""

from __future__ import annotations

import functools
from pathlib import Path

from msgspec import Struct, to_builtins

import aotc
from bench import folder

HERE = Path(__file__).resolve().parent
# Rows of activations, and the sizes of a transformer's layers.
ROWS = (1, 8, 16, 64, 512, 4096)
LAYERS = ((4096, 4096), (11008, 4096), (4096, 11008), (32000, 4096))
TRANSFORMER = tuple((m, *layer) for layer in LAYERS for m in ROWS)
# Much of K for little of C.
LONG = ((1000, 1000, 8000), (256, 256, 16384), (512, 512, 8192))
EXACT_SQUARES = (512, 1024, 2048, 4096, 8192)
SQUARES = (512, 768, 1024, 1536, 2048, 3000, 4096, 5000, 8192, 16384)
LARGE = (4096, 8192)


class Case(Struct, frozen=True):
    """C = A · B of elements `element`, accumulated and stored as `result`; sizes of 0 are not known
    when it is built. `layout`: n or t for A and B as they lie. `allows`: tf32 or tf32x3 for f32.
    `has_gelu`: a bias along columns is added to sums of f32, and gelu (by erf) is done with them,
    in the same entry."""

    name: str
    element: str
    result: str
    layout: str
    m: int = 0
    n: int = 0
    k: int = 0
    allows: str = ""
    has_gelu: bool = False


def cases() -> list[Case]:
    found = []
    for element, result in (("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("f64", "f64")):
        found += [
            Case(f"{element}_{layout}", element, result, layout)
            for layout in ("nn", "nt", "tn", "tt")
        ]
    found.append(Case("f16_f32_nn", "f16", "f32", "nn"))
    found += [
        Case(f"{element}_nn_{n}", element, element, "nn", n, n, n)
        for element in ("f16", "bf16", "f32", "f64")
        for n in (SQUARES if element.endswith("f16") else EXACT_SQUARES)
    ]
    found += [
        Case(f"f32_{layout}_{n}", "f32", "f32", layout, n, n, n)
        for layout in ("nt", "tn", "tt")
        for n in EXACT_SQUARES
    ]
    # A weight lies as its layer's outputs x inputs in PyTorch (nt), and the other way round.
    found += [
        Case(f"f16_{layout}_{m}x{n}x{k}", "f16", "f16", layout, m, n, k)
        for layout in ("nt", "nn")
        for m, n, k in (*TRANSFORMER, *LONG)
    ]
    found += [
        Case(f"gelu_{layout}_{m}x{n}x{k}", "f16", "f16", layout, m, n, k, has_gelu=True)
        for layout in ("nt", "nn")
        for m, n, k in TRANSFORMER
    ]
    found += [
        Case(f"{element}_{layout}_1x8192x8192", element, element, layout, 1, 8192, 8192)
        for element in ("bf16", "f32", "f64")
        for layout in ("nt", "nn")
    ]
    for layout in ("nt", "nn"):
        found += [
            Case(f"f8_{layout}", "f8E4M3FN", "bf16", layout),
            Case(f"f8_f32_{layout}", "f8E4M3FN", "f32", layout),
            Case(f"i8_{layout}", "i8", "i32", layout),
            *(Case(f"f8_{layout}_{n}", "f8E4M3FN", "bf16", layout, n, n, n) for n in LARGE),
            *(Case(f"i8_{layout}_{n}", "i8", "i32", layout, n, n, n) for n in LARGE),
        ]
    found += [
        Case(f"{allowed}_{layout}", "f32", "f32", layout, allows=allowed)
        for allowed in ("tf32", "tf32x3")
        for layout in ("nn", "nt", "tn", "tt")
    ]
    return found


def module(case: Case) -> str:
    """The entry, as text."""

    def sizes(*sizes: int) -> str:
        return "".join(f"{size or '?'}x" for size in sizes)

    a = sizes(*((case.m, case.k) if case.layout[0] == "n" else (case.k, case.m)))
    b = sizes(*((case.k, case.n) if case.layout[1] == "n" else (case.n, case.k)))
    c = sizes(case.m, case.n)
    rows = "(m, n, k) -> (m, k)" if case.layout[0] == "n" else "(m, n, k) -> (k, m)"
    columns = "(m, n, k) -> (k, n)" if case.layout[1] == "n" else "(m, n, k) -> (n, k)"
    maps = ", ".join(f"affine_map<{one}>" for one in (rows, columns, "(m, n, k) -> (m, n)"))
    if case.has_gelu:
        return _GELU.format(name=case.name, a=a, b=b, c=c, n=sizes(case.n), maps=maps)
    types = [f"memref<{one}{case.element}>" for one in (a, b)] + [f"memref<{c}{case.result}>"]
    return f"""
func.func @{case.name}(%A: {types[0]}, %B: {types[1]}, %C: {types[2]})
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant {"0" if case.result == "i32" else "0.0"} : {case.result}
  linalg.fill ins(%zero : {case.result}) outs(%C : {types[2]})
  linalg.matmul indexing_maps = [{maps}]
      ins(%A, %B : {types[0]}, {types[1]}) outs(%C : {types[2]})
  return
}}
"""


_GELU = """
func.func @{name}(%A: memref<{a}f16>, %B: memref<{b}f16>, %bias: memref<{n}f16>,
                  %C: memref<{c}f16>) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.707106769 : f32
  %sums = memref.alloc() : memref<{c}f32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<{c}f32>)
  linalg.matmul indexing_maps = [{maps}]
      ins(%A, %B : memref<{a}f16>, memref<{b}f16>) outs(%sums : memref<{c}f32>)
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                   affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%sums, %bias : memref<{c}f32>, memref<{n}f16>) outs(%C : memref<{c}f16>) {{
  ^bb0(%sum: f32, %b: f16, %_: f16):
    %wide = arith.extf %b : f16 to f32
    %x = arith.addf %sum, %wide : f32
    %inner = arith.mulf %x, %root : f32
    %erf = math.erf %inner : f32
    %more = arith.addf %erf, %one : f32
    %halved = arith.mulf %x, %half : f32
    %gelu = arith.mulf %halved, %more : f32
    %y = arith.truncf %gelu : f32 to f16
    linalg.yield %y : f16
  }}
  memref.dealloc %sums : memref<{c}f32>
  return
}}
"""


def build(out: Path, names: tuple[str, ...] = (), chip: str = "sm_90a") -> None:
    """Fills the folder `out` with the cases whose names begin so."""
    chosen = [case for case in cases() if not names or case.name.startswith(names)]
    modules = (HERE / "measure.py", HERE / "rivals.py")
    folder.fill(out, chosen, functools.partial(_build_one, out, chip), to_builtins, modules)


def _build_one(out: Path, chip: str, case: Case) -> None:
    aotc.build(
        module(case),
        name=case.name,
        emit="shared",
        chips=(chip,),
        cpu_kernels=False,
        allow_tf32=case.allows == "tf32",
        allow_3xtf32=case.allows == "tf32x3",
        out=f"{out}/{case.name}/",
    )


def main() -> None:
    out, names = folder.options(__doc__)
    build(out, names)


if __name__ == "__main__":
    main()
