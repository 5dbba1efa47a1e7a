"""Products on Hopper's tensor cores, as far as a machine without such a GPU can tell.

What the kernel's arithmetic says is computed here for each lane, and compared with what the PTX
manual says of wgmma's sums, of `stmatrix` and of TMA's swizzle.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from e2e.support import run
from gpu.products.contraction import Contraction, Operand
from helpers.command import Outcome
from matmul.traced import Trace, Values, traced

from aotc.builder import Builder
from aotc.builder.numbers import Value
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueBuilder,
    Matrix,
    Place,
    Problem,
)
from aotc.kernels.matmul.wgmma.cluster import Cluster
from aotc.kernels.matmul.wgmma.epilogue import TmaStoreEpilogue
from aotc.kernels.matmul.wgmma.family import WGMMA, Variant
from aotc.kernels.matmul.wgmma.kernel import Kernel, operands
from aotc.kernels.matmul.wgmma.transpose_of_c_store import TransposingEpilogue
from aotc.mlir import ir

Aotc = Callable[..., Outcome]

SMALL = Variant(n=64, consumers=1, stages=4)


def matrix(
    sizes: tuple[int, ...],
    element: str,
    *,
    dynamic: bool = False,
    pitch: int | None = None,
    transposed: bool = False,
    alignment: int | None = None,
) -> Matrix:
    """`pitch`: given, the type is that of a part of a larger matrix."""
    shape = "x".join("?" if dynamic else str(size) for size in sizes)
    layout = ""
    if pitch is not None:
        strides = [*([pitch * sizes[-2]] if len(sizes) == 3 else []), pitch, 1]
        layout = f", strided<{strides}, offset: ?>"
    distance = sizes[-1] if pitch is None else pitch
    bytes_ = distance * ELEMENT_BYTES[element]
    if alignment is None:
        alignment = 16 if dynamic else min(bytes_ & -bytes_, 256)
    return Matrix(
        type=f"memref<{shape}x{element}{layout}>",
        element=element,
        sizes=(None, None) if dynamic else (sizes[-2], sizes[-1]),
        pitch=None if dynamic and pitch is None else distance,
        alignment=alignment,
        transposed=transposed,
    )


def problem(
    m: int = 200,
    n: int = 104,
    k: int = 72,
    *,
    element: str = "f16",
    c: str = "f16",
    transposed: str = "",
    dynamic: bool = False,
    pitch: int | None = None,
    c_alignment: int | None = None,
    batch: int | None = None,
    adds: bool = False,
) -> Problem:
    outer = () if batch is None else (batch,)
    a = (k, m) if "a" in transposed else (m, k)
    b = (n, k) if "b" in transposed else (k, n)
    return Problem(
        a=matrix((*outer, *a), element, dynamic=dynamic, pitch=pitch, transposed="a" in transposed),
        b=matrix((*outer, *b), element, dynamic=dynamic, transposed="b" in transposed),
        c=matrix((*outer, m, n), c, dynamic=dynamic, alignment=c_alignment),
        accumulator="f32",
        adds=adds,
        batched=batch is not None,
    )


def module(p: Problem, variant: Variant = SMALL, finish: EpilogueBuilder | None = None) -> str:
    types = [p.a.type, p.b.type, p.c.type]
    arguments = ", ".join(f"%{key}: {type_}" for key, type_ in zip("ABC", types, strict=True))
    kernel = WGMMA.function(p, variant, "kernel", finish)
    return f"""{kernel}
