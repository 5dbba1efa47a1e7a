"""Exchanges between threads on the device: the instructions of each operation, for each type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.command import Outcome, build_here
from helpers.shared import made_once, shared_folder

# The 32-bit words of each type: what one lane gives another at a time.
WORDS = {
    "i1": 1,
    "i7": 1,
    "i8": 1,
    "i16": 1,
    "i32": 1,
    "i48": 2,
    "i64": 2,
    "i128": 4,
    "f16": 1,
    "bf16": 1,
    "f32": 1,
    "f64": 2,
    "vector<2xf16>": 1,
    "vector<4xi8>": 1,
    "vector<3xf32>": 3,
    "vector<3xbf16>": 3,
    "vector<4xi1>": 4,
    "vector<2xi64>": 4,
    "vector<1xf64>": 2,
    "vector<5xi7>": 5,
}
# What subgroup_broadcast takes besides.
MORE_WORDS = {
    "index": 2,
    "complex<f32>": 2,
    "vector<f32>": 1,
    "vector<2x3xf16>": 3,
    "vector<2xindex>": 4,
}
INTEGER_KINDS = ("add", "mul", "minui", "minsi", "maxui", "maxsi", "and", "or", "xor")
FLOAT_KINDS = ("add", "mul", "minnumf", "maxnumf", "minimumf", "maximumf")
REDUX = {
    "add": "add.s32",
    "and": "and.b32",
    "or": "or.b32",
    "xor": "xor.b32",
    "minui": "min.u32",
    "minsi": "min.s32",
    "maxui": "max.u32",
    "maxsi": "max.s32",
}
NARROW_INTEGERS = ("i1", "i7", "i8", "i16", "i32")
MODES = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}

WARP_STEPS = 5
ALL = "-1"

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Kernel:
    """A kernel that makes %r of %a, and how often which instructions are in its PTX.

    The body has the lane %o, an i32, and %valid is the place for an i1.
    """

    name: str
    type: str
    body: str
    counts: dict[str, int]
    size: Size | None = None

    def text(self) -> str:
        known = ""
        if self.size is not None:
            size = ", ".join(map(str, self.size))
            known = f" attributes {{known_block_size = array<i32: {size}>}}"
        return f"""
