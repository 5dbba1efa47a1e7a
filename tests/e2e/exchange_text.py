"""The MLIR text of exchange_programs.py: its entries, and what they go through."""

from __future__ import annotations

from typing import Any

from e2e.exchange_values import FLOATS, INTEGERS, WARP, operations_of

Size = tuple[int, int, int]

# Sizes that are constants of the launch: the kernel knows them.
KNOWN: list[Size] = [(96, 1, 1), (45, 1, 1), (16, 8, 2), (5, 5, 5)]
CLUSTERS = [(1, 1), (2, 1), (8, 1), (4, 2), (2, 16), (8, 4), (32, 1)]
# What is known at build time in some: not every type again.
KNOWN_ELEMENTS = ["i8", "f32"]
ELEMENTS = [*INTEGERS, *FLOATS]
# Of shuffles, beside scalars: words of their own, and parts of words.
VECTORS = [("f16", 2), ("i8", 4), ("f32", 3), ("i16", 5), ("i64", 2), ("bf16", 3)]
SHUFFLES = [("xor", 1), ("xor", 21), ("up", 3), ("down", 9), ("idx", 13)]
WIDTHS = [WARP, 16]
ROTATIONS = [(0, 1), (3, 8), (5, 32), (31, 32)]
ROUNDS = 2


def _entry(name: str, arguments: str, body: str, *, known: Size | None = None) -> str:
    """An entry whose launch has a block for each row of `x`, of which a thread is a column.

    The body has %b and %i for them, and %n threads.
    """
    sizes = ", %bx: index, %by: index, %bz: index" if known is None else ""
    constants = [
        f"  %b{dimension} = arith.constant {size} : index"
        for dimension, size in zip("xyz", known or (), strict=known is not None)
    ]
    element = arguments.split("memref<?x?x", 1)[1].split(">", 1)[0]
    return f"""
func.func @{name}({arguments}{sizes}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
{chr(10).join(constants)}
  %rows = memref.dim %x, %zero : memref<?x?x{element}>
  gpu.launch blocks(%b, %b1, %b2) in (%gx = %rows, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %bx, %sy = %by, %sz = %bz) {{
    %c0 = arith.constant 0 : index
    %row0 = arith.muli %tz, %sy : index
    %row1 = arith.addi %row0, %ty : index
    %row2 = arith.muli %row1, %sx : index
    %i = arith.addi %row2, %tx : index
    %plane = arith.muli %sx, %sy : index
    %n = arith.muli %plane, %sz : index
{body}
    gpu.terminator
  }}
  return
}}"""


def _element_entry(name: str, element: str, rows: int, body: str, **options: Any) -> str:
    """An entry with a result of `rows` values for each thread; the body loads %v itself."""
    arguments = f"%x: memref<?x?x{element}>, %out: memref<{rows}x?x?x{element}>"
    return _entry(name, arguments, body, **options)


def _load(element: str) -> str:
    return f"    %v = memref.load %x[%b, %i] : memref<?x?x{element}>"


def _store(value: str, row: int, rows: int, element: str, to: str = "out") -> str:
    return f"""    %at_{to}_{row} = arith.constant {row} : index
    memref.store {value}, %{to}[%at_{to}_{row}, %b, %i] : memref<{rows}x?x?x{element}>"""


# Reductions of warps and clusters


def _subgroup_reduce_text(element: str, known: Size | None = None) -> str:
    kinds = list(operations_of(element))
    lines = [_load(element)]
    for row, kind in enumerate(kinds):
        lines += [
            f"    %r{row} = gpu.subgroup_reduce {kind} %v : ({element}) -> {element}",
            _store(f"%r{row}", row, len(kinds), element),
        ]
    name = entry_name("subgroup_reduce", element, known)
    return _element_entry(name, element, len(kinds), "\n".join(lines), known=known)


def _clusters_text(element: str, known: Size | None = None) -> str:
    lines = [_load(element)]
    for row, (size, stride) in enumerate(CLUSTERS):
        lines += [
            f"    %r{row} = gpu.subgroup_reduce add %v cluster(size = {size}, stride = {stride})"
            f" : ({element}) -> {element}",
            _store(f"%r{row}", row, len(CLUSTERS), element),
        ]
    name = entry_name("clusters", element, known)
    return _element_entry(name, element, len(CLUSTERS), "\n".join(lines), known=known)


def _vector_reduce_text(element: str, count: int) -> str:
    vector = f"vector<{count}x{element}>"
    memref = f"memref<?x?x{count}x{element}>"
    body = f"""    %v = vector.load %x[%b, %i, %c0] : {memref}, {vector}
    %r = gpu.subgroup_reduce add %v : ({vector}) -> {vector}
    vector.store %r, %out[%b, %i, %c0] : {memref}, {vector}"""
    return _entry(f"vector_reduce_{count}x{element}", f"%x: {memref}, %out: {memref}", body)


# Reductions of blocks


