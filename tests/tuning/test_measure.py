"""The script that times kernels on another machine: what it checks, chooses and writes.

The GPU is a dictionary here, and kernels are Python's; NVIDIA's driver is asked of nothing.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aotc.kernels.matmul.tuned import parse_tuned
from aotc.tuning import measure
from aotc.tuning.measure import (
    TYPES,
    TimedMatmul,
    TroubleError,
    decode,
    fastest,
    merged,
    random_block,
    text_of,
)


class FakeDriver:
    """One GPU, whose memory is bytes by address; a graph takes as long as its kernel says."""

    name, capability, stream = "a GPU", 90, 0

    def __init__(self) -> None:
        self.memory: dict[int, bytearray] = {}
        self.addresses = itertools.count(1 << 20, 1 << 20)
        self.clock = 0.0

    def call(self, name: str, *arguments: Any) -> None:
        assert name == "cuGraphExecDestroy"

    def allocate(self, size: int) -> int:
        address = next(self.addresses)
        self.memory[address] = bytearray(size)
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def write(self, address: int, size: int, content: bytes) -> None:
        whole = content * (size // len(content) + 1)
        self.memory[address][:] = whole[:size]

    def fill(self, address: int, size: int, byte: int) -> None:
        self.memory[address][:] = bytes([byte]) * size

    def read(self, address: int, size: int) -> bytes:
        base = max(one for one in self.memory if one <= address)
        return bytes(self.memory[base][address - base : address - base + size])

    def wait(self) -> None:
        pass

    def record(self, run: Any, calls: int) -> Any:
        if not run.can_be_captured:
            raise TroubleError("it allocates")
        return run.seconds * calls

    def launch(self, graph: float) -> None:
        self.clock += graph

    def seconds(self, burst: Callable[[], None]) -> float:
        before = self.clock
        burst()
        return self.clock - before


class Kernel:
    """A · B by the rules of `candidates.json`, `factor` times."""

    def __init__(
        self, product: TimedMatmul, seconds: float, factor: float, can_be_captured: bool = True
    ) -> None:
        self.product, self.seconds, self.factor = product, seconds, factor
        self.can_be_captured = can_be_captured

    def __call__(self, i: int) -> None:
        product = self.product
        product.driver.clock += self.seconds
        (a, b, c), driver = product.sets[i % len(product.sets)], product.driver
        left, right, result = product.operands
        m, n, k = product.case["sizes"]

        def element(address: int, operand: dict[str, Any], batch: int, *at: int) -> float:
            row, column = reversed(at) if operand["transposed"] else at
            size = TYPES[operand["element"]][0]
            place = measure.place_of(operand, batch, row, column)
            return decode(operand["element"], driver.read(address + size * place, size))

        assert result["element"] == "f32"
        for batch, row, column in itertools.product(
            range(product.case["batches"]), range(m), range(n)
        ):
            total = sum(
                element(a, left, batch, row, i) * element(b, right, batch, i, column)
                for i in range(k)
            )
            at = 4 * measure.place_of(result, batch, row, column)
            driver.memory[c][at : at + 4] = struct.pack("<f", total * self.factor)


def operand(
    element: str, rows: int, columns: int, pitch: int, *, transposed: bool
) -> dict[str, Any]:
    return {
        "element": element,
        "transposed": transposed,
        "elements": 2 * rows * pitch,
        "strides": [rows * pitch, pitch],
        "passed": [],
    }


# Two matrices: A lies transposed, B in a wider matrix.
PRODUCT = {
    "problem": "a product",
    "chip": "sm_90a",
    "capability": 90,
    "sizes": [3, 4, 5],
    "batches": 2,
    "adds": False,
    "operands": [
        operand("f16", 5, 3, 3, transposed=True),
        operand("f16", 5, 4, 7, transposed=False),
        operand("f32", 3, 4, 4, transposed=False),
    ],
}
# Seconds, what the kernel makes of each sum, and whether it can be captured.
Kernels = dict[str, tuple[Any, ...]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The script, beside a list of these kernels."""
    monkeypatch.setattr(measure, "Driver", FakeDriver)
    monkeypatch.setattr(measure, "HERE", tmp_path)
    monkeypatch.setattr(measure, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(measure, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(measure, "ROTATED_BYTES", 1 << 10)

    def call(kernels: Kernels, *words: str, **changes: Any) -> int:
        candidates = [
            {"label": name, "kernel": "wgmma", "variant": {"n": number}}
            for number, name in enumerate(kernels)
        ]
        product = {**PRODUCT, "candidates": candidates, **changes}
        (tmp_path / "candidates.json").write_text(json.dumps([product]))
        monkeypatch.setattr(
            TimedMatmul, "entry", lambda self, one: Kernel(self, *kernels[one["label"]])
        )
        return measure.main(words)

    return call


def noted(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(path.read_text())["products"]
    return entries


def test_the_fastest_is_noted(run: Callable[..., int], tmp_path: Path) -> None:
    file = tmp_path / "tune.json"
    assert run({"one": (3e-6, 1), "two": (1e-6, 1), "three": (2e-6, 1)}, str(file)) == 0
    (entry,) = noted(file)
    assert (entry["variant"], entry["microseconds"], entry["candidates"]) == ({"n": 1}, 1.0, 3)
    assert (entry["gpu"], entry["sizes"]) == ("a GPU", [3, 4, 5])
    assert [str(one.chip) for one in parse_tuned(file.read_text())] == ["sm_90a"]


def test_what_computes_something_else_is_left_out(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tune.json"
    assert run({"right": (3e-6, 1), "nothing": (1e-9, 0), "half": (1e-9, 0.5)}, str(file)) == 0
    assert noted(file)[0]["variant"] == {"n": 0}
    said = capsys.readouterr().err
    assert "nothing: left out: it makes " in said
    assert "half: left out: it makes " in said


def test_what_cannot_be_in_a_graph_is_timed_all_the_same(
    run: Callable[..., int], tmp_path: Path
) -> None:
    file = tmp_path / "tune.json"
    assert run({"one": (3e-6, 1), "two": (1e-6, 1, False)}, str(file)) == 0
    assert (noted(file)[0]["variant"], noted(file)[0]["microseconds"]) == ({"n": 1}, 1.0)


def test_one_product_that_fails_keeps_no_other_from_being_noted(
    run: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def allocate(self: FakeDriver, size: int) -> int:
        raise TroubleError("cuMemAlloc_v2 says CUDA_ERROR_OUT_OF_MEMORY")

    file = tmp_path / "tune.json"
    assert run({"one": (3e-6, 1)}, str(file)) == 0
    monkeypatch.setattr(FakeDriver, "allocate", allocate)
    assert run({"one": (3e-6, 1)}, str(file), problem="another") == 0
    assert "left out: cuMemAlloc_v2 says CUDA_ERROR_OUT_OF_MEMORY" in capsys.readouterr().err
    assert [entry["problem"] for entry in noted(file)] == ["a product"]


def test_where_none_is_right_nothing_is_noted(run: Callable[..., int], tmp_path: Path) -> None:
    file = tmp_path / "tune.json"
    assert run({"nothing": (1e-9, 0)}, str(file)) == 0
    assert noted(file) == []


def test_the_models_choice_stays_within_noise() -> None:
    assert fastest([1.0, 0.995]) == 0
    assert fastest([1.0, 0.98, 0.97]) == 2
    assert fastest([]) is None


def test_other_products_stay_in_the_file(run: Callable[..., int], tmp_path: Path) -> None:
    file = tmp_path / "tune.json"
    assert run({"one": (3e-6, 1)}, str(file), problem="b") == 0
    assert run({"one": (3e-6, 1)}, str(file), problem="a") == 0
    assert run({"one": (2e-6, 1)}, str(file), problem="b") == 0
    found = [(entry["problem"], entry["microseconds"]) for entry in noted(file)]
    assert found == [("a", 3.0), ("b", 2.0)]


def test_without_a_file_it_is_printed(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run({"one": (3e-6, 1)}, "--quiet") == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["products"]) == 1
    assert said.err == ""


def test_kernels_of_other_chips_are_refused(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run({"one": (1e-6, 1)}, chip="sm_80", capability=80) == 1
    assert capsys.readouterr().err == (
        "run: this GPU, a GPU, has compute capability 9.0, and the kernels are for sm_80\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "is no file of this kind"), ('{"format": 2}', "has format 2, and this is 1")],
)
def test_another_file_is_not_written_over(
    text: str,
    reason: str,
    run: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "tune.json"
    file.write_text(text)
    assert run({"one": (1e-6, 1)}, str(file)) == 1
    assert reason in capsys.readouterr().err
    assert file.read_text() == text


def test_without_a_driver_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_nothing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(measure, "HERE", tmp_path)
    monkeypatch.setattr(measure.ctypes, "CDLL", open_nothing)
    (tmp_path / "candidates.json").write_text("[]")
    assert measure.main([]) == 1
    said = capsys.readouterr().err
    assert said == "run: there is no GPU here: NVIDIA's driver is not installed\n"


def test_newer_entries_win_and_order_is_by_key() -> None:
    def entry(chip: str, problem: str, size: int, time: float) -> dict[str, Any]:
        return {"chip": chip, "problem": problem, "sizes": [size], "microseconds": time}

    old = [entry("sm_90a", "b", 1, 1.0), entry("sm_80", "b", 1, 1.0)]
    new = [entry("sm_90a", "b", 1, 2.0), entry("sm_90a", "a", 2, 1.0), entry("sm_90a", "a", 1, 1.0)]
    assert merged(old, new) == [old[1], new[2], new[1], new[0]]
    assert json.loads(text_of(new))["products"] == new


def numbers(element: str) -> Iterator[float]:
    block, size = random_block(element), TYPES[element][0]
    for at in range(0, 4096, size):
        yield decode(element, block[at : at + size])


@pytest.mark.parametrize("element", [element for element in TYPES if element[0] != "i"])
def test_random_floats_are_between_a_half_and_one(element: str) -> None:
    found = list(numbers(element))
    assert all(0.5 <= abs(one) < 1 for one in found)
    assert len(set(found)) >= 8
    assert min(found) < 0 < max(found)


@pytest.mark.parametrize(
    ("element", "bits", "number"),
    [
        ("f8E4M3FN", 0x38, 1.0),
        ("f8E4M3FN", 0x01, 2.0**-9),
        ("f8E4M3FN", 0xFE, -448.0),
        ("f8E5M2", 0x3C, 1.0),
        ("f8E5M2", 0x01, 2.0**-16),
        ("f8E5M2", 0x7B, 57344.0),
        ("bf16", 0x3F80, 1.0),
        ("i8", 0xFF, -1.0),
    ],
)
def test_elements_are_read(element: str, bits: int, number: float) -> None:
    assert decode(element, bits.to_bytes(TYPES[element][0], "little")) == number


def test_what_is_no_number_is_none() -> None:
    for element, bits in (("f8E4M3FN", 0x7F), ("f8E5M2", 0x7D), ("bf16", 0xFFFF), ("f16", 0xFFFF)):
        found = decode(element, bits.to_bytes(TYPES[element][0], "little"))
        assert found != found, element
