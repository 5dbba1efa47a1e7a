"""What the device's exchanges compute: their shuffles and barriers, run by the CPU device.

The expansions are made of operations that the CPU device has, too; so their results can be had
without a GPU, and compared with NumPy's to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
import pytest
from e2e.exchange_values import (
    DTYPES,
    all_reduce,
    operations_of,
    random_values,
    rotate_source,
    shuffle_source,
    subgroup_reduce,
)
from unit.targets.cpu.cpu_device import CpuDevice
from unit.targets.cpu.exchange_kernels import linear_id

from aotc import mlir
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.ops import constant, find, integer
from aotc.targets.cuda.exchanges import expand_exchanges
from samples import Array, rng

Size = tuple[int, int, int]

ELEMENTS = ("i1", "i64", "f16")
SIZES: list[Size] = [(64, 1, 1), (1, 1, 1), (7, 1, 1), (33, 1, 1), (7, 5, 3), (1024, 1, 1)]
KNOWN: list[Size] = [(96, 1, 1), (64, 1, 1), (5, 5, 5)]
CLUSTERS = ((8, 1), (4, 2), (2, 16))
# Mode, offset and width.
SHUFFLES = [
    ("xor", 21, 32),
    ("up", 3, 32),
    ("down", 9, 32),
    ("idx", 40, 32),
    ("xor", 5, 16),
    ("up", 3, 16),
    ("down", 9, 16),
    ("idx", 13, 16),
]
ROTATIONS = [(0, 1), (3, 8), (31, 32)]
# Twice: what the first round leaves in workgroup memory must not reach the second.
ROUNDS = 2


def _kernel(name: str, element: str, body: str, known: Size | None) -> str:
    """A kernel with a value %v of each thread, by its linear id %i, and results in rows."""
    sizes = "" if known is None else ", ".join(map(str, known))
    attributes = f" attributes {{known_block_size = array<i32: {sizes}>}}" if known else ""
    return f"""
  gpu.func @{name}(%x: memref<?x{element}>, %out: memref<?x?x{element}>) kernel{attributes} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
{linear_id("%i")}
    %v = memref.load %x[%i] : memref<?x{element}>
{body}
    gpu.return
  }}"""


def _rows(element: str, operations: list[str]) -> str:
    lines = []
    for row, operation in enumerate(operations):
        lines += [
            f"    %row{row} = arith.constant {row} : index",
            f"    %r{row} = {operation}",
            f"    memref.store %r{row}, %out[%row{row}, %i] : memref<?x?x{element}>",
        ]
    return "\n".join(lines)


def _warps(element: str) -> str:
    of = f": ({element}) -> {element}"
    operations = [f"gpu.subgroup_reduce {kind} %v {of}" for kind in operations_of(element)]
    operations += [
        f"gpu.subgroup_reduce add %v cluster(size = {size}, stride = {stride}) {of}"
        for size, stride in CLUSTERS
    ]
    return _rows(element, operations)


def _expect_warps(element: str, x: Array) -> list[Array]:
    kinds = operations_of(element)
    results = [subgroup_reduce(x, combine) for combine in kinds.values()]
    return results + [subgroup_reduce(x, kinds["add"], *cluster) for cluster in CLUSTERS]


def _blocks(element: str) -> str:
    lines = [
        "    %n = memref.dim %x, %c0 : memref<?x" + element + ">",
        f"    %end = arith.constant {ROUNDS} : index",
        "    scf.for %round = %c0 to %end step %c1 {",
        "    %next = arith.addi %i, %round : index",
        "    %from = arith.remui %next, %n : index",
        f"    %w = memref.load %x[%from] : memref<?x{element}>",
    ]
    for number, kind in enumerate(operations_of(element)):
        lines += [
            f"    %r{number} = gpu.all_reduce {kind} %w {{}} : ({element}) -> {element}",
            f"    %first{number} = arith.constant {number * ROUNDS} : index",
            f"    %row{number} = arith.addi %first{number}, %round : index",
            f"    memref.store %r{number}, %out[%row{number}, %i] : memref<?x?x{element}>",
        ]
    return "\n".join([*lines, "    }"])


def _expect_blocks(element: str, x: Array) -> list[Array]:
    return [
        all_reduce(np.roll(x, -turn, 1), combine)
        for combine in operations_of(element).values()
        for turn in range(ROUNDS)
    ]


def _moves(element: str) -> str:
    """A row of values and a row of validity for each; an invalid value may be anything."""
    point = "" if element.startswith("i") else ".0"
    lines = [
        f"    %yes = arith.constant 1{point} : {element}",
        f"    %no = arith.constant 0{point} : {element}",
    ]
    operations = [
        f"gpu.shuffle {mode} %v, %o{row}, %w{row} : {element}"
        for row, (mode, _, _) in enumerate(SHUFFLES)
    ]
    operations += [f"gpu.rotate %v, {offset}, {width} : {element}" for offset, width in ROTATIONS]
    for row, (_, offset, width) in enumerate(SHUFFLES):
        lines += [
            f"    %o{row} = arith.constant {offset} : i32",
            f"    %w{row} = arith.constant {width} : i32",
        ]
    for row, operation in enumerate(operations):
        lines += [
            f"    %s{row}, %ok{row} = {operation}",
            f"    %r{row} = arith.select %ok{row}, %s{row}, %v : {element}",
            f"    %f{row} = arith.select %ok{row}, %yes, %no : {element}",
        ]
        for place, value in enumerate((f"%r{row}", f"%f{row}")):
            lines += [
                f"    %row{row}_{place} = arith.constant {2 * row + place} : index",
                f"    memref.store {value}, %out[%row{row}_{place}, %i] : memref<?x?x{element}>",
            ]
    return "\n".join(lines)


def _expect_moves(element: str, x: Array) -> list[Array]:
    threads = x.shape[1]
    # The hardware takes five bits of an offset.
    sources = [shuffle_source(mode, by % 32, width, threads) for mode, by, width in SHUFFLES]
    sources += [rotate_source(by, width, threads) for by, width in ROTATIONS]
    return [
        row
        for source, valid in sources
        for row in (x[:, source], valid[None, :].astype(DTYPES[element]))
    ]


REGIONS = """
    %r0 = gpu.all_reduce %v {
    ^bb0(%l: i64, %r: i64):
      %three = arith.constant 3 : i64
      %thrice = arith.muli %l, %three : i64
      %difference = arith.subi %thrice, %r : i64
      gpu.yield %difference : i64
    } : (i64) -> i64
    memref.store %r0, %out[%c0, %i] : memref<?x?xi64>
    %r1 = gpu.all_reduce %v {
    ^bb0(%l: i64, %r: i64):
      %less = arith.cmpi slt, %l, %r : i64
      cf.cond_br %less, ^bb1, ^bb2
    ^bb1:
      %difference = arith.subi %l, %r : i64
      gpu.yield %difference : i64
    ^bb2:
      %sum = arith.addi %r, %r : i64
      gpu.yield %sum : i64
    } : (i64) -> i64
    memref.store %r1, %out[%c1, %i] : memref<?x?xi64>"""


def _expect_regions(x: Array) -> list[Array]:
    with np.errstate(over="ignore"):
        return [
            all_reduce(x, lambda left, right: left * 3 - right),
            all_reduce(x, lambda left, right: np.where(left < right, left - right, right + right)),
        ]


Expect = Callable[[Array], list[Array]]
BODIES: dict[str, tuple[str, str, Expect]] = {
    **{f"warps_{e}": (e, _warps(e), partial(_expect_warps, e)) for e in ELEMENTS},
    **{f"blocks_{e}": (e, _blocks(e), partial(_expect_blocks, e)) for e in ELEMENTS},
    **{f"moves_{e}": (e, _moves(e), partial(_expect_moves, e)) for e in ELEMENTS},
    "regions": ("i64", REGIONS, _expect_regions),
}


def _label(known: Size | None) -> str:
    return "" if known is None else "_" + "x".join(map(str, known))


def _expanded(text: str) -> str:
    """The module with the device's operations, of which the CPU device has all.

    It knows whole warps only, and these are what runs here: the masks become those of all lanes.
    """
    context = mlir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_exchanges(module.operation, Source("test.mlir", (), module))
        shuffles = find(module.operation, "nvvm.shfl.sync")
        assert len(shuffles) > 0
        for shuffle in shuffles:
            with ir.InsertionPoint(shuffle), shuffle.location:
                shuffle.operands[0] = constant(integer(32), 0xFFFFFFFF)
        names = ("gpu.all_reduce", "gpu.subgroup_reduce", "gpu.rotate")
        assert find(module.operation, *names) == []
        module.operation.verify()
        return str(module)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    kernels = [
        _kernel(f"{name}{_label(known)}", element, body, known)
        for name, (element, body, _) in BODIES.items()
        for known in (None, *KNOWN)
        if known is None or _fits(name, known)
    ]
    text = "gpu.module @m {" + "".join(kernels) + "\n}"
    return CpuDevice(_expanded(text), tmp_path_factory.mktemp("exchanges"), "-O0")


def check(device: CpuDevice, name: str, kernel: str, size: Size) -> None:
    element, _, expect = BODIES[name]
    x = random_values(rng(f"{kernel} {size}"), (1, prod(size)), element)
    expected = np.concatenate(expect(x))
    out = np.zeros_like(expected)
    device.run(kernel, 1, size, x[0], out)
    np.testing.assert_array_equal(out, expected)


def _fits(name: str, size: Size) -> bool:
    """Shuffles of partial warps read what does not exist."""
    return prod(size) % 32 == 0 or not name.startswith("moves")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "size"), [(n, s) for n in BODIES for s in SIZES if _fits(n, s)], ids=str
)
def test_any_block(device: CpuDevice, name: str, size: Size) -> None:
    """The size is the launch's; lanes that do not exist do not count."""
    check(device, name, name, size)


@pytest.mark.parametrize(
    ("name", "size"), [(n, s) for n in BODIES for s in KNOWN if _fits(n, s)], ids=str
)
def test_known_block(device: CpuDevice, name: str, size: Size) -> None:
    """The kernel promises its size, and needs less."""
    check(device, name, f"{name}{_label(size)}", size)