gpu.func @{self.name}(%x: memref<?x{self.type}>, %valid: memref<i1>, %o: i32) kernel{known} {{
  %i = gpu.thread_id x
  %a = memref.load %x[%i] : memref<?x{self.type}>
  {self.body}
  memref.store %r, %x[%i] : memref<?x{self.type}>
  gpu.return
}}"""


def _kinds(type_: str) -> tuple[str, ...]:
    return INTEGER_KINDS if re.search(r"\bi\d+$|xi\d+", type_) else FLOAT_KINDS


def _name(*parts: object) -> str:
    return re.sub(r"\W+", "_", "_".join(map(str, parts)))


def _subgroup_reduces() -> Iterator[Kernel]:
    for type_, words in WORDS.items():
        for kind in _kinds(type_):
            operation = f"%r = gpu.subgroup_reduce {kind} %a"
            of = f": ({type_}) -> {type_}"
            if type_ in NARROW_INTEGERS and kind in REDUX:
                counts = {f"redux.sync.{REDUX[kind]}": 1, "shfl.sync": 0}
                yield Kernel(_name("warp", kind, type_), type_, f"{operation} {of}", counts)
                continue
            # The last warp may lack lanes: the first one's result is for all.
            counts = {"shfl.sync.bfly": WARP_STEPS * words, "shfl.sync.idx": words}
            yield Kernel(_name("warp", kind, type_), type_, f"{operation} {of}", counts)
        operation = f"%r = gpu.subgroup_reduce {_kinds(type_)[0]} %a"
        for size, stride, steps in ((1, 1, 0), (4, 2, 2), (2, 16, 1)):
            body = f"{operation} cluster(size = {size}, stride = {stride}) {of}"
            counts = {"shfl.sync.bfly": steps * words, "redux": 0}
            yield Kernel(_name("clusters", size, stride, type_), type_, body, counts)
        # All warps are whole: nothing has to be found out.
        counts = {"shfl.sync.bfly": 2 * words, "shfl.sync.idx": 0, "setp": 0}
        body = f"{operation} cluster(size = 4) {of}"
        if type_ in ("i64", "f32", "f64"):
            yield Kernel(_name("known_clusters", type_), type_, body, counts, (8, 4, 2))


def _all_reduces() -> Iterator[Kernel]:
    sizes: dict[Size | None, int] = {
        None: WARP_STEPS,
        (1024, 1, 1): 5,
        (5, 5, 5): 2,
        (64, 1, 1): 1,
        (33, 1, 1): 1,
        (8, 4, 1): 0,
        (7, 1, 1): 0,
    }
    for type_, words in WORDS.items():
        if type_.startswith("vector"):
            continue
        for kind in _kinds(type_):
            for size, steps in sizes.items() if type_ in ("i32", "f16", "f64") else [(None, 5)]:
                body = f"%r = gpu.all_reduce {kind} %a {{}} : ({type_}) -> {type_}"
                counts = {
                    "shfl.sync": (WARP_STEPS + steps) * words,
                    "shfl.sync.bfly": (WARP_STEPS + steps) * words,
                    "bar.sync": 2,
                }
                yield Kernel(_name("block", kind, type_, size), type_, body, counts, size)


def _moves() -> Iterator[Kernel]:
    store = "memref.store %ok, %valid[] : memref<i1>"
    for type_, words in WORDS.items():
        for mode, instruction in MODES.items():
            for width in (32, 16):
                body = f"""%w = arith.constant {width} : i32
  %r, %ok = gpu.shuffle {mode} %a, %o, %w : {type_}
  {store}"""
                counts = {"shfl.sync": words, f"shfl.sync.{instruction}": words}
                yield Kernel(_name("shuffle", mode, width, type_), type_, body, counts)
        for width in (1, 8, 32):
            body = f"%r, %ok = gpu.rotate %a, {width // 2}, {width} : {type_}\n  {store}"
            counts = {"shfl.sync.idx": words}
            yield Kernel(_name("rotate", width, type_), type_, body, counts)
    for type_, words in {**WORDS, **MORE_WORDS}.items():
        sends = f"gpu.subgroup_broadcast %a, first_active_lane : {type_}"
        counts = {"shfl.sync.idx": words, "vote.sync.ballot": 1, "activemask": 0}
        yield Kernel(_name("first", type_), type_, f"%r = {sends}", counts)
        body = f"%r = gpu.subgroup_broadcast %a, specific_lane %o : {type_}"
        yield Kernel(_name("specific", type_), type_, body, counts)
        body = f"""%c0 = arith.constant 0 : i32
  %is_set = arith.cmpi ne, %o, %c0 : i32
  %r = scf.if %is_set -> {type_} {{
    %s = {sends}
    scf.yield %s : {type_}
  }} else {{
    scf.yield %a : {type_}
  }}"""
        counts = {"shfl.sync.idx": words, "vote.sync.ballot": 0, "activemask": 1}
        yield Kernel(_name("first_in_branch", type_), type_, body, counts)


def _others() -> Iterator[Kernel]:
    for width in (1, 7, 16, 32, 48, 64, 128):
        body = f"""%p = arith.cmpi slt, %a, %o : i32
  %b = gpu.ballot %p : i{width}
  %c = arith.{"extui" if width < 32 else "trunci"} %b : i{width} to i32"""
        body = body.replace("%c = arith.trunci %b : i32 to i32", "%c = arith.ori %b, %b : i32")
        body += "\n  %r = arith.addi %c, %a : i32"
        yield Kernel(_name("ballot", width), "i32", body, {"vote.sync.ballot.b32": 1})
    body = """%p = llvm.inttoptr %a : i64 to !llvm.ptr
  %q = gpu.subgroup_broadcast %p, specific_lane %o : !llvm.ptr
  %r = llvm.ptrtoint %q : !llvm.ptr to i64"""
    yield Kernel("pointer", "i64", body, {"shfl.sync.idx": 2})
    ids = {
        "subgroup_id": {"%tid.x": 1, "%tid.y": 1, "%tid.z": 1, "%warpid": 0},
        "num_subgroups": {"%ntid.x": 1, "%ntid.y": 1, "%ntid.z": 1},
        "subgroup_size": {"%ntid": 0},
    }
    for name, counts in ids.items():
        body = f"%id = gpu.{name} : index\n  %r = arith.addi %id, %a : index"
        yield Kernel(name, "index", body, counts)


KERNELS = {
    kernel.name: kernel
    for kernels in (_subgroup_reduces, _all_reduces, _moves, _others)
    for kernel in kernels()
}
HOST = "func.func @entry() attributes {llvm.emit_c_interface} {\n  return\n}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PTX and machine code of all kernels."""

    def make(place: Path) -> None:
        source = place / "many.mlir"
        kernels = "".join(kernel.text() for kernel in KERNELS.values())
        source.write_text(f"gpu.module @m {{{kernels}\n}}\n{HOST}\n")
        options = ("--chip", "sm_80", "--no-cpu-kernels", "-Werror")
        build_here(source, "--emit", "ptx,cubin", *options, "-o", place)

    return made_once(shared_folder(tmp_path_factory) / "device-exchanges", make)


