"""Products of a vector and packed weights → a choice, made at run time, between the kernel and the
loops: those are for the CPU device, and for buffers at odd addresses."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.builder import WIDEST_ACCESS, Builder
from aotc.input.entries import functions_of
from aotc.kernels.family import ANY_GPU, SM_90A
from aotc.kernels.matmul.dequantized.kernel import Kernel, Variant
from aotc.kernels.matmul.dequantized.recognition import Product, recognise_product
from aotc.kernels.matmul.dispatch import (
    PARALLEL,
    STEP,
    TARGET,
    called_inside,
    chips_of,
    name_modules,
)
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY
from aotc.numbers import Condition, Scalar, compare
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability

_VARIANTS = {ANY_GPU: Variant(), SM_90A: Variant(overlaps_previous=True)}


def choose_dequantized_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Changes `module`, in which linalg is on buffers and `linalg.generic`, in place."""
    if min(request.capabilities, default=0) < LEAST_CAPABILITY:
        return
    with module.context:
        roots, inside = Roots(Functions(module)), called_inside(module)
        generics = [
            generic
            for function in functions_of(module)
            if symbol_of(function) not in inside
            for generic in ops.find(function, "linalg.generic")
            if ops.enclosing(generic, *PARALLEL) is None
        ]
        found = [one for one in (recognise_product(each, roots) for each in generics) if one]
        for number, product in enumerate(found):
            _replace(product, request, remarks, number)
        if found:
            declare_capability(module)


def _replace(product: Product, request: BuildRequest, remarks: Remarks, number: int) -> None:
    generic = product.operation
    count = product.in_a_byte
    what = f"{count} weights in a byte" if count > 1 else "weights of a byte"
    text = f"product of a vector and {what}: one pass over them as they are packed on GPUs"
    remarks.add(STEP, generic.location, f"{text}, else loops")
    b = Builder()
    has_hopper = any(chip == Chip(SM_90A) for chip in chips_of(request))
    with generic.location, ir.InsertionPoint(generic):
        callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
        capability: Scalar = b.op("func.call", (), "i32", callee=callee)
        aligned = [_is_aligned(b, product.inputs[i]) for i in (product.vector, product.packed)]
        runs = reduce(and_, aligned, compare("sge", capability, LEAST_CAPABILITY))
        with b.where(runs) as branch:
            is_hopper = compare("eq", capability, Chip(SM_90A).capability) if has_hopper else False
            _launch(b, product, is_hopper)
        with branch.otherwise():
            for operation in filter(None, (product.fill, generic)):
                ir.InsertionPoint.current.insert(operation.detach_from_parent())
    name_modules(branch.operation, request.capabilities, f"dequantized_{number}")


def _launch(b: Builder, product: Product, is_hopper: Condition) -> None:
    if is_hopper is False:
        _kernel(b, product, ANY_GPU)
        return
    with b.where(is_hopper) as branch:
        _kernel(b, product, SM_90A)
    with branch.otherwise():
        _kernel(b, product, ANY_GPU)


def _kernel(b: Builder, product: Product, target: str) -> None:
    with b.execute_region() as region, b.kernel_name(_name(product)):
        Kernel(b, product, _VARIANTS[target]).build()
    region.attributes[TARGET] = ir.StringAttr.get(target)


def _name(product: Product) -> str:
    element = product.inputs[product.vector].type.element_type
    bits = 8 // product.in_a_byte
    return f"gemv_{element}_w{bits}_{_VARIANTS[ANY_GPU].rows}x{_VARIANTS[ANY_GPU].warps}"


def _is_aligned(b: Builder, buffer: Any) -> Condition:
    address = b.op("memref.extract_aligned_pointer_as_index", [buffer], "index")
    return compare("eq", address & (WIDEST_ACCESS - 1), 0)
