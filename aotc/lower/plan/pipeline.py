"""The plan of a lowering: a sequence of passes with their reasons, chosen by the levels of the
input.

As text, a plan is printed by `--explain` and accepted by `--pipeline`.
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
from aotc.lower.passes.check_tosa import CheckTosa
from aotc.lower.passes.choose_attention_kernels import ChooseAttentionKernels
from aotc.lower.passes.choose_fourier_kernels import ChooseFourierKernels
from aotc.lower.passes.choose_matmul_kernels import ChooseMatmulKernels
from aotc.lower.passes.clone_casts import CloneCasts
from aotc.lower.passes.clone_fills import CloneFills
from aotc.lower.passes.concatenate_in_place import ConcatenateInPlace
from aotc.lower.passes.convert_growing_loops import ConvertGrowingLoops
from aotc.lower.passes.create_lookup_tables import CreateLookupTables
from aotc.lower.passes.create_shape_functions import CreateShapeFunctions
from aotc.lower.passes.decompose_aggregated_ops import DecomposeAggregatedOps
from aotc.lower.passes.erase_fusion_barriers import EraseFusionBarriers
from aotc.lower.passes.erase_schedules import EraseSchedules
from aotc.lower.passes.expand_checks import ExpandChecks
from aotc.lower.passes.expand_copies import ExpandCopies
from aotc.lower.passes.expand_mpi import ExpandMpi
from aotc.lower.passes.expand_reshapes import ExpandReshapes
from aotc.lower.passes.expand_selects import ExpandSelects
from aotc.lower.passes.expand_switches import ExpandSwitches
from aotc.lower.passes.fold_comparisons import FoldComparisons
from aotc.lower.passes.fold_constants import FoldConstants
from aotc.lower.passes.free_buffers import FreeBuffers
from aotc.lower.passes.fuse_concatenations import FuseConcatenations
from aotc.lower.passes.fuse_dequantization import FuseDequantization
from aotc.lower.passes.fuse_horizontal_matmuls import FuseHorizontalMatmuls
from aotc.lower.passes.fuse_quantized_matmuls import FuseQuantizedMatmuls
from aotc.lower.passes.fuse_quantized_pools import FuseQuantizedPools
from aotc.lower.passes.hoist_globals import HoistGlobals
from aotc.lower.passes.insert_fusion_barriers import InsertFusionBarriers
from aotc.lower.passes.interchange_loops import InterchangeLoops
from aotc.lower.passes.lift_loops import LiftLoops
from aotc.lower.passes.map_parallel_loops import MapParallelLoops
from aotc.lower.passes.mark_explicit_parallelism import MarkExplicitParallelism
from aotc.lower.passes.mark_writable_tensors import MarkWritableTensors
from aotc.lower.passes.merge_kernels import MergeKernels
from aotc.lower.passes.narrow_integers import NarrowIntegers
from aotc.lower.passes.outline_attention import OutlineAttention
from aotc.lower.passes.outline_library import OutlineLibrary
from aotc.lower.passes.parallelize_copies import ParallelizeCopies
from aotc.lower.passes.parallelize_loops import ParallelizeLoops
from aotc.lower.passes.place_memory import PlaceMemory
from aotc.lower.passes.raise_contractions import RaiseContractions
from aotc.lower.passes.relax_saturation import RelaxSaturation
from aotc.lower.passes.rename_kernels import RenameKernels
from aotc.lower.passes.return_in_arguments import ReturnInArguments
from aotc.lower.passes.simplify_requantization import SimplifyRequantization
from aotc.lower.passes.simplify_sizes import SimplifySizes
from aotc.lower.passes.sink_constants import SinkConstants
from aotc.lower.passes.sink_conversions import SinkConversions
from aotc.lower.passes.sink_transposes import SinkTransposes
from aotc.lower.passes.sink_vectors import SinkVectors
from aotc.lower.passes.slice_elementwise import SliceElementwise
from aotc.lower.passes.slice_gathered import SliceGathered
from aotc.lower.passes.slice_producers import SliceProducers
from aotc.lower.passes.sparsify import Sparsify
from aotc.lower.passes.trim_windows import TrimWindows
from aotc.lower.passes.unify_sizes import UnifySizes
from aotc.lower.passes.verify_operations import Part, VerifyOperations
from aotc.lower.passes.view_contiguous_slices import ViewContiguousSlices
from aotc.lower.passes.widen_accumulators import WidenAccumulators
from aotc.lower.passes.write_into_arguments import WriteIntoArguments
from aotc.lower.plan.levels import Level
from aotc.pipeline_text import split_list
from aotc.request import MemoryMode

# All of aotc's own passes, as imported above. Each of them is used in a plan.
OWN_PASSES = tuple(sorted(OwnPass.__subclasses__(), key=lambda one: one.name))
# Former names of passes, which pipelines of users may have.
_FORMER_NAMES: dict[str, type[OwnPass]] = {
    "aotc-decompose": DecomposeAggregatedOps,
    "aotc-join-matmuls": FuseHorizontalMatmuls,
    "aotc-mark-parallel": MarkExplicitParallelism,
    "aotc-mark-tensors": MarkWritableTensors,
    "aotc-multiply-quantized": FuseQuantizedMatmuls,
    "aotc-order-loops": InterchangeLoops,
    "aotc-place-pieces": ConcatenateInPlace,
    "aotc-pool-quantized": FuseQuantizedPools,
    "aotc-separate-casts": CloneCasts,
    "aotc-separate-fills": CloneFills,
    "aotc-size-results": CreateShapeFunctions,
    "aotc-tabulate-bytes": CreateLookupTables,
}
_OPENING, _CLOSING = "builtin.module(", ")"


def _upstream(reason: str, *texts: str) -> tuple[Upstream, ...]:
    """Upstream passes that share one reason, which the first of them carries."""
    return tuple(Upstream(text, "" if i else reason) for i, text in enumerate(texts))


_CANONICALIZE = Upstream("canonicalize")
_CSE = Upstream("cse")
_LOWER_MASKS = Upstream(
    "func.func(lower-vector-mask)",
    "operations carry their masks: one-shot bufferization takes a vector.mask only if its body "
    "writes in place",
)
_FUSE = Upstream("func.func(linalg-fuse-elementwise-ops)")
_FOLD_UNIT_EXTENTS = Upstream("func.func(linalg-fold-unit-extent-dims)")

SCHEDULE: tuple[Pass, ...] = (
    Upstream(
        "transform-interpreter{entry-point=__transform_main}",
        "the module's own transform schedule is run",
    ),
    EraseSchedules(),
)
ERASE_SCHEDULES: tuple[Pass, ...] = (EraseSchedules(reason="there is no main sequence"),)

_TOSA: tuple[Pass, ...] = (
    *_upstream(
        "tosa becomes linalg on tensors",
        "func.func(tosa-optional-decompositions,canonicalize,tosa-infer-shapes,"
        "tosa-make-broadcastable)",
    ),
    CheckTosa(),
    Upstream("func.func(tosa-to-linalg-named,canonicalize,tosa-layerwise-constant-fold)"),
    Upstream("func.func(tosa-make-broadcastable)"),
    # tosa-to-linalg fails on tosa.scatter, which tosa-to-scf lowers.
    Upstream(
        "func.func(tosa-to-scf,tosa-to-linalg,tosa-to-arith{include-apply-rescale=1},"
        "tosa-to-tensor)"
    ),
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
    MarkWritableTensors(),
    ExpandSwitches(),
    Upstream("inline", "functions are inlined, and what constants alone determine is folded"),
    CastParallelResults(),
    # Folds assertions that sizes are not negative.
    Upstream("int-range-optimizations"),
    _CANONICALIZE,
    _CSE,
    ExpandReshapes(),
    _CANONICALIZE,
    _CSE,
    SimplifySizes(),
    _CANONICALIZE,
    CreateShapeFunctions(),
    TrimWindows(),
    FuseConcatenations(),
    SinkTransposes(),
    ExpandSelects(),
    *_upstream(
        "named operations become linalg.generic, without loops of one iteration",
        "func.func(convert-elementwise-to-linalg,linalg-fold-unit-extent-dims)",
        "func.func(linalg-generalize-named-ops)",
        # Transposes become generics only now. Attention's must have the dimensions of heads, rows
        # and columns alone.
        "func.func(linalg-fold-unit-extent-dims)",
        "canonicalize",
        # Two transposes of one weight become one, which is then the weight's only use.
        "cse",
    ),
    InterchangeLoops(),
    FuseQuantizedMatmuls(),
    FuseQuantizedPools(),
    NarrowIntegers(),
    RelaxSaturation(),
    # Tensors that several layers start from are separated before the layers are outlined.
    CloneFills(),
    SinkConversions(),
    OutlineAttention(),
    SliceGathered(),
    SliceProducers(),
    FuseHorizontalMatmuls(),
    FuseDequantization(),
    FoldConstants(),
    CloneCasts(),
    SliceElementwise(),
    InsertFusionBarriers(),
    # Fusion moves a constant of equal elements into the body, where MLIR folds what follows.
    FoldComparisons(),
    _FUSE,
    # Fusion queries the sizes of its results by operations that are uses, and would stop further
    # fusion.
    Upstream("resolve-ranked-shaped-type-result-dims"),
    _CANONICALIZE,
    _FUSE,
    EraseFusionBarriers(),
    # Fused reshapes compute indices by affine maps with operands that are not valid symbols.
    Upstream("func.func(lower-affine)"),
    _CANONICALIZE,
    FoldComparisons(),
    # Fusion reintroduces unit dimensions, so that all operands have one rank.
    TrimWindows(),
    _FOLD_UNIT_EXTENTS,
    _CANONICALIZE,
    _CSE,
    CreateLookupTables(),
    SimplifyRequantization(),
    CloneFills(reason="each reduction gets its own tensor of zeros, and fills it itself"),
    ConcatenateInPlace(),
    *_upstream(
        "tensors become buffers, written in place if the old value has no other reader",
        "eliminate-empty-tensors",
        "empty-tensor-to-alloc-tensor",
        "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
        "function-boundary-type-conversion=identity-layout-map}",
    ),
    *_RESULTS,
    *_FREEING,
    ViewContiguousSlices(),
    ParallelizeCopies(),
)
_SPARSE: tuple[Pass, ...] = (
    MarkWritableTensors(),
    Sparsify(),
    *_RESULTS,
    Upstream("expand-realloc{emit-deallocs=false}", "the old memory is freed like other buffers"),
    *_FREEING,
)
_LINALG: tuple[Pass, ...] = (
    Upstream("func.func(linalg-generalize-named-ops)", "all linalg operations have one form"),
    AssignLayouts(),
    InterchangeLoops(),
    AssertSizes(),
    ChooseAttentionKernels(),
    ChooseFourierKernels(),
    ChooseMatmulKernels(),
    WidenAccumulators(),
    OutlineLibrary(),
    *_upstream(
        "linalg on buffers becomes loops, parallel except for reductions",
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
        "affine loops become scf loops, and vector reductions are decomposed, before kernels are "
        "outlined",
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
    SinkConstants(),
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
    """The passes at the end of each plan."""
    return (
        RenameKernels(),
        Upstream("expand-realloc", "reallocations are expanded, so that placement sees them"),
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
    """The passes for a module of these levels, with the user's `block`, `memory` and `verify`
    options."""
    has = set(levels)
    passes: list[Pass] = [
        *([LiftLoops()] if has >= {Level.TENSORS, Level.BRANCHES} else []),
        *([ConvertGrowingLoops()] if has >= {Level.TENSORS, Level.SCF} else []),
        *([ExpandMpi()] if Level.PROCESSES in has else []),
        *([AssertSteps()] if Level.SCF in has else []),
        # Before there are kernels of the library, whose views cover more memory than they use.
        *([AssertSharedMemory()] if has & {Level.LAUNCH, Level.KERNELS} else []),
        MarkExplicitParallelism(),
    ]
    if Level.TOSA in has:
        passes += _TOSA
    if verify and Level.SPARSE not in has:
        passes.append(VerifyOperations())
    if has & {Level.TENSORS, Level.LINALG, Level.VECTOR, Level.LAUNCH, Level.KERNELS}:
        passes.append(DecomposeAggregatedOps())
    if Level.SPARSE in has:
        passes += _SPARSE
        # By now, assertions state that the arrays of levels are as long as their positions say.
        passes += [VerifyOperations()] if verify else []
    else:
        passes.append(CheckSizes())
        if has >= {Level.TENSORS, Level.VECTOR}:
            passes.append(_LOWER_MASKS)
        passes += _TENSORS if Level.TENSORS in has else (CreateShapeFunctions(),)
    # A requested block size applies to loops.
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
    """The plan as `--pipeline` accepts it: one line for each pass, with the reasons as comments."""
    lines = []
    for one in passes:
        if one.reason:
            lines.append(f"  // {one.reason}")
        lines.append(f"  {one.text},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([_OPENING, *lines, _CLOSING])


def parse_plan(text: str) -> tuple[Pass, ...]:
    """The passes of `builtin.module(...)`, with or without `//` comments. Raises InputError."""
    plain = " ".join(line.partition("//")[0].strip() for line in text.splitlines()).strip()
    if not plain.startswith(_OPENING) or not plain.endswith(_CLOSING):
        raise InputError(f"--pipeline expects 'builtin.module(...)', and got '{text.strip()}'.")
    parts = filter(None, split_list(plain[len(_OPENING) : -len(_CLOSING)]))
    return tuple(
        _parse_own_pass(part) if part.startswith("aotc-") else Upstream(part) for part in parts
    )


def _parse_own_pass(text: str) -> OwnPass:
    """The pass with the text `aotc-NAME{option=value ...}`. Raises InputError."""
    name, _, inside = text.partition("{")
    by_name = {one.name: one for one in OWN_PASSES}
    if name in _FORMER_NAMES:
        raise InputError(f"The pass '{name}' is now called '{_FORMER_NAMES[name].name}'.")
    if name not in by_name:
        near = near_names(name, by_name, most=3, cutoff=0.75)
        hint = f" Near names: {', '.join(near)}." if near else ""
        raise InputError(f"Unknown pass '{name}'.{hint} aotc's own are: {', '.join(by_name)}.")
    words = [word.partition("=") for word in inside.removesuffix("}").split()]
    return by_name[name].parse({option: value for option, _, value in words})


def with_placement(passes: tuple[Pass, ...], memory: MemoryMode) -> tuple[Pass, ...]:
    """The user's passes followed by the passes at the end of each plan, unless the user's place
    memory.

    Raises InputError for passes that place memory with a mode other than the default.
    """
    if any(one.name == PlaceMemory.name for one in passes):
        if memory is not MemoryMode.AUTO:
            raise InputError(
                f"--memory {memory.value}: the pipeline places memory itself: give the mode to its "
                f"pass, {PlaceMemory.name}."
            )
        return passes
    return (*passes, *_placement(memory))
