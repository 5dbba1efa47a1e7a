"""Times the kernels beside this file on this machine's GPU, and records the fastest ones.

    run [FILE]

FILE keeps its entries for other matmuls and chips; without FILE, the text is printed. Only Python's
standard library and NVIDIA's driver are needed: aotc copies this file beside the candidates.

Each kernel is first checked: some elements of C, which was filled with NaN, are compared with sums
that are computed here. Then the kernels run in bursts of some milliseconds (one CUDA graph each),
in a new random order for each round, with a pause before each burst. Operands are random and
rotate, so that none is in the cache. The result is the median of the bursts, timed by events.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import random
import statistics
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FORMAT = 1
HERE = Path(__file__).resolve().parent
ROUNDS = 9
BURST_SECONDS = 3e-3
PAUSE_SECONDS = 0.01
MOST_CALLS = 200
ROTATED_BYTES = 200 << 20
MOST_SETS = 8
# The random bytes that operands are filled with, repeatedly.
BLOCK_BYTES = 8 << 20
# The number of elements of C that are compared with exact sums.
CHECKED = 8
# The model's choice is kept if the relative gain is smaller: it may be noise.
LEAST_GAIN = 0.01

# For each type: bytes; a mask of the random bits, and the bits that are set, so that floats have an
# absolute value between 1/2 and 1; the tolerance of results, relative to the sum of the products'
# absolute values.
TYPES = {
    "f64": (8, 0x800FFFFFFFFFFFFF, 0x3FE0000000000000, 1e-13),
    "f32": (4, 0x807FFFFF, 0x3F000000, 1e-3),
    "f16": (2, 0x83FF, 0x3800, 1e-3),
    "bf16": (2, 0x807F, 0x3F00, 1e-2),
    "f8E4M3FN": (1, 0x87, 0x30, 0.1),
    "f8E5M2": (1, 0x83, 0x38, 0.2),
    "i32": (4, 0xFFFFFFFF, 0, 0.0),
    "i8": (1, 0xFF, 0, 0.0),
}


class TroubleError(Exception):
    """Why a kernel, or all kernels, cannot be timed."""


def random_block(element: str) -> bytes:
    size, kept, set_, _ = TYPES[element]
    count = BLOCK_BYTES // size
    number = int.from_bytes(random.randbytes(BLOCK_BYTES), "little")
    number &= int.from_bytes(kept.to_bytes(size, "little") * count, "little")
    number |= int.from_bytes(set_.to_bytes(size, "little") * count, "little")
    return number.to_bytes(BLOCK_BYTES, "little")


def decode(element: str, bits: bytes) -> float:
    """The value of an element with these bytes."""
    if element in ("f64", "f32", "f16", "i32", "i8"):
        letter = {"f64": "d", "f32": "f", "f16": "e", "i32": "i", "i8": "b"}[element]
        return float(struct.unpack(f"<{letter}", bits)[0])
    if element == "bf16":
        return float(struct.unpack("<f", b"\0\0" + bits)[0])
    # Eight bits: a sign, an exponent, a mantissa (OCP 8-bit Floating Point Specification, 5).
    wide, bias = (3, 7) if element == "f8E4M3FN" else (2, 15)
    (byte,) = bits
    exponent, mantissa = (byte & 0x7F) >> wide, (byte & ((1 << wide) - 1)) / (1 << wide)
    is_nan = byte & 0x7F == 0x7F or (element == "f8E5M2" and exponent == 31)
    if is_nan:
        return float("nan")
    size = (1 + mantissa) * 2.0 ** (exponent - bias) if exponent else mantissa * 2.0 ** (1 - bias)
    return -size if byte & 0x80 else size


class Driver:
    """NVIDIA's driver and the first GPU. Raises TroubleError if there is none."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise TroubleError("there is no GPU here: NVIDIA's driver is not installed") from None
        try:
            self.call("cuInit", 0)
            device = ctypes.c_int()
            self.call("cuDeviceGet", ctypes.byref(device), 0)
        except TroubleError as error:
            raise TroubleError(f"there is no GPU here: {error}") from None
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        major, minor = (self._attribute(number, device) for number in (75, 76))
        self.capability = 10 * major + minor
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)  # CU_STREAM_NON_BLOCKING
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            said = text.value.decode() if text.value else str(status)
            raise TroubleError(f"{name} says {said}")

    def _attribute(self, number: int, device: Any) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, size: int, content: bytes) -> None:
        """Fills `size` bytes with the content, repeatedly."""
        first = min(size, len(content))
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), content, ctypes.c_size_t(first))
        for at in range(first, size, first):
            part = min(first, size - at)
            target, source = ctypes.c_uint64(address + at), ctypes.c_uint64(address)
            self.call("cuMemcpyDtoD_v2", target, source, ctypes.c_size_t(part))

    def fill(self, address: int, size: int, byte: int) -> None:
        self.call("cuMemsetD8_v2", ctypes.c_uint64(address), byte, ctypes.c_size_t(size))

    def read(self, address: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", buffer, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return buffer.raw

    def wait(self) -> None:
        self.call("cuStreamSynchronize", self.stream)

    def record(self, run: Any, calls: int) -> Any:
        """A graph of `calls` calls. Raises TroubleError for a kernel that cannot be captured."""
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 2)  # CU_STREAM_CAPTURE_MODE_RELAXED
        failure = None
        try:
            for i in range(calls):
                run(i)
        except TroubleError as error:  # the capture must be ended first
            failure = error
        try:
            self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        except TroubleError as error:
            raise failure or error from None
        if failure is not None:
            self.call("cuGraphDestroy", graph)
            raise failure
        flags = ctypes.c_ulonglong(0)
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, flags)
        self.call("cuGraphDestroy", graph)
        return made

    def launch(self, graph: Any) -> None:
        self.call("cuGraphLaunch", graph, self.stream)

    def seconds(self, burst: Any) -> float:
        """The GPU time of the work that `burst` enqueues."""
        start, end = self._events
        self.call("cuEventRecord", start, self.stream)
        burst()
        self.call("cuEventRecord", end, self.stream)
        self.wait()
        taken = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(taken), start, end)
        return taken.value * 1e-3


