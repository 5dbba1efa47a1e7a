"""The plan of a lowering: passes in order, each with its reason, chosen by the input's levels.

A plan is what `--explain` prints and `--pipeline` takes back: passes of MLIR, and of aotc's own
(`aotc-...`, see `aotc.lower.passes.own`), as text.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from aotc.errors import InputError
from aotc.lower.plan.levels import Level

_OPENING, _CLOSING = "builtin.module(", ")"


class Step(Struct, frozen=True):
    """One pass, as a pipeline spells it, and why it is there."""

    text: str
    reason: str = ""

    @property
    def name(self) -> str:
        return self.text.partition("{")[0]

    @property
    def options(self) -> dict[str, str]:
        """`{block=32x8 memory=auto}` of one of aotc's own passes."""
        words = self.text.partition("{")[2].removesuffix("}").split()
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    @property
    def is_own(self) -> bool:
        return self.text.startswith("aotc-")


def _steps(reason: str, *texts: str) -> tuple[Step, ...]:
    return tuple(Step(text, reason if i == 0 else "") for i, text in enumerate(texts))


SCHEDULE = _steps(
    "the module's own schedule is run, and done with",
    "transform-interpreter{entry-point=__transform_main}",
    "aotc-erase-schedules",
)
ERASE_SCHEDULES = _steps("no sequence is the main one", "aotc-erase-schedules")

_LOOP_STEPS = _steps("a loop whose step is not positive is a failure", "aotc-assert-steps")
_MARKS = _steps(
    "functions that say what runs in parallel keep their other loops as they are; blocks that "
    "loops ask for are noted",
    "aotc-mark-parallel",
)
_TOSA = _steps(
    "tosa becomes linalg on tensors",
    "func.func(tosa-optional-decompositions,canonicalize,tosa-infer-shapes,"
    "tosa-make-broadcastable)",
    "func.func(tosa-to-linalg-named,canonicalize,tosa-layerwise-constant-fold)",
    "func.func(tosa-make-broadcastable)",
    "func.func(tosa-to-linalg,tosa-to-arith{include-apply-rescale=1},tosa-to-tensor,tosa-to-scf)",
)
_DECOMPOSITION = _steps(
    "operations that are made of others (softmax, pack, pad, gather, contract) become these",
    "aotc-decompose",
)
_SIZES = _steps(
    "what operations expect of sizes is proven, or checked when the entry is called",
    "aotc-check-sizes",
)
_TENSORS = (
    *_steps(
        "tensors that entries take are the caller's, and only read; those that they return are "
        "remembered",
        "aotc-mark-tensors",
    ),
    *_steps(
        "what is computed from constants alone is computed now",
        "inline",
        # Sizes are not negative: what asserts it is gone.
        "int-range-optimizations",
        "canonicalize",
        "cse",
        # Equal sizes are one value, which tells what a view puts together and parts.
        "aotc-expand-reshapes",
        "canonicalize",
        "cse",
        "aotc-settle-sizes",
        "canonicalize",
        "aotc-trim-windows",
        "func.func(convert-elementwise-to-linalg,linalg-fold-unit-extent-dims)",
        "func.func(linalg-generalize-named-ops)",
        # Two transposes of one weight become one, which is then the weight's only use.
        "cse",
    ),
    *_steps(
        "attention is one function, in front of which a kernel can be called: while its operations "
        "are as they were written, and before its mask is a constant of its size",
        # What several layers begin from is each one's own.
        "aotc-separate-fills",
        "aotc-outline-attention",
    ),
    *_steps("", "aotc-fold-constants"),
    *_steps(
        "chains of elementwise operations become one; products take in none that they would repeat",
        "aotc-hold-apart",
        "func.func(linalg-fuse-elementwise-ops)",
        # Fusion asks what it makes for its sizes, which are uses that keep it from going on.
        "resolve-ranked-shaped-type-result-dims",
        "canonicalize",
        "func.func(linalg-fuse-elementwise-ops)",
        "aotc-let-go",
        "canonicalize",
        # Fusion brings shapes with ones back, to have all of one rank.
        "func.func(linalg-fold-unit-extent-dims)",
        "canonicalize",
        "cse",
    ),
    *_steps("each sum has its own tensor of zeros, to fill it itself", "aotc-separate-fills"),
    *_steps(
        "tensors become buffers, written in place where nobody reads the old value",
        "eliminate-empty-tensors",
        "empty-tensor-to-alloc-tensor",
        "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
        "function-boundary-type-conversion=identity-layout-map}",
        "drop-equivalent-buffer-results",
    ),
    *_steps(
        "results of known shape become arguments, which the entry writes",
        "aotc-return-in-arguments",
    ),
    *_steps(
        "buffers are freed after their last use",
        "canonicalize",
        "cse",
        "buffer-deallocation-pipeline",
        "convert-bufferization-to-memref",
    ),
    *_steps(
        "what is copied is copied by kernels, as it is they that use it", "aotc-parallelize-copies"
    ),
)
_LINALG = (
    *_steps(
        "operands of one operation have sizes in common: noted, for its loop will ask one alone",
        "func.func(linalg-generalize-named-ops)",
        "aotc-assert-sizes",
    ),
    *_steps("attention has a kernel of its own on some GPUs", "aotc-choose-attention-kernels"),
    *_steps(
        "products of matrices have kernels of their own on GPUs, beside the loops",
        "aotc-choose-product-kernels",
    ),
    *_steps(
        "linalg on buffers becomes loops, parallel along what is no reduction",
        "func.func(convert-linalg-to-parallel-loops)",
        "canonicalize",
    ),
    *_steps("sizes that are equal are one value", "aotc-unify-sizes", "canonicalize", "cse"),
)
_LOOPS = (
    *_steps(
        "loops that say nothing of it are parallel where they can be",
        "aotc-parallelize-loops",
    ),
    *_steps("scf.forall becomes scf.parallel", "func.func(scf-forall-to-parallel)"),
    *_steps(
        "affine loops become scf loops, and vector reductions what they are made of: before there "
        "are kernels",
        "func.func(lower-affine,lower-vector-mask,lower-vector-multi-reduction)",
    ),
    *_steps(
        "loops mapped by hand (gpu.loop_dim_map) become launches, before they are merged",
        "convert-parallel-loops-to-gpu",
    ),
    *_steps(
        "nested parallel loops become one of more dimensions",
        "func.func(lower-affine)",
        "canonicalize",
        "func.func(loop-invariant-code-motion)",
        "canonicalize",
    ),
)
_CLEANING = _steps("", "canonicalize", "cse")
_OUTLINING = (
    *_steps(
        "large constants are handed to kernels, and vectors computed in them",
        "aotc-hoist-globals",
        "aotc-sink-vectors",
    ),
    *_steps(
        "launches become kernels; sizes are computed in them rather than passed",
        "gpu-launch-sink-index-computations",
        "gpu-kernel-outlining",
        "symbol-dce",
        "canonicalize",
        "cse",
    ),
    *_steps("kernels that aotc outlined share one image", "aotc-merge-kernels"),
)
_LAST_OWN = "aotc-place-memory"
_PLACEMENT = (
    *_steps("kernels get names that PTX can spell", "aotc-spell-kernels"),
    *_steps(
        "what makes allocations and copies is expanded, for placement to see them",
        "expand-realloc",
        "aotc-expand-copies",
    ),
    *_steps("the buffers of kernels go where the GPU can reach them", _LAST_OWN),
)


