"""MLIR text of factorizations and triangular solutions, which several front ends generate.

The functions work on batches of matrices, [batch, rows, columns]. The matrices are factored in
parallel, each step by step, and so are the rows of a step; the columns of a triangular system are
solved in parallel. A single matrix is factored sequentially. Types are given as text; a size may be
unknown.
"""

from __future__ import annotations


def element_of(type_: str) -> str:
    """The element type of a tensor type."""
    return type_.removesuffix(">").split("x")[-1]


def _loop(name: str, count: str, before: str, batch: str, matrix: str, part: str, body: str) -> str:
    """A loop over %p to `count`, whose `body` makes %done of the matrix %x, `before` at first.

    Iterations run in parallel, and each changes only its `part`, the offsets and sizes of a slice.
    In a `batch` of one matrix they are sequential, as the host would launch a kernel for each step.
    """
    if _is_one(batch):
        return f"""
      %{name} = scf.for %p = %c0 to {count} step %c1 iter_args(%x = {before}) -> ({matrix}) {{
        {body}
        scf.yield %done : {matrix}
      }}"""
    size = matrix.removeprefix("tensor<").split("x")[0]
    row = f"tensor<{size}x{element_of(matrix)}>"
    return f"""
      %{name} = scf.forall (%p) in ({count}) shared_outs(%x = {before}) -> ({matrix}) {{
        {body}
        %part = tensor.extract_slice %done{part} [1, 1] : {matrix} to {row}
        scf.forall.in_parallel {{
          tensor.parallel_insert_slice %part into %x{part} [1, 1] : {row} into {matrix}
        }}
      }}"""


def _is_one(batch: str) -> bool:
    return batch.startswith("tensor<1x")


def _size_of(type_: str) -> str:
    """The second size of a tensor type."""
    return type_.removeprefix("tensor<").split("x")[1]


