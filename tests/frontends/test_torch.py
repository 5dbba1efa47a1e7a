"""PyTorch's programs against PyTorch in f64, on the CPU device."""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.models import SMALL, WIDE, expected, inputs_of, made  # noqa: E402
from frontends.support import call  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.frontends.torch.places import place_of_node  # noqa: E402

CHIP = "sm_90"
DTYPES = {"f32": torch.float32, "f16": torch.float16}
# Relative to the largest result. Eager PyTorch has up to 1e-6 and 4e-3.
LIMITS = {torch.float32: 5e-6, torch.float16: 1e-2}


def _check(artifact: aotc.Artifact, name: str, module: Any, inputs: Any, dtype: Any) -> None:
    reference = expected(module, inputs)
    result = torch.empty(reference.shape, dtype=dtype).numpy()
    (got,) = call(artifact, name, [tensor.numpy() for tensor in inputs], [result])
    assert got.dtype == result.dtype
    error = np.abs(got.astype(np.float64) - reference.numpy()).max() / reference.abs().max().item()
    assert error <= LIMITS[dtype]


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", SMALL)
def test_saved_programs(name: str, batch: int, tmp_path: Path) -> None:
    """`aotc build model.pt2`."""
    module, inputs = made(SMALL[name]), inputs_of(SMALL[name], batch)
    path = tmp_path / f"{name}.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    _check(artifact, name, module, inputs, torch.float32)


def _build(module: Any, inputs: Any, name: str, out: Path, **options: Any) -> aotc.Artifact:
    files = {"emit": "shared", "out": f"{out}/", "chips": CHIP}
    return aotc.torch.build(module, inputs, name=name, **files, **options)


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", SMALL)
def test_half(name: str, batch: int, tmp_path: Path) -> None:
    dtype = torch.float16
    module, inputs = made(SMALL[name], dtype), inputs_of(SMALL[name], batch, dtype)
    _check(_build(module, inputs, name, tmp_path), name, module, inputs, dtype)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f32") for name in SMALL), ("lenet", "f16"), ("block", "f16")]
)
def test_a_batch_of_any_size(name: str, dtype: str, tmp_path: Path) -> None:
    type_ = DTYPES[dtype]
    model = SMALL[name]
    module, inputs = made(model, type_), inputs_of(model, 3, type_)
    shapes = tuple({0: torch.export.Dim("batch")} for _ in inputs)
    artifact = _build(module, inputs, name, tmp_path, dynamic_shapes=shapes)
    for batch in (1, 2, 8):
        _check(artifact, name, module, inputs_of(model, batch, type_), type_)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f32") for name in WIDE), ("mlp", "f16"), ("resnet18", "f16")]
)
def test_models_of_full_width(name: str, dtype: str, tmp_path: Path) -> None:
    """All layers and weights of ResNet-18 and of GPT-2's blocks, but images of 32x32 rather than
    224x224, and 16 or 4 tokens rather than 1024: the CPU device would take minutes. On a GPU the
    model bundle (bundle.py) has them whole."""
    type_ = DTYPES[dtype]
    module, inputs = made(WIDE[name], type_), inputs_of(WIDE[name], 1, type_)
    _check(_build(module, inputs, name, tmp_path), name, module, inputs, type_)


