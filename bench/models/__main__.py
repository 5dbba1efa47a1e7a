"""The time of whole models, beside that of other engines on the same cores, or on the same GPU.

    python -m bench.models --device cpu                       # all, where there is no result yet
    python -m bench.models resnet50 gpt2 --batch 1 --threads 1 --again
    python -m bench.models --threads 1 --table                # docs/models.md, of what there is
    python -m bench.models --profile resnet50                 # where aotc's time goes, by kernel
    python -m bench.models --layers --batch 1                 # single products and convolutions

Models have random weights in f32. Beside those that are measured without a name, there are all of
timm and torchvision (`timm.davit_tiny`), and those of others.py. Each engine runs in a process of
its own. First its result is compared with that of eager PyTorch in f64; a wrong one has no time.
Then the engines are called in turns, several rounds. The result of each is a file in
build/bench_models, with the artifacts that were made beside them: interrupted, the command goes on
where it was. `--again` makes and measures again, as is needed after a change of aotc (with
`--engines aotc`, its own alone).

`--device cuda` makes a folder for a machine with a GPU and PyTorch, and the table of what its `run`
wrote there (gpu/measure.py):

    python -m bench.models --device cuda --out build/gpu-models --batch 1 8
    build/gpu-models/run --json results.json
    python -m bench.models --device cuda --table --results results.json

Exit code 1: aotc failed, or was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.models import catalogue, others, profile
from bench.models.catalogue import ALL as KNOWN
from bench.models.engines import ALL, ENGINES, OURS, PROFILED, Work
from bench.models.gpu import bundle as gpu
from bench.models.gpu import catalogue as gpu_catalogue
from bench.models.gpu import table as gpu_table
from bench.models.gpu.catalogue import MODELS as ON_GPU
from bench.models.layers import LAYERS
from bench.models.models import MODELS
from bench.models.process import Process
from bench.models.results import Result, load_all, rows
from bench.models.table import tables, write_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench_models"
PAGE = ROOT / "docs" / "models.md"
_ENGINES = [name for name in ENGINES if name != "openblas"]


def main() -> int:
    options = _parse(sys.argv[1:])
    if options.device == "cuda":
        return _on_gpu(options)
    if options.profile:
        return _profile(_work(options.profile, options.batch[0], 1), again=options.again)
    if not options.table:
        for model in options.models:
            for batch in options.batch:
                _measure_model(model, batch, options)
    found = [
        row
        for row in rows(load_all(FOLDER), options.models)
        if row.batch in options.batch and row.threads in options.threads
    ]
    if options.table:
        write_table(PAGE, "layers" if options.layers else "models", tables(found))
    print(tables(found))
    return int(any(row.results[OURS].failure for row in found if OURS in row.results))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.models", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    names = ", ".join(KNOWN)
    add("models", nargs="*", metavar="MODEL", help=f"of {names}; default: all models")
    add("--layers", action="store_true", help="without MODEL: all products and convolutions")
    add("--device", choices=["cpu", "cuda"], default="cpu", help="default: cpu")
    add("--dtype", nargs="+", choices=["f16", "f32"], default=["f16", "f32"], help="of cuda")
    add("--out", type=Path, default=ROOT / "build" / "gpu-models", help="of cuda: the folder")
    add("--any-batch", action="store_true", help="of cuda: for any batch, called with these")
    add("--any-size", action="store_true", help="likewise, and for images of any size")
    add("--results", type=Path, nargs="+", default=[], help="of cuda: what its run wrote")
    add("--batch", type=int, nargs="+", default=[1, 8], help="default: 1 8")
    usable = len(os.sched_getaffinity(0))
    add("--threads", type=int, nargs="+", default=[usable], help="default: all usable CPUs")
    add("--engines", nargs="+", choices=ENGINES, default=_ENGINES, help="default: all but openblas")
    add("--rounds", type=int, default=5, help="default: 5")
    add("--seconds", type=float, default=1, help="of an engine in a round (1)")
    add("--again", action="store_true", help="also where there is a result")
    add("--table", action="store_true", help="write docs/models.md of these, and measure nothing")
    add("--profile", metavar="MODEL", help="times of its kernels and of ONNX Runtime's nodes")
    options = parser.parse_args(arguments)
    every = LAYERS if options.layers else ON_GPU if options.device == "cuda" else MODELS
    options.models = options.models or list(every)
    known = [*options.models, *([options.profile] if options.profile else [])]
    there, find = (
        (ON_GPU, gpu_catalogue.find) if options.device == "cuda" else (KNOWN, catalogue.find)
    )
    unknown = [name for name in known if find(name) is None]
    if unknown:
        names = ", ".join([*there, *others.MODELS, "timm.NAME", "torchvision.NAME"])
        parser.error(f"no model {', '.join(unknown)}: there are {names}")
    return options


def _on_gpu(options: argparse.Namespace) -> int:
    if not options.table:
        wanted = options.models, options.dtype, options.batch
        of_any = "size" if options.any_size else "batch" if options.any_batch else ""
        return int(gpu.write(options.out, *wanted, of_any=of_any) > 0)
    found = gpu_table.table(gpu_table.read(options.results))
    write_table(PAGE, "gpu", found)
    print(found)
    return 0


def _work(model: str, batch: int, threads: int) -> Work:
    return Work(model, batch, threads, FOLDER / f"{model}.b{batch}")


def _measure_model(model: str, batch: int, options: argparse.Namespace) -> None:
    made_again: set[Path] = set()
    for threads in options.threads:
        work = _work(model, batch, threads)
        results = [Result(model, batch, threads, engine) for engine in options.engines]
        if not options.again:
            results = [one for one in results if not one.file(FOLDER).exists()]
        if results:
            _prepare(work)
        opened = []
        for result in results:
            artifact = _artifact(work, result.engine)
            again = options.again and artifact not in made_again
            made_again.add(artifact)
            made = _made(work, result.engine, again=again)
            result = replace(
                result,
                failure=made.get("failure"),
                build=made.get("cpu_seconds"),
                size=made.get("size"),
            )
            opened.append((result, artifact))
        for result in _times(work, opened, options.rounds, options.seconds):
            result.save(FOLDER)
            _say(result.file(FOLDER).stem + f": {result.failure or f'{result.wall:.3f} ms'}")


def _profile(work: Work, *, again: bool) -> int:
    """Prints the steps of a call of aotc's library, and those of ONNX Runtime."""
    _prepare(work)
    launches = profile.compile_launches(work.folder)
    for engine in (PROFILED, "onnxruntime"):
        made = _made(work, engine, again=again and engine == PROFILED)
        artifact = _artifact(work, engine)
        if "failure" in made:
            answer = made
        elif engine == PROFILED:
            preload = {"LD_PRELOAD": str(launches)}
            answer = Process("kernels", work, artifact, launches, **preload).ask()
        else:
            answer = Process("nodes", work, artifact).ask()
        if "failure" in answer:
            print(f"{engine}: {answer['failure']}")
            continue
        steps = [profile.Step(*step) for step in answer["steps"]]
        print(profile.report(f"{work.model}, {engine}", steps, answer["seconds"]))
    return 0


