"""`ToolCache`: the outputs of tools, by their commands and inputs.

The key consists of the tool's identity, its arguments and the contents of the files that it reads.
It contains neither paths nor where aotc is installed, and file names only if they matter. So it is
the same for every build folder.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aotc.cache.identity import Identities
from aotc.cache.results import Made, Results
from aotc.toolchain.runner import Completed, FileCommand

# Total size of the files read and written: for more, linking or copying is as fast as caching.
LARGEST = 64 << 20


class ToolCache:
    """Runs tools through the cache, for `Runner`. Thread-safe."""

    def __init__(self, results: Results, identities: Identities) -> None:
        self._results = results
        self._identities = identities
        # Digests of files outside the build's folder, which do not change during the build.
        self._digests: dict[Path, str] = {}

    def run(self, command: FileCommand, execute: Callable[[], Completed]) -> tuple[Completed, bool]:
        """The result of `command`, and whether `execute` had to run it."""
        folder, names = command.folder, _names(command)
        step = ", ".join(command.writes)
        if _size_of(folder, command.reads) > LARGEST:
            self._results.report.pass_by(step, "it reads too much to be kept")
            return execute(), True
        components = self._components(command, names)
        found = self._results.find(step, components, [names[name] for name in command.writes])
        if found is not None:
            for name in command.writes:
                data = found.files[names[name]]
                # Unlink an existing file: a hard link to it may belong to another program.
                (folder / name).unlink(missing_ok=True)
                (folder / name).write_bytes(data)
                if names[name] in found.executables:
                    (folder / name).chmod(0o755)
            said = (data.decode(errors="replace") for data in (found.stdout, found.stderr))
            return Completed(command.words, *said), False
        done = execute()
        self._keep(step, components, command, names, done)
        return done, True

    def tell_made_again(self, step: str, why: str) -> None:
        """Reports an entry that is made once, and was damaged."""
        self._results.report.made_again(step, why)

    def _keep(
        self,
        step: str,
        components: Mapping[str, str],
        command: FileCommand,
        names: Mapping[str, str],
        done: Completed,
    ) -> None:
        folder, writes = command.folder, command.writes
        if not all((folder / name).is_file() for name in writes):
            return
        if _size_of(folder, writes) > LARGEST:
            self._results.report.pass_by(step, "what it makes is too much to be kept")
            return
        made = Made(
            {names[name]: (folder / name).read_bytes() for name in writes},
            frozenset(names[name] for name in writes if (folder / name).stat().st_mode & 0o100),
            done.stdout.encode(),
            done.stderr.encode(),
        )
        self._results.keep(components, made)

    def _components(self, command: FileCommand, names: Mapping[str, str]) -> dict[str, str]:
        files = {str(path): self._digest(command.folder, path) for path in command.reads}
        arguments = list(command.words[1:])
        # The key has the contents and the order of the files, not their paths.
        places = {path: f"<{i}>/{Path(path).name}" for i, path in enumerate(files)}
        for path in sorted(filter(lambda path: path.startswith("/"), files), key=len, reverse=True):
            arguments = [text.replace(path, places[path]) for text in arguments]
        if not command.names_matter:
            for name in sorted(names, key=len, reverse=True):
                arguments = [text.replace(name, names[name]) for text in arguments]
        return {
            "kind": "tool",
            "tool": self._identities.of_program(Path(command.words[0])),
            "command": json.dumps(arguments),
            "environment": json.dumps(sorted(command.env.items())),
            **{
                # Files with the same name have separate lines.
                f"{names.get(path, Path(path).name)}{'' if i == 0 else f' ({i})'}": f"#{digest}"
                for i, path, digest in _numbered(files)
            },
            "writes": json.dumps([names[name] for name in command.writes]),
        }

    def _digest(self, folder: Path, path: str | Path) -> str:
        place = folder / path
        is_own = not Path(path).is_absolute()
        if not is_own and place in self._digests:
            return self._digests[place]
        if place.is_dir():
            digest = _folder_digest(place)
        else:
            with place.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        if not is_own:
            self._digests[place] = digest
        return digest


def _names(command: FileCommand) -> dict[str, str]:
    """Maps the files in the folder to their names in the key and in the result. If names do not
    matter, these are the suffixes (`*.ptx`), with a number if several files share one."""
    own = [str(path) for path in command.reads if not Path(path).is_absolute()]
    if command.names_matter:
        return {name: Path(name).name for name in own} | {name: name for name in command.writes}
    names: dict[str, str] = {}
    seen = Counter[str]()
    for name in (*own, *command.writes):
        suffix = Path(name).suffix
        names[name] = f"*.{seen[suffix]}{suffix}" if seen[suffix] else f"*{suffix}"
        seen[suffix] += 1
    return names


def _numbered(files: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """Each file with the number of earlier files that have the same name."""
    seen: dict[str, int] = {}
    numbered = []
    for path, digest in files.items():
        name = Path(path).name
        numbered.append((seen.get(name, 0), path, digest))
        seen[name] = seen.get(name, 0) + 1
    return numbered


def _folder_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.h")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\0".encode() + content)
    return digest.hexdigest()


def _size_of(folder: Path, names: Sequence[str | Path]) -> int:
    places = [folder / name for name in names]
    return sum(place.stat().st_size for place in places if place.is_file())
