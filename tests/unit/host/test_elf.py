"""Making an object's symbols local: real objects, linked by real linkers, run, and damaged."""

from __future__ import annotations

import functools
import platform
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from aotc.errors import InternalError
from aotc.host.elf import global_symbols
from aotc.host.localize import localize as localize_in_place

X86_64 = "x86_64-linux-gnu.2.28"
AARCH64 = "aarch64-linux-gnu.2.28"
TARGETS = (X86_64, AARCH64)
ZIG = (sys.executable, "-m", "ziglang")
GCC = shutil.which("gcc")
READELF = shutil.which("readelf")
OBJCOPY = shutil.which("objcopy")
# Where the cross libraries of Debian have ld-linux-aarch64.so.1.
SYSROOT = Path("/usr/aarch64-linux-gnu")

OPTIONS = ("-O1", "-g", "-fPIC", "-ffunction-sections", "-fdata-sections", "-fno-sanitize=all")

# What each library has for itself, under the same names. LIBRARY is 1 or 2.
RUNTIME = """
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int hidden_value = LIBRARY;
HIDDEN _Thread_local int per_thread = LIBRARY;
HIDDEN int constructed;
static int private_value = LIBRARY;
extern void nobody(void) __attribute__((weak));
__attribute__((constructor)) static void construct(void) { constructed += LIBRARY; }
HIDDEN int hidden_function(void) { return LIBRARY; }
HIDDEN __attribute__((weak)) int weak_function(void) { return nobody ? 0 : LIBRARY; }
HIDDEN int *private_address(void) { return &private_value; }
static int chosen(void) { return LIBRARY; }
static int (*choose(void))(void) { return chosen; }
HIDDEN int indirect_function(void) __attribute__((ifunc("choose")));
"""
# Inline functions and their variables are in COMDAT groups.
GROUP = """
inline __attribute__((noinline)) int &in_group() { static int value = LIBRARY; return value; }
extern "C" __attribute__((visibility("hidden"))) int use_group() { return in_group(); }
extern "C" __attribute__((visibility("hidden"))) int add_to_group() { return in_group() += 10; }
"""
MODULE = """
#include <stdio.h>
extern int hidden_value, constructed, hidden_function(void), weak_function(void);
extern int *private_address(void), indirect_function(void), use_group(void), add_to_group(void);
extern _Thread_local int per_thread;
int ENTRY(void) {
  int group = add_to_group();
  return printf("%d %d %d %d %d %d %d %d %d\\n", hidden_value, per_thread++, constructed,
                *private_address(), hidden_function(), weak_function(), indirect_function(),
                group, use_group());
}
"""
PROGRAM = """
int entry1(void), entry2(void);
int main(void) { return entry1() + entry2() == 40 ? 0 : 1; }
"""
PRINTED = "1 1 1 1 1 1 1 11 11\n2 2 2 2 2 2 2 12 12\n"


