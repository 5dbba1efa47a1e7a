"""Every kernel that the choosers can choose: a family's variant, and a problem that it takes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from attention.problems import problem as attention_problem
from matmul.contracted import Contraction, convolution
from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import LIMITS
from aotc.kernels.attention.choice import FAMILIES as ATTENTION
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.choice import FAMILIES
from aotc.kernels.matmul.implicit_gemm.direct import IMPLICIT_DIRECT
from aotc.kernels.matmul.implicit_gemm.mma_sync import IMPLICIT_MMA_SYNC
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.simt import IMPLICIT_SIMT
from aotc.kernels.matmul.implicit_gemm.wgmma import IMPLICIT_WGMMA
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.small_m import small_m_kernels
from aotc.kernels.matmul.tcgen05 import TCGEN05
from aotc.module_names import LEAST_CAPABILITY

# Elements of A and B, accumulator, elements of C, and what may be done with f32.
TYPES: tuple[tuple[str, str, str, dict[str, bool]], ...] = (
    ("f16", "f32", "f16", {}),
    ("f16", "f32", "f32", {}),
    ("f16", "f16", "f16", {}),
    ("bf16", "f32", "bf16", {}),
    ("f32", "f32", "f32", {}),
    ("f32", "f32", "f32", {"allow_tf32": True}),
    ("f32", "f32", "f32", {"allow_3xtf32": True}),
    ("f64", "f64", "f64", {}),
    ("i8", "i32", "i32", {}),
    ("i32", "i32", "i32", {}),
    ("f8E4M3FN", "f32", "f16", {}),
)
# M, N and K: not known, large, at odd distances, few tiles of a large K, few rows.
SIZES: tuple[tuple[int | None, int | None, int | None], ...] = (
    (None, None, None),
    (4096, 4096, 4096),
    (1000, 1000, 1000),
    (256, 256, 16384),
    (1, 4096, 4096),
    (None, 4096, 4096),
    (16, 4096, 4096),
    (64, 4096, 4096),
)


class Kernel(Struct, frozen=True):
    """A kernel of `family`, launched on `target`: a chip, or ANY_GPU."""

    family: Any
    problem: Any
    variant: Any
    target: str

    @property
    def name(self) -> str:
        """What family, elements and variant it is of. Numbers of parts of K are code alike."""
        variant = self.variant
        if getattr(variant, "split_k", 1) != 1 and self.target == ANY_GPU:
            variant = replace(variant, split_k=2)
        return f"{self.family_name} {self.element} {variant}"

    @property
    def family_name(self) -> str:
        kind = "attention " if isinstance(self.problem, Attention) else ""
        return kind + str(self.family.name)

    @property
    def element(self) -> str:
        problem = self.problem
        if isinstance(problem, Attention):
            return str(problem.q.element)
        multiplies_tf32 = any(word in self.family_name for word in ("wgmma", "mma.sync"))
        return f"{problem.a.element}{' as tf32' * (problem.allow_tf32 and multiplies_tf32)}"

    def function(self, name: str) -> str:
        """The text of `func.func @name`, which launches it."""
        return str(self.family.function(self.problem, self.variant, name))


def matrix(
    sizes: tuple[int | None, int | None], element: str, *, transposed: bool, aligned: bool
) -> Matrix:
    lying = sizes[::-1] if transposed else sizes
    pitch = lying[1]
    bytes_ = ELEMENT_BYTES[element]
    known = 16 if pitch is None else next(n for n in (16, 8, 4, 2, 1) if pitch * bytes_ % n == 0)
    text = "x".join("?" if size is None else str(size) for size in lying)
    alignment = known if aligned else bytes_
    return Matrix(f"memref<{text}x{element}>", element, lying, pitch, alignment, transposed)


def products() -> Iterator[Problem]:
    """Of every type, layout and kind of sizes; at any address where no size is known."""
    for (element, accumulator, result, options), layout, (m, n, k) in itertools.product(
        TYPES, itertools.product((False, True), repeat=2), SIZES
    ):
        for aligned in (True, False) if (m, n) == (None, None) else (True,):
            yield Problem(
                matrix((m, k), element, transposed=layout[0], aligned=aligned),
                matrix((k, n), element, transposed=layout[1], aligned=aligned),
                matrix((m, n), result, transposed=False, aligned=aligned),
                accumulator,
                **options,
            )


CONVOLUTIONS: tuple[Contraction, ...] = tuple(
    convolution(f"conv{number}", image, kernel, layout=layout, element=element, **options)
    for number, (element, options) in enumerate(
        (
            ("f16", {"result": "f32"}),
            ("bf16", {"result": "f32"}),
            ("f32", {}),
            ("f32", {"allow_tf32": True}),
            ("i8", {"result": "i32"}),
            ("f64", {"result": "f64"}),
        )
    )
    for layout in ("nhwc", "nchw")
    for image, kernel in (
        ((8, 64, 56, 56), (64, 3, 3)),
        ((64, 1536, 16, 16), (256, 3, 3)),
        ((1, 3, 112, 112), (64, 7, 7)),
        ((1, 8192, 4, 4), (512, 3, 3)),
    )
)
# Of few columns, and groups of few channels, which are last.
_NARROW = (
    convolution(
        "narrow", (8, 24, 112, 112), (24, 3, 3), layout="nhwc", element="f16", result="f32"
    ),
    *(
        Contraction(
            f"groups_of_{few}",
            {"n": 64, "g": 32, "f": few, "h": 28, "w": 28, "c": few, "p": 3, "q": 3},
            *(
                ("n", "h + p", "w + q", "g", "c"),
                ("g", "f", "p", "q", "c"),
                ("n", "h", "w", "g", "f"),
            ),
            element="f16",
            result="f32",
        )
        for few in (4, 8)
    ),
)


# Of any number of images.
_ANY_BATCH = convolution(
    *("any", (64, 1536, 16, 16), (256, 3, 3)),
    layout="nhwc",
    element="f16",
    result="f32",
    dynamic=(("a", 0), ("c", 0)),
)


def implicit_gemms() -> Iterator[ImplicitGemm]:
    for one in (*CONVOLUTIONS, _ANY_BATCH, *_NARROW):
        problem = one.problem
        if problem is not None:
            yield problem


def attentions() -> Iterator[Attention]:
    masks = (None, Mask("memref<?x?x?xf32>", "f32", ("b", "i", "j"), 16))
    for (element, result), head_dim, causal, mask in itertools.product(
        (("f16", "f16"), ("bf16", "f32"), ("f32", "f32")),
        (16, 64, 80, 128, 192, 256),
        (False, True),
        masks,
    ):
        yield attention_problem(
            head_dim=head_dim, element=element, result=result, causal=causal, mask=mask
        )
    for element, head_dim, group in itertools.product(("f16", "f32"), (16, 128, 256), (1, 4, 8)):
        one = attention_problem(None, 1, head_dim=head_dim, element=element, result=element)
        yield replace(one, group=group)


def kernels() -> Iterator[Kernel]:
    """Each of them for every problem that it takes."""
    yield from product_kernels()
    for one in implicit_gemms():
        for family in (IMPLICIT_WGMMA, IMPLICIT_DIRECT, IMPLICIT_MMA_SYNC, IMPLICIT_SIMT):
            for variant in family.legal_variants(one):
                yield Kernel(family, one, variant, family.target)
    yield from attention_kernels()


def product_kernels() -> Iterator[Kernel]:
    for problem in products():
        for family in (*FAMILIES.values(), TCGEN05):
            for variant in family.legal_variants(problem):
                yield Kernel(family, problem, variant, family.target)
            small = family.few_tiles(problem)
            if small is not None:
                yield Kernel(family, problem, small.variant, family.target)
        for few in small_m_kernels(problem):
            yield Kernel(few.family, few.problem, few.variant, "sm_90a")


def attention_kernels() -> Iterator[Kernel]:
    for attention in attentions():
        for family in ATTENTION:
            if family.takes_one_row != bool(attention.group):
                continue
            for variant in family.variants(attention):
                yield Kernel(family, attention, variant, family.target)


def capabilities_of(kernel: Kernel) -> tuple[int, ...]:
    """The GPUs that may be launched it: the target, or all that have room for it."""
    if kernel.target != ANY_GPU:
        return (int(kernel.target.strip("sma_")),)
    able = (one for one in LIMITS if one >= LEAST_CAPABILITY)
    needed = shared_bytes_of(kernel)
    return tuple(one for one in able if LIMITS[one].block_shared >= needed)


def distinct() -> list[Kernel]:
    """One for each name, of the problems that have it now this, now that one."""
    found: dict[str, list[Kernel]] = {}
    for kernel in kernels():
        found.setdefault(kernel.name, []).append(kernel)
    return [ones[crc32(name.encode()) % len(ones)] for name, ones in found.items()]


@functools.cache
def covering() -> tuple[Kernel, ...]:
    """Of each family and type of elements, the kernels of which a thread and of which a block has
    most. (Those of bf16 are those of f16.)"""
    groups: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in distinct():
        if kernel.element == "bf16":
            continue
        groups.setdefault((kernel.family_name, kernel.element), []).append(kernel)
    found = {}
    for ones in groups.values():
        for most in (max(ones, key=_elements_of_thread), max(ones, key=shared_bytes_of)):
            found[most.name] = most
    return tuple(found.values())


def _elements_of_thread(kernel: Kernel) -> float:
    variant = kernel.variant
    elements = getattr(variant, "m", 1) * getattr(variant, "n", getattr(variant, "keys", 1))
    return float(elements / getattr(variant, "threads", 32 * getattr(variant, "warps", 1)))


def shared_bytes_of(kernel: Kernel) -> int:
    """Dynamic shared memory of a block."""
    return int(kernel.family.shared_bytes(kernel.problem, kernel.variant))