def test_reciprocals_of_zero(tmp_path: Path) -> None:
    class Reciprocal(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.reciprocal(x)

    x = torch.tensor([0.0, -0.0, 2.0, torch.inf, -torch.inf, torch.nan])
    artifact = _build(Reciprocal(), (x,), "reciprocal", tmp_path)
    (got,) = call(artifact, "reciprocal", [x.numpy()], [x.numpy()])
    np.testing.assert_array_equal(got, torch.reciprocal(x).numpy())


def test_gelu(tmp_path: Path) -> None:
    """By erf and by tanh, to the last digits: torch-mlir has a wrong factor in the second."""

    class Gelus(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            gelu = torch.nn.functional.gelu
            return torch.stack([gelu(x), gelu(x, approximate="tanh")])

    inputs = (torch.linspace(-6, 6, 4001),)
    artifact = _build(Gelus(), inputs, "gelus", tmp_path)
    reference = expected(Gelus(), inputs)
    (got,) = call(artifact, "gelus", [inputs[0].numpy()], [reference.float().numpy()])
    np.testing.assert_allclose(got, reference.numpy(), rtol=1e-6, atol=1e-6)


def test_divisions_by_the_root_of_2(tmp_path: Path) -> None:
    """A gelu multiplies, as PyTorch's does; who divides gets a quotient."""

    class Divided(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.erf(x / math.sqrt(2))

    inputs = (torch.linspace(-6, 6, 4001),)
    for module, count in ((torch.nn.GELU(), 0), (Divided(), 1)):
        out = tmp_path / "x.mlir"
        aotc.torch.build(module, inputs, emit="mlir", out=out, chips=["sm_80"])
        assert out.read_text().count("arith.divf") == count


def test_weights(tmp_path: Path) -> None:
    """Of types that NumPy lacks, not contiguous, shared by two layers, of one number, in lists."""

    class Weights(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            numbers = torch.arange(12.0)
            self.brain = torch.nn.Parameter(numbers.bfloat16().reshape(3, 4))
            self.turned = torch.nn.Parameter(numbers.reshape(4, 3).T)
            self.tied = self.turned
            self.one = torch.nn.Parameter(torch.tensor([0.5]))
            self.register_buffer("mask", numbers.reshape(3, 4) > 4)
            self.register_buffer("rows", torch.tensor([2, 0, 1]))

        def forward(self, x: Any) -> Any:
            y = (x + self.brain.float()) * self.turned + self.tied * self.one
            return torch.cat([self.turned, torch.where(self.mask, y, x)[self.rows]])

    inputs = (torch.randn(3, 4),)
    module = Weights().eval()
    artifact = _build(module, inputs, "weights", tmp_path)
    with torch.no_grad():
        reference = module(*inputs).numpy()
    (got,) = call(artifact, "weights", [inputs[0].numpy()], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-6)


def test_names(tmp_path: Path) -> None:
    """The entry is called like the class, and its arguments like those of `forward`."""

    class TwoInputs(torch.nn.Module):
        def forward(self, pixels: Any, scale: Any) -> Any:
            return pixels * scale

    inputs = (torch.ones(3, 4), torch.tensor(2.0))
    built = aotc.torch.build(TwoInputs(), inputs, emit="manifest", out=tmp_path / "x", chips=CHIP)
    assert built.manifest is not None
    (entry,) = built.manifest.entries
    assert entry.name == "two_inputs"
    assert [value.name for value in entry.arguments] == ["pixels", "scale", "result0"]


def test_threads(tmp_path: Path) -> None:
    """torch.export is not for several threads at once, and the filters of warnings stay."""
    module, inputs = made(SMALL["product"]), inputs_of(SMALL["product"], 2)
    program = torch.export.export(module, inputs)
    torch.export.save(program, tmp_path / "x.pt2")
    filters = list(warnings.filters)

    def work(number: int) -> Path:
        options = {"emit": "mlir", "out": tmp_path / f"{number}.mlir", "chips": CHIP}
        if number % 2:
            return aotc.build(tmp_path / "x.pt2", **options).path
        return aotc.torch.build(program, (), name="x", **options).path

    with ThreadPoolExecutor(4) as pool:
        assert len({path.read_bytes() for path in pool.map(work, range(6))}) == 1
    assert list(warnings.filters) == filters


class Attention(torch.nn.Module):
    def __init__(self, **options: bool) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **self.options)


def test_sizes_of_one_symbol_are_one(tmp_path: Path) -> None:
    """Others are an error, where a batch of 1 would else be broadcast."""
    batch, queries, keys = (torch.export.Dim(name, max=4096) for name in ("b", "i", "j"))
    shapes = ({0: batch, 2: queries}, {0: batch, 2: keys}, {0: batch, 2: keys})

    def inputs(batch: int, queries: int, keys: int) -> Any:
        sizes = ((batch, 2, rows, 64) for rows in (queries, keys, keys))
        return tuple(torch.randn(one, dtype=torch.float16) for one in sizes)

    module, given = Attention(), inputs(2, 70, 131)
    artifact = _build(module, given, "attention", tmp_path, dynamic_shapes=shapes)
    for one in (given, inputs(1, 3, 5)):
        _check(artifact, "attention", module, one, torch.float16)
    q, (k, v) = inputs(2, 8, 8)[0], inputs(1, 8, 8)[1:]
    message = "'k' has another size in dimension 0 than 'q' in dimension 0"
    with pytest.raises(aotc.LibraryError, match=message):
        aotc.load(artifact.path).attention(q.numpy(), k.numpy(), v.numpy())


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    path.write_bytes(b"no archive")
    with pytest.raises(aotc.InputError, match=r"torch\.export cannot load"):
        aotc.build(path, out=tmp_path / "x")


REFUSED: list[tuple[Any, str]] = [
    (
        torch.linalg.eigvals,
        "test_torch.py:[0-9]+: error: aten.linalg_eig.default of complex numbers has no lowering",
    ),
    (
        lambda x: torch.poisson(x.abs()),
        "test_torch.py:[0-9]+:0: error: aten.poisson has no lowering",
    ),
    (
        lambda x: torch.linalg.qr(x)[0],
        r"test_torch.py:[0-9]+:0: error: aten.linalg_qr has no lowering for these operands\.",
    ),
    (
        lambda x: x.abs().multinomial(2),
        r"test_torch.py:[0-9]+:0: error: aten.multinomial has no lowering for these operands\.",
    ),
    (
        lambda x: torch.embedding_bag(x, x[0].long(), x[1, :1].long(), mode=1)[2],
        r"test_torch.py:[0-9]+: error: result 2 of aten.embedding_bag has no lowering\.",
    ),
]


class Calls(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize(("refused", "message"), REFUSED)
def test_what_cannot_be_lowered(
    refused: Any,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the place in the model's text; nothing is printed, and no file is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(aotc.InputError, match=message) as error:
        aotc.torch.build(Calls(refused), (torch.ones(3, 3),), out=tmp_path / "x")
    assert error.value.hint
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*.mlir")) == []


def test_places_are_of_the_program() -> None:
    """Not lines of PyTorch's or ours, below which the program's own are."""
    library, own = Path(torch.__file__).parent, Path(aotc.__file__).parent
    files = ["/net.py", library / "nn/functional.py", library / "fx/passes/runtime_assert.py"]
    traces = {
        "/net.py:1: error: ": [*files, own / "frontends/torch/__init__.py"],
        f"{files[1]}:2: error: ": ["", *files[1:]],
        "": ["", "", files[2], "torch/fx/passes/runtime_assert.py"],
    }
    for place, trace in traces.items():
        lines = (f'File "{file}", line {i}, in f' for i, file in enumerate(trace, 1) if file)
        node = SimpleNamespace(meta={"stack_trace": "\n".join(lines)})
        assert place == place_of_node(node)


def test_inputs_that_are_no_tensors(tmp_path: Path) -> None:
    """They are what they were at the export: no argument of the entry."""

    class Mixed(torch.nn.Module):
        def forward(self, x: Any, n: int, y: Any = None, how: str = "", z: Any = None) -> Any:
            return x * n + z

    x, z = torch.ones(3), torch.arange(3.0)
    built = _build(Mixed(), (x, 4), "mixed", tmp_path, kwargs={"z": z})
    (got,) = call(built, "mixed", [x.numpy(), z.numpy()], [np.zeros(3, np.float32)])
    assert got.tolist() == [4, 5, 6]


def test_weights_in_a_file(tmp_path: Path) -> None:
    """`aotc build model.pt2 --weights FILE`: read in the file, and not in the library."""
    module, inputs = made(SMALL["mlp"]), inputs_of(SMALL["mlp"], 8)
    path, weights = tmp_path / "mlp.pt2", tmp_path / "lib" / "mlp.weights"
    torch.export.save(torch.export.export(module, inputs), path)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", weights=weights, chips=CHIP)
    _check(built, "mlp", module, inputs, torch.float32)
    transposed = module.first.weight.detach().numpy().T.tobytes()
    assert transposed in weights.read_bytes()
    assert transposed not in built.path.read_bytes()


class _EmptyPool(torch.nn.Module):
    """torch-mlir's decomposition of the last operation divides by 0."""

    def forward(self, x: Any) -> Any:
        y = x * 2
        return torch.nn.functional.adaptive_max_pool2d(y, 0)


def test_replacing_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of state_dict; a norm of batches is not folded into numbers."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    layers = [torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3, bias=False)]
    module = torch.nn.Sequential(*layers).eval()
    inputs = (torch.rand(4, 16),)
    weights = {"weights": tmp_path / "lib" / "w.weights", "replaceable": "*"}
    artifact = _build(module, inputs, "replaced", tmp_path, **weights)
    library = aotc.load(artifact)
    values = {name: tensor for name, tensor in module.state_dict().items() if tensor.dim() > 0}
    assert set(library.weights) == set(values)
    for name, tensor in values.items():
        tensor.copy_(torch.rand(tensor.shape))
        library.weights.set(name, tensor)
    with torch.no_grad():
        torch.testing.assert_close(library.replaced(*inputs), module(*inputs))


@pytest.mark.parametrize("from_file", [True, False])
def test_a_crash_names_the_operation(from_file: bool, tmp_path: Path) -> None:
    """And its line; the process that asked goes on."""
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith("adaptive_max_pool2d(y, 0)")
    )
    program = torch.export.export(_EmptyPool(), (torch.zeros(1, 2, 4, 4),))
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    with pytest.raises(aotc.InputError) as crash:
        if from_file:
            aotc.build(path, emit="mlir", out=tmp_path / "net.mlir", chips=CHIP)
        else:
            aotc.torch.build(program, (), name="net", emit="mlir", out=tmp_path / "net.mlir")
    assert str(crash.value) == (
        f"{__file__}:{line}:0: error: 'torch.aten.adaptive_max_pool2d' cannot be imported. The "
        "import ended by SIGFPE, in this step: torch-mlir's pass torch-decompose-complex-ops."
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_16_bits_in_a_file(dtype: Any, tmp_path: Path) -> None:
    """Also where kernels find them in managed memory."""
    layer, file = torch.nn.Linear(512, 512).to(dtype).eval(), tmp_path / "lib" / "net.weights"
    x = torch.randn(4, 512).to(dtype)
    built = _build(layer, (x,), "net", tmp_path, weights=file)
    words = layer.weight.detach().view(torch.int16).numpy()
    forms = [words.tobytes(), words.T.tobytes()]
    assert any(form in file.read_bytes() for form in forms)
    assert not any(form in built.path.read_bytes() for form in forms)
    if dtype == torch.float16:
        _check(built, "net", layer, (x,), dtype)


class _Heads(torch.nn.Module):
    """Attention whose heads are parts of rows, as in Whisper."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(48, 48) for _ in range(3))

    def forward(self, x: Any) -> Any:
        heads = (part(x).view(1, 50, 3, 16).transpose(1, 2) for part in self.parts)
        found = torch.nn.functional.scaled_dot_product_attention(*heads)
        return found.transpose(1, 2).reshape(1, 50, 48)


def test_attention_of_heads_has_a_kernel_on_the_cpu(tmp_path: Path) -> None:
    """Which reads the heads where they are, of operands whose strides it does not know."""
    torch.manual_seed(0)
    module, x = _Heads().eval(), torch.randn(1, 50, 48)
    artifact = _build(module, (x,), "heads", tmp_path)
    kernels = {kernel.name for kernel in artifact.manifest.kernels}
    assert any(name.startswith("attention") and "_cpu_" in name for name in kernels), kernels
    expected = module(x).detach().numpy()
    (found,) = call(artifact, "heads", [x.numpy()], [expected])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


class _Padded(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.pad(x, (1, 2))


def test_rows_of_several_vectors_are_padded(tmp_path: Path) -> None:
    """LLVM's backend failed for the masks of these on AVX2."""
    x = torch.randn(130, 32)
    artifact = _build(_Padded(), (x,), "padded", tmp_path)
    _check(artifact, "padded", _Padded(), (x,), torch.float32)


class _AlternatingHeads(torch.nn.Module):
    """Rows have Q, K and V of one head, then those of the next, as in GPT-NeoX and CodeGen."""

    def forward(self, x: Any) -> Any:
        heads = (part.transpose(1, 2) for part in x.view(2, 12, 4, 48).split(16, -1))
        return torch.nn.functional.scaled_dot_product_attention(*heads)


def test_attention_of_heads_with_others_in_between(tmp_path: Path) -> None:
    """They are put beside each other for the kernel."""
    torch.manual_seed(0)
    x = torch.randn(2, 12, 4 * 48)
    artifact = _build(_AlternatingHeads(), (x,), "alternating", tmp_path)
    kernels = {kernel.name for kernel in artifact.manifest.kernels}
    assert any(name.startswith("attention") for name in kernels), kernels
    _check(artifact, "alternating", _AlternatingHeads(), (x,), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_attention_of_grouped_queries_has_kernels(dtype: Any, tmp_path: Path) -> None:
    """K and V are converted before they are repeated."""
    module = Attention(is_causal=True, enable_gqa=True)
    inputs = tuple(torch.randn(2, heads, 70, 64, dtype=dtype) for heads in (8, 2, 2))
    artifact = _build(module, inputs, "grouped", tmp_path)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(re.match(r"attention_\w+_causal_(?!cpu)", name) for name in kernels), kernels
    _check(artifact, "grouped", module, inputs, dtype)


def test_attention_of_one_query_of_a_batch_has_a_kernel(tmp_path: Path) -> None:
    """Of grouped queries, where what repeats K and V asks whether there is one key."""
    dtype, dim = torch.float16, torch.export.Dim
    inputs = tuple(
        torch.randn(2, heads, rows, 64, dtype=dtype) for heads, rows in ((8, 1), (2, 80), (2, 80))
    )
    batch, keys = dim("batch", min=2), dim("keys", min=2)
    shapes = {"q": {0: batch}, "k": {0: batch, 2: keys}, "v": {0: batch, 2: keys}}
    module = Attention(enable_gqa=True)
    artifact = _build(module, inputs, "grouped", tmp_path, dynamic_shapes=shapes)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(name.startswith("attention_f16_d64_decode_4x") for name in kernels), kernels
    _check(artifact, "grouped", module, inputs, dtype)


def _first_token(layer: Any, x: Any) -> Any:
    return layer(x[:, 0])


def _one_then_other(one: Any, other: Any, x: Any) -> Any:
    return other(one(x))


def _mask_of_a_position(q: Any, k: Any, position: Any) -> Any:
    mask = torch.arange(8)[None, :] <= position[:, None]
    return torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)


class _Positions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(16.0), persistent=False)

    def forward(self, x: Any) -> Any:
        return x + self.positions


class _Layers(torch.nn.Module):
    def __init__(self, function: Any, *layers: Any) -> None:
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, *x: Any) -> Any:
        return self.function(*self.layers, *x)


def _image() -> tuple[Any, ...]:
    return (torch.randn(1, 32, 8, 8),)


ORDINARY: dict[str, tuple[Any, Any]] = {
    # A row of a slice has strides, which say nothing.
    "first token": (
        lambda: _Layers(_first_token, torch.nn.Linear(64, 64)),
        lambda: (torch.randn(1, 3, 64),),
    ),
    # What follows the convolution reads it by a view of other dimensions.
    "pixel shuffle": (
        lambda: _Layers(
            _one_then_other, torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.PixelShuffle(2)
        ),
        _image,
    ),
    "group norm": (
        lambda: _Layers(
            _one_then_other, torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.GroupNorm(8, 32)
        ),
        _image,
    ),
    # A position of one element is reshaped to none.
    "mask of a position": (
        lambda: _Layers(_mask_of_a_position),
        lambda: (torch.randn(1, 4, 1, 16), torch.randn(1, 4, 8, 16), torch.tensor([3])),
    ),
    "buffers that are not saved": (_Positions, lambda: (torch.randn(1, 16),)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_layers(name: str, tmp_path: Path) -> None:
    """Layers behind each other, from a file, for Hopper's kernels and others."""
    torch.manual_seed(0)
    make, inputs = (each() for each in ORDINARY[name])
    module, path = make.eval(), tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_80,sm_90")
    with torch.no_grad():
        reference = module(*inputs).numpy()
    (got,) = call(artifact, "net", [x.numpy() for x in inputs], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-5, atol=1e-5)


NAN, INF = float("nan"), float("inf")
# Rows with NaN, infinities, zeros alone, and numbers whose squares are no floats.
SPECIAL = torch.tensor(
    [[0.5, NAN, 2.0, -1.0], [INF, -INF, 0.3, NAN], [0.0] * 4, [1e30, -1e30, 1e-30, 0.0]]
)
SPECIAL_OPERATIONS: dict[str, Any] = {
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "minimum": lambda x: torch.minimum(x.flip(0), x),
    "clamp": lambda x: x.clamp(-0.5, 0.7),
    "clamp from below": lambda x: x.clamp(min=0.1),
    "relu6": torch.nn.functional.relu6,
    "relu": torch.nn.functional.relu,
    "hardtanh": torch.nn.functional.hardtanh,
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "largest": lambda x: x.amax(1),
    "its index": lambda x: x.argmax(1),
    "index of the least": lambda x: x.argmin(0),
    "largest and its index": lambda x: x.max(1)[1],
    "comparison and selection": lambda x: torch.where(x > 0.1, x, 0.1),
    # Its epsilon is the type's.
    "rms norm": lambda x: torch.nn.functional.rms_norm(x[2:3], (4,)),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x[2:3], (4,)),
    "normalize": lambda x: torch.nn.functional.normalize(x[2:3]),
}


@pytest.mark.parametrize("name", SPECIAL_OPERATIONS)
def test_special_numbers(name: str, tmp_path: Path) -> None:
    """NaN, infinities and zeros give what they give in PyTorch."""
    module = _Layers(SPECIAL_OPERATIONS[name])
    program = torch.export.export(module, (SPECIAL,))
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(program, (), name="net", **files)
    reference = module(SPECIAL).numpy()
    (got,) = call(artifact, "net", [SPECIAL.numpy()], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-6)


@pytest.mark.parametrize("shift", [torch.bitwise_left_shift, torch.bitwise_right_shift])
@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str
)
def test_shifts_by_any_number(shift: Any, dtype: Any, tmp_path: Path) -> None:
    """By the type's width and more, and by negative numbers, as PyTorch has it."""
    values = (torch.arange(16) * 37 - 200).to(dtype)
    bits = torch.tensor([0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, -1, -8, -100, 5]).to(dtype)
    program = torch.export.export(_Layers(shift), (values, bits))
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": CHIP}
    artifact = aotc.torch.build(program, (), name="net", **files)
    reference = shift(values, bits).numpy()
    (got,) = call(artifact, "net", [values.numpy(), bits.numpy()], [reference])
    np.testing.assert_array_equal(got, reference)


@pytest.mark.parametrize(
    ("name", "launches", "allocations"),
    [
        *(("product", 1, 0), ("mlp", 3, 1), ("lenet", 10, 1), ("resnet18", 36, 1)),
        *(("block", 12, 1), ("embedded", 33, 1)),
    ],
)
def test_what_a_call_does(name: str, launches: int, allocations: int, tmp_path: Path) -> None:
    """On a GPU: one allocation, no copy, no wait, and no kernel that another could do the work of:
    where kernels are to be chosen from, each counts. Attention's are two. What kernels that divide
    K store is in the one allocation, too."""
    module, inputs = made(SMALL[name]), inputs_of(SMALL[name], 8)
    files = {"emit": "mlir", "out": tmp_path / "x.mlir", "chips": CHIP}
    built = aotc.torch.build(module, inputs, name=name, cpu_kernels=False, **files)
    text = built.path.read_text()
    assert text.count("gpu.launch_func") == launches
    assert text.count("= gpu.alloc") == allocations
    assert "memref.alloc" not in text
    assert "gpu.memcpy" not in text
    assert "aotc_wait" not in text


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_length_are_a_kernel(mode: str, tmp_path: Path) -> None:
    """Where the indices are a matrix, in the modes in which nothing is left out."""
    table, indices = torch.randn(9, 5), torch.randint(0, 9, (4, 3))

    def bags(i: Any, w: Any) -> Any:
        return torch.nn.functional.embedding_bag(i, w, mode=mode)

    files = {"emit": ("shared", "mlir"), "out": f"{tmp_path}/", "chips": CHIP}
    built = aotc.torch.build(_Layers(bags), (indices, table), name="net", **files)
    text = built.paths["mlir"].read_text()
    assert text.count("gpu.launch_func") == 1
    (got,) = call(built, "net", [indices.numpy(), table.numpy()], [np.zeros((4, 5), np.float32)])
    np.testing.assert_allclose(got, bags(indices, table).numpy(), rtol=1e-6)
