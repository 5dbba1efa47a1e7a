"""aotc's own passes: `OWN_PASSES` lists them.

To add one: a subclass of `OwnPass` in a file of this folder, a line in `OWN_PASSES`, its place in
`aotc.lower.plan.pipeline`, and `tests/passes/NAME.mlir`, which shows what it does.
"""

from __future__ import annotations

from aotc.errors import InputError, near_names
from aotc.lower.passes.assert_sizes import AssertSizes
from aotc.lower.passes.assert_steps import AssertSteps
from aotc.lower.passes.assign_layouts import AssignLayouts
from aotc.lower.passes.base import OwnPass
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
from aotc.lower.passes.raise_contractions import RaiseContractions
from aotc.lower.passes.rename_kernels import RenameKernels
from aotc.lower.passes.return_in_arguments import ReturnInArguments
from aotc.lower.passes.separate_casts import SeparateCasts
from aotc.lower.passes.separate_fills import SeparateFills
from aotc.lower.passes.simplify_sizes import SimplifySizes
from aotc.lower.passes.sink_conversions import SinkConversions
from aotc.lower.passes.sink_transposes import SinkTransposes
from aotc.lower.passes.sink_vectors import SinkVectors
from aotc.lower.passes.size_results import SizeResults
from aotc.lower.passes.sparsify import Sparsify
from aotc.lower.passes.trim_windows import TrimWindows
from aotc.lower.passes.unify_sizes import UnifySizes
from aotc.lower.passes.verify_operations import VerifyOperations
from aotc.lower.passes.write_into_arguments import WriteIntoArguments

# In about the order in which a plan has them.
OWN_PASSES: tuple[type[OwnPass], ...] = (
    EraseSchedules,
    ExpandMpi,
    Decompose,
    AssertSteps,
    MarkParallel,
    VerifyOperations,
    Sparsify,
    CheckSizes,
    MarkTensors,
    ExpandSwitches,
    CastParallelResults,
    ExpandReshapes,
    SimplifySizes,
    SizeResults,
    TrimWindows,
    FuseConcatenations,
    SinkConversions,
    SinkTransposes,
    RaiseContractions,
    OrderLoops,
    MultiplyQuantized,
    NarrowIntegers,
    SeparateFills,
    OutlineAttention,
    FuseDequantization,
    FoldConstants,
    FreeBuffers,
    SeparateCasts,
    InsertFusionBarriers,
    EraseFusionBarriers,
    PlacePieces,
    WriteIntoArguments,
    ReturnInArguments,
    ParallelizeCopies,
    AssignLayouts,
    AssertSizes,
    ChooseAttentionKernels,
    ChooseFourierKernels,
    ChooseMatmulKernels,
    OutlineLibrary,
    UnifySizes,
    ParallelizeLoops,
    MapParallelLoops,
    ExpandChecks,
    HoistGlobals,
    SinkVectors,
    MergeKernels,
    RenameKernels,
    ExpandCopies,
    PlaceMemory,
)


def parse_own_pass(text: str) -> OwnPass:
    """The pass that a pipeline spells `aotc-NAME{option=value ...}`. Raises InputError."""
    name, _, inside = text.partition("{")
    by_name = {one.name: one for one in OWN_PASSES}
    if name not in by_name:
        near = near_names(name, by_name, most=3, cutoff=0.75)
        hint = f" Near names: {', '.join(near)}." if near else ""
        raise InputError(f"Unknown pass '{name}'.{hint} aotc's own are: {', '.join(by_name)}.")
    words = [word.partition("=") for word in inside.removesuffix("}").split()]
    return by_name[name].parse({option: value for option, _, value in words})