def _all_reduce_text(element: str, known: Size | None = None) -> str:
    """In a loop, each round of other values: what one round leaves must not reach the next."""
    kinds = list(operations_of(element))
    rows = len(kinds) * ROUNDS
    lines = [
        f"    %end = arith.constant {ROUNDS} : index",
        "    scf.for %r = %c0 to %end step %one {",
        "    %turned = arith.addi %i, %r : index",
        "    %from = arith.remui %turned, %n : index",
        f"    %v = memref.load %x[%b, %from] : memref<?x?x{element}>",
    ]
    for row, kind in enumerate(kinds):
        lines += [
            f"    %r{row} = gpu.all_reduce {kind} %v {{}} : ({element}) -> {element}",
            f"    %first{row} = arith.constant {row * ROUNDS} : index",
            f"    %at{row} = arith.addi %first{row}, %r : index",
            f"    memref.store %r{row}, %out[%at{row}, %b, %i] : memref<{rows}x?x?x{element}>",
        ]
    lines.append("    }")
    name = entry_name("all_reduce", element, known)
    return _element_entry(name, element, rows, "\n".join(lines), known=known)


def _regions_text(known: Size | None = None) -> str:
    """Reductions by regions that tell their operands apart; one has several blocks."""
    body = f"""{_load("i32")}
    %r0 = gpu.all_reduce %v {{
    ^bb0(%l: i32, %r: i32):
      %three = arith.constant 3 : i32
      %thrice = arith.muli %l, %three : i32
      %difference = arith.subi %thrice, %r : i32
      gpu.yield %difference : i32
    }} : (i32) -> i32
{_store("%r0", 0, 2, "i32")}
    %r1 = gpu.all_reduce %v {{
    ^bb0(%l: i32, %r: i32):
      %less = arith.cmpi slt, %l, %r : i32
      cf.cond_br %less, ^bb1, ^bb2
    ^bb1:
      %difference = arith.subi %l, %r : i32
      gpu.yield %difference : i32
    ^bb2:
      %twice = arith.addi %r, %r : i32
      %sum = arith.addi %twice, %l : i32
      gpu.yield %sum : i32
    }} : (i32) -> i32
{_store("%r1", 1, 2, "i32")}"""
    return _element_entry(entry_name("regions", "i32", known), "i32", 2, body, known=known)


def _numbers_text(element: str) -> str:
    """Which minima and maxima pass NaN on, and which do not."""
    f = f"({element}) -> {element}"
    lines = [_load(element)]
    for row, kind in enumerate(("minnumf", "maxnumf")):
        lines += [
            f"    %w{row} = gpu.subgroup_reduce {kind} %v : {f}",
            f"    %r{row} = gpu.all_reduce {kind} %v {{}} : {f}",
            _store(f"%w{row}", 2 * row, 4, element),
            _store(f"%r{row}", 2 * row + 1, 4, element),
        ]
    for row, kind in enumerate(("minimumf", "maximumf")):
        reductions = (f"gpu.subgroup_reduce {kind} %v", f"gpu.all_reduce {kind} %v {{}}")
        for number, operation in enumerate(reductions, 2 * row):
            lines += [
                f"    %m{number} = {operation} : {f}",
                f"    %n{number} = arith.cmpf uno, %m{number}, %m{number} : {element}",
                _store(f"%n{number}", number, 4, "i1", "nan"),
            ]
    arguments = f"%x: memref<?x?x{element}>, %out: memref<4x?x?x{element}>, %nan: memref<4x?x?xi1>"
    return _entry(f"numbers_{element}", arguments, "\n".join(lines))


# Values of other lanes


def _shuffle_text(element: str) -> str:
    rows = len(SHUFFLES) * len(WIDTHS)
    lines = [_load(element)]
    for row, (width, (mode, offset)) in enumerate(shuffles()):
        lines += [
            f"    %o{row} = arith.constant {offset} : i32",
            f"    %w{row} = arith.constant {width} : i32",
            f"    %s{row}, %ok{row} = gpu.shuffle {mode} %v, %o{row}, %w{row} : {element}",
            *_store_validated(row, rows, element),
        ]
    return _entry(f"shuffle_{element}", _validated(rows, element), "\n".join(lines))


def _store_validated(row: int, rows: int, element: str) -> list[str]:
    """Keeps a lane's value and its validity bit. Without a source the value is anything."""
    return [
        f"    %r{row} = arith.select %ok{row}, %s{row}, %v : {element}",
        _store(f"%r{row}", row, rows, element),
        _store(f"%ok{row}", row, rows, "i1", "valid"),
    ]


def _validated(rows: int, element: str) -> str:
    """The arguments of an entry whose values have validity bits."""
    return (
        f"%x: memref<?x?x{element}>, %out: memref<{rows}x?x?x{element}>, "
        f"%valid: memref<{rows}x?x?xi1>"
    )


def shuffles() -> list[tuple[int, tuple[str, int]]]:
    return [(width, shuffle) for width in WIDTHS for shuffle in SHUFFLES]


