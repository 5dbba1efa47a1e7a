"""Literals as the bindings print them → rewritten → compiled by clang: the same bits."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aotc import mlir
from aotc.mlir import ir, llvm
from aotc.toolchain import Runner, Toolchain
from aotc.toolchain.llvm_text import downlevel
from aotc.toolchain.version import Version

RANDOM_COUNT = 120_000
NAN_COUNT = 4_000

UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
# MLIR's type: LLVM's, width, fraction bits.
TYPES = {
    "f16": ("half", 16, 10),
    "bf16": ("bfloat", 16, 7),
    "f32": ("float", 32, 23),
    "f64": ("double", 64, 52),
}


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return Toolchain(os.environ)


def patterns(name: str) -> Any:
    """Bit patterns to test with: all of a 16-bit type, else random ones and every kind."""
    _, width, fraction_bits = TYPES[name]
    unsigned = UNSIGNED[width]
    if width == 16:
        return np.arange(2**16, dtype=unsigned)
    generator = np.random.default_rng(20_24)
    sign = 1 << (width - 1)
    fraction = (1 << fraction_bits) - 1
    exponent = sign - 1 - fraction
    quiet = 1 << (fraction_bits - 1)
    one = exponent // 2 & exponent
    fixed = [0, 1, 2, fraction, fraction + 1, exponent, exponent - 1, one]
    fixed += [exponent | quiet, exponent | 1, exponent | quiet | 1, exponent | fraction]
    fixed += [pattern | sign for pattern in fixed]
    kinds = RANDOM_COUNT // 3
    anything = generator.integers(0, 2 * sign - 1, kinds, unsigned, endpoint=True)
    signs = anything & unsigned(sign)
    subnormals = anything & unsigned(fraction | sign)
    # LLVM keeps constants in a table that does not tell NaNs apart: many take it forever.
    nans = anything[:NAN_COUNT] | unsigned(exponent | 1)
    # What people write: short decimals, which the printer writes as decimals.
    decimals = generator.integers(-99_999, 99_999, kinds) / 10.0 ** generator.integers(0, 9, kinds)
    short = decimals.astype(f"f{width // 8}").view(unsigned) | signs
    return np.concatenate(
        [np.array(fixed, unsigned), anything, subnormals, nans, short], dtype=unsigned
    )


def printed(source: str) -> str:
    """LLVM IR text, as the bindings' LLVM prints it."""
    with mlir.make_context():
        module = ir.Module.parse(source)
        return str(llvm.translate_module_to_llvmir(module.operation))


def rewritten(text: str, toolchain: Toolchain) -> str:
    writer = Version.parse(mlir.bindings().llvm_version)
    return downlevel(text, writer=writer, reader=toolchain.clang.version)


def compiled(text: str, toolchain: Toolchain, folder: Path, *flags: str) -> bytes:
    command = [*toolchain.clang.command, *flags, "-x", "ir", "-Wno-override-module"]
    command += ["-", "-o", "out"]
    Runner(os.environ).run(command, making="out", input=text.encode(), cwd=folder)
    return (folder / "out").read_bytes()


def section(elf: bytes, name: str) -> bytes:
    """The bytes of a section of a little-endian 64-bit ELF file."""
    headers, size, count, names = (
        struct.unpack_from("<Q", elf, 0x28)[0],
        *struct.unpack_from("<HHH", elf, 0x3A),
    )
    found = {}
    table = struct.unpack_from("<Q", elf, headers + names * size + 0x18)[0]
    for index in range(count):
        header = headers + index * size
        start = table + struct.unpack_from("<I", elf, header)[0]
        offset, length = struct.unpack_from("<QQ", elf, header + 0x18)
        found[elf[start : elf.index(b"\0", start)].decode()] = elf[offset : offset + length]
    return found[name]


def dense(bits: Any, name: str) -> str:
    return f'dense<"0x{bits.tobytes().hex().upper()}"> : tensor<{len(bits)}x{name}>'