def localize(data: bytes, keep: Collection[str]) -> bytes:
    out = bytearray(data)
    localize_in_place(out, keep)
    return bytes(out)


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def section_headers(data: bytes | bytearray) -> tuple[int, list[tuple[int, ...]]]:
    """Where the headers begin, and their fields: sh_name, sh_type, … in the order of the gABI."""
    (start,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    count = count or struct.unpack_from("<Q", data, start + 32)[0]
    return start, [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]


def compile_text(folder: Path, target: str, text: str, name: str, *options: str) -> Path:
    """The object of a source text; the end of `name` says the language."""
    (folder / name).write_text(text)
    output = folder / f"{name}.o"
    run(*ZIG, "cc", "-target", target, *OPTIONS, *options, "-c", folder / name, "-o", output)
    return output


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def libraries(target: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Two objects that share names, each made as a static library's object is."""

    def make(number: int) -> bytes:
        folder = tmp_path_factory.mktemp("library")
        define = f"-DLIBRARY={number}"
        objects = [
            compile_text(folder, target, RUNTIME, "runtime.c", define),
            compile_text(folder, target, GROUP, "group.cc", define),
            compile_text(folder, target, MODULE, "module.c", f"-DENTRY=entry{number}"),
        ]
        run(*ZIG, "ld.lld", "-r", "-o", folder / "merged.o", *objects)
        return (folder / "merged.o").read_bytes()

    return make(1), make(2)


@pytest.fixture
def localized(libraries: tuple[bytes, bytes], tmp_path: Path) -> list[Path]:
    """The files of both, with nothing global but the entry."""
    paths = [tmp_path / "one.o", tmp_path / "two.o"]
    for number, (path, data) in enumerate(zip(paths, libraries, strict=True), 1):
        path.write_bytes(localize(data, {f"entry{number}"}))
    return paths


@functools.cache
def emulator(target: str) -> tuple[str, ...] | None:
    """What to write before a program's name; None where it cannot run."""
    if target.startswith(platform.machine()):
        return ()
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if target != AARCH64 or found is None or not (SYSROOT / "lib").exists():
        return None
    return (found, "-L", str(SYSROOT))


def check_program(target: str, program: Path) -> None:
    words = emulator(target)
    if words is not None:
        assert run(*words, program) == PRINTED


def test_the_input_has_symbols_that_collide(libraries: tuple[bytes, bytes]) -> None:
    """Without what is tested here, the test of two libraries would mean nothing."""
    one, two = (global_symbols(data) for data in libraries)
    common = {name for name in one if one[name] and two.get(name)}
    assert common == {
        *("hidden_value", "per_thread", "constructed", "hidden_function", "weak_function"),
        *("private_address", "indirect_function", "use_group", "add_to_group"),
        *("_Z8in_groupv", "_ZZ8in_groupvE5value"),
    }


def test_only_what_is_kept_stays_global(libraries: tuple[bytes, bytes]) -> None:
    before = global_symbols(libraries[0])
    after = global_symbols(localize(libraries[0], ["entry1", "per_thread", "no such name"]))
    assert {name for name in after if after[name]} == {"entry1", "per_thread"}
    undefined = {name for name in before if not before[name]}
    assert {"printf", "nobody"} <= undefined == {name for name in after if not after[name]}


@pytest.mark.exhaustive
def test_two_libraries_in_one_program(target: str, localized: list[Path], tmp_path: Path) -> None:
    """Each uses its own functions, variables, constructors and groups, as lld links them."""
    (tmp_path / "main.c").write_text(PROGRAM)
    driver = (*ZIG, "cc", "-target", target, "-fno-sanitize=all")
    for name, options in {"pie": ("-pie",), "small": ("-Wl,--gc-sections", "-s")}.items():
        program = tmp_path / name
        run(*driver, *options, tmp_path / "main.c", *localized, "-o", program)
        check_program(target, program)


def test_two_libraries_merged_into_one(target: str, localized: list[Path], tmp_path: Path) -> None:
    """What is local can be linked relocatably, and made local, once more."""
    merged = tmp_path / "merged.o"
    run(*ZIG, "ld.lld", "-r", "-o", merged, *localized)
    data = localize(merged.read_bytes(), ["entry1", "entry2"])
    assert {name for name, defined in global_symbols(data).items() if defined} == {
        "entry1",
        "entry2",
    }
    merged.write_bytes(data)
    (tmp_path / "main.c").write_text(PROGRAM)
    run(*ZIG, "cc", "-target", target, tmp_path / "main.c", merged, "-o", tmp_path / "program")
    check_program(target, tmp_path / "program")


@pytest.mark.parametrize("linker", ["bfd", "gold"])
def test_two_libraries_linked_by_gcc(
    target: str, localized: list[Path], tmp_path: Path, linker: str
) -> None:
    if GCC is None or not target.startswith(platform.machine()):
        pytest.skip("no gcc for this target")
    if shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"no ld.{linker}")
    (tmp_path / "main.c").write_text(PROGRAM)
    program = tmp_path / "program"
    fatal = ("-Wl,--fatal-warnings", f"-fuse-ld={linker}")
    run(GCC, *fatal, tmp_path / "main.c", *localized, "-o", program)
    check_program(target, program)


def test_shared_library(target: str, localized: list[Path], tmp_path: Path) -> None:
    """Of a linked file, what the dynamic linker sees is told."""
    library = tmp_path / "library.so"
    run(*ZIG, "cc", "-target", target, "-shared", *localized, "-o", library)
    found = global_symbols(library.read_bytes())
    assert {name for name, defined in found.items() if defined} == {"entry1", "entry2"}
    assert found["printf"] is False
    with pytest.raises(InternalError, match=r"^Symbols can be .* \(type 1\); found one of type 3"):
        localize(library.read_bytes(), ())


@pytest.mark.skipif(READELF is None, reason="no readelf")
def test_readelf_sees_the_same(libraries: tuple[bytes, bytes], tmp_path: Path) -> None:
    """No warning; every relocation names the symbol that it named; sections keep their places."""
    assert READELF is not None
    file = tmp_path / "object.o"

    def look(data: bytes, *options: str) -> str:
        file.write_bytes(data)
        return run(READELF, "-W", *options, file)

    before, after = libraries[0], localize(libraries[0], ["entry1"])
    assert look(before, "-a") != look(after, "-a")
    for word in ("warning", "error", "<"):  # as in <corrupt>, <unknown>
        assert look(before, "-a").lower().count(word) == look(after, "-a").lower().count(word)
    assert "warning" not in look(after, "-a").lower()
    assert "HIDDEN" not in look(after, "-s")

    def relocations(data: bytes) -> list[str]:
        text = look(data, "-r")
        # The upper half of the info is the symbol's number.
        return re.sub(r"(?m)^([0-9a-f]{16})  [0-9a-f]{8}", r"\1", text).splitlines()

    assert relocations(before) == relocations(after)
    assert len(relocations(after)) > 20

    def places(data: bytes) -> list[list[str]]:
        """All but sh_info, the last column but one."""
        text = look(data, "-S")
        return [line.split()[:-2] for line in text.splitlines()]

    assert places(before) == places(after)


@pytest.mark.skipif(OBJCOPY is None, reason="no objcopy")
def test_as_objcopy_does(libraries: tuple[bytes, bytes], target: str, tmp_path: Path) -> None:
    """GNU's tool leaves the same names global."""
    if not target.startswith(platform.machine()):
        pytest.skip("objcopy knows its own machine only")
    assert OBJCOPY is not None
    source, output = tmp_path / "in.o", tmp_path / "out.o"
    source.write_bytes(libraries[0])
    run(OBJCOPY, "--keep-global-symbol=entry1", source, output)
    theirs = global_symbols(output.read_bytes())
    assert theirs == global_symbols(localize(libraries[0], ["entry1"]))


def test_same_bytes_again(libraries: tuple[bytes, bytes]) -> None:
    once = localize(libraries[0], ["entry1"])
    assert once == localize(libraries[0], {"entry1"})
    assert once == localize(once, ["entry1"])
    assert len(once) == len(libraries[0])


def test_nothing_to_do(libraries: tuple[bytes, bytes]) -> None:
    assert libraries[0] == localize(libraries[0], global_symbols(libraries[0]))


# `kept` is a group's signature, `gone` another symbol in it; the third group is not concerned.
GROUPS = """
  .section .text.kept,"axG",@progbits,kept,comdat
  .weak kept
kept: .long 1
  .section .data.gone,"awG",@progbits,signature,comdat
  .weak gone
gone: .long 2
  .section .data.other,"awG",@progbits,other,comdat
  .weak other
other: .long 3
  .data
  .global start
start: .long gone - ., kept - ., other - ., absolute - .
  .global absolute
absolute = 5
  .comm shared,4,4
  .weak absent
  .long absent - .
"""


def groups(data: bytes) -> dict[str, int]:
    """The flags of each group, by its signature: GRP_COMDAT is 1."""
    _, headers = section_headers(data)
    table = next(header for header in headers if header[1] == 2)
    found = {}
    for header in headers:
        if header[1] == 17:
            (name,) = struct.unpack_from("<I", data, table[4] + 24 * header[7])
            start = headers[table[6]][4] + name
            signature = data[start : data.index(b"\0", start)].decode()
            (found[signature],) = struct.unpack_from("<I", data, header[4])
    return found


def test_groups(target: str, tmp_path: Path) -> None:
    """A COMDAT group is an ordinary one as soon as one of its symbols is local."""
    data = compile_text(tmp_path, target, GROUPS, "groups.s").read_bytes()
    assert groups(data) == {"kept": 1, "signature": 1, "other": 1}
    made = localize(data, ["kept", "other"])
    assert global_symbols(made) == {"kept": True, "other": True, "shared": True, "absent": False}
    assert groups(made) == {"kept": 1, "signature": 0, "other": 1}
    paths = [tmp_path / "one.o", tmp_path / "two.o"]
    for path in paths:
        path.write_bytes(made)
    run(*ZIG, "ld.lld", "-r", "-o", tmp_path / "both.o", *paths)
    _, headers = section_headers((tmp_path / "both.o").read_bytes())
    # One group for each kept signature, and each object's own for the other.
    assert sum(header[1] == 17 for header in headers) == 4


def test_hints_to_the_linker(target: str, tmp_path: Path) -> None:
    """LLVM's table of bare symbol indices is unlinked, as `ld.lld -r` does; its call graph stays.

    `zig cc` merges what it compiles at once: only plain clang leaves the table linked.
    """
    source, path = tmp_path / "hints.s", tmp_path / "hints.o"
    source.write_text(
        ".global one, two, three\none: ret\ntwo: ret\nthree: ret\n"
        ".cg_profile one, three, 7\n.addrsig\n.addrsig_sym two\n"
    )
    triple = f"{target.partition('-')[0]}-unknown-linux-gnu"
    run(*ZIG, "clang", f"--target={triple}", "-c", source, "-o", path)
    data = path.read_bytes()
    made = localize(data, ["one"])

    def links(data: bytes) -> list[int]:
        """The links of the two sections."""
        _, headers = section_headers(data)
        return [header[6] for header in headers if header[1] in (0x6FFF4C09, 0x6FFF4C03)]

    graph, addresses = links(data)
    assert graph == addresses != 0
    assert links(made) == [graph, 0]
    path.write_bytes(made)
    run(*ZIG, "ld.lld", "--icf=safe", "-e", "one", path, "-o", tmp_path / "program")
    if READELF is not None:
        assert "arning" not in run(READELF, "-a", "-W", path)
        assert [line.split()[-1] for line in run(READELF, "-r", "-W", path).splitlines()[-2:]] == [
            "one",
            "three",
        ]


def test_more_sections_than_a_symbol_can_name(tmp_path: Path) -> None:
    """Past 65279 sections their numbers are in a table beside the symbols."""
    count = 65400
    lines = [
        f'.section .text.f{i},"ax"\n.global f{i}\nf{i}: .quad f{count - 1 - i}'
        for i in range(count)
    ]
    lines.append('.section .data.g,"awG",@progbits,signature,comdat\n.weak gone\ngone: .quad 0\n')
    object_file = compile_text(tmp_path, X86_64, "\n".join(lines), "many.s", "-g0")
    data = object_file.read_bytes()
    made = localize(data, ["f0"])
    assert global_symbols(made) == {"f0": True}
    assert (groups(data), groups(made)) == ({"signature": 1}, {"signature": 0})
    object_file.write_bytes(made)
    program = tmp_path / "program"
    run(*ZIG, "ld.lld", "-Ttext=0x400000", "-e", "f0", object_file, "-o", program)
    # Each word holds the address of its mirror image: `fI` is at base + 8 * I.
    words = [0x400000 + 8 * (count - 1 - i) for i in range(count)]
    assert struct.pack(f"<{count}Q", *words) in program.read_bytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Expected a 64-bit little-endian ELF file, found 0 bytes that begin with ''."),
        (
            b"!<arch>\n" + bytes(64),
            "Expected a 64-bit little-endian ELF file, found 72 bytes that begin with "
            "'21 3c 61 72 63 68 3e'.",
        ),
        (
            b"\x7fELF\x01\x01\x01" + bytes(64),
            "Expected a 64-bit little-endian ELF file, found 71 bytes that begin with "
            "'7f 45 4c 46 01 01 01'.",
        ),
    ],
    ids=["empty", "archive", "32 bits"],
)
def test_other_files(data: bytes, message: str) -> None:
    for function in (global_symbols, lambda data: localize(data, ())):
        with pytest.raises(InternalError) as caught:
            function(data)
        assert message == caught.value.message