def _vector_text(element: str, count: int) -> str:
    vector = f"vector<{count}x{element}>"
    memref = f"memref<?x?x{count}x{element}>"
    body = f"""    %v = vector.load %x[%b, %i, %c0] : {memref}, {vector}
    %o = arith.constant 5 : i32
    %w = arith.constant 32 : i32
    %s, %ok = gpu.shuffle down %v, %o, %w : {vector}
    %t, %yes = gpu.rotate %s, 3, 32 : {vector}
    %r = gpu.subgroup_broadcast %t, specific_lane %o : {vector}
    vector.store %s, %shuffled[%b, %i, %c0] : {memref}, {vector}
    vector.store %t, %turned[%b, %i, %c0] : {memref}, {vector}
    vector.store %r, %sent[%b, %i, %c0] : {memref}, {vector}"""
    arguments = ", ".join(f"%{name}: {memref}" for name in ("x", "shuffled", "turned", "sent"))
    return _entry(f"vector_{count}x{element}", arguments, body)


def _rotate_text(element: str) -> str:
    rows = len(ROTATIONS)
    lines = [_load(element)]
    for row, (offset, width) in enumerate(ROTATIONS):
        lines += [
            f"    %s{row}, %ok{row} = gpu.rotate %v, {offset}, {width} : {element}",
            *_store_validated(row, rows, element),
        ]
    return _entry(f"rotate_{element}", _validated(rows, element), "\n".join(lines))


def _broadcast_text(element: str) -> str:
    """`lane` is an argument: it is not known when the program is built."""
    body = f"""{_load(element)}
    %r0 = gpu.subgroup_broadcast %v, first_active_lane : {element}
    %r1 = gpu.subgroup_broadcast %v, specific_lane %lane : {element}
{_store("%r0", 0, 2, element)}
{_store("%r1", 1, 2, element)}"""
    arguments = f"%x: memref<?x?x{element}>, %out: memref<2x?x?x{element}>, %lane: i32"
    return _entry(f"broadcast_{element}", arguments, body)


def _broadcast_in_branch_text() -> str:
    """Lanes from 3 on come here by themselves: lane 3 is the first active one."""
    body = f"""{_load("i32")}
    %lane = gpu.lane_id
    %three = arith.constant 3 : index
    %is_here = arith.cmpi uge, %lane, %three : index
    %r = scf.if %is_here -> i32 {{
      %s = gpu.subgroup_broadcast %v, first_active_lane : i32
      scf.yield %s : i32
    }} else {{
      scf.yield %v : i32
    }}
    memref.store %r, %out[%b, %i] : memref<?x?xi32>"""
    return _entry("broadcast_in_branch", "%x: memref<?x?xi32>, %out: memref<?x?xi32>", body)


def _ballot_text() -> str:
    body = f"""{_load("i1")}
    %r64 = gpu.ballot %v : i64
    %r32 = gpu.ballot %v : i32
    %r16 = gpu.ballot %v : i16
    %r8 = gpu.ballot %v : i8
    memref.store %r64, %out64[%b, %i] : memref<?x?xi64>
    memref.store %r32, %out32[%b, %i] : memref<?x?xi32>
    memref.store %r16, %out16[%b, %i] : memref<?x?xi16>
    memref.store %r8, %out8[%b, %i] : memref<?x?xi8>"""
    outs = ", ".join(f"%out{width}: memref<?x?xi{width}>" for width in (64, 32, 16, 8))
    return _entry("ballot", f"%x: memref<?x?xi1>, {outs}", body)


def _ids_text() -> str:
    lines = []
    for row, name in enumerate(("lane_id", "subgroup_id", "subgroup_size", "num_subgroups")):
        type_ = "" if name == "lane_id" else " : index"
        lines += [f"    %r{row} = gpu.{name}{type_}", _store(f"%r{row}", row, 4, "index")]
    arguments = "%x: memref<?x?xindex>, %out: memref<4x?x?xindex>"
    return _entry("ids", arguments, "\n".join(lines))


def entry_name(what: str, element: str, known: Size | None) -> str:
    return f"{what}_{element}" + ("" if known is None else f"_{'x'.join(map(str, known))}")


def source() -> str:
    """The module."""
    return "\n".join(
        [
            "// Generated by tests/e2e/exchange_programs.py.",
            *map(_subgroup_reduce_text, ELEMENTS),
            *map(_clusters_text, ELEMENTS),
            *map(_all_reduce_text, ELEMENTS),
            *map(_numbers_text, FLOATS),
            *map(_shuffle_text, ELEMENTS),
            *map(_rotate_text, ELEMENTS),
            *map(_broadcast_text, ELEMENTS),
            *(_vector_text(*vector) for vector in VECTORS),
            *(_vector_reduce_text(*vector) for vector in VECTORS),
            *(
                text(element, known)
                for text in (_subgroup_reduce_text, _clusters_text, _all_reduce_text)
                for element in KNOWN_ELEMENTS
                for known in KNOWN
            ),
            _regions_text(),
            *map(_regions_text, KNOWN),
            _ballot_text(),
            _ids_text(),
            _broadcast_in_branch_text(),
            "",
        ]
    )
