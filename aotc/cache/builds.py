"""`BuildCache`: the cache as one build uses it.

A build looks up, in this order:

1. The *build*, by the bytes of the input, before MLIR is loaded. For an input of a front end, the
   key has the bytes of all files that the front end read when it imported the same input before,
   and the installed packages (`imports`).
2. The *module*, by its operations without comments, whitespace and value names, before it is
   lowered.
3. The LLVM IR of each gpu.module (`device_code`).
4. The output of each tool (`actions`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.artifacts import KINDS, SHARED, ArtifactFile
from aotc.cache.identity import Identities
from aotc.cache.imports import ImportedInput
from aotc.cache.report import Report, note_of
from aotc.cache.result import Digest
from aotc.cache.results import PLACE, Made, Results
from aotc.cache.sizes import size_text
from aotc.cache.store import Store
from aotc.cache.trim import note_use
from aotc.delivery import weights_from_artifact
from aotc.input.place import Place
from aotc.pipes import read_file, read_stdin
from aotc.request import BuildRequest
from aotc.warnings import BuildWarning

if TYPE_CHECKING:
    from aotc.cache.actions import ToolCache
    from aotc.cache.device_code import DeviceCode
    from aotc.cache.remote import Remote

BUILD, MODULE, IMPORT = "build", "module", "import"
# Limit for inputs and for outputs: constants of gigabytes are not stored a second time.
LARGEST = 256 << 20
# Limit for inputs whose module is printed as a key: printing takes a hundredth of a second per MiB.
_LARGEST_TEXT = 8 << 20
_MLIR_ENDINGS = (".mlir", ".mlirbc")
# Passes with such options read files that are not part of the key.
_READS_FILES = re.compile(r"librar|path|file", re.IGNORECASE)


class FoundBuild(Struct, frozen=True):
    """The files and messages of a build. `manifest` is its JSON, `explanation` the output of
    --explain."""

    files: tuple[ArtifactFile, ...]
    warnings: tuple[BuildWarning, ...]
    manifest: str | None
    explanation: str | None


class BuildCache:
    """Looks up and stores the result of `request`. `explains`: the result must include the
    explanation for `--explain`.
    """

    def __init__(
        self,
        request: BuildRequest,
        store: Store,
        identities: Identities,
        *,
        limit: int,
        remote: Remote | None = None,
        explains: bool = False,
    ) -> None:
        kinds = " ".join(kind.name for kind in request.emit)
        self.report = Report(store, note_of(Path.cwd(), str(request.source), kinds))
        self._request = request
        self._store = store
        self._remote = remote
        self._identities = identities
        self._limit = limit
        self._largest = min(LARGEST, limit // 2)
        self._explains = explains
        self._results = Results(store, self.report, remote)
        self._build: dict[str, str] | None = None
        self._import: ImportedInput | None = None
        self._module: dict[str, str] | None = None

    @property
    def tools(self) -> ToolCache:
        """The cache for the build's runner."""
        from aotc.cache.actions import ToolCache

        return ToolCache(self._results, self._identities)

    @functools.cached_property
    def device_code(self) -> DeviceCode | None:
        """The cache for the build's gpu.modules; None if their lowering is printed, or if it
        contains line information (-g and --lineinfo)."""
        from aotc.cache.device_code import DeviceCode

        r = self._request
        is_shown = r.save_temps is not None or r.print_ir.is_on
        if r.has_lines or is_shown:
            return None
        return DeviceCode(
            self._results, {"aotc": self._identities.aotc, **self._identities.installed}
        )

    def find_build(self) -> tuple[FoundBuild | None, bytes | None]:
        """The result of an earlier build of the same bytes; and these bytes, if they were read,
        because the input may have changed when it is read again."""
        if self._is_for_frontend and self._why_not() is None:
            return self._find_imported(), None
        content, why_not = self._read_input()
        if content is None or why_not is not None:
            self.report.pass_by(BUILD, why_not or "")
            return None, content
        digest = Digest.of(content)
        self._build = {
            "kind": BUILD,
            "input": f"#{digest.hash}",
            "path": str(self._request.source),
            **self._common(),
        }
        return self._find(BUILD, self._build), content

    def _find_imported(self) -> FoundBuild | None:
        """The result of an earlier build of the same input of a front end."""
        if self._identities.packages is None:
            self.report.pass_by(BUILD, "a framework is imported from a folder of sources")
            return None
        try:
            self._import = ImportedInput.of(self._request.source, self._largest)
        except (OSError, ValueError) as error:
            self.report.pass_by(BUILD, str(error))
            return None
        made = self._results.find(IMPORT, self._import_key(self._import))
        known = None if made is None else self._import.matching(made.stdout)
        if known is None:
            return None
        self._build = self._build_of(known)
        return self._find(BUILD, self._build)

    def note_import(self, beside: Iterable[Path]) -> None:
        """Records the files that one of aotc's front ends read besides the input."""
        if self._import is None:
            return
        try:
            known = self._import.with_files(beside)
        except OSError:
            known = None
        self._import = known
        if known is not None:
            self._results.keep(self._import_key(known), Made({}, stdout=known.document()))
            self._build = self._build_of(known)

    def _import_key(self, read: ImportedInput) -> dict[str, str]:
        return {
            "kind": IMPORT,
            "input": f"#{read.digest}",
            "path": str(self._request.source),
            "front end": self._request.frontend or "",
            "packages": self._identities.packages or "",
            **self._common(),
        }

    def _build_of(self, read: ImportedInput) -> dict[str, str]:
        files = Digest.of(read.document()).hash
        return {**self._import_key(read), "kind": BUILD, "files": f"#{files}"}

    def find_module(self, module: Any, size: int) -> FoundBuild | None:
        """The result of an earlier build of the same module, which was read from `size` bytes."""
        text = self._module_text(module, size)
        if text is None:
            return None
        self._module = {
            "kind": MODULE,
            "module": f"#{Digest.of(text.encode()).hash}",
            "file name": self._request.source.name,
            **self._common(),
        }
        if self._explains:
            # The printed IR contains places of the input.
            return None
        found = self._find(MODULE, self._module)
        if found is not None and self._build is not None:
            self._keep(self._build, found)
        return found

    def keep(self, found: FoundBuild) -> None:
        """Stores the result and messages of this build."""
        if self._build is None and self._module is None:
            return
        size = sum(file.path.stat().st_size for file in found.files if file.path is not None)
        if size > self._largest:
            why = f"{size_text(size)} are more than the {size_text(self._largest)} that are kept"
            self.report.pass_by(BUILD, why)
            return
        if self._build is not None:
            self._keep(self._build, found)
        if self._module is not None and not _has_places(found):
            # Its explanation contains places, which are valid for this input alone.
            self._keep(self._module, FoundBuild(found.files, found.warnings, found.manifest, None))

    def __enter__(self) -> BuildCache:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """Ends the use of the cache. After a build that failed or was interrupted, it does not wait
        for uploads to the server."""
        if self._remote is not None:
            self._remote.close(waits=failure is None)
        self.report.save()
        note_use(self._store, self.report.found, self.report.missed, self._limit)

    def troubles(self) -> list[str]:
        """Problems of the cache to report to the user, once per build."""
        told = []
        if self._store.trouble is not None:
            told.append(f"nothing is kept in the cache {self._store.root}: {self._store.trouble}")
        remote = self._remote
        if remote is not None and remote.trouble is not None and not remote.was_told:
            told.append(f"the remote cache {remote.name} is left out: {remote.trouble}")
        return told

    def _read_input(self) -> tuple[bytes | None, str | None]:
        """The input's bytes, and the reason why they do not determine the build's result, if any.
        (Standard input, once read, cannot be read again.)"""
        r = self._request
        why_not = self._why_not()
        if r.content is not None or str(r.source) == "-":
            content = read_stdin() if r.content is None else r.content
            return content, why_not or self._too_large(len(content))
        if why_not is not None:
            return None, why_not
        try:
            why_not = self._too_large(r.source.stat().st_size)
            return (read_file(r.source) if why_not is None else None), why_not
        except OSError as error:  # reported by the build
            return None, error.strerror or str(error)

    def _too_large(self, size: int) -> str | None:
        return f"the input has {size_text(size)}" if size > self._largest else None

    def _why_not(self) -> str | None:
        r = self._request
        if r.save_temps is not None:
            return "--save-temps wants every stage"
        if r.print_ir.is_on:
            return "--print-ir-before and --print-ir-after want every pass"
        if self._is_for_frontend and (r.content is not None or str(r.source) == "-"):
            return "a front end reads it, which may look for files beside it"
        if r.pipeline is not None and _READS_FILES.search(r.pipeline):
            return "the pipeline may read files"
        return None

    @property
    def _is_for_frontend(self) -> bool:
        r = self._request
        # Front ends are selected by the file's suffix; none of them is for MLIR's suffixes.
        is_mlir = "." not in r.source.name or r.source.suffix in _MLIR_ENDINGS
        return r.frontend != "mlir" and not (r.frontend is None and is_mlir)

    def _common(self) -> dict[str, str]:
        """The key components other than the input."""
        return {
            **_options(self._request),
            "aotc": self._identities.aotc,
            **self._identities.installed,
        }

    def _module_text(self, module: Any, size: int) -> str | None:
        """The module's text without irrelevant parts. None if it is not available: with -g and
        --lineinfo, places are part of the artifact."""
        if self._build is None or self._request.has_lines:
            return None
        if size > _LARGEST_TEXT:
            self.report.pass_by(MODULE, f"the input has {size_text(size)}")
            return None
        text: str = module.operation.get_asm(enable_debug_info=False)
        return text

    def _find(self, step: str, components: Mapping[str, str]) -> FoundBuild | None:
        made = self._results.find(step, components)
        if made is None:
            return None
        try:
            found = _unpack(made)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if {file.kind for file in found.files} != set(self._request.emit):
            return None
        if self._explains and found.explanation is None:
            self.report.pass_by(step, "--explain wants what was found by another build's module")
            return None
        return found

    def _keep(self, components: Mapping[str, str], found: FoundBuild) -> None:
        made = _pack(found)
        if made.size <= self._largest:
            self._results.keep(components, made)


