"""The manifest as an ELF note of the module's object: `aotc inspect` reads it from what is built.

A note, as the System V gABI has it (Note Section), of the owner `aotc`: linkers keep notes and put
them one behind the other, so that a program of two libraries has both; and as it is loaded, `strip`
leaves it. systemd's "Package Metadata for Executable Files" is the example for JSON in a note.
"""

from __future__ import annotations

import json

from aotc.manifest import Manifest

NOTE_OWNER = "aotc"
NOTE_MANIFEST = 1  # the type: the manifest's JSON, in ASCII
NOTE_SECTION = ".note.aotc"


def manifest_note(manifest: Manifest) -> str:
    """Top-level LLVM IR text that puts the note into the object.

    It is not compressed: what a deflate library makes differs from version to version, and the same
    input must make the same bytes. It is assembly, where the assembler counts the bytes.
    """
    lines = [
        f'.pushsection {NOTE_SECTION},"a",%note',
        ".p2align 2",
        f".long {len(NOTE_OWNER) + 1}",
        ".long 2f-1f",
        f".long {NOTE_MANIFEST}",
        f'.asciz "{NOTE_OWNER}"',
        ".p2align 2",
        "1:",
        *(f".ascii {_quoted(part)}" for part in _parts(manifest)),
        "2:",
        ".p2align 2",
        ".popsection",
    ]
    return "\n" + "".join(f"module asm {_in_ir(line)}\n" for line in lines)


def _parts(manifest: Manifest) -> list[str]:
    """The manifest's JSON, cut before each of its fields: a line of text for each."""
    document = json.loads(manifest.to_json())
    fields = [
        f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
        for key, value in document.items()
    ]
    return [("," if i else "{") + field for i, field in enumerate(fields)] + ["}"]


def _quoted(text: str) -> str:
    """`text`, which is printable ASCII, as a string of the assembler's."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_ir(line: str) -> str:
    return '"' + line.replace("\\", "\\5C").replace('"', "\\22") + '"'
