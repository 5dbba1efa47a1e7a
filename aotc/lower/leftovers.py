"""What a lowering left behind: an error that names the operations and their places."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InternalError
from aotc.load.source import Source
from aotc.mlir import ir

_MOST_SHOWN = 5


def check_lowered(module: Any, source: Source, allowed: tuple[str, ...], *, what: str) -> None:
    """Raises InternalError when an operation under `module` is of no dialect in `allowed`."""
    left: dict[str, str] = {}
    for operation in ops.walk(module.operation):
        name = operation.name
        if name == "builtin.module" or name.split(".")[0] in allowed:
            continue
        place = source.place(operation.location)
        left.setdefault(name, f"{place}: {name}" if place else name)
    if not left:
        return
    shown = list(left.values())[:_MOST_SHOWN]
    more = f"\n  and {len(left) - len(shown)} more" if len(left) > len(shown) else ""
    raise InternalError(
        f"aotc cannot lower these operations of the {what}:\n  " + "\n  ".join(shown) + more,
        hint="Lower them first, or give the whole lowering with --pipeline.",
    )


_HIGHER_LEVELS = ("sparse_tensor", "stablehlo")
_VECTOR_ACCESSES = (
    "vector.load",
    "vector.store",
    "vector.transfer_read",
    "vector.transfer_write",
    "vector.maskedload",
    "vector.maskedstore",
    "vector.gather",
    "vector.scatter",
    "vector.expandload",
    "vector.compressstore",
    "affine.vector_load",
    "affine.vector_store",
)


def check_supported(source: Source, *, has_pipeline: bool = False) -> None:
    """Raises InternalError for operations that would lower to something wrong, and
    (unless a pipeline of the user's comes first) for those of levels that are not lowered yet."""
    for operation in ops.walk(source.module.operation):
        reason = None
        dialect = operation.name.split(".")[0]
        if dialect in _HIGHER_LEVELS and not has_pipeline:
            reason = f"the {dialect} dialect is not lowered yet; --pipeline can lower it first"
        if operation.name in _VECTOR_ACCESSES and _moves_packed_bits(operation):
            reason = (
                "LLVM packs vectors of i1 into bits, and a memref of i1 has a byte for each: "
                "use i8, or access single elements"
            )
        if reason is not None:
            place = source.place(operation.location)
            raise InternalError(
                f"{f'{place}: ' if place else ''}{operation.name} is not supported here: {reason}."
            )


def check_kernel_arguments(source: Source) -> None:
    """Raises InternalError for a kernel that is given a vector of i1: the device code declares
    its bits, and reads its bytes. Runs on the outlined module."""
    for launch in ops.find(source.module.operation, "gpu.launch_func"):
        for operand in launch.operands:
            is_vector = isinstance(operand.type, ir.VectorType)
            if is_vector and str(operand.type.element_type) == "i1":
                place = source.place(launch.location)
                raise InternalError(
                    f"{f'{place}: ' if place else ''}a kernel is given a {operand.type}, which is "
                    "not supported: use a vector of i8, or make it in the kernel."
                )


def _moves_packed_bits(operation: Any) -> bool:
    values = [*operation.operands, *operation.results]
    memrefs = [value.type for value in values if isinstance(value.type, ir.MemRefType)]
    # Masks are vectors of i1, too: it is the memref's elements that tell.
    return any(str(memref.element_type) == "i1" for memref in memrefs)