class TimedMatmul:
    """A matmul of candidates.json, with its operands in the GPU's memory.

    Its `operands` are A, B and C with their layouts: element type, shape (with the batch first, if
    there is one), the strides in elements between rows and between matrices, and the sizes that
    entries are called with.
    """

    def __init__(self, driver: Driver, case: dict[str, Any]) -> None:
        self.driver, self.case = driver, case
        self.operands = case["operands"]
        self.sizes = [one["elements"] * TYPES[one["element"]][0] for one in self.operands]
        self.blocks = [random_block(one["element"]) for one in self.operands]
        count = max(1, min(MOST_SETS, ROTATED_BYTES // max(1, sum(self.sizes))))
        self.sets = [self._operands() for _ in range(count)]
        self.exact = {place: self._sum(*place) for place in self._places()}

    def _operands(self) -> list[int]:
        found = []
        for size, block in zip(self.sizes, self.blocks, strict=True):
            address = self.driver.allocate(size)
            self.driver.write(address, size, block)
            found.append(address)
        return found

    def close(self) -> None:
        for addresses in self.sets:
            for address in addresses:
                self.driver.free(address)

    def entry(self, candidate: dict[str, Any]) -> Any:
        """A candidate, as a function of the index of the operand set to use."""
        library = ctypes.CDLL(str(HERE / candidate["library"]))
        message = library[candidate["last_error"]]
        message.restype = ctypes.c_char_p
        function = library[candidate["function"]]
        pointer, number = ctypes.c_void_p, ctypes.c_int64

        def run(i: int) -> None:
            arguments: list[Any] = []
            for operand, address in zip(self.operands, self.sets[i % len(self.sets)], strict=True):
                arguments += [pointer(address), *map(number, operand["passed"])]
            if function(*arguments, self.driver.stream) != 0:
                raise TroubleError(message().decode(errors="replace"))

        return run

    def check(self, run: Any) -> None:
        """Raises TroubleError if elements of C differ from their expected sums."""
        address, size = self.sets[0][2], self.sizes[2]
        adds = self.case["adds"]
        # All bits set is a NaN, or -1 for integers.
        self.driver.fill(address, size, 0 if adds else 0xFF)
        run(0)
        self.driver.wait()
        c = self.operands[2]
        bytes_, _, _, tolerance = TYPES[c["element"]]
        for place, (exact, most) in self.exact.items():
            at = bytes_ * place_of(c, *place)
            found = decode(c["element"], self.driver.read(address + at, bytes_))
            if c["element"].startswith("i"):
                if int(found - exact) % (1 << (8 * bytes_)):
                    raise TroubleError(f"it makes {found:.0f} of {exact:.0f} at {place}")
            elif not abs(found - exact) <= tolerance * most:
                raise TroubleError(f"it makes {found:.6g} of {exact:.6g} at {place}")

    def _places(self) -> Iterator[tuple[int, int, int]]:
        batches, (m, n, _) = self.case["batches"], self.case["sizes"]
        yield 0, 0, 0
        yield batches - 1, m - 1, n - 1
        for _ in range(CHECKED - 2):
            yield random.randrange(batches), random.randrange(m), random.randrange(n)

    def _sum(self, batch: int, row: int, column: int) -> tuple[float, float]:
        """The expected element of C, and the sum of the absolute values of its products."""
        a, b = self.operands[:2]
        total, most = 0.0, 0.0
        for i in range(self.case["sizes"][2]):
            left = self._element(0, batch, *((i, row) if a["transposed"] else (row, i)))
            right = self._element(1, batch, *((column, i) if b["transposed"] else (i, column)))
            total += left * right
            most += abs(left * right)
        return total, most

    def _element(self, number: int, batch: int, row: int, column: int) -> float:
        operand, block = self.operands[number], self.blocks[number]
        size = TYPES[operand["element"]][0]
        at = size * place_of(operand, batch, row, column) % BLOCK_BYTES
        return decode(operand["element"], block[at : at + size])

    def measure(self, runs: Sequence[Any]) -> list[float]:
        """The seconds of each kernel, run alternately."""
        bursts = [Burst(self.driver, run) for run in runs]
        times: list[list[float]] = [[] for _ in runs]
        for _ in range(ROUNDS):
            for number in random.sample(range(len(runs)), len(runs)):
                time.sleep(PAUSE_SECONDS)
                times[number].append(bursts[number].seconds())
        for burst in bursts:
            burst.close()
        return [statistics.median(taken) for taken in times]


class Burst:
    """Consecutive calls of a kernel for some milliseconds: a graph, or single calls if the kernel
    cannot be captured."""

    def __init__(self, driver: Driver, run: Any) -> None:
        self.driver, self.run = driver, run
        self.graph: Any = None
        self.calls = 5
        self._call()  # one-time work, such as loading, is done here
        fitting = self.calls * BURST_SECONDS / driver.seconds(self._call)
        self.calls = max(1, min(MOST_CALLS, int(fitting)))
        with contextlib.suppress(TroubleError):
            self.graph = driver.record(run, self.calls)

    def _call(self) -> None:
        if self.graph is not None:
            self.driver.launch(self.graph)
            return
        for i in range(self.calls):
            self.run(i)

    def seconds(self) -> float:
        return self.driver.seconds(self._call) / self.calls

    def close(self) -> None:
        if self.graph is not None:
            self.driver.call("cuGraphExecDestroy", self.graph)


def place_of(operand: dict[str, Any], batch: int, row: int, column: int) -> int:
    """The offset of an element, in elements."""
    outer, pitch = operand["strides"]
    return int(batch * outer + row * pitch + column)


def tune(driver: Driver, case: dict[str, Any], tell: Any) -> dict[str, Any] | None:
    """The entry for a matmul: the fastest candidate; None if none can be timed."""
    able, runs = [], []
    here = TimedMatmul(driver, case)
    try:
        for candidate in case["candidates"]:
            try:
                run = here.entry(candidate)
                here.check(run)
            except (TroubleError, OSError, AttributeError) as error:
                tell(f"  {candidate['label']}: left out: {error}")
                continue
            able.append(candidate)
            runs.append(run)
        seconds = here.measure(runs)
    finally:
        here.close()
    work = 2e-12 * case["batches"]
    for size in case["sizes"]:
        work *= size
    unit = "TOP/s" if case["operands"][0]["element"].startswith("i") else "TFLOP/s"
    for candidate, taken in sorted(zip(able, seconds, strict=True), key=lambda pair: pair[1]):
        speed = work / taken
        tell(f"  {candidate['label']}: {1e6 * taken:.2f} us, {speed:.1f} {unit}")
    best = fastest(seconds)
    if best is None:
        return None
    return entry_for(case, able[best], seconds[best], driver.name, len(able))


def fastest(seconds: Sequence[float]) -> int | None:
    """The index of the kernel to use: 0, the model's choice, unless another one is faster by more
    than the noise."""
    if not seconds:
        return None
    best = min(range(len(seconds)), key=seconds.__getitem__)
    return best if seconds[best] < seconds[0] * (1 - LEAST_GAIN) else 0


def entry_for(
    case: dict[str, Any], candidate: dict[str, Any], seconds: float, gpu: str, count: int
) -> dict[str, Any]:
    return {
        "chip": case["chip"],
        "problem": case["problem"],
        "sizes": case["sizes"],
        "kernel": candidate["kernel"],
        "variant": candidate["variant"],
        "microseconds": float(f"{1e6 * seconds:.4g}"),
        "candidates": count,
        "gpu": gpu,
    }


def merged(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of both, sorted; for the same problem, sizes and chip, the new one."""

    def key(entry: dict[str, Any]) -> tuple[Any, ...]:
        return entry["chip"], entry["problem"], tuple(entry["sizes"])

    by_key = {key(entry): entry for entry in [*old, *new]}
    return [by_key[one] for one in sorted(by_key)]


def text_of(entries: Sequence[dict[str, Any]]) -> str:
    """The contents of the file: JSON, with one line per entry."""
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    return f'{{"format": {FORMAT}, "products": [\n{lines}\n]}}\n'


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries of the file, none if it does not exist. Raises TroubleError for any other
    file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise TroubleError(f"'{path}' has format {document['format']}, and this is {FORMAT}")
        entries = list(document["products"])
        merged([], entries)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TroubleError(f"'{path}' is no file of this kind: {error}") from None
    return entries


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS")
    parser.add_argument("-q", "--quiet", action="store_true")
    options = parser.parse_args(arguments)

    def tell(line: str) -> None:
        if not options.quiet:
            print(line, file=sys.stderr, flush=True)

    end = time.monotonic() + options.limit
    try:
        old = read_entries(options.file) if options.file is not None else []
        cases = json.loads((HERE / "candidates.json").read_text(encoding="utf-8"))
        driver = Driver()
        here = [one for one in cases if one["capability"] == driver.capability]
        if not here:
            chips = ", ".join(sorted({one["chip"] for one in cases})) or "none"
            raise TroubleError(
                f"this GPU, {driver.name}, has compute capability {driver.capability / 10}, and "
                f"the kernels are for {chips}"
            )
        new = []
        for case in here:
            if time.monotonic() > end:
                tell("no time left")
                break
            sizes = "x".join(map(str, case["sizes"]))
            tell(f"{case['problem']}, at {sizes}, {driver.name}:")
            try:
                entry = tune(driver, case, tell)
            except TroubleError as error:
                # Measurements so far are kept.
                tell(f"  left out: {error}")
                continue
            new += [] if entry is None else [entry]
    except TroubleError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    text = text_of(merged(old, new))
    if options.file is None:
        print(text, end="")
    else:
        draft = options.file.with_name(f".{options.file.name}.new")
        draft.write_text(text, encoding="utf-8")
        draft.replace(options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
