"""The plan of a lowering: passes in order, each with its reason, chosen by the input's levels.

A plan is what `--explain` prints and `--pipeline` takes back, as text.
"""

from __future__ import annotations

from collections.abc import Iterable

from aotc.errors import InputError, near_names
from aotc.lower.passes.assert_shared_memory import AssertSharedMemory
from aotc.lower.passes.assert_sizes import AssertSizes
from aotc.lower.passes.assert_steps import AssertSteps
from aotc.lower.passes.assign_layouts import AssignLayouts
from aotc.lower.passes.base import OwnPass, Pass, Upstream
from aotc.lower.passes.cast_parallel_results import CastParallelResults
from aotc.lower.passes.check_sizes import CheckSizes
from aotc.lower.passes.choose_attention_kernels import ChooseAttentionKernels
from aotc.lower.passes.choose_fourier_kernels import ChooseFourierKernels
from aotc.lower.passes.choose_matmul_kernels import ChooseMatmulKernels
from aotc.lower.passes.decompose import Decompose
from aotc.lower.passes.erase_fusion_barriers import EraseFusionBarriers
from aotc.lower.passes.erase_schedules import EraseSchedules
from aotc.lower.passes.expand_checks import ExpandChecks
from aotc.lower.passes.expand_copies import ExpandCopies
from aotc.lower.passes.expand_mpi import ExpandMpi
from aotc.lower.passes.expand_reshapes import ExpandReshapes
from aotc.lower.passes.expand_switches import ExpandSwitches
from aotc.lower.passes.fold_constants import FoldConstants
from aotc.lower.passes.free_buffers import FreeBuffers
from aotc.lower.passes.fuse_concatenations import FuseConcatenations
from aotc.lower.passes.fuse_dequantization import FuseDequantization
from aotc.lower.passes.hoist_globals import HoistGlobals
from aotc.lower.passes.insert_fusion_barriers import InsertFusionBarriers
from aotc.lower.passes.join_matmuls import JoinMatmuls
from aotc.lower.passes.map_parallel_loops import MapParallelLoops
from aotc.lower.passes.mark_parallel import MarkParallel
from aotc.lower.passes.mark_tensors import MarkTensors
from aotc.lower.passes.merge_kernels import MergeKernels
from aotc.lower.passes.multiply_quantized import MultiplyQuantized
from aotc.lower.passes.narrow_integers import NarrowIntegers
from aotc.lower.passes.order_loops import OrderLoops
from aotc.lower.passes.outline_attention import OutlineAttention
from aotc.lower.passes.outline_library import OutlineLibrary
from aotc.lower.passes.parallelize_copies import ParallelizeCopies
from aotc.lower.passes.parallelize_loops import ParallelizeLoops
from aotc.lower.passes.place_memory import PlaceMemory
from aotc.lower.passes.place_pieces import PlacePieces
from aotc.lower.passes.pool_quantized import PoolQuantized
from aotc.lower.passes.raise_contractions import RaiseContractions
from aotc.lower.passes.relax_saturation import RelaxSaturation
from aotc.lower.passes.rename_kernels import RenameKernels
from aotc.lower.passes.return_in_arguments import ReturnInArguments
from aotc.lower.passes.separate_casts import SeparateCasts
from aotc.lower.passes.separate_fills import SeparateFills
from aotc.lower.passes.simplify_sizes import SimplifySizes
from aotc.lower.passes.sink_conversions import SinkConversions
from aotc.lower.passes.sink_transposes import SinkTransposes
from aotc.lower.passes.sink_vectors import SinkVectors
from aotc.lower.passes.size_results import SizeResults
from aotc.lower.passes.slice_elementwise import SliceElementwise
from aotc.lower.passes.sparsify import Sparsify
from aotc.lower.passes.tabulate_bytes import TabulateBytes
from aotc.lower.passes.trim_windows import TrimWindows
from aotc.lower.passes.unify_sizes import UnifySizes
from aotc.lower.passes.verify_operations import Part, VerifyOperations
from aotc.lower.passes.write_into_arguments import WriteIntoArguments
from aotc.lower.plan.levels import Level
from aotc.pipeline_text import split_list
from aotc.request import MemoryMode

