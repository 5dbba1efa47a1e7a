"""Builds the models, compares them with PyTorch, and writes the table of docs/models.md.

    python -m tests.frontends.zoo.run                  # all, where there is no result yet
    python -m tests.frontends.zoo.run bert gpt2 --again
    python -m tests.frontends.zoo.run --table          # the table alone, of what there is

Each is built in a process of its own, which has a time-out and a limit of memory; all of them with
one cache, in which a model finds the kernels that it has in common with those before it. Its
result is a file in build/models; one of the same sources of aotc is kept. Exit code 1 where a model
is wrong, crashes, hangs or ends in another error than a refusal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from frontends.zoo.catalogue import MODELS, VARIANTS, load
from frontends.zoo.table import write_table

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "models"
PAGE = ROOT / "docs" / "models.md"
# One thread, as PyTorch is given: times of two on a busy machine say little.
_ENVIRONMENT = {"AOTC_CACHE": str(FOLDER / "cache"), "AOTC_CPU_THREADS": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help="their names (all)")
    parser.add_argument("--variant", choices=VARIANTS, help="one build alone (all)")
    parser.add_argument("--again", action="store_true", help="also where there is a result")
    parser.add_argument("--keep", action="store_true", help="keep results of other sources of aotc")
    parser.add_argument("--seconds", type=float, default=900, help="the time-out of a model (900)")
    parser.add_argument("--memory", type=float, default=16, help="its GiB of address space (16)")
    parser.add_argument("--table", action="store_true", help="write the table alone")
    parser.add_argument("--judge", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    names = list(load())
    unknown = [name for name in options.models if name not in names]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}: there are {', '.join(names)}")
    if options.judge:
        return _judge(options.models[0], options.variant, Path(options.judge))
    if not options.table:
        _run(options, options.models or names)
    found = list(results())
    counts = {variant: Counter(one["kind"] for one in found if one["variant"] == variant)
              for variant in VARIANTS}  # fmt: skip
    for variant, kinds in counts.items():
        print(f"{variant}: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")
    if not options.models:
        write_table(PAGE, names, found)
    return int(any(one["is_fault"] for one in found if one["name"] in (options.models or names)))


def results() -> Iterator[dict[str, Any]]:
    """Those of all models that there are now."""
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text())
        if result["name"] in MODELS:
            yield result


def _run(options: Any, names: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = _sources()
    variants = (options.variant,) if options.variant else VARIANTS
    for name in names:
        for variant in variants:
            if VARIANTS[variant].format not in MODELS[name].formats:
                continue
            path = FOLDER / f"{name}.{variant}.json"
            if not options.again and _is_kept(path, None if options.keep else sources):
                continue
            result = _started(name, variant, options.seconds, options.memory)
            result |= {"name": name, "variant": variant, "sources": sources}
            path.write_text(json.dumps(result, indent=1) + "\n")
            line = result["message"].splitlines()[0][:150] if result["message"] else ""
            print(f"{name} ({variant}): {result['kind']} {line}", flush=True)


def _is_kept(path: Path, sources: str | None) -> bool:
    """Whether there is a result, of these sources if they are given."""
    if not path.exists():
        return False
    return sources is None or json.loads(path.read_text())["sources"] == sources


def _sources() -> str:
    """What a result depends on: aotc, its runtime, and the models."""
    digest = hashlib.sha256()
    for folder in ("aotc", "runtime_c", "templates", "tests/frontends/zoo"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _started(name: str, variant: str, seconds: float, memory: float) -> dict[str, Any]:
    """The verdict of a process of its own, or what became of it."""

    def limit() -> None:
        bytes_ = int(memory * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "verdict.json"
        command = [sys.executable, "-m", "tests.frontends.zoo.run", name, "--variant", variant]
        child = subprocess.Popen(
            [*command, "--judge", str(file)],
            cwd=ROOT,
            env={**os.environ, **_ENVIRONMENT, "TMPDIR": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=limit,
        )
        try:
            _, stderr = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return _fault("hang", f"not done after {seconds:.0f} s")
        if file.exists():
            return json.loads(file.read_text())
    lines = [line for line in stderr.splitlines() if line.strip()]
    return _fault("crash", f"exit code {child.returncode}: {lines[-1] if lines else ''}")


def _fault(kind: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "message": message, "is_fault": True}


def _judge(name: str, variant: str, file: Path) -> int:
    from frontends.zoo.judge import Verdict, as_dict, judge

    with tempfile.TemporaryDirectory() as folder:
        try:
            verdict = judge(MODELS[name], Path(folder), VARIANTS[variant])
        except Exception as error:
            verdict = Verdict("error", f"{type(error).__name__}: {error}")
    part = file.with_suffix(".part")
    part.write_text(json.dumps({**as_dict(verdict), "is_fault": verdict.is_fault}))
    part.rename(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
