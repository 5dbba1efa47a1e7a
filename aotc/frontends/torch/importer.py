"""Imports torch.export's programs as linalg on tensors, by torch-mlir's importer and passes."""

from __future__ import annotations

import threading
import warnings
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch import compaction, elementwise, fourier_rows, lu, scatters, triangular
from aotc.frontends.torch.assertions import broadcast_selections, simplify_assertions
from aotc.frontends.torch.bags import sum_equal_bags
from aotc.frontends.torch.call import (
    call_of,
    drop_constant_outputs,
    unsigned_arguments,
    unsigned_results,
)
from aotc.frontends.torch.complex import remove_complex_numbers, with_complex_numbers
from aotc.frontends.torch.constants import put_constants
from aotc.frontends.torch.control import fx_importer
from aotc.frontends.torch.decompositions import decompositions
from aotc.frontends.torch.empties import fold_empties
from aotc.frontends.torch.factorizations import join_factorizations
from aotc.frontends.torch.guards import (
    guards_of,
    made_conditions,
    noted_conditions,
    repair_expressions,
    without_noted_conditions,
)
from aotc.frontends.torch.logs import kept_logs, reason_of
from aotc.frontends.torch.loops import carry_inputs, keep_conditions
from aotc.frontends.torch.operators import (
    call_functions,
    decompositions_of,
    define_functions,
    lowerings,
)
from aotc.frontends.torch.overloads import with_known_overloads
from aotc.frontends.torch.places import keep_user_frames
from aotc.frontends.torch.rank_zero import add_dimensions
from aotc.frontends.torch.refusals import (
    check_bags,
    check_derivatives,
    check_effects,
    check_element_types,
    check_operators,
    named_refusals,
)
from aotc.frontends.torch.scalars import wrap_operands
from aotc.frontends.torch.size_numbers import import_size_numbers
from aotc.frontends.torch.sizes import unify_sizes
from aotc.frontends.torch.splats import fold_splats
from aotc.frontends.torch.state import mark_changes, name_buffers_once, take_state
from aotc.frontends.torch.views import decompose_views, make_views
from aotc.frontends.torch.weights import LateWeights, weights_hook
from aotc.frontends.torch_mlir.divisions import check_divisors
from aotc.frontends.torch_mlir.entry import make_entry
from aotc.frontends.torch_mlir.indices import normalize_indices
from aotc.frontends.torch_mlir.integers import keep_integers
from aotc.frontends.torch_mlir.nans import propagate_nans
from aotc.frontends.torch_mlir.numbers import lower_numbers
from aotc.frontends.torch_mlir.passes import (
    QUANTIZED_FUSION,
    VERIFICATION,
    run_passes,
    without_passes,
)
from aotc.frontends.torch_mlir.reads import check_reads
from aotc.frontends.torch_mlir.rows import assign_rows
from aotc.frontends.torch_mlir.shifts import bound_shifts
from aotc.frontends.torch_mlir.widening import widen_elements
from aotc.manifest import call_text

# The pipelines that `fx.export_and_import` runs to get linalg on tensors. They are run here instead
# because that function, on a failure, writes the module to a file of a fixed name, and MLIR's
# diagnostics to stderr.
_PIPELINES = (
    "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline"
    # The operators that views.py inserts. They are kept until the second pipeline, which lowers
    # them as they are.
    "{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int}",
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}",
)

# Serializes threads: torch.export keeps its state in global variables of the process, and the
# filters of warnings are global, too.
ALONE = threading.RLock()