# All of aotc's own passes: each of those that are imported above has its place in a plan.
OWN_PASSES = tuple(sorted(OwnPass.__subclasses__(), key=lambda one: one.name))
_OPENING, _CLOSING = "builtin.module(", ")"


def _upstream(reason: str, *texts: str) -> tuple[Upstream, ...]:
    """Passes of MLIR that have one reason, which the first of them carries."""
    return tuple(Upstream(text, "" if i else reason) for i, text in enumerate(texts))


_CANONICALIZE = Upstream("canonicalize")
_CSE = Upstream("cse")
_FUSE = Upstream("func.func(linalg-fuse-elementwise-ops)")
_FOLD_UNIT_EXTENTS = Upstream("func.func(linalg-fold-unit-extent-dims)")

SCHEDULE: tuple[Pass, ...] = (
    Upstream(
        "transform-interpreter{entry-point=__transform_main}",
        "the module's own schedule is run, and done with",
    ),
    EraseSchedules(),
)
ERASE_SCHEDULES: tuple[Pass, ...] = (EraseSchedules(reason="no sequence is the main one"),)

_TOSA = _upstream(
    "tosa becomes linalg on tensors",
    "func.func(tosa-optional-decompositions,canonicalize,tosa-infer-shapes,"
    "tosa-make-broadcastable)",
    "func.func(tosa-to-linalg-named,canonicalize,tosa-layerwise-constant-fold)",
    "func.func(tosa-make-broadcastable)",
    # tosa-to-linalg fails on a tosa.scatter, which tosa-to-scf converts.
    "func.func(tosa-to-scf,tosa-to-linalg,tosa-to-arith{include-apply-rescale=1},tosa-to-tensor)",
)
_RESULTS: tuple[Pass, ...] = (
    WriteIntoArguments(),
    Upstream("drop-equivalent-buffer-results"),
    ReturnInArguments(),
)
_FREEING = _upstream(
    "buffers are freed after their last use",
    "canonicalize",
    "cse",
    "buffer-deallocation-pipeline",
    "convert-bufferization-to-memref",
)
_TENSORS: tuple[Pass, ...] = (
    MarkTensors(),
    ExpandSwitches(),
    Upstream("inline", "what is computed from constants alone is computed now"),
    CastParallelResults(),
    # Sizes are not negative: what asserts it is gone.
    Upstream("int-range-optimizations"),
    _CANONICALIZE,
    _CSE,
    ExpandReshapes(),
    _CANONICALIZE,
    _CSE,
    SimplifySizes(),
    _CANONICALIZE,
    SizeResults(),
    TrimWindows(),
    FuseConcatenations(),
    SinkTransposes(),
    *_upstream(
        "named operations become linalg.generic, without loops of one iteration",
        "func.func(convert-elementwise-to-linalg,linalg-fold-unit-extent-dims)",
        "func.func(linalg-generalize-named-ops)",
        # Transposes are no generics before. Attention's are to be of heads, rows and columns alone.
        "func.func(linalg-fold-unit-extent-dims)",
        "canonicalize",
        # Two transposes of one weight become one, which is then the weight's only use.
        "cse",
    ),
    OrderLoops(),
    MultiplyQuantized(),
    PoolQuantized(),
    NarrowIntegers(),
    RelaxSaturation(),
    # What several layers begin from is each one's own, before their operations are outlined.
    SeparateFills(),
    SinkConversions(),
    OutlineAttention(),
    JoinMatmuls(),
    FuseDequantization(),
    FoldConstants(),
    SeparateCasts(),
    SliceElementwise(),
    InsertFusionBarriers(),
    _FUSE,
    # Fusion asks what it makes for its sizes, which are uses that keep it from going on.
    Upstream("resolve-ranked-shaped-type-result-dims"),
    _CANONICALIZE,
    _FUSE,
    EraseFusionBarriers(),
    # Where reshapes were fused, indices are computed by affine maps of symbols that are none.
    Upstream("func.func(lower-affine)"),
    _CANONICALIZE,
    # Fusion brings shapes with ones back, to have all of one rank.
    TrimWindows(),
    _FOLD_UNIT_EXTENTS,
    _CANONICALIZE,
    _CSE,
    TabulateBytes(),
    SeparateFills(reason="each sum has its own tensor of zeros, to fill it itself"),
    PlacePieces(),
    *_upstream(
        "tensors become buffers, written in place where nobody reads the old value",
        "eliminate-empty-tensors",
        "empty-tensor-to-alloc-tensor",
        "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
        "function-boundary-type-conversion=identity-layout-map}",
    ),
    *_RESULTS,
    *_FREEING,
    ParallelizeCopies(),
)
_SPARSE: tuple[Pass, ...] = (
    MarkTensors(),
    Sparsify(),
    *_RESULTS,
    Upstream("expand-realloc{emit-deallocs=false}", "the old memory is freed as other buffers are"),
    *_FREEING,
)
_LINALG: tuple[Pass, ...] = (
    Upstream("func.func(linalg-generalize-named-ops)", "all of linalg has one form"),
    AssignLayouts(),
    OrderLoops(),
    AssertSizes(),
    ChooseAttentionKernels(),
    ChooseFourierKernels(),
    ChooseMatmulKernels(),
    OutlineLibrary(),
    *_upstream(
        "linalg on buffers becomes loops, parallel along what is no reduction",
        "func.func(convert-linalg-to-parallel-loops)",
        "canonicalize",
    ),
    UnifySizes(),
    _CANONICALIZE,
    _CSE,
)
_LOOPS: tuple[Pass, ...] = (
    ParallelizeLoops(),
    Upstream("func.func(scf-forall-to-parallel)", "scf.forall becomes scf.parallel"),
    Upstream(
        "func.func(lower-affine,lower-vector-mask,lower-vector-multi-reduction)",
        "affine loops become scf loops, and vector reductions what they are made of: before there "
        "are kernels",
    ),
    Upstream(
        "convert-parallel-loops-to-gpu",
        "loops mapped by hand (gpu.loop_dim_map) become launches, before they are merged",
    ),
    *_upstream(
        "nested parallel loops become one of more dimensions",
        "func.func(lower-affine)",
        "canonicalize",
        "func.func(loop-invariant-code-motion)",
        "canonicalize",
    ),
)
_OUTLINING: tuple[Pass, ...] = (
    HoistGlobals(),
    SinkVectors(),
    *_upstream(
        "launches become kernels; sizes are computed in them rather than passed",
        "gpu-launch-sink-index-computations",
        "gpu-kernel-outlining",
        "symbol-dce",
        "canonicalize",
        "cse",
    ),
    MergeKernels(),
)


