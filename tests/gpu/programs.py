"""What each program of tests/gpu/data is called with, and what NumPy says that it must give.

Small kernels for what the samples do not show: every element type, layouts, memory of every
kind, tokens, several gpu.modules. `CASES` is like that of tests/samples.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from samples import F32_RTOL, F64_RTOL, Argument, Case, Values, rng, uniform

DATA = Path(__file__).resolve().parent / "data"

# A product and a sum are rounded one after the other (unless they are fused), and so is what
# they are compared with: 3 halves of a unit in the last place, of positive numbers.
F16_STEPS_RTOL = 1.5 * 2.0**-10
BF16_STEPS_RTOL = 1.5 * 2.0**-7
# Device functions are within a few units in the last place: libdevice documents up to 4 for
# f32, and CUDA's tan and pow need them.
MATH_F32_RTOL = 1e-6
MATH_F64_RTOL = 1e-14

_INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}
_REALS: dict[str, tuple[Any, float]] = {
    "f16": (np.float16, F16_STEPS_RTOL),
    "bf16": (ml_dtypes.bfloat16, BF16_STEPS_RTOL),
    "f32": (np.float32, F32_RTOL),
    "f64": (np.float64, F64_RTOL),
}
_COMPLEX: dict[str, tuple[Any, float]] = {
    "c64": (np.complex64, F32_RTOL),
    "c128": (np.complex128, F64_RTOL),
}


def _integers(name: str, dtype: Any) -> Values:
    """Integers of the whole range: products and sums wrap."""
    r = rng(name)
    limits = np.iinfo(dtype)
    x, y, total = (r.integers(limits.min, limits.max, 1003, dtype, endpoint=True) for _ in "xyt")
    results = {"z": x * y + x, "total": total + x}
    return Values({"x": x, "y": y, "z": x.shape, "total": total}, results, {})


def _booleans(name: str) -> Values:
    r = rng(name)
    x, y, total = (r.integers(0, 2, 1003).astype(bool) for _ in "xyt")
    results = {"z": (x & y) ^ x, "total": total ^ x}
    return Values({"x": x, "y": y, "z": x.shape, "total": total}, results, {})


def _reals(name: str, dtype: Any) -> Values:
    r = rng(name)
    x, y, total = (uniform(r, 1003, dtype, 0.5, 2) for _ in "xyt")
    a, b, t = (array.astype(np.float64) for array in (x, y, total))
    arguments: dict[str, Argument] = {"x": x, "y": y, "z": x.shape, "total": total}
    return Values(arguments, {"z": a * b + a, "total": t + a}, {"z": dtype, "total": dtype})


def _complex(name: str, dtype: Any) -> Values:
    r = rng(name)
    # In one quarter of the plane, so that nothing cancels but the squares of imaginary parts.
    x, y, total = (
        (r.uniform(2, 3, 1003) + 1j * r.uniform(0.5, 1, 1003)).astype(dtype) for _ in "xyt"
    )
    a, b, t = (array.astype(np.complex128) for array in (x, y, total))
    arguments: dict[str, Argument] = {"x": x, "y": y, "z": x.shape, "total": total}
    return Values(arguments, {"z": a * b + a, "total": t + a}, {"z": dtype, "total": dtype})


def _scalars(name: str) -> Values:
    arguments: dict[str, Argument] = {
        "a": 1,
        "b": -100,
        "c": -30_000,
        "d": 2**31 - 1,
        "e": -(2**52) - 1,
        "f": 0.333251953125,
        "g": 3.140625,
        "h": 0.10000000149011612,
        "i": 0.1,
        "j": 12345,
    }
    column = np.array(list(arguments.values()), np.float64)
    column[8] *= 2
    return Values(arguments, {"all": np.repeat(column[:, None], 10, 1)}, {})


def _mirror(name: str, blocks: int, dynamic_bytes: int) -> Values:
    x = uniform(rng(name), 128 * blocks, np.float64, 1, 2)
    in_blocks = x.reshape(blocks, 128)
    # A byte wraps at 128, which no thread reaches.
    y = (1001 * in_blocks + np.arange(128))[:, ::-1]
    arguments: dict[str, Argument] = {
        "x": x,
        "y": x.shape,
        "blocks": blocks,
        "bytes": dynamic_bytes,
    }
    return Values(arguments, {"y": y.reshape(-1)}, {})


def _explicit(name: str, factor: int, addend: int) -> Values:
    x = uniform(rng(name), 1000, np.float32, 1, 2)
    y = factor * x.astype(np.float64) + addend
    return Values({"x": x}, {"y": y}, {"y": np.float32})


def _through_host_memory(name: str) -> Values:
    # Small integers: each partial sum is exact.
    total = np.array(3 * 2 * sum(range(1000)), np.float64)
    return Values({"scale": 2.0}, {"result0": total}, {"result0": np.float32})


def _in_turn(name: str, n: int) -> Values:
    x = rng(name).integers(-1000, 1000, n)
    after = x.copy()
    for round_ in range(6):
        after = 2 * (after + round_)
    return Values({"x": x, "rounds": 6}, {"x": after}, {})


def _registered(name: str, n: int) -> Values:
    x = uniform(rng(name), n, np.float32, -1, 1)
    return Values({"x": x}, {"x": 2 * x.astype(np.float64)}, {"x": np.float32})


def _registered_here(name: str) -> Values:
    return Values({"n": 1003}, {"result0": np.array(sum(i * i for i in range(1003)))}, {})


def _from_table(name: str) -> Values:
    table = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
    return Values({"x": (1003,)}, {"x": np.resize(table, 1003)}, {})


def _returned(name: str, n: int) -> Values:
    return Values(
        {"n": n}, {"result0": np.arange(n, dtype=np.int32), "result1": np.full(n, 0.5)}, {}
    )


def _on_the_stack(name: str) -> Values:
    total = np.array(sum(range(300)) + 300 * 7, np.int32)
    return Values({"first": 7}, {"result0": total}, {})


def _fill_three(name: str) -> Values:
    return Values(
        {}, {n: np.full(64, v, np.int32) for n, v in zip("xyz", (11, 22, 33), strict=True)}, {}
    )


def _padded(name: str) -> Values:
    x = uniform(rng(name), (37, 53), np.float32, -1, 1)
    return Values({"x": x}, {"y": 2 * x.astype(np.float64)}, {"y": np.float32})


def _any_layout(name: str, shape: tuple[int, int]) -> Values:
    x = uniform(rng(name), shape, np.float64, -1, 1)
    return Values({"x": x, "y": shape[::-1]}, {"y": x.T.copy()}, {})


def _box(name: str, shape: tuple[int, int, int]) -> Values:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    return Values({"x": shape}, {"x": x}, {})


def _tall(_: str, rows: int, columns: int) -> Values:
    x = np.add.outer(np.arange(rows), np.arange(columns)).astype(np.int8)
    return Values({"x": x.shape}, {"x": x}, {})


def _point(name: str) -> Values:
    return Values({"x": np.array(2.5, np.float32)}, {"y": np.array([2.5])}, {"y": np.float32})


def _math(name: str, dtype: Any) -> Values:
    from math import erf

    # (0.1, 0.9): every function is defined there, and none is near a zero that is not at 0,
    # but for the logarithms, whose zero is at 1.
    x = uniform(rng(name), 1003, dtype, 0.1, 0.9)
    v = x.astype(np.float64)
    rows = [
        *(np.exp(v), np.exp2(v), np.log(v), np.log2(v), np.log1p(v), np.expm1(v)),
        *(np.sin(v), np.cos(v), np.tan(v), np.arctan(v), np.arcsin(v), np.tanh(v)),
        *(np.sqrt(v), 1 / np.sqrt(v), np.cbrt(v), np.array([erf(value) for value in v])),
        *(np.abs(v), np.floor(v), np.ceil(v), np.floor(v + 0.5), np.rint(v), np.trunc(v)),
        *(v**v, np.arctan2(v, np.exp(v))),
    ]
    y = np.array(rows)
    return Values({"x": x, "y": y.shape}, {"y": y}, {"y": dtype})


def _cluster_places(_: str) -> Values:
    # Clusters of 2 x 2 blocks, in a grid of 4 x 4.
    places = [[[x // 2, y // 2, 2, x % 2, y % 2, 2] for x in range(4)] for y in range(4)]
    return Values({}, {"x": np.array(places, np.int32)}, {})


def _cluster_around(name: str) -> Values:
    x = rng(name).integers(-1000, 1000, (8, 32)).astype(np.int32)
    y = np.roll(x.reshape(2, 4, 32), -1, 1).reshape(8, 32)
    return Values({"x": x}, {"y": y}, {})


def _cluster_sixteen(_: str) -> Values:
    return Values({}, {"x": np.tile(np.arange(16, dtype=np.int32), 2)}, {})


# Of small integers, products and sums are exact in any order.


def _small(r: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    return r.integers(-8, 9, shape).astype(dtype)


def _product(name: str, shape: tuple[int, int, int]) -> Values:
    r = rng(name)
    rows, columns, depth = shape
    a, b = (_small(r, size, np.float16) for size in ((rows, depth), (depth, columns)))
    d = a.astype(np.float64) @ b.astype(np.float64)
    return Values({"a": a, "b": b, "d": d.shape}, {"d": d}, {"d": np.float32})


def _tma_schedule(name: str) -> Values:
    r = rng(name)
    x, y = _small(r, (64, 8), np.float32), _small(r, (8, 128), np.float32)
    return Values({"x": x, "y": y}, {"z": x @ y}, {})


def _tma_memory(name: str) -> Values:
    y = _small(rng(name), (16, 16), np.float32)
    i, j = np.indices((16, 16))
    return Values({"rounds": 4, "y": y}, {"y": y + 4 * i + j * (0 + 1 + 2 + 3)}, {"y": np.float32})


def _schedule_product(name: str, dtype: Any) -> Values:
    r = rng(name)
    depth = 4 if dtype == np.float32 else 16
    a, b, c = (_small(r, shape, dtype) for shape in ((16, depth), (depth, 8), (16, 8)))
    total = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    return Values({"a": a, "b": b, "c": c}, {"c": total}, {"c": dtype})


def _schedule_pipelined(name: str) -> Values:
    x = _small(rng(name), (16, 128), np.float32)
    return Values({"x": x}, {"sums": x.sum(0)}, {})


def _schedule_asynchronous(name: str) -> Values:
    x = _small(rng(name), (128,), np.float32)
    return Values({"x": x}, {"y": x.reshape(32, 4)[::-1].reshape(-1)}, {})


def _softmax_rows(name: str, shape: tuple[int, int]) -> Values:
    x = uniform(rng(name), shape, np.float32, -2, 2)
    e = np.exp(x.astype(np.float64))
    return Values({"x": x, "y": shape}, {"y": e / e.sum(axis=1, keepdims=True)}, {"y": np.float32})


def _backwards(name: str) -> Values:
    x = uniform(rng(name), (33, 1025), np.float32, 0.5, 2)
    y = x + x.sum(axis=1, dtype=np.float64, keepdims=True)
    dtypes = {"y": np.float32, "z": np.float32}
    return Values({"x": x, "y": x.shape, "z": x.shape}, {"y": y, "z": y[:, ::-1]}, dtypes)


def _above_mean(name: str) -> Values:
    x = uniform(rng(name), (1000, 31), np.float64, 0.5, 2)
    return Values({"x": x, "y": x.shape}, {"y": x - x.mean(axis=1, keepdims=True)}, {})


def _sum(name: str, n: int) -> Values:
    r = rng(name)
    x, start = uniform(r, n, np.float32, 0.5, 2), np.array(1.5, np.float32)
    total = np.asarray(1.5 + x.sum(dtype=np.float64))
    return Values({"x": x, "r": start}, {"r": total}, {"r": np.float32})


def _largest(name: str, n: int) -> Values:
    x = rng(name).integers(-(2**31), 2**31, n, np.int32)
    return Values({"x": x, "r": np.array(0, np.int32)}, {"r": np.asarray(x.max())}, {})


def _turn(name: str, shape: tuple[int, int]) -> Values:
    x = uniform(rng(name), shape, np.float32, -1, 1)
    return Values({"x": x, "y": shape[::-1]}, {"y": x.T}, {})


def _blocks(name: str, n: int) -> Values:
    r = rng(name)
    x, y = (uniform(r, n, np.float32, 0.5, 2) for _ in "xy")
    return Values({"x": x, "y": y}, {"y": x.astype(np.float64) + y}, {"y": np.float32})


def _cases() -> dict[str, Case]:
    cases: list[Case] = []

    def add(
        name: str, entry: str | None, make: Callable[..., Values], rtol: float = 0, **more: Any
    ) -> None:
        program = name.split("-")[0]
        cases.append(Case(name, program, partial(make, name), rtol, entry=entry, **more))

    add("types-i1", "i1", _booleans)
    for type_, dtype in _INTEGERS.items():
        add(f"types-{type_}", type_, partial(_integers, dtype=dtype))
    for type_, (dtype, rtol) in _REALS.items():
        add(f"types-{type_}", type_, partial(_reals, dtype=dtype), rtol)
    for type_, (dtype, rtol) in _COMPLEX.items():
        add(f"types-{type_}", type_, partial(_complex, dtype=dtype), rtol)
    add("types-scalars", "scalars", _scalars)

    for blocks, dynamic_bytes in ((1, 1024), (100, 1024), (3, 65536)):
        make = partial(_mirror, blocks=blocks, dynamic_bytes=dynamic_bytes)
        add(f"shared-{blocks}-{dynamic_bytes}", None, make, F64_RTOL)

    add("explicit-in_order", "in_order", partial(_explicit, factor=3, addend=1), F32_RTOL)
    add("explicit-one_chain", "one_chain", partial(_explicit, factor=9, addend=0), F32_RTOL)
    add("explicit-two_chains", "two_chains", partial(_explicit, factor=12, addend=0), F32_RTOL)
    add("explicit-through_host_memory", "through_host_memory", _through_host_memory)

    for n in (0, 1003):
        add(f"memory-in_turn-{n}", "in_turn", partial(_in_turn, n=n))
        add(f"memory-registered-{n}", "registered", partial(_registered, n=n), F32_RTOL)
        add(f"memory-returned-{n}", "returned", partial(_returned, n=n))
    add("memory-registered_here", "registered_here", _registered_here)
    add("memory-from_table", "from_table", _from_table)
    add("memory-on_the_stack", "on_the_stack", _on_the_stack)

    add("two_modules", None, _fill_three)

    add("layouts-padded", "padded", _padded, F32_RTOL)
    for shape in ((1, 1), (97, 31), (3, 1000)):
        size = "x".join(map(str, shape))
        add(f"layouts-any_layout-{size}", "any_layout", partial(_any_layout, shape=shape))
    # 65535 blocks are the most along y and z, of 256 threads at most.
    for rows, columns in ((65535 * 8 + 1, 1), (65535 * 4 + 3, 3)):
        make = partial(_tall, rows=rows, columns=columns)
        add(f"layouts-tall-{rows}x{columns}", "tall", make)
    for box in ((1, 1, 1), (7, 19, 33), (130, 2, 5), (2, 3, 1025), (65535 + 9, 2, 2)):
        size = "x".join(map(str, box))
        add(f"layouts-box-{size}", "box", partial(_box, shape=box))
    add("layouts-point", "point", _point)

    add("math-f32", "f32", partial(_math, dtype=np.float32), MATH_F32_RTOL)
    add("math-f64", "f64", partial(_math, dtype=np.float64), MATH_F64_RTOL)

    for shape in ((1, 1), (33, 31), (5, 1000), (3, 9001)):
        size = "x".join(map(str, shape))
        make = partial(_softmax_rows, shape=shape)
        add(f"mapping-softmax-{size}", "softmax", make, F32_RTOL)
    add("mapping-backwards", "backwards", _backwards, F32_RTOL)
    add("mapping-above_mean", "above_mean", _above_mean, atol=1e-13)
    for n in (1, 1025, 100_003):
        add(f"mapping-sum-{n}", "sum", partial(_sum, n=n), F32_RTOL)
        add(f"mapping-largest-{n}", "largest", partial(_largest, n=n))
        add(f"mapping-blocks-{n}", "blocks", partial(_blocks, n=n), F32_RTOL)
    for shape in ((1, 1), (31, 33), (100, 1025)):
        size = "x".join(map(str, shape))
        add(f"mapping-turn-{size}", "turn", partial(_turn, shape=shape))

    hopper: dict[str, Any] = {"runs_on_cpu": False, "least_major": 9}
    add("cluster-places", "places", _cluster_places, **hopper)
    add("cluster-around", "around", _cluster_around, **hopper)
    add("cluster-sixteen", "sixteen", _cluster_sixteen, **hopper)
    add("tma_schedule", None, _tma_schedule, **hopper)
    add("tma_memory", None, _tma_memory, **hopper)
    for shape in ((128, 256, 64), (256, 128, 192), (128, 128, 1024)):
        make = partial(_product, shape=shape)
        size = "x".join(map(str, shape))
        add(f"warpgroup-{size}", None, make, only_major=9, **hopper)

    add("schedule-f32", "f32", partial(_schedule_product, dtype=np.float32))
    add("schedule-f16", "f16", partial(_schedule_product, dtype=np.float16))
    add("schedule-pipelined", "pipelined", _schedule_pipelined)
    add("schedule-asynchronous", "asynchronous", _schedule_asynchronous)
    return {case.name: case for case in cases}


CASES: Mapping[str, Case] = _cases()


def source_of(program: str) -> Path:
    """The program's file."""
    return DATA / f"{program}.mlir"