def test_relocations_of_an_unknown_kind(libraries: tuple[bytes, bytes]) -> None:
    """What may name symbols and is not understood is refused, not left wrong."""
    data = bytearray(libraries[0])
    start, headers = section_headers(data)
    first = next(index for index, header in enumerate(headers) if header[1] == 4)
    struct.pack_into("<I", data, start + 64 * first + 4, 0x40000014)  # SHT_CREL
    with pytest.raises(InternalError, match="may refer to them, whose type 0x40000014 is not"):
        localize(bytes(data), ["entry1"])


def test_names_without_an_end(libraries: tuple[bytes, bytes]) -> None:
    data = bytearray(libraries[0])
    start, headers = section_headers(data)
    names = next(header[6] for header in headers if header[1] == 2)
    struct.pack_into("<Q", data, start + 64 * names + 32, 1)
    for function in (global_symbols, lambda data: localize(data, ())):
        with pytest.raises(InternalError, match=r"damaged: the name of symbol \d+ has no end"):
            function(bytes(data))


def attempt(data: bytes) -> int:
    """1 if the file is refused, in words; any other failure is the test's."""
    refused = 0
    try:
        global_symbols(data)
    except InternalError:
        refused = 1
    try:
        assert len(localize(data, ["entry1"])) == len(data)
    except InternalError:
        refused = 1
    return refused


def test_truncated(libraries: tuple[bytes, bytes]) -> None:
    """The section headers are at the end: no part of the file will do."""
    data = libraries[0]
    for step in range(200):
        assert attempt(data[: len(data) * step // 200]) == 1


def test_flipped_bits(libraries: tuple[bytes, bytes]) -> None:
    """Damage is refused or goes through; it is never another error."""
    generator = random.Random(20)
    data = libraries[0]
    headers, _ = section_headers(data)
    refused = 0
    for _ in range(250):
        for first in (0, headers):  # anywhere, and where it hurts
            damaged = bytearray(data)
            damaged[generator.randrange(first, len(data))] ^= 1 << generator.randrange(8)
            refused += attempt(bytes(damaged))
    assert 10 < refused < 490


def test_random_headers(libraries: tuple[bytes, bytes]) -> None:
    """As above, with many bytes wrong at once."""
    generator = random.Random(21)
    data = libraries[0]
    headers, _ = section_headers(data)
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(8):
            damaged[generator.randrange(headers, len(data))] = generator.randrange(256)
        attempt(bytes(damaged))
