"""Programs of JAX that say how arrays are divided among devices, for one device.

A division changes no value, so its text is left out before it is parsed: the bindings do not have
the dialect `sdy` (https://openxla.org/shardy). Exchanges in groups of one device are their
operands.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops

_MESH = re.compile(r"^[ \t]*sdy\.mesh @.*$", re.MULTILINE)
_CONSTRAINT = re.compile(r"= sdy\.sharding_constraint (%[\w#]+) <.*?> : ")
# Exchanges, and the attribute that has the groups, or the pairs of sender and receiver.
_EXCHANGES = {
    "stablehlo.all_gather": "replica_groups",
    "stablehlo.all_reduce": "replica_groups",
    "stablehlo.all_to_all": "replica_groups",
    "stablehlo.collective_permute": "source_target_pairs",
    "stablehlo.reduce_scatter": "replica_groups",
}
_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")
_NUMBERS = ("stablehlo.partition_id", "stablehlo.replica_id")


def without_sharding(text: str) -> str:
    """The text of a module without meshes and the divisions of its values. Lines keep their
    numbers."""
    return _CONSTRAINT.sub(r"= stablehlo.optimization_barrier \1 : ", _MESH.sub("", text))


def remove_exchanges(ir: Any, module: Any) -> None:
    """Replaces exchanges in groups of one device by their operands, in place, and the number of the
    device, in a module for one, by 0."""
    for operation in ops.find(module.operation, *_EXCHANGES):
        groups = ir.DenseIntElementsAttr(operation.attributes[_EXCHANGES[operation.name]])
        is_permutation = operation.name == "stablehlo.collective_permute"
        is_alone = [*groups] == [0, 0] if is_permutation else groups.type.shape[1] == 1
        given, made = (
            [value.type for value in values] for values in (operation.operands, operation.results)
        )
        if is_alone and given == made:
            ops.replace(operation, operation.operands)
    attributes = module.operation.attributes
    counts = [attributes[name] for name in _COUNTS if name in attributes]
    if any(ir.IntegerAttr(count).value != 1 for count in counts):
        return
    for operation in ops.find(module.operation, *_NUMBERS):
        type_ = operation.results[0].type
        with operation.location, ir.InsertionPoint(operation):
            zero = ir.Attribute.parse(f"dense<0> : {type_}")
            made = ir.Operation.create("stablehlo.constant", [type_], attributes={"value": zero})
        ops.replace(operation, made.results)
