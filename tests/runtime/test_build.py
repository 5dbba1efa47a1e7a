"""The runtime compiles everywhere without a warning, and its libraries show what they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.command import REPOSITORY
from helpers.elf import Elf, Symbol, archive_members
from runtime.support import (
    FAKE_DRIVER,
    HEADERS,
    HOST_TARGET,
    RUNTIME,
    SOURCES,
    STRICT_FLAGS,
    TARGETS,
    TESTS,
    UTILITIES,
    UTILITY_HEADERS,
    compile_c,
    exported_functions,
    include_flags,
    runner,
    toolchain,
)

from aotc.host.llvm_dialect import WEAK
from aotc.module_names import CAPABILITY, PREPARE_RESULT
from aotc.toolchain import runtime_library, utilities_library

CUDA = RUNTIME / "src" / "cuda"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "source",
    [*SOURCES, *UTILITIES, *FAKE_DRIVER, *sorted(TESTS.glob("*.c"))],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_compiles_without_warnings(source: Path, target: str, tmp_path: Path) -> None:
    compile_c(
        [*STRICT_FLAGS, *include_flags(), "-c", source, "-o", tmp_path / "object.o"],
        making=source.name,
        target=target,
    )


@pytest.mark.parametrize("header", [*HEADERS, *UTILITY_HEADERS], ids=lambda path: str(path.name))
@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_headers_stand_alone(header: Path, language: str, tmp_path: Path) -> None:
    """Each header compiles by itself, in C and C++, and needs no CUDA."""
    source = tmp_path / ("use.c" if language == "c11" else "use.cpp")
    source.write_text(f'#include "{header.name}"\n#include "{header.name}"\n')
    compile_c(
        [
            f"-std={language}",
            *("-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{RUNTIME / 'include'}"),
            *("-c", source, "-o", tmp_path / "use.o"),
        ],
        making=source.name,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_shared_library_exports_the_headers(target: str) -> None:
    """What the headers declare is exported, nothing else; libc alone is needed."""
    library = Elf(runtime_library(toolchain(), runner(), target, kind="shared"))
    assert library.exports == exported_functions()
    assert "mgpuLaunchKernel" in library.exports
    assert library.soname == "libmlir_cuda_runtime.so"
    loaders = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert set(library.needed) <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", *loaders}
    versions = [v for names in library.versions_needed.values() for v in names]
    numbers = [tuple(map(int, v.removeprefix("GLIBC_").split("."))) for v in versions]
    assert max(numbers) <= (2, 28)


@pytest.mark.parametrize("target", TARGETS)
def test_static_library_keeps_to_its_prefixes(target: str) -> None:
    """Every global symbol is the public API or begins with aotc_rt_; all of it is hidden."""
    archive = runtime_library(toolchain(), runner(), target, kind="static").read_bytes()
    symbols = [s for m in archive_members(archive).values() for s in Elf(m).symbols if s.is_global]
    names = {symbol.name for symbol in symbols}
    assert exported_functions() <= names
    assert {n for n in names - exported_functions() if not n.startswith("aotc_rt_")} == set()
    assert {symbol.visibility for symbol in symbols} == {2}


@pytest.mark.parametrize("target", TARGETS)
def test_utilities_are_the_headers(target: str) -> None:
    """What the headers declare is in the library; all else in it begins with aotc_program_."""
    archive = utilities_library(toolchain(), runner(), target).read_bytes()
    symbols = [s for m in archive_members(archive).values() for s in Elf(m).symbols if s.is_global]
    defined = {symbol.name for symbol in symbols}
    declared = exported_functions(UTILITY_HEADERS)
    assert declared <= defined
    assert {name for name in defined - declared if not name.startswith("aotc_program_")} == set()
    assert not declared & exported_functions()


# What LLVM 22's libmlir_c_runner_utils, libmlir_runner_utils, libmlir_float16_utils and
# libmlir_async_runtime export for programs (`nm -D`); of sparse tensors, those
# that read and write files. And of libmlir_cuda_runtime what calls cuSPARSE and cuSPARSELt.
SPARSE_TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "C64", "C32")
UPSTREAM = {
    *(f"print{what}" for what in ("I64", "U64", "F16", "BF16", "F32", "F64", "String", "Open")),
    *(f"print{what}" for what in ("Close", "Comma", "Newline", "Flops")),
    *(f"_mlir_ciface_printMemref{t}" for t in ("I8", "I16", "I32", "I64", "F16", "BF16", "F32")),
    *(f"_mlir_ciface_printMemref{t}" for t in ("F64", "C32", "C64", "Ind", "Vector4x4xf32")),
    *(f"_mlir_ciface_printMemrefShape{t}" for t in ("I8", "I32", "I64", "F32", "F64", "C32")),
    *(f"_mlir_ciface_printMemrefShape{t}" for t in ("C64", "Ind")),
    *(f"_mlir_ciface_printMemref{rank}dF32" for rank in range(5)),
    *(f"_mlir_ciface_printMemref1d{t}" for t in ("I8", "I32", "I64", "F64", "C32", "C64", "Ind")),
    *(f"_mlir_ciface_verifyMemRef{t}" for t in ("I8", "I16", "I32", "I64", "F16", "BF16", "F32")),
    *(f"_mlir_ciface_verifyMemRef{t}" for t in ("F64", "C32", "C64", "Ind")),
    *(f"printMemref{t}" for t in ("I32", "I64", "F32", "F64", "C32", "C64", "Ind")),
    *(f"verifyMemRef{t}" for t in ("I32", "F32", "F64", "C32", "C64", "Ind")),
    *(f"_mlir_ciface_stdSort{t}" for t in ("I64", "F32", "F64")),
    *("_mlir_ciface_nanoTime", "_mlir_ciface_shuffle", "memrefCopy", "rtclock"),
    *("rtsrand", "rtrand", "rtdrand", "mlirAlloc", "mlirAlignedAlloc", "mlirFree"),
    *("mlirAlignedFree", "mlirAsyncRuntimGetNumWorkerThreads"),
    *(f"mlirAsyncRuntime{what}Ref" for what in ("Add", "Drop")),
    *(f"mlirAsyncRuntimeCreate{what}" for what in ("Token", "Value", "Group")),
    *(f"mlirAsyncRuntimeEmplace{what}" for what in ("Token", "Value")),
    *(f"mlirAsyncRuntimeSet{what}Error" for what in ("Token", "Value")),
    *(f"mlirAsyncRuntimeIs{what}Error" for what in ("Token", "Value", "Group")),
    *(f"mlirAsyncRuntimeAwait{what}" for what in ("Token", "Value", "AllInGroup")),
    *(f"mlirAsyncRuntimeAwait{what}AndExecute" for what in ("Token", "Value", "AllInGroup")),
    *(f"mlirAsyncRuntime{what}" for what in ("AddTokenToGroup", "Execute", "GetValueStorage")),
    "mlirAsyncRuntimePrintCurrentThreadId",
    *("getTensorFilename", "_mlir_ciface_createCheckedSparseTensorReader"),
    *("_mlir_ciface_getSparseTensorReaderDimSizes", "getSparseTensorReaderNSE"),
    *("delSparseTensorReader", "createSparseTensorWriter", "delSparseTensorWriter"),
    "_mlir_ciface_outSparseTensorWriterMetaData",
    *(f"_mlir_ciface_outSparseTensorWriterNext{t}" for t in SPARSE_TYPES),
    *(
        f"_mlir_ciface_getSparseTensorReaderReadToBuffers{width}{t}"
        for width in (0, 8, 16, 32, 64)
        for t in SPARSE_TYPES
    ),
    *(f"mgpu{what}Sparse{library}Env" for what in ("Create", "Destroy") for library in ("", "Lt")),
    *(f"mgpuCreate{what}" for what in ("DnVec", "DnMat", "Coo", "CooAoS", "Csr", "Csc", "Bsr")),
    *(f"mgpuDestroy{what}" for what in ("DnVec", "DnMat", "SpMat", "CuSparseLtDnMat")),
    *(f"mgpu{what}" for what in ("SpMatGetSize", "SetCsrPointers", "DestroyCuSparseLtSpMat")),
    *(f"mgpu{what}" for what in ("SpMV", "SpMM", "SDDMM")),
    *(f"mgpu{what}BufferSize" for what in ("SpMV", "SpMM", "SDDMM")),
    *(f"mgpuSpGEMM{what}" for what in ("CreateDescr", "DestroyDescr", "WorkEstimation")),
    *(f"mgpuSpGEMM{what}" for what in ("Compute", "Copy")),
    *("mgpuCreateCuSparseLtDnMat", "mgpuCusparseLtCreate2To4SpMat"),
    *(f"mgpuCuSparseLtSpMM{what}" for what in ("", "BufferSize")),
}


def test_utilities_are_upstreams() -> None:
    ours = ("printCString", "aotc_", "_mlir_ciface_aotc_")
    declared = exported_functions(UTILITY_HEADERS)
    assert {name for name in declared if not name.startswith(ours)} == UPSTREAM


def test_what_is_called_through_weak_references_is_linked() -> None:
    """A weak reference pulls nothing out of an archive by itself: what objects with kernels refer
    to, the module's functions, must bring all of it."""
    archive = runtime_library(toolchain(), runner(), HOST_TARGET, kind="static").read_bytes()
    members = [Elf(member).symbols for member in archive_members(archive).values()]
    wanted, linked = {"mgpuModuleLoad", "mgpuModuleUnload"}, set[str]()
    while wanted - linked:
        pulled = [
            member
            for member in members
            if any(one.is_global and one.name in wanted for one in member)
        ]
        linked |= wanted | {one.name for member in pulled for one in member if one.is_global}
        wanted |= {one.name for member in pulled for one in member if _is_asked_for(one)}
    assert {*WEAK, CAPABILITY, PREPARE_RESULT} <= linked


