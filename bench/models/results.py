"""What was measured: a result for each model, batch, engine and number of threads, in a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.models.engines import OURS


@dataclass(frozen=True)
class Result:
    """`wall` is the median of the milliseconds of a call, `cpu` the least of its milliseconds of
    processors; `failure` says why there are none. `build` are CPU seconds of export and build, and
    `size` is the MiB of the artifact."""

    model: str
    batch: int
    threads: int
    engine: str
    failure: str | None = None
    error: float | None = None
    wall: float | None = None
    cpu: float | None = None
    build: float | None = None
    size: float | None = None

    def file(self, folder: Path) -> Path:
        return folder / f"{self.model}.b{self.batch}.{self.engine}.t{self.threads}.json"

    def save(self, folder: Path) -> None:
        path = self.file(folder)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self), indent=1) + "\n")
        part.rename(path)


def load_all(folder: Path) -> list[Result]:
    return [Result(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


@dataclass(frozen=True)
class Row:
    """The results of one model, batch and number of threads, by the engine."""

    model: str
    batch: int
    threads: int
    results: Mapping[str, Result]

    def ratio(self, measure: str) -> float | None:
        """aotc's milliseconds in those of the fastest other engine."""
        ours = getattr(self.results.get(OURS), measure, None)
        others = [getattr(one, measure) for name, one in self.results.items() if name != OURS]
        known = [value for value in others if value is not None]
        return ours / min(known) if known and ours is not None else None


def rows(results: Iterable[Result], models: Iterable[str]) -> list[Row]:
    """Those of these models, in their order, by the number of threads and the batch."""
    order = {name: number for number, name in enumerate(models)}
    found: dict[tuple[int, int, str], dict[str, Result]] = {}
    for one in results:
        if one.model in order:
            found.setdefault((one.threads, one.batch, one.model), {})[one.engine] = one
    keys = sorted(found, key=lambda key: (*key[:2], order[key[2]]))
    return [Row(model, batch, threads, found[threads, batch, model])
            for threads, batch, model in keys]  # fmt: skip


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(sum(logs) / len(logs)) if (logs := [math.log(one) for one in values]) else 1.0


def without_folders(message: str) -> str:
    """A message without folders of this machine, and without a terminal's colors, for a page."""
    return re.sub(r"(/[\w.+-]+)+/(?=[\w.-]+)|\x1b\[\d*m", "", message)
