"""`ToolCache`: what a tool makes, by its command and by what it reads.

The key has the tool's identity, its arguments and the contents of the files that it reads: not
where they are, nor where aotc is installed, nor their names, if these do not matter. So it is the
same in every build's folder.
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

# Of files that are read and made together: to link or to copy more takes as long as to keep it.
LARGEST = 64 << 20


class ToolCache:
    """Runs tools by way of the cache: `Runner` asks it. For several threads."""

    def __init__(self, results: Results, identities: Identities) -> None:
        self._results = results
        self._identities = identities
        # Of files outside of the build's folder, which do not change during it.
        self._digests: dict[Path, str] = {}

    def run(self, command: FileCommand, execute: Callable[[], Completed]) -> tuple[Completed, bool]:
        """What `command` makes, and whether it was run for that, by `execute`."""
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
                # Away with what was there: another link to it may be somebody's file.
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
        """Reports something that is made once, and was damaged."""
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
        # What a file has matters, and which of them it is; not where it is.
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
                # Two of one name: each has its own line.
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
    """How the key and the result call the files in the folder, by their names: if these do not
    matter, by their suffixes (`*.ptx`), and a number where several have one."""
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
    """Each file with the number of those before it that have its name."""
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