def plan_for(
    levels: Iterable[Level], *, block: tuple[int, ...] | None, memory: str
) -> tuple[Step, ...]:
    """The steps for a module of these levels; `block` and `memory` as the user gave them."""
    has = set(levels)
    steps: list[Step] = [*(_LOOP_STEPS if Level.SCF in has else ()), *_MARKS]
    if Level.TOSA in has:
        steps += _TOSA
    if has & {Level.TENSORS, Level.LINALG, Level.VECTOR}:
        steps += _DECOMPOSITION
    steps += _SIZES
    if Level.TENSORS in has:
        steps += _TENSORS
    if has & {Level.TENSORS, Level.LINALG, Level.TOSA}:
        steps += _LINALG
    size = "x".join(map(str, block)) if block else ""
    mapping = f"aotc-map-parallel-loops{{block={size}}}" if size else "aotc-map-parallel-loops"
    steps += _LOOPS
    steps += _steps("what is left of parallel loops becomes launches", mapping)
    steps += _CLEANING
    steps += _OUTLINING
    steps += [
        step
        if step.name != _LAST_OWN or memory == "auto"
        else Step(f"{_LAST_OWN}{{memory={memory}}}", step.reason)
        for step in _PLACEMENT
    ]
    return tuple(steps)


def plan_text(steps: Iterable[Step]) -> str:
    """The plan as `--pipeline` takes it: a line for each pass, the reasons as comments."""
    lines = []
    for step in steps:
        if step.reason:
            lines.append(f"  // {step.reason}")
        lines.append(f"  {step.text},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([_OPENING, *lines, _CLOSING])


def parse_plan(text: str) -> tuple[Step, ...]:
    """The steps of `builtin.module(...)`, with `//` comments or without. Raises InputError."""
    plain = " ".join(line.partition("//")[0].strip() for line in text.splitlines()).strip()
    if not plain.startswith(_OPENING) or not plain.endswith(_CLOSING):
        raise InputError(f"--pipeline expects 'builtin.module(...)', and got '{text.strip()}'.")
    return tuple(Step(part) for part in _split(plain[len(_OPENING) : -len(_CLOSING)]) if part)


def with_placement(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The user's steps, and what every module needs behind them, unless they have it."""
    if any(step.name == _LAST_OWN for step in steps):
        return steps
    return (*steps, *_PLACEMENT)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no parentheses or braces."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