@pytest.fixture(scope="module")
def ptx(folder: Path) -> dict[str, str]:
    """The PTX of each kernel."""
    return kernels_of((folder / "many.m.sm_80.ptx").read_text())


def kernels_of(ptx: str) -> dict[str, str]:
    found = re.findall(r"\.entry (\w+)\((.*?)^}", ptx, re.DOTALL | re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("name", KERNELS)
def test_instructions(ptx: dict[str, str], name: str) -> None:
    """Each word is exchanged once a step, by the instruction that is there for it."""
    counts = KERNELS[name].counts
    assert {text: ptx[name].count(text) for text in counts} == counts


def test_machine_code(folder: Path) -> None:
    """ptxas takes all of them."""
    code = (folder / "many.m.sm_80.cubin").read_bytes()
    assert code.startswith(b"\x7fELF")
    assert [name for name in KERNELS if f".text.{name}\0".encode() not in code] == []


@pytest.fixture
def build(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> Callable[..., dict[str, str]]:
    """The PTX of a gpu.module's kernels, or of a whole module's."""

    def run(text: str) -> dict[str, str]:
        source = mlir_file(f"gpu.module @m {{{text}}}\n{HOST}\n")
        done = aotc(
            "build", source, "--emit", "ptx", "--chip", "sm_80", "--no-cpu-kernels", "-o", "-"
        )
        assert (done.stderr, done.code) == ("", 0)
        return {"": done.stdout, **kernels_of(done.stdout)}

    return run


def test_turing_reduces_by_shuffles(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    """It has no instruction for it. Code that newer GPUs run as well is the same."""
    (kernel,) = (one for one in KERNELS.values() if one.name == "warp_minsi_i32")
    source = mlir_file(f"gpu.module @m {{{kernel.text()}}}\n{HOST}\n")
    command = ("build", source, "--emit", "ptx", "--chip", "sm_75", "--no-cpu-kernels", "-o", "-")
    done = aotc(*command)
    assert (done.stderr, done.code) == ("", 0)
    assert done.stdout.count("shfl.sync.bfly") == WARP_STEPS
    assert "redux" not in done.stdout


SUM = """
gpu.func @{name}(%x: memref<?x{type}>) kernel {{
  %i = gpu.thread_id x
  %a = memref.load %x[%i] : memref<?x{type}>
  %r = gpu.all_reduce add %a {{}} : ({type}) -> {type}
  %s = gpu.all_reduce add %r {{}} : ({type}) -> {type}
  memref.store %s, %x[%i] : memref<?x{type}>
  gpu.return
}}"""


def test_kernels_share_workgroup_memory(build: Callable[..., dict[str, str]]) -> None:
    """A slot for each of 32 warps and one for the result, once for each type."""
    kernels = [("a", "f32"), ("b", "f32"), ("c", "i8"), ("d", "f64")]
    ptx = build("".join(SUM.format(name=name, type=type_) for name, type_ in kernels))
    sizes = {"f32": 33 * 4, "i8": 33, "f64": 33 * 8}
    found = re.findall(r"\.shared .*\b(\w+)\[(\d+)\];", ptx[""])
    assert {f"aotc_all_reduce_{type_}": str(size) for type_, size in sizes.items()} == dict(found)
    for name, type_ in kernels:
        assert set(re.findall(r"aotc_all_reduce_\w+", ptx[name])) <= {f"aotc_all_reduce_{type_}"}


def test_a_symbol_of_the_input_keeps_its_name(build: Callable[..., dict[str, str]]) -> None:
    own = """
memref.global "private" @aotc_all_reduce_f32 : memref<4xf32, 3> = uninitialized
gpu.func @own(%x: memref<?xf32>) kernel {
  %i = gpu.thread_id x
  %m = memref.get_global @aotc_all_reduce_f32 : memref<4xf32, 3>
  %v = memref.load %x[%i] : memref<?xf32>
  memref.store %v, %m[%i] : memref<4xf32, 3>
  gpu.barrier
  %c0 = arith.constant 0 : index
  %w = memref.load %m[%c0] : memref<4xf32, 3>
  memref.store %w, %x[%i] : memref<?xf32>
  gpu.return
}"""
    ptx = build(own + SUM.format(name="sum", type="f32"))
    found = re.findall(r"\.shared .*\b(\w+)\[(\d+)\];", ptx[""])
    assert dict(found) == {"aotc_all_reduce_f32": "16", "aotc_all_reduce_f32_": "132"}


def test_functions_that_kernels_call(build: Callable[..., dict[str, str]]) -> None:
    """A function does not know the size of a block, and exchanges all the same."""
    ptx = build("""
func.func @sum(%a: f32) -> f32 {
  %r = gpu.all_reduce add %a {} : (f32) -> f32
  %s = gpu.subgroup_reduce add %r : (f32) -> f32
  return %s : f32
}
gpu.func @k(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %i = gpu.thread_id x
  %a = memref.load %x[%i] : memref<?xf32>
  %r = func.call @sum(%a) : (f32) -> f32
  memref.store %r, %x[%i] : memref<?xf32>
  gpu.return
}""")
    assert ptx["k"].count("shfl.sync.bfly") == 3 * WARP_STEPS
    assert ptx["k"].count("shfl.sync.idx") == 1


REGION = """
gpu.func @k(%x: memref<?xi32>) kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
  %i = gpu.thread_id x
  %a = memref.load %x[%i] : memref<?xi32>
  %r = gpu.all_reduce %a {{
  ^bb0(%l: i32, %r: i32):
    {region}
  }} : (i32) -> i32
  memref.store %r, %x[%i] : memref<?xi32>
  gpu.return
}}"""


@pytest.mark.parametrize(
    "region",
    [
        "%d = arith.subi %l, %r : i32\n gpu.yield %d : i32",
        """%c = arith.cmpi slt, %l, %r : i32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %d = arith.subi %l, %r : i32
    gpu.yield %d : i32
  ^bb2:
    gpu.yield %r : i32""",
        """%c2 = arith.constant 2 : index
    %n = gpu.subgroup_size : index
    %c1 = arith.constant 1 : index
    %t = scf.for %j = %c1 to %c2 step %n iter_args(%s = %l) -> i32 {
      %d = arith.subi %s, %r : i32
      scf.yield %d : i32
    }
    gpu.yield %t : i32""",
    ],
    ids=["one block", "several blocks", "a loop, and an exchange's operation"],
)
def test_regions(build: Callable[..., dict[str, str]], region: str) -> None:
    """The lower lane is the left operand in lane 0: left minus right."""
    ptx = build(REGION.format(region=region))["k"]
    partners = re.findall(r"shfl\.sync\.bfly\.b32\s+(%r\d+), (%r\d+),", ptx)
    assert len(partners) == WARP_STEPS
    partner, own = partners[0]
    assert re.search(rf"sub\.s32\s+%r\d+, {own}, {partner};", ptx)


def test_lanes_that_wait_for_each_other(build: Callable[..., dict[str, str]]) -> None:
    """A shuffle or rotation among 8 lanes does not wait for the other ones, nor they for it."""
    text = """
gpu.func @k(%x: memref<?xi32>) kernel {{
  %i = gpu.thread_id x
  %a = memref.load %x[%i] : memref<?xi32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r, %ok = {operation} : i32
  memref.store %r, %x[%i] : memref<?xi32>
  gpu.return
}}"""
    shuffle = build(text.format(operation="gpu.shuffle up %a, %c1, %c8"))["k"]
    mask = re.search(r"shfl\.sync\.up\.b32\s+\S+ \S+ 1, 0, (%r\d+);", shuffle)
    assert mask is not None
    # The first 8 bits where the lane is below 8, else the others.
    assert re.search(rf"selp\.b32\s+{mask[1]}, 255, -256,", shuffle)
    rotate = build(text.format(operation="gpu.rotate %a, 1, 8"))["k"]
    mask = re.search(r"shfl\.sync\.idx\.b32\s+\S+ \S+ \S+ 31, (%r\d+);", rotate)
    assert mask is not None
    shift = re.search(rf"shl\.b32\s+{mask[1]}, (%r\d+), (%r\d+);", rotate)
    assert shift is not None
    assert re.search(rf"mov\.b32\s+{shift[1]}, 255;", rotate)
    assert re.search(rf"and\.b32\s+{shift[2]}, %r\d+, 24;", rotate)


def test_too_many_lanes(aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]) -> None:
    """Clusters and rotations that a warp is too small for are said with their places, together."""
    source = mlir_file(f"""gpu.module @m {{
gpu.func @k(%a: f32, %out: memref<f32>) kernel {{
  %r = gpu.subgroup_reduce add %a cluster(size = 32, stride = 2) : (f32) -> f32
  %s, %ok = gpu.rotate %r, 3, 64 : f32
  memref.store %s, %out[] : memref<f32>
  gpu.return
}}
}}
{HOST}
""")
    done = aotc("build", source, "--emit", "ptx", "--chip", "sm_80", "-o", "-")
    assert done.code == 2
    assert done.stderr == (
        f"aotc: error: gpu.subgroup_reduce at {source}:3:8: clusters of 32 lanes with a stride "
        "of 2 do not fit into a warp of 32\n"
        f"gpu.rotate at {source}:4:13: a width of 64 does not fit into a warp of 32\n"
    )


def test_values_without_words(aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]) -> None:
    """What cannot be taken apart is refused by name."""
    source = mlir_file(f"""gpu.module @m {{
gpu.func @k(%a: memref<4xf32>) kernel {{
  %c0 = arith.constant 0 : index
  %r = gpu.subgroup_broadcast %a, first_active_lane : memref<4xf32>
  %v = memref.load %r[%c0] : memref<4xf32>
  memref.store %v, %a[%c0] : memref<4xf32>
  gpu.return
}}
}}
{HOST}
""")
    done = aotc("build", source, "--emit", "ptx", "--chip", "sm_80", "-o", "-")
    assert done.code == 2
    assert (
        "input.mlir:4:8: error: failed to legalize operation 'gpu.subgroup_broadcast'"
        in done.stderr
    )
