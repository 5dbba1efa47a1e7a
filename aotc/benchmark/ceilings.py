"""Measured limits of a device: the bandwidth of a copy, and the rate of f32 multiply-adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aotc.benchmark.programs import Plan, run_programs
from aotc.benchmark.results import Ceilings, Row
from aotc.errors import ToolError
from aotc.processes.record import temporary_folder

# Per element: chains of multiply-adds, unrolled, so that a CPU's code is vectorized, too.
_CHAINS, _LINKS = 8, 32
_FLOPS_EACH = 2 * _CHAINS * _LINKS
# More elements than caches hold; for multiply-adds, enough to fill a GPU many times.
_COPIED = {"cpu": 1 << 25, "gpu": 1 << 28}
_COMPUTED = {"cpu": 1 << 20, "gpu": 1 << 26}

_ENTRY = """
func.func @{name}({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.parallel (%i) = (0) to (symbol(%n)) {{
    %v0 = affine.load %x[%i] : memref<?xf32>
    {lines}
  }}
  return
}}
"""


def measure_ceilings(device: str | None, *, on_cpu: bool) -> Ceilings:
    """Builds the two programs and runs them on the device. Raises ToolError if they fail."""
    from aotc.api import build

    kind = "cpu" if on_cpu else "gpu"
    with temporary_folder() as folder:
        chips = ("sm_80",) if on_cpu else ()
        program = build(_module(), name="ceilings", chips=chips, out=f"{folder}/ceilings").path
        copied = _run(
            program, "copy", device, "--dim", f"x={_COPIED[kind]}", "--dim", f"y={_COPIED[kind]}"
        )
        computed = _run(program, "multiply_add", device, "--dim", f"x={_COMPUTED[kind]}")
    return Ceilings(
        copied.bytes / min(copied.device_ms) / 1e6,
        _FLOPS_EACH * _COMPUTED[kind] / min(computed.device_ms) / 1e6,
    )


def _module() -> str:
    copy = _ENTRY.format(
        name="copy",
        arguments="%x: memref<?xf32>, %y: memref<?xf32>",
        lines="affine.store %v0, %y[%i] : memref<?xf32>",
    )
    return copy + _ENTRY.format(
        name="multiply_add",
        arguments="%x: memref<?xf32>",
        lines="\n    ".join(_multiply_adds()),
    )


def _multiply_adds() -> Iterator[str]:
    """Each chain begins with a different value, so that chains cannot be merged. A multiply-add is
    contracted if the device has an instruction for it (`math.fma` is a call if it has none)."""
    yield "%b = arith.constant 0.999 : f32"
    yield "%c = arith.constant 0.001 : f32"
    for chain in range(1, _CHAINS):
        yield f"%v{chain} = arith.addf %v{chain - 1}, %c : f32"
    heads = [f"%v{chain}" for chain in range(_CHAINS)]
    for link in range(_LINKS):
        for chain, head in enumerate(heads):
            new = f"{chain}_{link}"
            yield f"%m{new} = arith.mulf {head}, %b fastmath<contract> : f32"
            yield f"%a{new} = arith.addf %m{new}, %c fastmath<contract> : f32"
            heads[chain] = f"%a{new}"
    total = heads[0]
    for chain, head in enumerate(heads[1:]):
        yield f"%s{chain} = arith.addf {total}, {head} : f32"
        total = f"%s{chain}"
    yield f"affine.store {total}, %x[%i] : memref<?xf32>"


def _run(program: Path, entry: str, device: str | None, *arguments: str) -> Row:
    plan = Plan((program,), arguments, (entry,), repeat=10, warmup=2, rounds=3, device=device)
    (row,) = run_programs(plan).rows
    if row.failure is not None:
        raise ToolError(f"What the device can do was not measured: {row.failure}")
    return row
