"""The values of a request: how chips, PTX targets, hosts and kinds are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from aotc.artifacts import named_kinds, parse_kind
from aotc.errors import InputError
from aotc.request import (
    DEFAULT_CHIPS,
    DEFAULT_PTX,
    KNOWN_CHIPS,
    BuildRequest,
    Chip,
    HostTarget,
    parse_ptx,
    unique,
)


def test_a_chip_s_names() -> None:
    chip = Chip.parse("sm_90a")
    assert (chip.name, chip.number, chip.compute, chip.capability) == (
        "sm_90a",
        "90a",
        "compute_90a",
        90,
    )
    assert Chip.parse("sm_120").capability == 120


@pytest.mark.parametrize("text", ["", "sm_", "90", "sm_900", "SM_90", "compute_90", "sm_90 "])
def test_unknown_chips(text: str) -> None:
    with pytest.raises(InputError, match=f"^Unknown chip '{text}'"):
        Chip.parse(text)


def test_ptx_targets() -> None:
    assert parse_ptx("none") is None
    assert parse_ptx("compute_80") == Chip("sm_80")
    with pytest.raises(InputError, match=r"Unknown PTX target 'compute_8'\. Near names: compute_8"):
        parse_ptx("compute_8")


# Images → the compute capabilities of the GPUs that run them, of those that are known.
RUNNING: list[tuple[str, str, tuple[int, ...]]] = [
    ("sm_80", "none", (80, 86, 89)),
    ("sm_87", "none", (87,)),
    ("sm_87", "compute_87", (87, 89, 90, 100, 103, 120, 121)),
    ("sm_89", "none", (89,)),
    ("sm_90", "none", (90,)),
    ("sm_90a", "compute_90a", (90,)),
    ("sm_100", "none", (100, 103)),
    ("sm_86", "compute_90", (86, 89, 90, 100, 103, 120, 121)),
    ("sm_75 sm_120a", "none", (75, 120)),
]


@pytest.mark.parametrize(("chips", "ptx", "capabilities"), RUNNING)
def test_what_runs_the_images(chips: str, ptx: str, capabilities: tuple[int, ...]) -> None:
    """Cubins run on later minor versions (but for Orin's), PTX on everything later, those of "a" on
    the one chip."""
    request = BuildRequest(
        Path("x.mlir"), chips=tuple(map(Chip, chips.split())), ptx=parse_ptx(ptx)
    )
    assert request.capabilities == capabilities


def test_the_default_images_run_on_all_from_ampere_on() -> None:
    request = BuildRequest(Path("x.mlir"))
    assert request.capabilities == (80, 86, 87, 89, 90, 100, 103, 120, 121)


def test_shared_memory_of_a_block() -> None:
    """CUDA C++ Programming Guide, "Maximum amount of shared memory per thread block"."""
    found = {name: Chip(name).limits.block_shared // 1024 for name in KNOWN_CHIPS}
    assert found == {
        "sm_75": 64,
        "sm_80": 163,
        "sm_86": 99,
        "sm_87": 163,
        "sm_89": 99,
        **dict.fromkeys(("sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a"), 227),
        **dict.fromkeys(("sm_120", "sm_120a", "sm_121", "sm_121a"), 99),
    }


def test_the_defaults_are_known() -> None:
    """From Ampere on: the PTX is for the oldest chip of the set."""
    chips = [Chip.parse(name) for name in DEFAULT_CHIPS]
    ptx = parse_ptx(DEFAULT_PTX)
    assert ptx is not None
    assert ptx.capability == min(chip.capability for chip in chips) == 80


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("x86_64-linux-gnu", "x86_64-linux-gnu.2.28"),
        ("aarch64-linux-gnu.2.35", "aarch64-linux-gnu.2.35"),
        ("aarch64-linux-musl", "aarch64-linux-musl"),
    ],
)
def test_host_targets(text: str, triple: str) -> None:
    assert HostTarget.parse(text).triple == triple


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x86_64",
        "x86_64-windows-gnu",
        "i386-linux-gnu",
        "x86_64-linux-gnu.2",
        "native",
        "x86_64-linux-gnu.2.28 -v",
    ],
)
def test_unknown_host_targets(text: str) -> None:
    with pytest.raises(InputError, match="Unknown host target"):
        HostTarget.parse(text)


@pytest.mark.parametrize(
    ("machine", "architecture"),
    [("x86_64", "x86_64"), ("AMD64", "x86_64"), ("arm64", "aarch64"), ("aarch64", "aarch64")],
)
def test_this_machine(machine: str, architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    native = HostTarget.native()
    assert native.triple == f"{architecture}-linux-gnu.2.28"
    assert native.is_native
    assert not HostTarget.parse(
        "aarch64-linux-gnu" if architecture == "x86_64" else "x86_64-linux-gnu"
    ).is_native


def test_a_machine_without_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(InputError, match=r"Unknown host target 'riscv64-linux-gnu\.2\.28'"):
        HostTarget.native()


def test_kinds() -> None:
    for kind in named_kinds():
        assert parse_kind(kind.name) is kind
    with pytest.raises(InputError, match="Unknown --emit 'executable'"):
        parse_kind("executable")
    with pytest.raises(InputError, match="Did you mean host-mlir or mlir"):
        parse_kind("hostmlir")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/matmul.mlir", "matmul"),
        ("-", "stdin"),
        ("matmul", "matmul"),
        ("two.parts.mlir", "two"),
        (".mlir", "module"),
        ("my kernel.mlir", "my kernel"),
    ],
)
def test_a_build_is_called_after_its_input(source: str, name: str) -> None:
    assert BuildRequest(Path(source)).name == name


def test_a_request_is_frozen() -> None:
    request = BuildRequest(Path("a.mlir"))
    with pytest.raises(AttributeError):
        request.optimization = 0  # type: ignore[misc]
    assert request.cubin_chips == tuple(map(Chip, DEFAULT_CHIPS))
    assert request.has_default_chips
    named = replace(request, chips=(Chip("sm_75"),))
    assert named.cubin_chips == (Chip("sm_75"),)
    assert not named.has_default_chips


def test_unique_keeps_the_order() -> None:
    assert unique("banana") == ("b", "a", "n")