func.func @gemm({arguments}) attributes {{llvm.emit_c_interface}} {{
  call @kernel(%A, %B, %C) : ({", ".join(types)}) -> ()
  return
}}
"""


def relu(b: Builder, values: Sequence[Value], place: Place) -> list[Value]:
    zero = b.constant(0, "f32")
    larger = [b.op("arith.maximumf", [value, zero], "f32") for value in values]
    return [b.convert(value, "f16") for value in larger]


# --- What it takes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("why", "p"),
    [
        ("f32 is not for these kernels", problem(element="f32", c="f32")),
        ("A's rows are not aligned", problem(k=100)),
        ("nor are they here, though it is known to begin well", problem(k=100, pitch=100)),
        ("nor B's", problem(n=100)),
        ("C is no integer", problem(c="i32")),
    ],
)
def test_what_tma_cannot_is_refused(why: str, p: Problem) -> None:
    assert not WGMMA.can_implement(p, SMALL), why
    assert WGMMA.variants(p) == ()


def test_unknown_rows_are_refused_unless_their_alignment_is_known() -> None:
    p = problem(dynamic=True)
    assert WGMMA.can_implement(p, SMALL)
    unknown = matrix((200, 72), "f16", dynamic=True, alignment=2)
    assert not WGMMA.can_implement(Problem(a=unknown, b=p.b, c=p.c, accumulator="f32"), SMALL)


@pytest.mark.parametrize(
    "variant",
    [
        Variant(n=100),
        Variant(n=272),
        Variant(n=256, stages=5),
        Variant(n=256, m_blocks=2, consumers=1, stages=3),
        Variant(n=64, consumers=4),
        Variant(n=208, consumers=3, stages=3),
        Variant(n=208, m_blocks=2, stages=3),
        Variant(n=64, down=3),
        Variant(n=64, consumers=1, ping_pong=True),
        Variant(n=64, stages=1),
    ],
)
def test_impossible_variants_are_refused(variant: Variant) -> None:
    assert not WGMMA.can_implement(problem(), variant)


def test_large_squares_begin_with_the_largest_tile() -> None:
    first, *_ = WGMMA.variants(problem(4096, 4096, 4096))
    assert first == Variant(n=256, consumers=2, stages=3)


def test_a_ring_that_gains_a_stage_has_less_to_store_from() -> None:
    """Of what there is room for in a block's shared memory."""
    found = WGMMA.variants(problem(4096, 4096, 4096))
    assert {(one.stages, one.buffers) for one in found if one.m == one.n == 192} == {(4, 1)}
    assert {(one.stages, one.buffers) for one in found if one.m == one.n == 64} == {(8, 2)}


# --- What it says --------------------------------------------------------------------------