def _is_asked_for(symbol: Symbol) -> bool:
    return symbol.binding == 1 and not symbol.is_defined


def test_nothing_prints_or_exits() -> None:
    """No source calls what writes to a stream or ends the process, but for the one warning
    about a trace that a user asks for and that cannot be written."""
    forbidden = re.compile(
        r"\b(v?[fd]?printf|puts|fputs|putchar|perror|fwrite|write|assert|abort|_?exit|_Exit|raise|kill"
        r"|quick_exit|syslog)\s*\("
    )
    found = [
        f"{source.name}: {match.group(1)}"
        for source in SOURCES
        for match in forbidden.finditer(re.sub(r"//.*|\"(\\.|[^\"])*\"", "", source.read_text()))
    ]
    assert found == ["trace.c: dprintf"]


def test_driver_symbols_are_in_one_place() -> None:
    """No source but the driver's names a symbol for the dynamic linker, or links libcuda. (The
    profiler's names one of a profiler's.)"""
    users = {s for s in SOURCES if re.search(r"\bdl(open|sym)\(", s.read_text())}
    assert users == {CUDA / "driver.c", RUNTIME / "src" / "nvtx.c"}
    shared = Elf(runtime_library(toolchain(), runner(), HOST_TARGET, kind="shared"))
    assert {s.name for s in shared.dynamic_symbols if s.name.startswith("cu")} == set()