def lu_text(a: str, order: str, *, is_regular: bool = False, has_pivots: bool = False) -> str:
    """@lu(%a: a, %order: order) -> (a, order): the packed LU factors with partial pivoting.

    The strict lower triangle is L, whose diagonal is all ones; the upper triangle is U. The second
    result is `%order` with its rows permuted as the matrix's are. With `has_pivots`, it has, for
    each step, the number of the row that was exchanged with the step's, from 1, as LAPACK's getrf;
    `%order` is ignored then. With `is_regular`, a singular matrix fails an assertion.
    """
    made, rows, element, size = a, order, element_of(a), _size_of(a)
    if size == "0":
        return f"func.func @lu(%a: {a}, %order: {order}) -> ({made}, {rows}) {{\n" + (
            f"  return %a, %order : {made}, {rows}\n}}\n"
        )
    matrix, row = f"tensor<{size}x{size}x{element}>", f"tensor<{size}x{element_of(order)}>"
    extent = "%size" if size == "?" else size
    check = (
        'cf.assert %is_regular, "linalg: a matrix that is to be inverted is singular"'
        if is_regular
        else ""
    )
    record = f"""%here = tensor.extract %o[%k] : {row}
      %there = tensor.extract %o[%found#0] : {row}
      %begun = tensor.insert %there into %o[%k] : {row}
      %permuted = tensor.insert %here into %begun[%found#0] : {row}"""
    if has_pivots:
        record = f"""%number = arith.addi %found#0, %c1 : index
      %exchanged = arith.index_cast %number : index to {element_of(order)}
      %permuted = tensor.insert %exchanged into %o[%k] : {row}"""
    swap = f"""%upper = tensor.extract %x[%k, %p] : {matrix}
        %lower = tensor.extract %x[%found#0, %p] : {matrix}
        %first = tensor.insert %lower into %x[%k, %p] : {matrix}
        %done = tensor.insert %upper into %first[%found#0, %p] : {matrix}"""
    swapped = _loop("swapped", "%size", "%m", a, matrix, f"[0, %p] [{extent}, 1]", swap)
    eliminate = f"""%i = arith.addi %p, %next : index
        %below = tensor.extract %x[%i, %k] : {matrix}
        %quotient = arith.divf %below, %pivot : {element}
        %factor = arith.select %is_regular, %quotient, %zero : {element}
        %kept = tensor.insert %factor into %x[%i, %k] : {matrix}
        %done = scf.for %j = %next to %size step %c1 iter_args(%y = %kept) -> ({matrix}) {{
          %value = tensor.extract %y[%k, %j] : {matrix}
          %product = arith.mulf %factor, %value : {element}
          %old = tensor.extract %y[%i, %j] : {matrix}
          %less = arith.subf %old, %product : {element}
          %put = tensor.insert %less into %y[%i, %j] : {matrix}
          scf.yield %put : {matrix}
        }}"""
    row_part = f"[%i, 0] [1, {extent}]"
    eliminated = _loop("eliminated", "%left", "%swapped", a, matrix, row_part, eliminate)
    return f"""
func.func @lu(%a: {a}, %order: {order}) -> ({made}, {rows}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {element}
  %none = arith.constant -1.0 : {element}
  %batch = tensor.dim %a, %c0 : {a}
  %size = tensor.dim %a, %c1 : {a}
  %made:2 = scf.forall (%s) in (%batch) shared_outs(%shared = %a, %places = %order)
      -> ({made}, {rows}) {{
    %given = tensor.extract_slice %shared[%s, 0, 0] [1, {extent}, {extent}] [1, 1, 1]
        : {made} to {matrix}
    %own = tensor.extract_slice %places[%s, 0] [1, {extent}] [1, 1] : {rows} to {row}
    %whole:2 = scf.for %k = %c0 to %size step %c1 iter_args(%m = %given, %o = %own)
        -> ({matrix}, {row}) {{
      %found:2 = scf.for %i = %k to %size step %c1 iter_args(%p = %k, %most = %none)
          -> (index, {element}) {{
        %value = tensor.extract %m[%i, %k] : {matrix}
        %absolute = math.absf %value : {element}
        %is_larger = arith.cmpf ogt, %absolute, %most : {element}
        %is_nan = arith.cmpf uno, %absolute, %absolute : {element}
        %is_more = arith.ori %is_larger, %is_nan : i1
        %place = arith.select %is_more, %i, %p : index
        %larger = arith.select %is_more, %absolute, %most : {element}
        scf.yield %place, %larger : index, {element}
      }}
      {swapped}
      {record}
      %pivot = tensor.extract %swapped[%k, %k] : {matrix}
      %is_regular = arith.cmpf une, %pivot, %zero : {element}
      {check}
      %next = arith.addi %k, %c1 : index
      %left = arith.subi %size, %next : index
      {eliminated}
      scf.yield %eliminated, %permuted : {matrix}, {row}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole#0 into %shared[%s, 0, 0] [1, {extent}, {extent}] [1, 1, 1]
          : {matrix} into {made}
      tensor.parallel_insert_slice %whole#1 into %places[%s, 0] [1, {extent}] [1, 1]
          : {row} into {rows}
    }}
  }}
  return %made#0, %made#1 : {made}, {rows}
}}
"""


def solve_text(
    a: str,
    b: str,
    *,
    is_upper: bool = False,
    is_transposed: bool = False,
    is_unit: bool = False,
    is_right: bool = False,
) -> str:
    """@solve(%a: a, %b: b) -> b: the solutions X of A X = B by substitution.

    A is lower or upper triangular; its other triangle is not read, nor, with `is_unit`, its
    diagonal. It is transposed first with `is_transposed`. With `is_right`, X A = B is solved.
    """
    element = element_of(b)
    sizes = b.removeprefix("tensor<").split("x")
    rows = sizes[2] if is_right else sizes[1]
    column = f"tensor<{rows}x{element}>"
    extent = "%rows" if rows == "?" else rows
    place, size = ("0, %j", f"1, {extent}, 1")
    of_rows, of_columns = "%c1", "%c2"
    if is_right:  # Aᵀ Xᵀ = Bᵀ
        place, size = ("%j, 0", f"1, 1, {extent}")
        of_rows, of_columns = of_columns, of_rows
    # Of A, or of its transpose, as it is solved with columns.
    is_flipped = is_transposed != is_right
    is_last_first = is_upper != is_flipped
    index = "%k, %i" if is_flipped else "%i, %k"

    def number(name: str, step: str) -> str:
        if not is_last_first:
            return f"%{name} = arith.addi %{step}, %c0 : index"
        return (
            f"%{name}_left = arith.subi %rows, %{step} : index\n"
            f"    %{name} = arith.subi %{name}_left, %c1 : index"
        )

    divide = f"""%divisor = tensor.extract %a[%s, %i, %i] : {a}
      %quotient = arith.divf %rest, %divisor : {element}"""
    quotient = "%rest" if is_unit else "%quotient"
    return f"""
func.func @solve(%a: {a}, %b: {b}) -> {b} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %b, %c0 : {b}
  %rows = tensor.dim %b, {of_rows} : {b}
  %columns = tensor.dim %b, {of_columns} : {b}
  %made = scf.forall (%s, %j) in (%batch, %columns) shared_outs(%shared = %b) -> ({b}) {{
    %given = tensor.extract_slice %shared[%s, {place}] [{size}] [1, 1, 1] : {b} to {column}
    %solved = scf.for %t = %c0 to %rows step %c1 iter_args(%values = %given) -> ({column}) {{
      {number("i", "t")}
      %own = tensor.extract %values[%i] : {column}
      %rest = scf.for %u = %c0 to %t step %c1 iter_args(%left = %own) -> ({element}) {{
        {number("k", "u")}
        %factor = tensor.extract %a[%s, {index}] : {a}
        %value = tensor.extract %values[%k] : {column}
        %product = arith.mulf %factor, %value : {element}
        %less = arith.subf %left, %product : {element}
        scf.yield %less : {element}
      }}
      {"" if is_unit else divide}
      %put = tensor.insert {quotient} into %values[%i] : {column}
      scf.yield %put : {column}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %solved into %shared[%s, {place}] [{size}] [1, 1, 1]
          : {column} into {b}
    }}
  }}
  return %made : {b}
}}
"""