def _placement(memory: MemoryMode) -> tuple[Pass, ...]:
    """What every module needs at the end."""
    return (
        RenameKernels(),
        Upstream("expand-realloc", "what makes allocations is expanded, for placement to see them"),
        ExpandCopies(),
        PlaceMemory(memory=memory),
    )


def plan_for(
    levels: Iterable[Level],
    *,
    block: tuple[int, ...] | None,
    memory: MemoryMode,
    verify: bool = False,
) -> tuple[Pass, ...]:
    """The passes for a module of these levels; `block`, `memory` and `verify` as the user gave
    them."""
    has = set(levels)
    passes: list[Pass] = [
        *([ExpandMpi()] if Level.PROCESSES in has else []),
        *([AssertSteps()] if Level.SCF in has else []),
        # Kernels of the library take views of more than they use of the memory.
        *([AssertSharedMemory()] if has & {Level.LAUNCH, Level.KERNELS} else []),
        MarkParallel(),
    ]
    if Level.TOSA in has:
        passes += _TOSA
    if verify and Level.SPARSE not in has:
        passes.append(VerifyOperations())
    if has & {Level.TENSORS, Level.LINALG, Level.VECTOR, Level.LAUNCH, Level.KERNELS}:
        passes.append(Decompose())
    if Level.SPARSE in has:
        passes += _SPARSE
        # Arrays of levels are asserted by now to be as long as their positions say.
        passes += [VerifyOperations()] if verify else []
    else:
        passes.append(CheckSizes())
        passes += _TENSORS if Level.TENSORS in has else (SizeResults(),)
    # A block that is asked for is one of loops.
    raises = Level.CONTRACTION in has and block is None
    if raises:
        passes.append(RaiseContractions())
    if raises or has & {Level.SPARSE, Level.TENSORS, Level.LINALG, Level.TOSA}:
        passes += _LINALG
    passes += _LOOPS
    if verify:
        reason = "--verify: an index out of bounds is a failure"
        passes += (VerifyOperations(part=Part.ACCESSES, reason=reason), _CANONICALIZE)
    passes += (MapParallelLoops(block=block), _CANONICALIZE, _CSE, ExpandChecks())
    if Level.ASYNC in has:
        frees = "buffer-deallocation-pipeline"
        passes = [FreeBuffers() if one.text == frees else one for one in passes]
    return (*passes, *_OUTLINING, *_placement(memory))


