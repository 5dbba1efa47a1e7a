"""The engines that run a model: aotc and its rivals, each by a module of its own."""

from __future__ import annotations

from bench.models.engines.aotc import Aotc
from bench.models.engines.eager import Eager
from bench.models.engines.engine import Call, Engine, Work
from bench.models.engines.inductor import Inductor
from bench.models.engines.onnx_runtime import OnnxRuntime
from bench.models.engines.openblas import OpenBlas

__all__ = ["ALL", "ENGINES", "OURS", "PROFILED", "Call", "Engine", "Work"]

OURS, PROFILED = "aotc", "aotc_profiled"
ENGINES: dict[str, Engine] = {
    OURS: Aotc(),
    "onnxruntime": OnnxRuntime(),
    "inductor": Inductor(),
    "eager": Eager(),
    "openblas": OpenBlas(),
}
# With those that are built and not timed.
ALL: dict[str, Engine] = {**ENGINES, PROFILED: Aotc("shared")}
