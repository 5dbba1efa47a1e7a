"""Replaces matmuls with packed weights by a choice among kernels for GPUs, the kernel of the CPU
device and the loops. The program chooses at run time. The loops are for unaligned buffers on a
GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.functions import Functions
from aotc.attributes import TARGET_ATTRIBUTE
from aotc.builder import WIDEST_ACCESS, Builder
from aotc.builder.numbers import Condition, Scalar, compare
from aotc.kernels.family import ANY_GPU, CPU, SM_90A
from aotc.kernels.launches import chips_of, generics_on_host, is_for_cpu, name_modules
from aotc.kernels.matmul.dequantized import cpu, mma_sync, persistent
from aotc.kernels.matmul.dequantized.kernel import Kernel, Variant
from aotc.kernels.matmul.dequantized.operands import Result, are_of_rows
from aotc.kernels.matmul.dequantized.recognition import Product, matmul_of, recognise_product
from aotc.kernels.matmul.dispatch import move_here
from aotc.kernels.matmul.fusion.fuse import Fused, fuse, remove_temporary
from aotc.kernels.matmul.kernel_selection import STEP
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability


class _Selection(Struct):
    """A product with what is fused to it, and whether GPUs and the CPU device have a kernel: one of
    them does."""

    product: Product
    fused: Fused
    on_gpus: bool
    on_cpu: bool

    def __str__(self) -> str:
        count = self.product.in_a_byte
        few = self.product.columns
        what = f"{count} weights in a byte" if count > 1 else "weights of a byte"
        with_ = "a vector" if few == 1 else f"{few} vectors"
        how = ", by mma.sync" if mma_sync.can_implement(self.product) else ""
        steps = " with an epilogue" if self.fused.epilogue else ""
        on = [*[f"on GPUs{how}"] * self.on_gpus, *["on the CPU"] * self.on_cpu]
        otherwise = "" if self.on_gpus and self.on_cpu else ", else loops"
        return (
            f"product of {with_} and {what}{steps}: "
            f"one pass over them as they are packed {', and '.join(on)}{otherwise}"
        )


def choose_dequantized_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Replaces the matmuls with packed weights of `module` in place. Its linalg operations are
    `linalg.generic` on buffers."""
    with module.context:
        roots = Roots(Functions(module))
        generics = generics_on_host(module)
        found = [one for one in (recognise_product(each, roots) for each in generics) if one]
        selections = _with_epilogues(found, roots, request)
        for one in selections:
            remarks.add(STEP, one.product.operation.location, str(one))
        # From the last one to the first: the operations that are fused to a matmul come after it.
        for number, one in enumerate(reversed(selections)):
            _replace(one, request, number)
        if selections:
            declare_capability(module)


def _with_epilogues(
    products: Sequence[Product], roots: Roots, request: BuildRequest
) -> list[_Selection]:
    has_gpus = min(request.capabilities, default=0) >= LEAST_CAPABILITY
    selections: list[_Selection] = []
    done, order = set[Any](), BlockOrder()
    for number, product in enumerate(products):
        on_gpus = has_gpus and not is_for_cpu(product.operation)
        if not on_gpus and not request.cpu_kernels:
            continue
        later = [other.y for other in products[number + 1 :]]
        with product.operation.location:
            fused = fuse(matmul_of(product), roots, done, later, order)
        done.update(fused.replaced)
        selections.append(_Selection(product, fused, on_gpus, request.cpu_kernels))
    return selections


def _replace(selection: _Selection, request: BuildRequest, number: int) -> None:
    fused = selection.fused
    last = fused.replaced[-1]
    b = Builder()
    with last.location, ir.InsertionPoint(last):
        c, *values = [operand.make() for operand in fused.operands[2:]]
        epilogue = None
        if fused.epilogue is not None:
            epilogue = fused.epilogue.bind(fused.problem.epilogue_operands, values)
        result = Result(c, fused.problem.adds, epilogue)
        if is_for_cpu(last):
            made = _cpu_kernel(b, selection.product, result)
            for operation in reversed(fused.replaced):
                ops.erase(operation)
            for temporary in fused.temporaries:
                remove_temporary(temporary)
        else:
            made = _choose(b, selection, result, request)
    name_modules(made, request.capabilities, f"dequantized_{number}")


