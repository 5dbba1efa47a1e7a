"""The manifest as an ELF note in the module's object, which `aotc inspect` reads from artifacts.

The note's owner is `aotc` (System V gABI, Note Section). Linkers keep notes and concatenate them,
so that a program of two libraries has both. `strip` keeps it, because it is loaded. The format
follows systemd's "Package Metadata for Executable Files", which has JSON in a note.
"""

from __future__ import annotations

import json

from aotc.manifest import Manifest

NOTE_OWNER = "aotc"
NOTE_MANIFEST = 1  # the type: the manifest's JSON, in ASCII
NOTE_SECTION = ".note.aotc"


def manifest_note(manifest: Manifest) -> str:
    """Top-level LLVM IR text that puts the note into the object.

    The JSON is not compressed: the output of deflate libraries depends on their version, and the
    same input must give the same bytes. The text is assembly, so that the assembler computes the
    sizes.
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
        # Printable ASCII is quoted in the assembler as in JSON.
        *(f".ascii {json.dumps(part)}" for part in _parts(manifest)),
        "2:",
        ".p2align 2",
        ".popsection",
    ]
    return "\n" + "".join(f"module asm {_in_ir(line)}\n" for line in lines)


def _parts(manifest: Manifest) -> list[str]:
    """The manifest's JSON, split before each of its fields: one line of text for each."""
    document = json.loads(manifest.to_json())
    fields = [
        f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
        for key, value in document.items()
    ]
    return [("," if i else "{") + field for i, field in enumerate(fields)] + ["}"]


def _in_ir(line: str) -> str:
    return '"' + line.replace("\\", "\\5C").replace('"', "\\22") + '"'
