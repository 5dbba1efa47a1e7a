"""Replaces the bodies of functions that are marked as Fourier transforms by launches of the kernel.

A front end writes a transform as a function of the rows, the result and the roots of unity, and
marks it with `FOURIER`. The body of the function computes each point by the definition. The kernel
runs on GPUs and on the CPU device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.attributes import FOURIER, TARGET_ATTRIBUTE
from aotc.builder import Builder
from aotc.input.entries import functions_of
from aotc.kernels.family import EVERYWHERE
from aotc.kernels.fourier.kernel import Kernel
from aotc.kernels.fourier.problem import Kind, Order, Transform, is_possible
from aotc.kernels.launches import name_modules
from aotc.mlir import ir
from aotc.module_names import LEAST_CAPABILITY
from aotc.remarks import Remarks
from aotc.request import BuildRequest

STEP = "aotc-choose-fourier-kernels"


def choose_fourier_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Replaces the marked functions of `module`, after bufferization, in place."""
    with module.context:
        marked = [one for one in functions_of(module) if FOURIER in one.attributes]
        for number, function in enumerate(marked):
            _replace_body(function, request, remarks, number)


def _replace_body(function: Any, request: BuildRequest, remarks: Remarks, number: int) -> None:
    block = function.regions[0].blocks[0]
    arguments = list(block.arguments)
    types = [argument.type for argument in arguments]
    transform = _transform(function, types, request.capabilities)
    if transform is None:
        return
    for operation in reversed(ops.operations_in(block)):
        ops.erase(operation)
    b = Builder()
    with function.location, ir.InsertionPoint(block):
        with b.execute_region() as region, b.kernel_name(_name(transform)):
            Kernel(b, transform, *arguments).build()
        region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(EVERYWHERE)
        ops.create("func.return")
    name_modules(region, request.capabilities, f"fourier_{number}")
    # A launch is part of its caller, which then has all uses of its buffers.
    for mark in (FOURIER, "no_inline"):
        if mark in function.attributes:
            del function.attributes[mark]
    what = f"rows of {transform.length} {transform.element}, {transform.kind}"
    passes = " x ".join(map(str, transform.radices))
    remarks.add(STEP, function.location, f"a Fourier transform, {what}: one kernel, {passes}")


def _name(transform: Transform) -> str:
    orders = "".join(order[0] for order in (transform.source, transform.target))
    return f"fourier_{transform.kind}_{transform.element}_{transform.length}_{orders}"


def _transform(
    function: Any, types: Sequence[Any], capabilities: Sequence[int]
) -> Transform | None:
    """The transform of a marked function. None if the arguments are not in the expected form after
    bufferization, or the kernel does not support the rows."""
    if len(types) != 3 or not all(isinstance(type_, ir.MemRefType) for type_ in types):
        return None
    given = ir.DictAttr(function.attributes[FOURIER])
    kind, source, target = (ir.StringAttr(given[name]).value for name in ("kind", "in", "out"))
    length, sign = (ir.IntegerAttr(given[name]).value for name in ("length", "sign"))
    if not is_possible(Kind(kind), length, str(types[0].element_type)):
        return None
    dimension = 1 if source == Order.POINTS_LAST else 2
    rows = None if types[0].is_dynamic_dim(dimension) else types[0].shape[dimension]
    return Transform(
        kind=Kind(kind),
        length=length,
        sign=sign,
        element=str(types[0].element_type),
        source=Order(source),
        target=Order(target),
        rows=rows,
        has_more=min(capabilities, default=0) >= LEAST_CAPABILITY,
    )
