"""What was built of a module is called as the module is, on the CPU device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from torch.utils import _pytree  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

OPTIONS = {"emit": "shared", "chips": "sm_90", "optimization": 1}


@dataclass
class Out:
    """Known to PyTorch by name."""

    scaled: Any
    nothing: Any
    pair: Any


@dataclass
class Nameless:
    first: Any


class Pair(NamedTuple):
    left: Any
    right: Any


_pytree.register_dataclass(Out, serialized_type_name="frontends.test_torch_calls.Out")
_pytree.register_dataclass(Nameless)
_pytree._register_namedtuple(Pair, serialized_type_name="frontends.test_torch_calls.Pair")


class Everything(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(4.0))
        self.register_buffer("table", torch.arange(3, dtype=torch.int16))

    def forward(
        self, x: Any, z: Any, *, scale: Any, opt: Any = None, d: Any = None, k: int = 2
    ) -> Any:
        y = x * scale + d["a"] * k + self.weight
        types = (torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int64)
        return Out(
            {"y": y, "turned": y.T, "again": [y], "x": x, "views": (x.T, x[:, 1])},
            opt,
            Pair((y > 1, y.sum(), x.shape[0], x.shape[0] * 4 + 1, "text", 1.5), None),
        ), [
            (y * 30).to(torch.uint8),
            *(y.to(type_) for type_ in types),
            z,
            self.table,
            self.weight,
            torch.zeros(0, 3),
        ]


def given(rows: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    torch.manual_seed(rows)
    x, z, a = torch.rand(rows, 4), torch.randint(256, (rows, 2), dtype=torch.uint8), torch.rand(4)
    named = {"scale": torch.tensor(2.0), "d": {"b": None, "a": a}, "k": 3, "opt": None}
    return (x, z), named


def check(expected: Any, got: Any, place: str = "") -> None:
    """The same classes, with tensors of the same types, sizes and values."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(got, torch.Tensor), place
        assert expected.shape == got.shape, place
        torch.testing.assert_close(expected, got, msg=place)
        return
    assert type(expected) is type(got), place
    if isinstance(expected, dict):
        assert list(expected) == list(got)
        for key, value in expected.items():
            check(value, got[key], f"{place}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(expected) == len(got)
        for i, pair in enumerate(zip(expected, got, strict=True)):
            check(*pair, f"{place}[{i}]")
    elif isinstance(expected, Out):
        check(vars(expected), vars(got), place)
    else:
        assert expected == got, place


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


@pytest.fixture(scope="module", params=["one size", "any size"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = Everything()
    args, kwargs = given(3)
    shapes = None
    if request.param == "any size":
        rows = {0: torch.export.Dim("rows", min=1, max=100)}
        other = {"scale": None, "d": {"b": None, "a": None}, "k": None, "opt": None}
        shapes = {"x": rows, "z": rows, **other}
    out = tmp_path_factory.mktemp("everything")
    artifact = aotc.torch.build(
        module, args, kwargs=kwargs, dynamic_shapes=shapes, out=f"{out}/", **OPTIONS
    )
    return module, artifact, [3] if shapes is None else [3, 2, 7, 1]


@torch.no_grad()
def test_arguments_and_results(built: Any) -> None:
    module, artifact, sizes = built
    for called in (artifact, aotc.torch.load(artifact.path), aotc.torch.load(artifact)):
        for rows in sizes:
            (x, z), named = given(rows)
            expected = module(x, z, **named)
            check(expected, called(x, z, **named))
            check(expected, called(z=z, **named, x=x))
            turned = {"b": None, **named["d"]}
            check(expected, called(x, z=z, **{**named, "d": dict(reversed(turned.items()))}))


@torch.no_grad()
def test_tensors_of_any_layout(built: Any) -> None:
    """Not contiguous, with a gradient, to be negated, a parameter: values are the tensor's."""
    module, artifact, _ = built
    (x, z), named = given(3)
    whole = torch.rand(8, 6)
    complex_ = torch.complex(x, -x)
    for tensor in (
        *(x.T.contiguous().T, whole[1:7:2, 1:5], whole[0, 0].expand(3, 4)),
        *(torch.nn.Parameter(x), complex_.conj().imag),
    ):
        check(module(tensor, z, **named), artifact(tensor, z, **named))


def test_results_are_the_callers(built: Any) -> None:
    """They share memory with no argument and no other result, and outlive the next call."""
    _, artifact, _ = built
    (x, z), named = given(3)
    leaves = _pytree.tree_leaves(artifact(x, z, **named))
    tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
    before = [one.clone() for one in tensors]
    artifact(x + 1, z, **named)
    places = [one.data_ptr() for one in (*tensors, x, z) if one.numel()]
    assert len(set(places)) == len(places)
    assert all(one.equal(old) for one, old in zip(tensors, before, strict=True))
    assert not any(one.requires_grad for one in tensors)


Change = Callable[[Any, Any, dict[str, Any]], Any]
WRONG: list[tuple[Change, str]] = [
    (lambda x, z, n: ((x,), n), r"was exported with the arguments \(x, z, scale=, d="),
    (lambda x, z, n: ((x, z, z), n), "was given 3 by position"),
    (lambda x, z, n: ((x, z), {**n, "x": x}), "was given 2 by position, 'scale'"),
    (lambda x, z, n: ((x, z), {**n, "other": x}), "'other'"),
    (lambda x, z, n: ((z,), {**n, "x": x}), "was given 1 by position"),
    (lambda x, z, n: ((x, z), {**n, "k": 2}), "'k' is 2, and the module was exported with 3"),
    (lambda x, z, n: ((x, z), {**n, "k": 3.0}), "'k' is 3.0, and the module"),
    (lambda x, z, n: ((x, z), {**n, "opt": x}), "'opt' is of the type Tensor, and the"),
    (lambda x, z, n: ((x, z), {**n, "d": {"a": x, "b": 1}}), r"'d'\['b'\] is 1, and the"),
    (lambda x, z, n: ((x, z), {**n, "d": {"a": x}}), "expected 2, but got 1"),
    (lambda x, z, n: ((x, z), {**n, "d": [x]}), "have another structure"),
    (lambda x, z, n: (([x], z), n), "argument 'x' is of the type list, and must be a tensor"),
    (lambda x, z, n: ((x.numpy(), z), n), "argument 'x' is of the type ndarray"),
    (lambda x, z, n: ((x.double(), z), n), "'x' has elements of torch.float64, and must have"),
    (lambda x, z, n: ((x, z.to(torch.int8)), n), "'z' has elements of torch.int8"),
    (lambda x, z, n: ((x.to("meta"), z), n), "'x' .*meta"),
    (lambda x, z, n: ((x.to_sparse(), z), n), "'x' .*layout"),
    (lambda x, z, n: ((x.requires_grad_(), z), n), "'x' requires a gradient"),
    (lambda x, z, n: ((x[:, :3], z), n), r"'x' .*its shape is \(3, 3\)"),
    (lambda x, z, n: ((x, z[:2]), n), "'z'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_arguments(change: Change, message: str, built: Any) -> None:
    _, artifact, _ = built
    (x, z), named = given(3)
    args, kwargs = change(x, z, named)
    with pytest.raises(aotc.AotcError, match=message):
        artifact(*args, **kwargs)


def test_classes_without_a_name(tmp_path: Path) -> None:
    """The artifact knows them; a library that is loaded later does not."""

    class Wraps(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Nameless(x + 1)

    artifact = aotc.torch.build(Wraps(), (torch.ones(2),), out=f"{tmp_path}/", **OPTIONS)
    got = artifact(torch.ones(2))
    assert type(got) is Nameless
    assert got.first.tolist() == [2, 2]
    with pytest.raises(aotc.InputError, match="a class that PyTorch cannot write down"):
        aotc.torch.load(artifact)


def test_saved_programs_and_numbers(tmp_path: Path) -> None:
    """A `.pt2` has its signature; a number without a fixed value is an argument."""

    class Steps(torch.nn.Module):
        def forward(self, x: Any, count: int) -> Any:
            return (x * count, count + 1)

    shapes = {"x": None, "count": torch.export.Dim.DYNAMIC}
    program = torch.export.export(Steps(), (torch.ones(2), 5), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "steps.pt2")
    artifact = aotc.build(tmp_path / "steps.pt2", out=f"{tmp_path}/", **OPTIONS)
    steps = aotc.torch.load(artifact)
    assert repr(steps) == "<module steps(x, count)>"
    y, more = steps(torch.tensor([1.0, -2.0]), count=7)
    assert (y.tolist(), more) == ([7, -14], 8)
    with pytest.raises(aotc.InputError, match="argument 'count' must be a whole number, and is"):
        steps(torch.ones(2), 1.5)


def test_modules_that_change_buffers_and_inputs(tmp_path: Path) -> None:
    """Each object has its state; unsigned results stay so behind what is written in place."""

    class Counts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("sums", torch.tensor([1.0, 2.0]))

        def forward(self, x: Any, *, scale: Any) -> Any:
            self.sums.add_(x * scale)
            x.mul_(2)
            return {"sums": self.sums.clone(), "none": None, "bytes": x.to(torch.uint8)}

    def given() -> Any:
        return torch.tensor([3.0, 100.0])

    scale = torch.tensor(2.0)
    out = f"{tmp_path}/"
    built = aotc.torch.build(Counts(), (given(),), kwargs={"scale": scale}, out=out, **OPTIONS)
    other, module = aotc.torch.load(out), Counts()
    for _ in range(3):
        x, y = given(), given()
        check(module(x, scale=scale), built(y, scale=scale))
        assert x.equal(y)
    assert other(given(), scale=scale)["sums"].tolist() == [7, 202]
    with pytest.raises(aotc.InputError, match="'x' is changed in place, and must be contiguous"):
        built(torch.ones(4)[::2], scale=scale)


def test_what_cannot_be_called(tmp_path: Path) -> None:
    class Plain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return -x

    built = aotc.torch.build(
        Plain(), (torch.ones(2),), emit="manifest", out=tmp_path / "x", chips="sm_90"
    )
    with pytest.raises(aotc.InputError, match="Only a shared library can be called") as raised:
        built(torch.ones(2))
    assert raised.value.hint == 'build it with emit="shared".'
    text = "func.func @f(%x: memref<2xf32>) attributes {llvm.emit_c_interface} { return }"
    other = aotc.build(text, emit="shared", out=f"{tmp_path}/", chips="sm_90")
    with pytest.raises(aotc.InputError, match="does not have one entry that was a module"):
        aotc.torch.load(other)
    with pytest.raises(aotc.InputError, match="has no entry 'f' that was a module"):
        aotc.torch.load(other, "f")


_WITHOUT_A_COMPILER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mlir", "torch_mlir", "ziglang", "nvidia"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import aotc.torch
double = aotc.torch.load(sys.argv[1])
import torch
print(double(torch.arange(3.0)).tolist())
"""


def test_it_is_loaded_without_a_compiler(tmp_path: Path) -> None:
    class Double(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return 2 * x

    aotc.torch.build(Double(), (torch.zeros(3),), out=f"{tmp_path}/", **OPTIONS)
    command = [sys.executable, "-c", _WITHOUT_A_COMPILER, str(tmp_path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout == "[0.0, 2.0, 4.0]\n"
