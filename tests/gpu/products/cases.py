"""The matmuls that are held against f64 on a GPU: an entry of any size each."""

from __future__ import annotations

from itertools import product

from msgspec import Struct, to_builtins

from tests.gpu.products.program import Program

# Elements of A and B, and of C.
TYPES = (
    ("f16", "f16"),
    ("f16", "f32"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("i8", "i32"),
    ("f8E4M3FN", "f32"),
    ("f8E5M2", "f32"),
)
LAYOUTS = ("nn", "nt", "tn", "tt")
# What comes after a product. `gelu`: gelu(x * scale + bias of the column) + residual.
EPILOGUES = ("relu", "gelu")


class Case(Struct, frozen=True):
    """C = A · B, of elements `element`, stored as `result`.

    `layout`: n or t for A and B as they lie. `form`: plain; batched, with a dimension in front;
    strided, whose rows are not one behind the other; or one of EPILOGUES, after sums of f32.
    `chip`: what it is built for: of sm_80, a later GPU runs the PTX; `options`: of aotc's command
    line, by their names in Python.
    """

    element: str
    result: str
    layout: str
    form: str = "plain"
    chip: str = "sm_90a"
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [self.element, self.result, self.layout, self.form, self.chip]
        return "_".join([*words, *self.options])


def cases() -> list[Case]:
    found = [
        Case(element, result, layout, form)
        for (element, result), layout in product(TYPES, LAYOUTS)
        for form in ("plain", "batched", "strided")
    ]
    found += [
        Case(element, result, layout, form)
        for element, result in (("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"))
        for layout in ("nn", "nt")
        for form in EPILOGUES
    ]
    found += [
        Case(element, result, layout, "plain", "sm_80")
        for element, result in (("f16", "f16"), ("bf16", "f32"), ("i8", "i32"))
        for layout in LAYOUTS
    ]
    found += [
        Case("f32", "f32", layout, options=(option,))
        for option in ("allow_tf32", "allow_3xtf32")
        for layout in LAYOUTS
    ]
    return found


def programs() -> list[Program]:
    return [
        Program(
            case.name,
            module(case),
            {**to_builtins(case), "kind": "product", "strided": case.form == "strided"},
            case.chip,
            case.options,
        )
        for case in cases()
    ]


def module(case: Case) -> str:
    """The entry, as text: A, B (for `gelu` the bias and the residual) and C are its arguments."""
    if case.form in EPILOGUES:
        return _with_epilogue(case)
    rank = 3 if case.form == "batched" else 2
    a, b, c = (_type(element, rank, case) for element in (case.element, case.element, case.result))
    zero = "0" if case.result.startswith("i") else "0.0"
    operation = "batch_matmul" if rank == 3 else "matmul"
    return f"""
func.func @{case.name}(%A: {a}, %B: {b}, %C: {c}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant {zero} : {case.result}
  linalg.fill ins(%zero : {case.result}) outs(%C : {c})
  linalg.{operation} indexing_maps = [{_maps(case, rank)}] ins(%A, %B : {a}, {b}) outs(%C : {c})
  return
}}
"""


def _type(element: str, rank: int, case: Case) -> str:
    sizes = "?x" * rank
    layout = ", strided<[?, 1], offset: ?>" if case.form == "strided" else ""
    return f"memref<{sizes}{element}{layout}>"


def _maps(case: Case, rank: int) -> str:
    batch = "b, " if rank == 3 else ""
    rows = "m, k" if case.layout[0] == "n" else "k, m"
    columns = "k, n" if case.layout[1] == "n" else "n, k"
    places = (rows, columns, "m, n")
    return ", ".join(f"affine_map<({batch}m, n, k) -> ({batch}{place})>" for place in places)


def _with_epilogue(case: Case) -> str:
    """Sums are tensors of f32, and an operation after them makes C."""
    element, result = case.element, case.result
    matrix, vector, sums = f"tensor<?x?x{element}>", f"tensor<?x{element}>", "tensor<?x?xf32>"
    out = f"tensor<?x?x{result}>"
    m, n = (0 if case.layout[0] == "n" else 1), (1 if case.layout[1] == "n" else 0)
    others = [("bias", vector), ("residual", matrix)] if case.form == "gelu" else []
    names = [("A", matrix), ("B", matrix), *others, ("C", out)]
    arguments = ", ".join(f"%{name}: {type_.replace('tensor', 'memref')}" for name, type_ in names)
    tensors = "\n".join(
        f"  %{name}_ = bufferization.to_tensor %{name} restrict "
        f": {type_.replace('tensor', 'memref')} to {type_}"
        for name, type_ in names[:-1]
    )
    identity, across = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j)>"
    maps = ", ".join([identity, *([across, identity] if others else []), identity])
    inputs = ", ".join(["%sums", *(f"%{name}_" for name, _ in others)])
    types = ", ".join([sums, *(type_ for _, type_ in others)])
    given = "".join(f", %{name}_in: {element}" for name, _ in others)
    body = _gelu(element) if others else _RELU
    end = "  " if result == "f32" else f"    %y = arith.truncf %last : f32 to {result}\n  "
    return f"""
func.func @{case.name}({arguments}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
{tensors}
  %m = tensor.dim %A_, %{m} : {matrix}
  %n = tensor.dim %B_, %{n} : {matrix}
  %empty = tensor.empty(%m, %n) : {sums}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sums = linalg.matmul indexing_maps = [{_maps(case, 2)}]
      ins(%A_, %B_ : {matrix}, {matrix}) outs(%zeros : {sums}) -> {sums}
  %place = tensor.empty(%m, %n) : {out}
  %made = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({inputs} : {types}) outs(%place : {out}) {{
  ^bb0(%x: f32{given}, %before: {result}):
{body}{end}  linalg.yield %{"last" if result == "f32" else "y"} : {result}
  }} -> {out}
  bufferization.materialize_in_destination %made in restrict writable %C
      : ({out}, {out.replace("tensor", "memref")}) -> ()
  return
}}
"""


_RELU = """\
    %none = arith.constant 0.0 : f32
    %last = arith.maximumf %x, %none : f32
"""


def _gelu(element: str) -> str:
    def widened(name: str) -> str:
        if element == "f32":
            return f"    %{name}_wide = arith.addf %{name}_in, %none : f32\n"
        return f"    %{name}_wide = arith.extf %{name}_in : {element} to f32\n"

    return f"""\
    %none = arith.constant 0.0 : f32
    %scale = arith.constant 0.125 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678 : f32
{widened("bias")}{widened("residual")}\
    %scaled = arith.mulf %x, %scale : f32
    %biased = arith.addf %scaled, %bias_wide : f32
    %inner = arith.mulf %biased, %root : f32
    %erf = math.erf %inner : f32
    %more = arith.addf %erf, %one : f32
    %halved = arith.mulf %biased, %half : f32
    %gelu = arith.mulf %halved, %more : f32
    %last = arith.addf %gelu, %residual_wide : f32
"""
