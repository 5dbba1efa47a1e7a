"""What a product of a sparse matrix and a vector takes by each library here, and by cuSPARSE.

    python3 measure.py [LENGTH | mixed | power]...

Times are those of a call in a CUDA graph of 20 calls: the median of 15 replays, in us. The error is
the largest one, as a part of the sum of the absolute values of the row's products.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
HERE = Path(__file__).resolve().parent
ROWS = 262144
CALLS, REPLAYS = 20, 15
CHUNK = 1 << 23
# cuSPARSE's numbers: a type, 32-bit indices, its algorithms for rows.
TYPES: dict[str, tuple[Any, int, Any]] = {
    "f32": (torch.float32, 0, ctypes.c_float),
    "f64": (torch.float64, 1, ctypes.c_double),
}
INDEX_32 = 2
ALGORITHMS = {"CSR_ALG1": 2, "CSR_ALG2": 3}


def row_lengths(kind: str) -> Any:
    """All equal, of 0 to 16 elements, or by a power law with a mean of 16."""
    if kind == "mixed":
        return torch.randint(0, 17, (ROWS,), device="cuda")
    if kind == "power":
        weights = torch.arange(1, ROWS + 1, device="cuda", dtype=torch.float64) ** -0.8
        lengths = (weights / weights.sum() * 16 * ROWS).round().long().clamp(max=ROWS // 2)
        return lengths[torch.randperm(ROWS, device="cuda")]
    return torch.full((ROWS,), int(kind), device="cuda")


def pointer(tensor: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def microseconds(call: Callable[[int], None]) -> float:
    """Of one call, which takes a stream."""
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call(stream.cuda_stream)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        for _ in range(CALLS):
            call(stream.cuda_stream)
    times: list[float] = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return sorted(times)[len(times) // 2]


class Matrix:
    """A random matrix by rows, vectors, and what the product must be."""

    def __init__(self, kind: str, dtype: Any) -> None:
        lengths = row_lengths(kind)
        self.positions = torch.zeros(ROWS + 1, dtype=torch.int32, device="cuda")
        self.positions[1:] = lengths.cumsum(0)
        self.count = int(self.positions[-1])
        rows = torch.repeat_interleave(torch.arange(ROWS, device="cuda"), lengths)
        columns = torch.randint(0, ROWS, (self.count,), device="cuda")
        self.columns = (torch.sort(rows * ROWS + columns).values % ROWS).int()
        self.values = torch.randn(self.count, dtype=dtype, device="cuda")
        self.x = torch.randn(ROWS, dtype=dtype, device="cuda")
        self.y = torch.full((ROWS,), float("nan"), dtype=dtype, device="cuda")
        self.expected, self.size = (
            torch.zeros(ROWS, dtype=torch.float64, device="cuda") for _ in range(2)
        )
        for at in range(0, self.count, CHUNK):
            part = slice(at, at + CHUNK)
            products = self.values[part].double() * self.x[self.columns[part].long()].double()
            self.expected.index_add_(0, rows[part], products)
            self.size.index_add_(0, rows[part], products.abs())

    def measure(self, call: Callable[[int], None]) -> tuple[float, float]:
        """The time, and the error of the last call."""
        self.y.fill_(float("nan"))
        time = microseconds(call)
        error = (self.y.double() - self.expected).abs() / self.size.clamp(min=1e-300)
        return time, float(error.max())


def by_cusparse(library: Any, matrix: Matrix, name: str, algorithm: int) -> tuple[float, float]:
    _, type_, scalar = TYPES[name]

    def check(status: int) -> None:
        if status != 0:
            raise RuntimeError(f"cuSPARSE: status {status}")

    handle, a, x, y = (ctypes.c_void_p() for _ in range(4))
    rows, count = ctypes.c_int64(ROWS), ctypes.c_int64(matrix.count)
    arrays = map(pointer, (matrix.positions, matrix.columns, matrix.values))
    check(library.cusparseCreate(ctypes.byref(handle)))
    shape = (rows, rows, count, *arrays, INDEX_32, INDEX_32, 0, type_)
    check(library.cusparseCreateCsr(ctypes.byref(a), *shape))
    check(library.cusparseCreateDnVec(ctypes.byref(x), rows, pointer(matrix.x), type_))
    check(library.cusparseCreateDnVec(ctypes.byref(y), rows, pointer(matrix.y), type_))
    one, zero = scalar(1), scalar(0)
    product = (handle, 0, ctypes.byref(one), a, x, ctypes.byref(zero), y, type_, algorithm)
    size = ctypes.c_size_t()
    check(library.cusparseSpMV_bufferSize(*product, ctypes.byref(size)))
    memory = torch.empty(max(1, size.value), dtype=torch.uint8, device="cuda")
    check(library.cusparseSpMV_preprocess(*product, pointer(memory)))

    def call(stream: int) -> None:
        check(library.cusparseSetStream(handle, ctypes.c_void_p(stream)))
        check(library.cusparseSpMV(*product, pointer(memory)))

    return matrix.measure(call)


def by_aotc(library: Any, matrix: Matrix) -> tuple[float, float]:
    arrays = (matrix.positions, matrix.columns, matrix.values)
    sized = [word for one in arrays for word in (pointer(one), ctypes.c_int64(len(one)))]

    def call(stream: int) -> None:
        vectors = (pointer(matrix.x), pointer(matrix.y))
        if library.matvec_async(*sized, *vectors, ctypes.c_void_p(stream)) != 0:
            raise RuntimeError("matvec_async failed")

    return matrix.measure(call)


def find_cusparse() -> Any:
    names = [ctypes.util.find_library("cusparse"), "libcusparse.so.12", "libcusparse.so"]
    places = Path("/usr/local").glob("cuda*/targets/*/lib/libcusparse.so*")
    for name in [*filter(None, names), *map(str, places)]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise SystemExit("there is no cuSPARSE")


def main() -> None:
    cusparse = find_cusparse()
    print(torch.cuda.get_device_name())
    for kind in sys.argv[1:] or ["8", "32", "200", "mixed", "power"]:
        for name, (dtype, _, _) in TYPES.items():
            matrix = Matrix(kind, dtype)
            library = ctypes.CDLL(str(HERE / f"{name}.so"))
            time, error = by_aotc(library, matrix)
            print(f"{kind:6} {name} aotc     {time:8.1f} us  error {error:.1e}")
            for algorithm, number in ALGORITHMS.items():
                other, error = by_cusparse(cusparse, matrix, name, number)
                ratio = time / other
                print(
                    f"{kind:6} {name} {algorithm} {other:8.1f} us  error {error:.1e}  {ratio:.2f}"
                )


if __name__ == "__main__":
    main()