PROBLEMS = {
    "dynamic": problem(dynamic=True),
    "A transposed": problem(transposed="a"),
    "B transposed": problem(transposed="b"),
    "both transposed": problem(transposed="ab", element="bf16", c="bf16"),
    "slabs in one": problem(256, 256, 256, transposed="a"),
    "f32": problem(c="f32", dynamic=True),
    "many tiles": problem(50176, 128, 256, transposed="b"),
    "A of a larger matrix": problem(pitch=80),
    "unaligned C": problem(n=99, transposed="b"),
    "unaligned C of f32": problem(c="f32", c_alignment=4),
    "batched": problem(batch=3, dynamic=True),
    "batched slabs": problem(256, 256, 256, batch=3, transposed="a"),
    "added to an unaligned C": problem(n=99, transposed="b", adds=True, batch=3),
    "added": problem(adds=True),
    "added, f32": problem(adds=True, c="f32", dynamic=True),
}
VARIANTS = (
    SMALL,
    Variant(n=256),
    Variant(n=208, stages=3),
    Variant(n=128, m_blocks=2, stages=4, ping_pong=True),
    Variant(n=192, consumers=3, stages=3, down=2),
    Variant(n=80, consumers=1, across=2),
    Variant(n=256, down=2, across=2),
)
SWAPPED = (
    Variant(n=96, consumers=3, stages=5, buffers=1, transposes_c=True),
    Variant(n=160, m_blocks=2, stages=3, across=2, transposes_c=True),
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_text_is_a_module(name: str) -> None:
    p = PROBLEMS[name]
    swapped = [variant for variant in SWAPPED if WGMMA.can_implement(p, variant)]
    is_simple = p.c.element != "f32" and not p.adds and p.c.alignment % 16 == 0
    assert len(swapped) == (len(SWAPPED) if is_simple else 0)
    for variant, finish in itertools.product(
        (*VARIANTS, *swapped), (None, relu if p.c.element == "f16" else None)
    ):
        assert WGMMA.can_implement(p, variant)
        with ir.Context(), ir.Location.unknown():
            ir.Module.parse(module(p, variant, finish)).operation.verify()


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("dynamic", Variant(n=256)),
        ("slabs in one", Variant(n=128, m_blocks=2, stages=4, ping_pong=True)),
        ("added to an unaligned C", Variant(n=208, stages=3)),
        ("batched slabs", SMALL),
        ("both transposed", Variant(n=240)),
        ("f32", Variant(n=144)),
        ("dynamic", Variant(n=192, m_blocks=2, stages=3, across=2)),
        ("f32", Variant(n=192, consumers=3, stages=3, down=2)),
        ("many tiles", Variant(n=128, consumers=3, stages=5, buffers=1)),
        ("dynamic", Variant(n=256, down=2, across=2)),
        ("dynamic", SWAPPED[0]),
        ("A transposed", SWAPPED[1]),
    ],
)
def test_sums_stay_in_registers(
    name: str, variant: Variant, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """ptxas takes it with the registers that there are, without stack, and says nothing of
    products that wait for each other. No tile is divided for while MMAs are under way: of a
    division ptxas makes a call, behind which it read accumulators before the wait."""
    path = mlir_file(module(PROBLEMS[name], variant))
    out = tmp_path / "out"
    command = ("build", path, "--chip", "sm_90a", "--emit", "ptx,cubin", "-o", f"{out}/")
    assert "warning" not in aotc(*command).succeeded().stderr
    said = aotc("inspect", next(out.glob("*.cubin"))).succeeded().stdout
    registers, shared, stack = map(int, re.findall(r" [a-z]\w+ +(\d+) +(\d+) +(\d+)", said)[0])
    assert registers <= {1: 255, 2: 168, 3: 128}[variant.consumers]
    assert (shared, stack) == (1024, 0)
    ptx = next(out.glob("*.ptx")).read_text()
    shape = f"m64n{variant.n}k16.f32.{PROBLEMS[name].a.element}"
    assert ptx.count(f"wgmma.mma_async.sync.aligned.{shape}") >= 8 * variant.m_blocks
    assert (".minnctapersm 1" in ptx) is (variant.consumers > 1)
    under_way = re.findall(
        r"wgmma\.mma_async.*?wgmma\.wait_group\.sync\.aligned\s+0", ptx, re.DOTALL
    )
    division = re.compile(r"\b(div|rem)\.")
    assert division.search(ptx) or name != "many tiles"
    assert not any(map(division.search, under_way))


def test_a_batch_norm_is_in_registers(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Four vectors along columns are not loaded ahead of their use, for which a thread that has 128
    accumulators would need 96 registers."""
    vectors = tuple(Operand(element, ("n",)) for element in ("f32", "f32", "f16", "f16"))
    problem_ = Contraction(
        "norm",
        {"m": 25088, "n": 256, "k": 64},
        Operand("f16", ("m", "k")),
        Operand("f16", ("n", "k")),
        Operand("f16", ("m", "n")),
        sums="f32",
        more=vectors,
        steps=(("round", "f16"), ("add", 2), ("times", 3), ("times", 4), ("add", 5), ("relu",)),
    )
    path, out = mlir_file(problem_.program.text), tmp_path / "out"
    aotc("build", path, "--chip", "sm_90a", "--emit", "cubin", "-o", f"{out}/").succeeded()
    said = aotc("inspect", next(out.glob("*wgmma*.cubin"))).succeeded().stdout
    found = re.findall(r" \w+_(128x\d+)x64_s\d_pingpong_epilogue +168 +1024 +(\d+) ", said)
    assert found == [("128x128", "0")]


def test_a_and_b_are_read_and_c_is_written(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """And a C without elements needs no GPU."""
    program = tmp_path / "gemm"
    path = mlir_file(module(problem(dynamic=True)))
    aotc("build", path, "--chip", "sm_90a", "-o", program).succeeded()
    lines = run(program, "--describe").stdout.splitlines()
    uses = [line.split("  ") for line in lines if "device memory" in line]
    assert [("read" in use, "written" in use) for use in uses] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    sizes = ("--dim", "A=0x8", "--dim", "B=8x8", "--dim", "C=0x8")
    assert run(program, *sizes, "--device", "cpu").returncode == 0


# --- What it computes ----------------------------------------------------------------------


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "divui": lambda x, y: x // y,
    "remui": lambda x, y: x % y,
    "minui": min,
    "andi": lambda x, y: x & y,
    "ori": lambda x, y: x | y,
    "xori": lambda x, y: x ^ y,
    "shli": lambda x, y: x << y,
    "shrui": lambda x, y: x >> y,
}


# Of kernels that are written as text: see `traced` for the others.
def evaluate(lines: list[str], given: dict[str, int]) -> dict[str, Any]:
    """The values of the arithmetic among the lines; of a vector, the names of what is in it."""
    values: dict[str, Any] = dict(given)
    for line in lines:
        if found := re.match(r" *(%\w+) = arith\.constant (-?\d+)", line):
            values[found[1]] = int(found[2])
        elif found := re.match(r" *(%\w+) = arith\.(\w+) (%\w+), (%\w+) : i(?:32|64)", line):
            values[found[1]] = OPERATIONS[found[2]](values[found[3]], values[found[4]])
        elif found := re.match(r" *(%\w+) = arith\.cmpi (\w+), (%\w+), (%\w+) : i32", line):
            compare = {"eq": int.__eq__, "ult": int.__lt__}[found[2]]
            values[found[1]] = compare(values[found[3]], values[found[4]])
        elif found := re.match(r" *(%\w+) = arith\.(andi|ori) (%\w+), (%\w+) : i1", line):
            how = {"andi": bool.__and__, "ori": bool.__or__}[found[2]]
            values[found[1]] = how(values[found[3]], values[found[4]])
        elif found := re.match(r" *(%\w+) = arith\.(?:trunci|extui|index_castui) (%\w+) :", line):
            values[found[1]] = values[found[2]]
        elif found := re.match(r" *(%\w+) = vector\.from_elements (\S+), (\S+) :", line):
            values[found[1]] = (found[2], found[3])
        elif found := re.match(r" *(%\w+) = (?:llvm\.bitcast|llvm\.inttoptr) (%\w+)", line):
            values[found[1]] = values[found[2]]
    return values


def cluster_of(trace: Trace, down: int, across: int) -> Cluster:
    """Of a trace with arguments `block` and `blocks`."""
    launch: Any = SimpleNamespace(block=trace["block"], blocks=trace["blocks"])
    return Cluster(trace.b, launch, down, across)


@pytest.mark.parametrize(("down", "across"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_tiles_are_made_once(down: int, across: int) -> None:
    """Each of every matrix, also where the last rows of tiles are fewer than a group."""
    variant = Variant(n=64, consumers=1, group=4, down=down, across=across)
    none = Arguments(None, None, None)
    with traced(block="index", blocks="index", down="i32", across="i32", tiles="i32") as trace:
        kernel = Kernel(trace.b, problem(batch=2), variant, none, None)
        kernel.across, kernel.down = trace["across"], trace["down"]
        kernel.tiles_of_matrix = trace["tiles"]
        kernel.cluster = cluster_of(trace, down, across)
        tile = kernel._tile(kernel.cluster.number)
        seen = []
        blocks = 2 * 10 * 3 * down * across
        for block in range(blocks):
            values = trace.evaluate(across=3, down=10, tiles=30, block=block, blocks=blocks)
            seen.append(tuple(values[one] for one in (tile.batch, tile.row, tile.column)))
    places = itertools.product(range(2), range(10 * down), range(3 * across))
    assert sorted(seen) == sorted((b, 64 * m, 64 * n) for b, m, n in places)


# --- What blocks of a cluster share --------------------------------------------------------


@pytest.mark.parametrize("extent", [64, 80, 128, 192, 256])
@pytest.mark.parametrize("layout", ["K-major", "slabs", "slabs in one"])
def test_parts_are_the_tile(extent: int, layout: str) -> None:
    """Each byte of the tile in shared memory is copied by one block, from where it is copied
    without a cluster."""
    is_k_major = layout == "K-major"
    size = 512 if layout == "slabs in one" else 520
    whole, half = (
        loaded(tile_of(matrix((size, size), "f16"), extent, sharers, is_k_major=is_k_major))
        for sharers in (1, 2)
    )
    assert sorted(whole) == sorted(half)
    assert len({offset for offset, _, _ in half}) == len(half)


def tile_of(matrix: Matrix, extent: int, sharers: int, *, is_k_major: bool) -> OperandTile:
    return OperandTile.of(matrix, extent, is_k_major=is_k_major, batched=False, sharers=sharers)


def loaded(operand: OperandTile) -> list[tuple[int, int, int]]:
    """Of each row of 128 bytes: its offset in the tile, and where it begins along K and along the
    other side."""
    rows = []
    with traced(at="i32", k="i32", part="i32") as trace:
        copies = list(operand.copies(trace.b, trace["at"], trace["k"], None, trace["part"]))
        for part in range(operand.sharers):
            values = trace.evaluate(at=128, k=64, part=part)
            for offset, coordinates in copies:
                first, *others = (values[one] for one in coordinates)
                box = operand.box
                for number, place in enumerate(itertools.product(*map(range, box[:-1]))):
                    line = values[offset] + 128 * number
                    if operand.is_k_major:
                        rows.append((line, first, others[0] + place[0]))
                    elif operand.in_one_box:
                        slab, k = others[1] + place[0], others[0] + place[1]
                        rows.append((line, k, 64 * slab + first))
                    else:
                        rows.append((line, others[0] + place[0], first))
    return rows


@pytest.mark.parametrize(("down", "across"), [(2, 1), (1, 2), (2, 2)])
def test_a_block_waits_for_those_that_it_writes_to(down: int, across: int) -> None:
    """They, and no others, arrive at its barriers; and as many as the barriers count."""
    writes, arrives = [], []
    with traced(block="index", blocks="index", other="i32") as trace:
        cluster = cluster_of(trace, down, across)
        masks = [mask for mask in cluster.multicast_masks() if mask is not None]
        is_sharer = cluster.is_sharer(trace["other"])
        for block in range(down * across):
            found = [trace.evaluate(block=block, blocks=8, other=other) for other in range(32)]
            bits = [found[0][mask] for mask in masks]
            writes.append({i for i in range(32) if any(one >> i & 1 for one in bits)})
            arrives.append({i for i, values in enumerate(found) if values[is_sharer]})
        assert writes == arrives
        assert {len(others) for others in writes} == {cluster.sharers}


@pytest.mark.parametrize("block", [0, 1, 3])
def test_descriptors_address_the_blocks_own_memory(block: int) -> None:
    """Of a block of a cluster, addresses have its number in their highest byte, where a descriptor
    has what it says of the tile."""
    _, operand = operands(problem(), Variant(n=128))
    with traced(address="i32") as trace:
        descriptor = operand.descriptor(trace.b, trace["address"])
        values = trace.evaluate(address=block << 24 | 0x12400)
        assert values[descriptor] == operand.layout | 0x1240


# Of a subtile's element: the lane that has it, its group of 8 columns, whether it is in the lower
# 8 rows, and which of two neighbours it is.
def owner(row: int, column: int) -> tuple[int, str]:
    lane = row % 8 * 4 + column % 8 // 2
    return lane, f"p{column // 8}_{row // 8}_{column % 2}"


def place_of(row: int, column: int, bytes_: int, pitch: int, *, is_swizzled: bool) -> int:
    """Where TMA has an element in shared memory."""
    place = row * pitch + column * bytes_
    return place ^ ((place >> 7 & 7) << 4) if is_swizzled else place


def element_names(groups: int) -> list[str]:
    return [f"p{group}_{half}_{side}"
            for group in range(groups) for half in range(2) for side in range(2)]  # fmt: skip


def groups_of(trace: Trace, groups: int) -> list[Any]:
    """A thread's elements, of a trace that has them as arguments."""
    return [
        tuple(tuple(trace[f"p{group}_{half}_{side}"] for side in range(2)) for half in range(2))
        for group in range(groups)
    ]


@pytest.mark.parametrize("columns", [64, 48, 16])
def test_halves_lie_as_tma_takes_them(columns: int) -> None:
    is_swizzled = columns == 64
    pitch = 2 * columns
    memory = {}
    with written("f16", columns, pitch, is_swizzled=is_swizzled) as (trace, lanes):
        for stmatrix in trace.operations("nvvm.stmatrix"):
            place, *words = stmatrix.operands
            for number, row, column in itertools.product(range(4), range(8), range(8)):
                address = lanes[8 * number + row][place] + 2 * column - 1024
                lane = 4 * row + column // 2
                element = lanes[lane][words[number]][column % 2]
                memory[address] = lane, trace.name_of(element)
    check_subtile(memory, columns, 2, pitch, is_swizzled=is_swizzled)


@pytest.mark.parametrize("columns", [32, 16])
def test_words_lie_as_tma_takes_them(columns: int) -> None:
    is_swizzled = columns == 32
    pitch = 4 * columns
    memory = {}
    with written("f32", columns, pitch, is_swizzled=is_swizzled) as (trace, lanes):
        for lane, values in enumerate(lanes):
            for store in trace.operations("llvm.store"):
                pair, place = store.operands
                for side, element in enumerate(values[pair]):
                    memory[values[place] + 4 * side - 1024] = lane, trace.name_of(element)
    check_subtile(memory, columns, 4, pitch, is_swizzled=is_swizzled)


@contextmanager
def written(
    element: str, columns: int, pitch: int, *, is_swizzled: bool
) -> Iterator[tuple[Trace, list[Values]]]:
    """A subtile's elements, as they are written to address 1024, and the values of each lane."""
    p, groups = problem(c=element), columns // 8
    elements = dict.fromkeys(element_names(groups), element)
    with traced(lane="i32", address="i32", c=p.c.type, **elements) as trace:
        epilogue = TmaStoreEpilogue(trace.b, p, 64, trace["c"])
        epilogue.lane = trace["lane"]
        write = epilogue._write_halves if element == "f16" else epilogue._write_words
        write(groups_of(trace, groups), trace["address"], pitch, is_swizzled=is_swizzled)
        yield trace, [trace.evaluate(lane=lane, address=1024) for lane in range(32)]


def check_subtile(
    memory: dict[int, tuple[int, str]], columns: int, bytes_: int, pitch: int, *, is_swizzled: bool
) -> None:
    assert len(memory) == 16 * columns
    for row, column in itertools.product(range(16), range(columns)):
        place = place_of(row, column, bytes_, pitch, is_swizzled=is_swizzled)
        assert memory[place] == owner(row, column)


def test_rows_are_read_as_they_were_written() -> None:
    """Where the warp itself stores, it finds elements where TMA would."""
    p = problem(n=99, transposed="b")
    names = ("lane", "m", "n", "row", "column", "address")
    with traced(c=p.c.type, **dict.fromkeys(names, "i32")) as trace:
        epilogue = TmaStoreEpilogue(trace.b, p, 64, trace["c"])
        epilogue.lane, epilogue.sizes = trace["lane"], (trace["m"], trace["n"])
        epilogue._copy_rows(Tile(trace["row"], trace["column"], None), trace["address"], 64)
        [loop] = trace.operations("scf.for")
        counter = loop.regions[0].blocks[0].arguments[0]
        loads, stores = trace.operations("llvm.load"), trace.operations("memref.store")
        assert len(loads) == len(stores) == 2
        for r, lane in itertools.product(range(16), range(32)):
            values = trace.evaluate({counter: r}, lane=lane, row=100, column=200, address=2048)
            for load, store in zip(loads, stores, strict=True):
                row, column = (values[index] for index in list(store.operands)[2:])
                expected = place_of(row - 100, column - 200, 2, 128, is_swizzled=True)
                assert values[load.operands[0]] - 2048 == expected


@pytest.mark.parametrize("first", [0, 64])
def test_transposed_accumulators_lie_as_tma_takes_them(first: int) -> None:
    """Four warps put 64 columns of C side by side, in rows of 128 bytes."""
    rows = min(64, 96 - first)
    memory = {}
    names = ("lane", "warp", "address", "row", "column", "buffer")
    with traced(c=problem().c.type, **dict.fromkeys(names, "i32")) as trace:
        b, given = trace.b, {"address": 1024, "buffer": 8192}
        epilogue = TransposingEpilogue(b, problem(), 96, trace["c"])
        epilogue.lane, epilogue.warp = trace["lane"], trace["warp"]
        epilogue.address = trace["address"]
        # A word that says which elements it has.
        epilogue._word = lambda pair: pair  # type: ignore[method-assign]
        epilogue._neighbours = (  # type: ignore[method-assign, assignment]
            lambda accumulators, first, row, at, low: b.constant(2 * row + low, "i32")
        )
        at = Tile(trace["row"], trace["column"], None)
        epilogue._write(None, first, rows, at, trace["buffer"])
        stores = trace.operations("nvvm.stmatrix")
        assert all("col" in str(store.attributes["layout"]) for store in stores)
        for warp in range(4):
            lanes = [trace.evaluate(lane=lane, warp=warp, **given) for lane in range(32)]
            for store in stores:
                place, *words = store.operands
                for number, row, column in itertools.product(range(4), range(8), range(8)):
                    address = lanes[8 * number + row][place] + 2 * column - 1024 - 8192
                    eight, low = divmod(lanes[0][words[number]], 2)
                    memory[address] = eight + row, 16 * warp + 8 * low + column
    assert len(memory) == rows * 64
    for address, (row, column) in memory.items():
        assert address == place_of(row, column, 2, 128, is_swizzled=True)


@pytest.mark.parametrize("low", [0, 1])
def test_neighbours_in_a_column_are_of_wgmmas_rows(low: int) -> None:
    """The PTX manual has of 8 columns, four elements in a lane: two in a row, and two 8 below."""
    struct = f"!llvm.struct<({', '.join(['f32'] * 48)})>"
    with traced(c=problem().c.type, sums=struct, row="i32", column="i32") as trace:
        epilogue = TransposingEpilogue(trace.b, problem(), 96, trace["c"])
        at = Tile(trace["row"], trace["column"], None)
        epilogue._neighbours(trace["sums"], 0, 24, at, low)
        taken = [str(one.attributes["position"]) for one in trace.operations("llvm.extractvalue")]
    assert taken == [f"array<i64: {12 + 2 * low + side}>" for side in range(2)]