def _prepare(work: Work) -> None:
    """Writes the inputs and the expected results, where they are not there."""
    if not (work.folder / "eager_error").exists():
        _say(f"{work.model}, batch {work.batch}: eager PyTorch in f64")
        work.folder.mkdir(parents=True, exist_ok=True)
        answer = Process("reference", work).ask()
        if "failure" in answer:
            raise SystemExit(f"{work.model}: {answer['failure']}")


def _artifact(work: Work, engine: str) -> Path:
    which = ALL[engine]
    threads = f".t{work.threads}" if which.is_for_threads else ""
    return work.folder / f"{engine}{threads}{which.suffix}"


def _made(work: Work, engine: str, *, again: bool) -> dict[str, Any]:
    """Makes the engine's artifact if it is not there: what that took, or its failure."""
    artifact = _artifact(work, engine)
    note = artifact.with_name(f"{artifact.name}.json")
    if note.exists() and not again:
        found: dict[str, Any] = json.loads(note.read_text())
        return found
    if (missing := ALL[engine].missing()) is not None:
        return {"failure": missing}
    _say(f"{work.model}, batch {work.batch}: making {artifact.name}")
    note.unlink(missing_ok=True)
    shutil.rmtree(artifact) if artifact.is_dir() else artifact.unlink(missing_ok=True)
    answer = Process("make", work, engine, artifact).ask()
    if "failure" not in answer:
        files = [artifact] if artifact.is_file() else artifact.rglob("*.so")
        answer["size"] = sum(file.stat().st_size for file in files) / 2**20
    note.write_text(json.dumps(answer))
    return answer


def _times(
    work: Work, opened: Sequence[tuple[Result, Path]], rounds: int, seconds: float
) -> list[Result]:
    """The results with times: all processes wait but the one whose turn it is."""
    done: list[Result] = []
    waiting: list[tuple[Result, Process]] = []
    samples: dict[str, list[tuple[float, float]]] = {}
    for result, artifact in opened:
        if result.failure is not None:
            done.append(result)
            continue
        process = Process("measure", work, result.engine, artifact)
        answer = process.ask()
        if "failure" in answer:
            done.append(replace(result, failure=answer["failure"]))
        else:
            waiting.append((replace(result, error=answer["error"]), process))
            samples[result.engine] = []
    for _ in range(rounds):
        for result, process in waiting:
            samples[result.engine] += process.ask(str(seconds)).get("samples", [])
    for result, process in waiting:
        code = process.end()
        if code or not samples[result.engine]:
            done.append(replace(result, failure=f"its process ended with exit code {code}"))
            continue
        wall, cpu = zip(*samples[result.engine], strict=True)
        done.append(replace(result, wall=1e3 * statistics.median(wall), cpu=1e3 * min(cpu)))
    return done


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