_OF_LIBCUDA = re.compile(r"\b(CU[a-z]\w*|cu[A-Z]\w*|CU_\w+|CUDA_\w+)|#include .*cuda(\.h>|/)")


def _of_libcuda(source: Path) -> set[str]:
    """What the source takes from cuda.h: types, functions, constants, the header itself."""
    code = re.sub(r"//.*|(?<!#include )\"(\\.|[^\"\n])*\"", "", source.read_text())
    return {match.group() for match in _OF_LIBCUDA.finditer(code)}


def test_nothing_above_the_waist_is_of_libcuda() -> None:
    """Outside of src/cuda no type, function or constant of the CUDA driver is named."""
    files = [*(RUNTIME / "src").rglob("*.[ch]"), *(RUNTIME / "include").glob("*.h")]
    users = {file: _of_libcuda(file) for file in files}
    assert {
        file.name: found for file, found in users.items() if found and file.parent != CUDA
    } == {}
    assert {"CUcontext", "CU_STREAM_NON_BLOCKING"} <= users[CUDA / "driver.c"]
    assert users[CUDA / "libcuda.h"] >= {"#include <cuda.h>", "CUdeviceptr", "cuMemAllocManaged"}


def test_the_page_on_targets_lists_what_a_driver_does() -> None:
    """docs/adding_a_target.md has every function of aotc_rt_driver, once, and no other."""
    declared = re.findall(r"\(\*(\w+)\)\(", (RUNTIME / "src" / "driver.h").read_text())
    page = (REPOSITORY / "docs" / "adding_a_target.md").read_text()
    section = page.partition("### The functions")[2].partition("###")[0]
    cells = [row.split("|")[2] for row in section.splitlines() if row.startswith("| ")]
    assert sorted(re.findall(r"`(\w+)`", "".join(cells))) == sorted(declared)
    assert f"That is {len(declared)} functions." in section