def cholesky_text(a: str, *, is_checked: bool = True) -> str:
    """@cholesky(%a: a) -> a: the lower factors of symmetric matrices, in place of the lower
    triangles; the rest is as it was.

    A matrix that is not positive definite fails an assertion with `is_checked`; otherwise its
    factor has a number on its diagonal that is not above 0, or NaN.
    """
    result, element, rows = a, element_of(a), _size_of(a)
    check = (
        f"""%is_positive = arith.cmpf ogt, %square, %zero : {element}
      cf.assert %is_positive, "linalg.cholesky: a matrix is not positive-definite\""""
        if is_checked
        else ""
    )
    matrix = f"tensor<{rows}x{rows}x{element}>"
    extent = "%rows" if rows == "?" else rows
    size = f"1, {extent}, {extent}"
    below = f"""%i = arith.addi %p, %next : index
        %below = tensor.extract %x[%i, %j] : {matrix}
        %rest = scf.for %k = %c0 to %j step %c1 iter_args(%left = %below) -> ({element}) {{
          %value = tensor.extract %x[%i, %k] : {matrix}
          %factor = tensor.extract %x[%j, %k] : {matrix}
          %product = arith.mulf %value, %factor : {element}
          %less = arith.subf %left, %product : {element}
          scf.yield %less : {element}
        }}
        %quotient = arith.divf %rest, %root : {element}
        %done = tensor.insert %quotient into %x[%i, %j] : {matrix}"""
    column = _loop("column", "%under", "%begun", a, matrix, f"[%i, 0] [1, {extent}]", below)
    return f"""
func.func @cholesky(%a: {a}) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {element}
  %batch = tensor.dim %a, %c0 : {a}
  %rows = tensor.dim %a, %c1 : {a}
  %made = scf.forall (%s) in (%batch) shared_outs(%shared = %a) -> ({result}) {{
    %given = tensor.extract_slice %shared[%s, 0, 0] [{size}] [1, 1, 1] : {a} to {matrix}
    %whole = scf.for %j = %c0 to %rows step %c1 iter_args(%columns = %given) -> ({matrix}) {{
      %own = tensor.extract %columns[%j, %j] : {matrix}
      %square = scf.for %k = %c0 to %j step %c1 iter_args(%left = %own) -> ({element}) {{
        %value = tensor.extract %columns[%j, %k] : {matrix}
        %product = arith.mulf %value, %value : {element}
        %less = arith.subf %left, %product : {element}
        scf.yield %less : {element}
      }}
      {check}
      %root = math.sqrt %square : {element}
      %begun = tensor.insert %root into %columns[%j, %j] : {matrix}
      %next = arith.addi %j, %c1 : index
      %under = arith.subi %rows, %next : index
      {column}
      scf.yield %column : {matrix}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared[%s, 0, 0] [{size}] [1, 1, 1]
          : {matrix} into {result}
    }}
  }}
  return %made : {result}
}}
"""