def import_program(program: Any, name: str) -> Any:
    """Imports a `torch.export.ExportedProgram` as an `ir.Module` of linalg on tensors, with one
    entry, `name`.

    The entry's arguments have the names of the program's inputs. Buffers that the program changes
    are state (see state.py). Raises InputError for operations that torch-mlir does not lower.
    """
    from torch_mlir import fx  # type: ignore[import-not-found, unused-ignore]

    try:
        with ALONE, warnings.catch_warnings(), kept_logs():
            warnings.simplefilter("ignore")
            modules = (compaction, elementwise, fourier_rows, lu, scatters, triangular)
            own = [lowering for module in modules for lowering in module.LOWERINGS]
            known = {**lowerings(), **{one.symbol: one for one in own}}
            check_bags(program)
            check_derivatives(program)
            program = with_known_overloads(sum_equal_bags(name_buffers_once(program)))
            table = {**decompositions(), **decompositions_of(known)}
            repair_expressions(program)
            broadcast_selections(program)
            join_factorizations(program)
            conditions = noted_conditions(program)
            noted = len(guards_of(program))
            with without_noted_conditions(program):
                program = program.run_decompositions(with_complex_numbers(table))
            conditions += made_conditions(guards_of(program)[noted:])
            keep_user_frames(program)
            put_constants(program)
            simplify_assertions(program)
            remove_complex_numbers(program)
            check_effects(program)
            check_element_types(program)
            call = call_of(program)
            drop_constant_outputs(program)
            _add_unsaved_buffers(program)
            changes = take_state(program)
            _drop_fixed_inputs(program)
            _copy_weights(program)
            carry_inputs(program)
            add_dimensions(program)
            fold_empties(program)
            fold_splats(program)
            wrap_operands(program)
            import_size_numbers(program)
            make_views(program)
            decompose_views(program)
            late = LateWeights()
            module = fx.export_and_import(
                program,
                decomposition_table={},
                func_name=name,
                fx_importer=fx_importer(weights_hook(program, late)),
            )
    except InputError as error:
        # If a decomposition raised the error, PyTorch has appended its own traceback to the
        # message.
        error.args = (error.message,)
        raise
    except Exception as error:
        raise InputError(
            f"torch-mlir cannot lower this program: {type(error).__name__}: {reason_of(error)}"
        ) from error
    functions = [*call_functions(module, known), *keep_conditions(module)]
    has_branches = bool(ops.find(module.operation, "torch.prim.If"))
    assign_rows(module)
    lower_numbers(module)
    check_operators(module)
    normalize_indices(module)
    keep_integers(module)
    widen_elements(module)
    to_backend, to_linalg = _PIPELINES
    # The verification rejects calls of functions, and also `arith.select` of tensors, which a
    # branch on given values becomes.
    left_out = [QUANTIZED_FUSION]
    if functions or has_branches:
        left_out.append(VERIFICATION)
    with module.context:
        to_linalg = without_passes(to_linalg, *left_out)
    with named_refusals():
        for pipeline in (to_backend, to_linalg):
            module = run_passes(module, pipeline)
    propagate_nans(module)
    bound_shifts(module)
    check_divisors(module)
    check_reads(module)
    inputs = list(program.graph_signature.user_inputs)
    make_entry(
        module,
        name,
        inputs,
        call=call_text(call),
        unsigned_arguments=unsigned_arguments(program),
        unsigned_results=[len(changes) + number for number in unsigned_results(call)],
    )
    mark_changes(module, changes, inputs)
    unify_sizes(module, program, conditions)
    define_functions(module, functions)
    late.give_back(module)
    return module


def _add_unsaved_buffers(program: Any) -> None:
    """Copies non-persistent buffers from the program's constants to its state, because the importer
    looks for buffers only there."""
    unsaved = {
        name: program.constants[name]
        for name in program.graph_signature.inputs_to_buffers.values()
        if name not in program.state_dict
    }
    program._state_dict = {**program.state_dict, **unsaved}


def _drop_fixed_inputs(program: Any) -> None:
    """Removes unused inputs that are constants, such as Python's numbers and None. The program has
    the values that it was exported with, whatever a call passes."""
    from torch.export.graph_signature import (
        ConstantArgument,
    )

    specs = program.graph_signature.input_specs
    fixed = {spec.arg.name for spec in specs if isinstance(spec.arg, ConstantArgument)}
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in fixed and not node.users:
            program.graph.erase_node(node)
            specs[:] = [spec for spec in specs if spec.arg.name != node.name]


def _copy_weights(program: Any) -> None:
    """Replaces a weight that is an element of a list argument (`torch.cat([weight, x])`, `x[rows]`)
    or that becomes a number (`x[:, weight]`, `weight.item()`) by a copy, which is folded later. The
    importer does not support weights there."""
    import torch

    signature = program.graph_signature
    weights = {
        *signature.inputs_to_parameters,
        *signature.inputs_to_buffers,
        *signature.inputs_to_lifted_tensor_constants,
    }
    for node in program.graph.nodes:
        listed = [item for arg in node.args if isinstance(arg, list | tuple) for item in arg]
        if node.target is torch.ops.aten._local_scalar_dense.default:
            listed = node.args
        for item in dict.fromkeys(listed):
            if getattr(item, "op", None) == "placeholder" and item.name in weights:
                with program.graph.inserting_before(node):
                    copy = program.graph.call_function(torch.ops.aten.clone.default, (item,))
                copy.meta = dict(item.meta)
                node.replace_input_with(item, copy)