def _options(request: BuildRequest) -> dict[str, str]:
    """The request as text, without the input and the output paths."""
    r = request
    is_shared = SHARED in r.emit
    weights = "" if r.weights is None else f"{weights_from_artifact(r)} {r.weights.name}"
    return {
        "kinds": " ".join(kind.name for kind in r.emit),
        "chips": ",".join(chip.name for chip in r.cubin_chips),
        "default chips": str(r.has_default_chips),
        "ptx": r.ptx.compute if r.ptx is not None else "none",
        "target": r.target.triple,
        "optimization": str(r.optimization),
        "cpu": r.cpu or "",
        "debug": str(r.debug),
        "lineinfo": str(r.lineinfo),
        "entries": ",".join(r.entries),
        "pipeline": r.pipeline or "",
        "memory": r.memory.value,
        "block": "x".join(map(str, r.block or ())),
        "cpu kernels": str(r.cpu_kernels),
        "verify": str(r.verify),
        "tf32": str(r.allow_tf32),
        "3xtf32": str(r.allow_3xtf32),
        "untested kernels": str(r.untested_kernels),
        "file directives": str(r.allow_file_directives),
        "prefix": r.prefix,
        "name": r.name,
        "runtime": "shared" if r.shares_runtime else "static",
        "soname": r.soname if is_shared else "",
        "is a package": str(r.is_package),
        "weights": weights,
        "replaceable": json.dumps(r.replaceable),
        "tuned": "" if r.tuned is None else f"#{Digest.of(r.tuned.encode()).hash}",
        "warnings": _warning_words(r),
        "frontend options": json.dumps(r.frontend_options),
    }