@pytest.mark.parametrize("name", TYPES)
def test_every_bit_pattern_of_a_constant_array_survives(
    name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """Exhaustive for half and bfloat; for float and double random, with all kinds of values."""
    bits = patterns(name)
    width = TYPES[name][1]
    if width > 16:
        assert len(bits) > 100_000
    text = printed(
        f"llvm.mlir.global external constant @values({dense(bits, name)}) "
        f'{{section = ".values"}} : !llvm.array<{len(bits)} x {name}>'
    )
    elf = compiled(rewritten(text, toolchain), toolchain, tmp_path, "-c")
    actual = np.frombuffer(section(elf, ".values"), UNSIGNED[width])
    wrong = np.nonzero(actual != bits)[0]
    assert [hex(bits[index]) for index in wrong[:10]] == []
    assert len(actual) == len(bits)


@pytest.mark.parametrize("name", TYPES)
def test_short_arrays_take_the_same_bits_as_long_ones(
    name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """A row of three is spelled literal by literal, a long one at once."""
    bits = patterns(name)[-3_000:]
    width = TYPES[name][1]
    text = printed(
        f"llvm.mlir.global external constant @values(dense<"
        f'"0x{bits.tobytes().hex().upper()}"> : tensor<1000x3x{name}>) '
        f'{{section = ".values"}} : !llvm.array<1000 x array<3 x {name}>>'
    )
    elf = compiled(rewritten(text, toolchain), toolchain, tmp_path, "-c")
    actual = np.frombuffer(section(elf, ".values"), UNSIGNED[width])
    assert [hex(value) for value in bits[actual != bits]] == []


def test_the_printer_writes_every_kind_of_literal() -> None:
    """Else the tests of this file would prove less than they say."""
    bits = patterns("f32")
    text = printed(
        f"llvm.mlir.global external constant @values({dense(bits, 'f32')}) "
        f": !llvm.array<{len(bits)} x f32>"
    )
    for kind in ("f0x", "float 1.000000e+00", "+inf", "-inf", "+qnan", "-qnan"):
        assert kind in text
    for kind in ("+nan(0x", "-nan(0x", "+snan(0x", "-snan(0x", "float -0.000000e+00"):
        assert kind in text


def instructions(name: str, bits: Any) -> str:
    """A function that stores each pattern, by way of several kinds of instructions.

    Each value is stored five times: itself, through a call, a select, a phi, and as both
    elements of a vector.
    """
    width = TYPES[name][1]
    lines = [
        f"llvm.func internal @same(%x: {name}) -> {name} "
        "attributes {no_inline, optimize_none} {",
        f"  llvm.return %x : {name}",
        "}",
        "llvm.func @fill(%to: !llvm.ptr, %yes: i1) {",
    ]
    for index, pattern in enumerate(bits):
        place = 6 * index
        value = f"0x{int(pattern):0{width // 4}X} : {name}"
        lines += [
            f"  %c{index} = llvm.mlir.constant({value}) : {name}",
            f"  %z{index} = llvm.mlir.constant(1.0 : {name}) : {name}",
            f"  %v{index} = llvm.mlir.constant(dense<0x{int(pattern):0{width // 4}X}> : "
            f"vector<2x{name}>) : vector<2x{name}>",
            f"  %r{index} = llvm.call @same(%c{index}) : ({name}) -> {name}",
            f"  %s{index} = llvm.select %yes, %c{index}, %z{index} : i1, {name}",
            f"  llvm.cond_br %yes, ^b{index}(%c{index} : {name}), ^b{index}(%z{index} : {name})",
            f"^b{index}(%p{index}: {name}):",
        ]
        for offset, stored in enumerate((f"%c{index}", f"%r{index}", f"%s{index}", f"%p{index}")):
            lines += [
                f"  %q{index}_{offset} = llvm.getelementptr %to[{place + offset}] : "
                f"(!llvm.ptr) -> !llvm.ptr, {name}",
                f"  llvm.store {stored}, %q{index}_{offset} : {name}, !llvm.ptr",
            ]
        lines += [
            f"  %w{index} = llvm.getelementptr %to[{place + 4}] : (!llvm.ptr) -> !llvm.ptr, {name}",
            f"  llvm.store %v{index}, %w{index} {{alignment = 1 : i64}} : "
            f"vector<2x{name}>, !llvm.ptr",
        ]
    return "\n".join([*lines, "  llvm.return", "}"])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_literals_in_instructions_survive(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    """Calls, selects, phis and vectors; run in this process."""
    every = patterns(name)
    bits = np.concatenate([every[:24], every[24 :: len(every) // 200]])
    text = printed(instructions(name, bits))
    assert "phi" in text
    assert "splat (" in text
    compiled(
        rewritten(text, toolchain), toolchain, tmp_path, "-O1", "-shared", "-fPIC", "-nostdlib"
    )
    actual = np.zeros(6 * len(bits), UNSIGNED[TYPES[name][1]])
    library = ctypes.CDLL(str(tmp_path / "out"))
    library.fill(ctypes.c_void_p(actual.ctypes.data), ctypes.c_bool(True))
    for way, taken in enumerate(actual.reshape(-1, 6).T):
        assert [(way, hex(value)) for value in bits[taken != bits]] == []


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_literals_of_16_bits_in_instructions_survive(
    name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """As IR only: the processor has no such registers, and converting would quiet a NaN."""
    bits = patterns(name)[::257]
    text = rewritten(printed(instructions(name, bits)), toolchain)
    prefix = {"f16": "0xH", "bf16": "0xR"}[name]
    for pattern in bits:
        assert f"store {TYPES[name][0]} {prefix}{int(pattern):04X}, ptr" in text
    assert compiled(text, toolchain, tmp_path, "-c")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("f80", "0.1 : f80", "00d0ccccccccccccfb3f"),
        ("f128", "0.1 : f128", "00000000000000a0999999999999fb3f"),
        ("f80", "-1.0 : f80", "0000000000000080ffbf"),
        ("f128", "-1.0 : f128", "0000000000000000000000000000ffbf"),
    ],
)
def test_wide_types_survive(
    name: str, value: str, expected: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """MLIR reads 0.1 by way of double."""
    text = printed(f'llvm.mlir.global external @x({value}) {{section = ".values"}} : {name}')
    elf = compiled(rewritten(text, toolchain), toolchain, tmp_path, "-c")
    assert section(elf, ".values")[: len(expected) // 2].hex() == expected