def plan_text(passes: Iterable[Pass]) -> str:
    """The plan as `--pipeline` takes it: a line for each pass, the reasons as comments."""
    lines = []
    for one in passes:
        if one.reason:
            lines.append(f"  // {one.reason}")
        lines.append(f"  {one.text},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([_OPENING, *lines, _CLOSING])


def parse_plan(text: str) -> tuple[Pass, ...]:
    """The passes of `builtin.module(...)`, with `//` comments or without. Raises InputError."""
    plain = " ".join(line.partition("//")[0].strip() for line in text.splitlines()).strip()
    if not plain.startswith(_OPENING) or not plain.endswith(_CLOSING):
        raise InputError(f"--pipeline expects 'builtin.module(...)', and got '{text.strip()}'.")
    parts = filter(None, split_list(plain[len(_OPENING) : -len(_CLOSING)]))
    return tuple(
        _parse_own_pass(part) if part.startswith("aotc-") else Upstream(part) for part in parts
    )


def _parse_own_pass(text: str) -> OwnPass:
    """The pass that a pipeline spells `aotc-NAME{option=value ...}`. Raises InputError."""
    name, _, inside = text.partition("{")
    by_name = {one.name: one for one in OWN_PASSES}
    if name not in by_name:
        near = near_names(name, by_name, most=3, cutoff=0.75)
        hint = f" Near names: {', '.join(near)}." if near else ""
        raise InputError(f"Unknown pass '{name}'.{hint} aotc's own are: {', '.join(by_name)}.")
    words = [word.partition("=") for word in inside.removesuffix("}").split()]
    return by_name[name].parse({option: value for option, _, value in words})


def with_placement(passes: tuple[Pass, ...], memory: MemoryMode) -> tuple[Pass, ...]:
    """The user's passes, and what every module needs behind them, unless they have it. Raises
    InputError for passes that have it, and another mode than the default."""
    if any(one.name == PlaceMemory.name for one in passes):
        if memory is not MemoryMode.AUTO:
            raise InputError(
                f"--memory {memory.value}: the pipeline places memory itself: give the mode to its "
                f"pass, {PlaceMemory.name}."
            )
        return passes
    return (*passes, *_placement(memory))
