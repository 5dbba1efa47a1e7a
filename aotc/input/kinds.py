"""Recognition of inputs that are not MLIR, for the message that refuses them."""

from __future__ import annotations

import re

from msgspec import Struct


class Kind(Struct, frozen=True):
    """A kind of file that people give to aotc instead of MLIR: its name, and what to do instead."""

    what: str
    instead: str


_COMPRESSED = "unpack it first: aotc reads MLIR text and bytecode as they are."
_COMPILED = "aotc makes such files: give it the MLIR that it was made of."

# The first bytes of files that are not text.
_MAGIC = {
    b"\x1f\x8b": Kind("gzip data", _COMPRESSED),
    b"BZh": Kind("bzip2 data", _COMPRESSED),
    b"\xfd7zXZ\0": Kind("xz data", _COMPRESSED),
    b"\x28\xb5\x2f\xfd": Kind("zstd data", _COMPRESSED),
    b"PK\x03\x04": Kind("a zip archive", _COMPRESSED),
    b"!<arch>\n": Kind("a static library", _COMPILED),
    b"\x7fELF": Kind("an ELF file (an object, program, library or cubin)", _COMPILED),
    b"\x50\xed\x55\xba": Kind("a CUDA fatbin", _COMPILED),
    b"BC\xc0\xde": Kind(
        "LLVM bitcode", "mlir-translate --import-llvm makes MLIR of llvm-dis's text."
    ),
    b"\x03\x02\x23\x07": Kind("a SPIR-V module", "mlir-translate --deserialize-spirv reads it."),
    b"\xff\xfe": Kind("UTF-16 text", "save it as UTF-8."),
    b"\xfe\xff": Kind("UTF-16 text", "save it as UTF-8."),
}

# Patterns of the beginning of a line, used if no line is MLIR's.
_TEXT = {
    r"version https://git-lfs\.": Kind("a Git LFS pointer", "git lfs pull fetches the file."),
    r"<!DOCTYPE|<html": Kind("a web page", "download the file itself."),
    r"; ModuleID|source_filename\s*=|target (?:triple|datalayout)\s*="
    r"|(?:define|declare)\s.*@": Kind(
        "LLVM IR",
        "give aotc the MLIR before mlir-translate --mlir-to-llvmir; mlir-translate --import-llvm "
        "makes MLIR of LLVM IR.",
    ),
    r"\.(?:version|target|address_size)\s": Kind(
        "PTX", "give aotc the MLIR that it was made of; --emit ptx shows aotc's own."
    ),
    r"#\s*(?:include|define|pragma|ifn?def)\b|__global__|extern \"C\"|using namespace\b"
    r"|template\s*<|int\s+main\s*\(": Kind(
        "C, C++ or CUDA", "that is for clang or nvcc: aotc reads MLIR."
    ),
    r"(?:import|from)\s+[\w.]+(?:\s+(?:import|as)\s.*)?$|def\s+\w+\(.*\).*:\s*$": Kind(
        "Python", "run it, and give aotc the module that it prints."
    ),
    r"def\s+\w+\s*\([\w\s,]*\)\s*\{|var\s+\w+\s*(?:<[\d\s,]+>)?\s*=": Kind(
        "the Toy tutorial's language",
        "samples/toy is a front end for it: pip install samples/toy, and call the file NAME.toy.",
    ),
    r"HloModule\s": Kind(
        "XLA's HLO text", "jax.export writes StableHLO, which aotc reads as NAME.stablehlo."
    ),
    r"[{\[]\s*\"[^\"]*\"\s*[:,]": Kind("JSON", "aotc reads MLIR."),
}
_MLIR = r"^\s*(?:module\b|builtin\.module\b|func\.|llvm\.|gpu\.|%[\w:]+\s*=\s*\"?\w+\.\w)"


def kind_of_bytes(data: bytes) -> Kind | None:
    """The kind of data that is not MLIR bytecode, by its first bytes."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def kind_of_text(text: str) -> Kind | None:
    """The kind of text that MLIR refuses; None if it may be MLIR."""
    if re.search(_MLIR, text, re.MULTILINE):
        return None
    for pattern, kind in _TEXT.items():
        if re.search(rf"^\s*(?:{pattern})", text, re.MULTILINE):
            return kind
    return None
