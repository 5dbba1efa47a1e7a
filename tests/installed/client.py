"""A program that uses aotc's API with types. mypy must find what is marked, and nothing else."""

from __future__ import annotations

from pathlib import Path

import aotc


def build(source: Path, folder: Path) -> aotc.Artifact:
    """Uses what a build takes and gives."""
    artifact = aotc.build(source, emit=["shared", "manifest"], out=folder, chips="sm_80")
    path: Path = artifact.path
    seconds: float = artifact.times["load"]
    print(path, seconds, [warning.name for warning in artifact.warnings])
    if artifact.manifest is not None:
        print([entry.name for entry in artifact.manifest.entries])
    aotc.build(source, emit=7)  # error: arg-type
    aotc.build(source, chip="sm_80")  # error: call-arg
    wrong: int = artifact.path  # error: assignment
    print(wrong)
    return artifact


def call(artifact: aotc.Artifact) -> None:
    """Uses what a library is."""
    library: aotc.Library = aotc.load(artifact)
    library.set_device("cpu")
    library.set_device(None)  # error: arg-type
    try:
        library.saxpy(2.0)
    except aotc.LibraryError as error:
        status: int = error.status
        print(error.message, status)
    except aotc.AotcError as error:
        print(error.hint or error.exit_code)
    aotc.loads("x")  # error: attr-defined
