"""PyTorch's figures for what bandwidth.c measures, where there is PyTorch: a line of JSON each."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable

try:
    torch = importlib.import_module("torch")
except ImportError:
    sys.exit("by_torch: there is no PyTorch here")

ROUNDS = 21
POINTS, SUMMED, ROWS, LARGE_ROWS = 1 << 28, 1 << 30, 8192, 16384


def report(name: str, run: Callable[[], object], count: int) -> None:
    """Times `run`, which moves `count` f32."""
    times = []
    for _ in range(ROUNDS + 3):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times[3:])
    rate = 1e-9 * 4 * count / seconds
    print(
        json.dumps(
            {"name": f"torch: {name}", "us": round(1e6 * seconds, 1), "gb_per_s": round(rate)}
        )
    )


def main() -> None:
    x = torch.rand(SUMMED, device="cuda")
    y, z, out = (torch.rand(POINTS, device="cuda") for _ in range(3))
    vector, matrix = x[:POINTS], x[: ROWS * ROWS].view(ROWS, ROWS)
    large = vector.view(LARGE_ROWS, LARGE_ROWS)
    into = out.view(LARGE_ROWS, LARGE_ROWS)
    report("copy", lambda: out.copy_(vector), 2 * POINTS)
    report("a*x+y", lambda: torch.add(y, vector, alpha=1.5, out=out), 3 * POINTS)
    report("relu(a*b+c)", lambda: torch.relu_(torch.addcmul(z, vector, y, out=out)), 4 * POINTS)
    report("softmax", lambda: torch.softmax(matrix, 1), 2 * ROWS * ROWS)
    report(
        "layer norm",
        lambda: torch.nn.functional.layer_norm(matrix, (ROWS,), y[:ROWS], z[:ROWS]),
        2 * ROWS * ROWS,
    )
    report("sum", lambda: x.sum(), SUMMED)
    report("transpose", lambda: into.copy_(large.T), 2 * POINTS)


if __name__ == "__main__":
    main()