def _choose(b: Builder, selection: _Selection, result: Result, request: BuildRequest) -> Any:
    """Inserts the choice of the kernel. The loops move to one of its regions."""
    product = selection.product
    callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
    capability: Scalar = b.op("func.call", (), "i32", callee=callee)
    with b.execute_region() as region:
        is_gpu = compare("sge", capability, 1) if selection.on_cpu else True
        with b.where(is_gpu) as branch:
            if selection.on_gpus:
                has_hopper = any(chip == Chip(SM_90A) for chip in chips_of(request))
                with b.where(_can_run(b, product, capability, has_hopper)) as on_gpu:
                    is_hopper: Condition = has_hopper and compare(
                        "eq", capability, Chip(SM_90A).capability
                    )
                    _launch(b, product, result, is_hopper)
                with on_gpu.otherwise():
                    move_here(selection.fused.replaced)
            else:
                move_here(selection.fused.replaced)
        if selection.on_cpu:
            with branch.otherwise():
                _cpu_kernel(b, product, result)
    return region


def _cpu_kernel(b: Builder, product: Product, result: Result) -> Any:
    with b.execute_region() as region, b.kernel_name(f"cpu_{_name(product)}"):
        cpu.Kernel(b, product, result).build()
    region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(CPU)
    return region


def _can_run(b: Builder, product: Product, capability: Scalar, has_hopper: bool) -> Condition:
    """The condition under which a GPU can run the kernels: its compute capability suffices, and the
    buffers that the kernels copy are aligned to the widest accesses."""
    copied = [product.vector, product.packed]
    if _persistent(product, SM_90A if has_hopper else ANY_GPU) is not None:
        copied += [i for i in range(len(product.inputs)) if are_of_rows(product, i)]
    aligned = [_is_aligned(b, product.inputs[i]) for i in copied]
    return reduce(and_, aligned, compare("sge", capability, LEAST_CAPABILITY))


def _launch(b: Builder, product: Product, result: Result, is_hopper: Condition) -> None:
    if is_hopper is False:
        _kernel(b, product, result, ANY_GPU)
        return
    with b.where(is_hopper) as branch:
        _kernel(b, product, result, SM_90A)
    with branch.otherwise():
        _kernel(b, product, result, ANY_GPU)


def _kernel(b: Builder, product: Product, result: Result, target: str) -> None:
    early, name = target == SM_90A, _name(product)
    with b.execute_region() as region:
        stays = _persistent(product, target)
        if stays is not None:
            with b.kernel_name(f"{name}_mma_m1_k{stays.warps}_persistent"):
                persistent.PersistentKernel(b, product, stays, result).build()
        elif mma_sync.can_implement(product):
            chosen = mma_sync.choose_variant(product, overlaps_previous=early)
            with b.kernel_name(f"{name}_mma_m{product.columns}_k{chosen.along}"):
                mma_sync.TensorCoreKernel(b, product, chosen, result).build()
        else:
            variant = Variant(overlaps_previous=early)
            with b.kernel_name(f"{name}_{variant.rows}x{variant.warps}"):
                Kernel(b, product, variant, result).build()
    region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)


def _name(product: Product) -> str:
    element = product.inputs[product.vector].type.element_type
    return f"gemv_{element}_w{8 // product.in_a_byte}"


def _persistent(product: Product, target: str) -> persistent.Variant | None:
    if target != SM_90A or not mma_sync.can_implement(product):
        return None
    return persistent.choose_variant(product, overlaps_previous=True)


def _is_aligned(b: Builder, buffer: Any) -> Condition:
    address = b.op("memref.extract_aligned_pointer_as_index", [buffer], "index")
    return compare("eq", address & (WIDEST_ACCESS - 1), 0)
