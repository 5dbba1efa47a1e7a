"""LLVM's source, as Debian packs it: the folder that has `mlir/test`.

It is fetched once into `build/upstream`, by apt and from a Debian release that has this LLVM. The
machine's own lists of packages stay as they are: apt gets a folder of its own for them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PACKAGE = "llvm-toolchain-23"
_LIST = "deb-src http://deb.debian.org/debian sid main\n"
# What the tests read.
_WANTED = ("mlir/test/",)


class SourceError(Exception):
    """The source cannot be fetched, in words for the user."""


def fetched(folder: Path, package: str = PACKAGE) -> Path:
    """The unpacked source below `folder`, fetched where it is not there."""
    stamp = folder / "source"
    if not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / "source.draft"
        _unpack(_tar(folder, package), draft)
        draft.rename(stamp)
    return stamp


def _tar(folder: Path, package: str) -> Path:
    """The package's `.orig.tar.xz`."""
    if found := sorted(folder.glob(f"{package}_*.orig.tar.xz")):
        return found[-1]
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    sources = apt / "sources.list"
    sources.write_text(_LIST)
    options = {
        "Dir::Etc::SourceList": sources.resolve(),
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": (apt / "lists").resolve(),
        "Dir::Cache": (apt / "cache").resolve(),
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _run(["apt-get", *words, "update"], folder)
    said = _run(["apt-cache", *words, "showsrc", package], folder)
    versions = [line.split()[1] for line in said.splitlines() if line.startswith("Version:")]
    failure = SourceError(f"{_LIST.strip()} has no source package {package}.")
    # A mirror may lack the newest one's files, and also all but the tar.
    for version in sorted(versions, key=_numbers, reverse=True):
        wanted = f"{package}={version}"
        try:
            _run(["apt-get", *words, "source", "--download-only", "--tar-only", wanted], folder)
            break
        except SourceError as error:
            failure = error
    else:
        raise failure
    if found := sorted(folder.glob(f"{package}_*.orig.tar.xz")):
        return found[-1]
    raise SourceError(f"apt-get fetched no {package}_*.orig.tar.xz. Give the source by --source.")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _run(command: list[str], folder: Path) -> str:
    """What a command prints."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SourceError("There is no apt here. Give LLVM's source by --source.") from error
    if done.returncode:
        raise SourceError(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.rstrip()}\n"
            "Give LLVM's source by --source."
        )
    return done.stdout


def _unpack(tar: Path, target: Path) -> None:
    """Unpacks what is wanted, without the archive's own folder around it."""
    target.mkdir(parents=True, exist_ok=True)
    options = ["--strip-components=1", "--wildcards", *(f"*/{name}*" for name in _WANTED)]
    _run(["tar", "-xf", str(tar.resolve()), "-C", str(target.resolve()), *options], target)