def _warning_words(request: BuildRequest) -> str:
    w = request.warnings
    parts = (sorted(names) for names in (w.hidden, w.fatal, w.harmless))
    return json.dumps([*parts, w.all_fatal])


def _pack(found: FoundBuild) -> Made:
    """A build's files, numbered; its messages and the files' names as JSON."""
    files = {f"{i}/{file.file_name}": file.content() for i, file in enumerate(found.files)}
    document = {
        "files": [
            {"kind": file.kind.name, "file_name": file.file_name, "folder": file.folder}
            for file in found.files
        ],
        "warnings": [_warning_document(warning) for warning in found.warnings],
        "manifest": found.manifest,
        "explanation": found.explanation,
    }
    return Made(files, stdout=json.dumps(document).encode())


def _unpack(made: Made) -> FoundBuild:
    """The inverse of `_pack`. Raises ValueError, KeyError or TypeError for any other result."""
    document = json.loads(made.stdout)
    files = []
    for i, file in enumerate(document["files"]):
        for name in (file["file_name"], *Path(file["folder"]).parts):
            # The entry may be malicious: a name must not leave the output folder.
            if name in ("", ".", "..") or "/" in name:
                raise ValueError(f"no name of a file: {name!r}")
        data = made.files[f"{i}/{file['file_name']}"]
        content = partial(bytes, data)
        files.append(ArtifactFile(KINDS[file["kind"]], file["file_name"], content, file["folder"]))
    return FoundBuild(
        tuple(files),
        tuple(map(_warning, document["warnings"])),
        document["manifest"],
        document["explanation"],
    )


def _warning_document(warning: BuildWarning) -> dict[str, Any]:
    place = warning.place
    return {
        "name": warning.name,
        "message": warning.message,
        "place": None if place is None else [place.file, place.line, place.column],
        "excerpt": warning.excerpt,
        "notes": warning.notes,
        "is_sure": warning.is_sure,
    }


def _warning(document: Mapping[str, Any]) -> BuildWarning:
    place: Sequence[Any] | None = document["place"]
    return BuildWarning(
        document["name"],
        document["message"],
        None if place is None else Place(*place),
        document["excerpt"],
        tuple(document["notes"]),
        document["is_sure"],
    )


def _has_places(found: FoundBuild) -> bool:
    """Whether the result contains a place in the input, which differs for another input with the
    same module."""
    said = json.dumps([_warning_document(warning) for warning in found.warnings]).encode()
    if found.warnings and (any(w.place for w in found.warnings) or PLACE.search(said)):
        return True
    return any(PLACE.search(file.content()) for file in found.files)
