"""PyTorch's programs of several sizes that are not known, on the CPU device, at several of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._sympy.functions import Mod  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import aotc.torch  # noqa: E402
from aotc.frontends.torch.guards import made_conditions, repair_expressions  # noqa: E402
from aotc.frontends.torch.resampling import resize_order  # noqa: E402
from aotc.frontends.torch.transposed import transposed_decompositions  # noqa: E402

nn, functional, Dim = torch.nn, torch.nn.functional, torch.export.Dim


class Program(nn.Module):
    def __init__(self, function: Any, *parts: Any) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *x: Any) -> Any:
        return self.function(*self.parts, *x)


def check(program: Any, shapes: Any, inputs: Any, sizes: Any, folder: Path) -> None:
    """Built once, from what the first sizes give, and as PyTorch in f64 at all of them."""
    torch.manual_seed(0)
    program = program.eval()
    made = [inputs(*some) for some in sizes]
    options = {"emit": "shared", "out": f"{folder}/", "chips": "sm_75", "name": "net"}
    artifact = aotc.torch.build(program, made[0], dynamic_shapes={"x": shapes}, **options)
    library = aotc.load(artifact)
    for some, given in zip(sizes, made, strict=True):
        with torch.no_grad():
            wide = [x.double() if x.is_floating_point() else x for x in given]
            expected = program.double()(*wide).float().numpy()
            program.float()
        (got,) = call(artifact, "net", [x.numpy() for x in given], [expected])
        assert got.shape == expected.shape, some
        assert library.net.result_shapes(*[tuple(x.shape) for x in given]) == (got.shape,), some
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=str(some))


def heads(x: Any) -> Any:
    return x.view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)


SIZES = ((3, 20), (1, 1), (7, 5), (1, 9), (5, 1))
# Of any batch and any sequence, with 32 numbers for each.
OF_BOTH: dict[str, Any] = {
    "reshape": (lambda x: torch.relu(x.reshape(-1, 32)),),
    "flatten": (lambda x: torch.relu(x.flatten(0, 1)),),
    "flatten all": (lambda x: torch.relu(x.flatten()),),
    "linear": (lambda layer, x: layer(x), nn.Linear(32, 10)),
    "linear without bias": (lambda layer, x: layer(x), nn.Linear(32, 1000, bias=False)),
    "part": (lambda x: x.flatten(0, 1).relu().view(x.shape[0], x.shape[1], 32) + x,),
    "part by -1": (lambda x: x.flatten(0, 1).relu().view(x.shape[0], -1, 32) + x,),
    "part, -1 first": (lambda x: x.flatten(0, 1).relu().view(-1, x.shape[1], 32) + x,),
    "heads beside batches": (lambda x: heads(x).reshape(-1, x.shape[1], 8) + 1,),
    "attention": (lambda x: functional.scaled_dot_product_attention(heads(x), heads(x), heads(x)),),
    "attention as rows": (
        lambda x: (
            functional.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True)
            .transpose(1, 2)
            .view(-1, 32)
        ),
    ),
    "encoder": (
        lambda layer, x: layer(x),
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
    ),
    "strides of a norm and a pool": (
        lambda norm, x: functional.adaptive_avg_pool1d(norm(x.transpose(1, 2)), 1),
        nn.GroupNorm(4, 32),
    ),
    "stack": (lambda x: torch.stack([x, x * 2], 2).flatten(1, 2),),
    "a place of each row": (lambda x: x[torch.arange(x.shape[0]), x[..., 0].argmax(1)],),
    "padded to chunks": (lambda x: functional.pad(x, (0, 0, 0, -x.shape[1] % 8)) + 1,),
    "from the end": (lambda x: x[:, x[0, :, 0].argsort() - x.shape[1], x[0, :, 1].argsort() % 32],),
}


@pytest.mark.parametrize("name", OF_BOTH)
def test_any_batch_and_any_sequence(name: str, tmp_path: Path) -> None:
    """Dimensions that are put together and parted have the sizes that PyTorch gives them."""
    shapes = ({0: Dim("batch"), 1: Dim("sequence")},)
    check(Program(*OF_BOTH[name]), shapes, lambda b, s: (torch.randn(b, s, 32),), SIZES, tmp_path)


def chunks(x: Any) -> Any:
    """torch.export has an expression for the size 8, and specializes for a last chunk in part."""
    padded = functional.pad(x, (0, 0, 0, (8 - x.shape[1] % 8) % 8))
    return padded.reshape(x.shape[0], -1, 8, 32)[..., 0].permute(0, 2, 1).relu()


def rows_of_each(x: Any) -> Any:
    """The size of no input is that of the result's rows."""
    half = x[:, : x.shape[1] // 2]
    return half.reshape(-1, 32).sum(1).reshape(x.shape[0], -1)


@pytest.mark.parametrize("function", [chunks, rows_of_each])
def test_parts(function: Any, tmp_path: Path) -> None:
    shapes, sizes = ({0: Dim.AUTO, 1: Dim.AUTO},), ((3, 20), (2, 9), (5, 23))
    check(Program(function), shapes, lambda b, s: (torch.randn(b, s, 32),), sizes, tmp_path)


def resized(x: Any, **options: Any) -> Any:
    return functional.interpolate(x, antialias=True, **options)


def pooled_places(x: Any) -> Any:
    return functional.adaptive_max_pool2d(x, 2, return_indices=True)[1].to(x.dtype)


# Of images of any height and any width.
OF_IMAGES: dict[str, Any] = {
    "averages": lambda x: functional.adaptive_avg_pool2d(x, 3),
    "averages along one dimension": lambda x: functional.adaptive_avg_pool2d(x, (2, None)),
    "averages of rows": lambda x: functional.adaptive_avg_pool1d(x.flatten(1, 2), 3),
    "average of an image": lambda x: functional.adaptive_avg_pool2d(x, (1, 4)),
    "maxima": lambda x: functional.adaptive_max_pool2d(x, (2, 3)),
    "places of maxima": pooled_places,
    "maxima of rows": lambda x: functional.adaptive_max_pool1d(x.flatten(1, 2), 3),
    "twice as large": lambda x: resized(x, scale_factor=2, mode="bilinear"),
    "of a size": lambda x: resized(x, size=(4, 3), mode="bilinear"),
    "of a size, with corners": lambda x: resized(
        x, size=(4, 3), mode="bilinear", align_corners=True
    ),
    "of a size, cubic": lambda x: resized(x, size=(3, 4), mode="bicubic"),
    "root": lambda x: x * x.shape[-1] ** -0.5,
    "power": lambda x: x / x.shape[-1] ** 2 + (x.shape[2] + 0.5) ** 1.5,
    "floor of a power": lambda x: x * math.floor(torch.sym_max(x.shape[-1] ** 1.5, 2.5)),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_any_height_and_any_width(name: str, tmp_path: Path) -> None:
    """Windows of elements, and numbers that are computed from sizes."""
    shapes = ({2: Dim("height"), 3: Dim("width")},)
    sizes = ((8, 9), (5, 12), (2, 3), (7, 30))
    program = Program(OF_IMAGES[name])
    check(program, shapes, lambda h, w: (torch.randn(2, 3, h, w),), sizes, tmp_path)


def test_a_root_that_strict_export_makes(tmp_path: Path) -> None:
    program = Program(lambda x: x / math.sqrt(x.shape[-1])).eval()
    given, other = torch.randn(3, 20), torch.randn(3, 7)
    exported = torch.export.export(
        program, (given,), dynamic_shapes={"x": ({1: Dim("width")},)}, strict=True
    )
    artifact = aotc.torch.build(exported, (), name="net", emit="shared", out=f"{tmp_path}/")
    for x in (given, other):
        expected = program(x).numpy()
        (got,) = call(artifact, "net", [x.numpy()], [expected])
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def heads_of_parts(layer: Any, x: Any) -> Any:
    parts = layer(x).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(*parts.unbind(0))


# Programs, the example they are exported with, its dimensions of any size, and another input.
OF_FILES: dict[str, Any] = {
    "remainder of a product": (
        Program(heads_of_parts, nn.Linear(32, 96)),
        *((3, 7, 32), (0, 1), (4, 1, 32)),
    ),
    "product that is larger": (
        Program(
            lambda encoder, layer, x: heads_of_parts(layer, encoder(x.flatten(2).transpose(1, 2))),
            nn.TransformerEncoderLayer(32, 2, 32, batch_first=True),
            nn.Linear(32, 96),
        ),
        *((3, 32, 6, 4), (0, 2, 3), (1, 32, 4, 4)),
    ),
}


@pytest.mark.parametrize("name", OF_FILES)
def test_a_file_takes_sizes_of_1(name: str, tmp_path: Path) -> None:
    """Decompositions of a program from a file ask what only says that a size is not 1."""
    program, example, unknown, other = OF_FILES[name]
    shapes = {"x": ({one: Dim(f"d{one}", min=2 if one else 0) for one in unknown},)}
    program = program.eval()
    exported = torch.export.export(program, (torch.randn(example),), dynamic_shapes=shapes)
    torch.export.save(exported, tmp_path / "net.pt2")
    artifact = aotc.build(tmp_path / "net.pt2", emit="shared", out=f"{tmp_path}/", chips="sm_75")
    x = torch.randn(other)
    expected = program(x).detach().numpy()
    (got,) = call(artifact, "net", [x.numpy()], [expected])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_conditions_that_only_say_that_a_size_is_not_1() -> None:
    sympy = pytest.importorskip("sympy")
    n, m = sympy.symbols("n m", integer=True, positive=True)
    left_out = [sympy.Ge(n, 2), sympy.Ge(n**2, 2), n * m > 1, 16 * n > 16, n * m > n]
    kept = [sympy.Ge(n**2, 3), n * m > 5, n < m, sympy.Ge(n / 2, 2), 16 * n < m]
    left_out.append(sympy.Ne(Mod(n, n * m), 0))
    kept.append(sympy.Ne(Mod(n, m), 0))
    kept += [sympy.And(n > m, m > 5), sympy.Or(n > m, m > 5), sympy.Eq(n > m, m > 5)]
    kept.append(sympy.Eq(sympy.Or(n > m, m > 5), sympy.And(n > 3, m > 5)))
    assert kept == made_conditions([*left_out, *kept])


def test_a_file_with_multiples_of_4(tmp_path: Path) -> None:
    """PyTorch does not know the value of a symbol that is no size by itself."""
    program = Program(lambda x: functional.avg_pool2d(x, 2).flatten(2).transpose(1, 2))
    shapes = {"x": ({2: 4 * Dim("h", min=2, max=64)},)}
    exported = torch.export.export(program, (torch.randn(2, 4, 12, 8),), dynamic_shapes=shapes)
    torch.export.save(exported, tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2")
    repair_expressions(loaded)
    (x,) = loaded.graph.find_nodes(op="placeholder")
    size = x.meta["val"].shape[2]
    (symbol,) = size.node.expr.free_symbols
    assert size.node.shape_env.size_hint(symbol) == 3


@pytest.mark.parametrize("strict", [True, False])
def test_a_file_with_an_even_size(strict: bool, tmp_path: Path) -> None:
    """PyTorch cannot decompose such a file; a strict one has other names in its conditions."""
    program = Program(lambda x: x.view(2, -1).sum(0))
    exported = torch.export.export(
        program, (torch.randn(8),), dynamic_shapes={"x": ({0: 2 * Dim("half")},)}, strict=strict
    )
    torch.export.save(exported, tmp_path / "net.pt2")
    artifact = aotc.build(tmp_path / "net.pt2", emit="shared", out=f"{tmp_path}/", chips="sm_75")
    x = torch.randn(14)
    expected = program(x).numpy()
    (got,) = call(artifact, "net", [x.numpy()], [expected])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_fixed_batch_and_any_sequence(tmp_path: Path) -> None:
    program = Program(lambda layer, x: layer(x), nn.Linear(32, 10))
    sizes = ((20,), (1,), (7,))
    check(program, ({1: Dim("s")},), lambda s: (torch.randn(3, s, 32),), sizes, tmp_path)


# Of any number of rows, and of columns from 6 to 8.
SPLITS: dict[str, Any] = {
    "halves": lambda x: torch.cat([part * i for i, part in enumerate(x.chunk(2, 1), 2)], 1),
    "the last three": lambda x: x.split([x.shape[1] - 3, 3], 1)[0].relu(),
    "of four": lambda x: torch.cat([part.flip(1) for part in x.split(4, 1)], 1),
}


@pytest.mark.parametrize("name", SPLITS)
def test_splits(name: str, tmp_path: Path) -> None:
    dims = ({0: Dim.AUTO, 1: Dim.AUTO},)
    sizes = ((4, 8), (1, 7), (3, 6))
    check(Program(SPLITS[name]), dims, lambda n, m: (torch.randn(n, m),), sizes, tmp_path)


# Of images of 5 x 4 points, with 3 channels: a window has one place, and does not reach the end.
WINDOWS: dict[str, Any] = {
    "max_pool2d": (lambda x: functional.max_pool2d(x, 3, 2),),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, (4, 3), 2),),
    "lp_pool2d": (lambda x: functional.lp_pool2d(x, 2, 3, 3),),
    "conv2d": (lambda layer, x: layer(x).relu(), nn.Conv2d(3, 7, 3, 2)),
    "depthwise": (lambda layer, x: layer(x), nn.Conv2d(3, 6, 3, 3, groups=3)),
    "dilated": (lambda layer, x: layer(x), nn.Conv2d(3, 2, 2, 3, dilation=2)),
    "padded": (lambda layer, x: layer(x), nn.Conv2d(3, 2, (3, 4), 4, padding=1)),
    "conv1d": (lambda layer, x: layer(x.flatten(2)), nn.Conv1d(3, 4, 13, 9)),
    "conv3d": (lambda layer, x: layer(x[:, None]), nn.Conv3d(1, 4, (2, 3, 3), (2, 3, 2))),
    "unfold": (lambda x: functional.unfold(x, 3, stride=3),),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_that_end_before_the_image(name: str, tmp_path: Path) -> None:
    sizes = [(number,) for number in (2, 1, 5)]
    check(Program(*WINDOWS[name]), ({0: Dim.AUTO},), images, sizes, tmp_path)


# Phases of several taps, of different numbers of them, of none; a cut result, and a longer one.
TRANSPOSED: dict[str, Any] = {
    "even": nn.ConvTranspose2d(3, 5, 4, 2, 1),
    "odd": nn.ConvTranspose2d(3, 5, 3, 2, 1, output_padding=1),
    "without overlap": nn.ConvTranspose2d(3, 5, 2, 2),
    "with gaps": nn.ConvTranspose2d(3, 5, 1, 3),
    "cut": nn.ConvTranspose2d(3, 5, 3, 2, 2, bias=False),
    "groups": nn.ConvTranspose2d(3, 6, (2, 5), (3, 2), (0, 2), groups=3),
    "dilated": nn.ConvTranspose2d(3, 5, 4, 2, 1, dilation=2),
    "stride 1": nn.ConvTranspose2d(3, 5, 3, 1, 1),
    "depthwise": nn.ConvTranspose2d(3, 3, (3, 2), 1, (1, 0), groups=3, dilation=(1, 2)),
    "groups, dilated": nn.ConvTranspose2d(3, 6, 3, (2, 1), 1, groups=3, dilation=(1, 2)),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str, tmp_path: Path) -> None:
    program = Program(lambda layer, x: layer(x), TRANSPOSED[name])
    dims = ({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},)
    sizes = ((2, 5, 6), (1, 4, 8), (3, 7, 3))
    check(program, dims, lambda b, h, w: (torch.randn(b, 3, h, w),), sizes, tmp_path)


class Concatenated(nn.Module):
    """Computes 16 channels, as many from these, and others from their neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(45, 8, 1)
        self.second, self.third = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 13, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.first(x).relu()
        two = self.second(one).relu() + one
        return self.last(torch.cat([one, two, self.third(two).sigmoid()], 1))


class Halves(nn.Module):
    """Computes 32 channels, and 16 from the second half of these, as blocks of YOLO do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 32, 1), nn.Conv2d(48, 8, 1)
        self.second = nn.Conv2d(16, 16, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = self.first(x).sigmoid().chunk(2, 1)
        return self.last(torch.cat([one, two, two + self.second(two).relu()], 1))


# Of images of any height and width: windows that keep within the image, or reach its padding.
IMAGES: dict[str, Any] = {
    "within": nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 24, 3)),
    "same": nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 24, 5, padding=2)),
    "strided": nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), nn.Conv2d(16, 8, 3, 3)),
    "of one point": nn.Sequential(nn.Conv2d(3, 16, 1), nn.SiLU(), nn.Conv2d(16, 24, 1, 2)),
    "depthwise": nn.Sequential(
        nn.Conv2d(3, 16, 1), nn.Conv2d(16, 16, 5, 1, 2, groups=16), nn.Conv2d(16, 24, 1)
    ),
    "depthwise, strided": nn.Sequential(
        nn.Conv2d(3, 6, 3, 2, 1, groups=3), nn.Conv2d(6, 6, 3, 1, 2, 2, groups=6)
    ),
    "halves and doubles": nn.Sequential(
        nn.MaxPool2d(2), nn.Conv2d(3, 16, 3, 1, 1), nn.ConvTranspose2d(16, 8, 2, 2), nn.ReLU()
    ),
    "rounded up": nn.Sequential(nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(3, 16, 1), nn.ReLU()),
    "pools": nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Conv2d(3, 8, 3), nn.AvgPool2d(3, 1, 1)),
    "concatenated": Concatenated(),
    "halves": Halves(),
    # Of 513 points, one follows whole vectors of columns, and of 594 two.
    "many channels": nn.Sequential(
        nn.Conv2d(3, 128, 1), nn.ReLU(), nn.Conv2d(128, 40, 1), nn.Conv2d(40, 24, 3, 1, 1)
    ),
    "many channels, strided": nn.Sequential(nn.Conv2d(3, 40, 3, 4), nn.Conv2d(40, 24, 3, 1)),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("is_one", [True, False], ids=["an image", "any batch"])
def test_images_of_any_size(name: str, is_one: bool, tmp_path: Path) -> None:
    program = Program(lambda layer, x: layer(x), IMAGES[name])
    dims = ({} if is_one else {0: Dim.AUTO}) | {2: Dim.AUTO, 3: Dim.AUTO}
    sizes = ((1 if is_one else 2, 19, 27), (1, 16, 70), (1 if is_one else 3, 33, 18))
    check(program, (dims,), lambda b, h, w: (torch.randn(b, 3, h, w),), sizes, tmp_path)


def test_transposed_convolutions_of_one_and_three_dimensions(tmp_path: Path) -> None:
    program = Program(
        lambda row, volume, x: row(x.flatten(2)).sum() + volume(x[:, :, None]).flatten(1),
        nn.ConvTranspose1d(3, 4, 7, 4, 3),
        nn.ConvTranspose3d(3, 2, 3, 2, 1, output_padding=1),
    )
    check(program, ({0: Dim.AUTO},), images, ((2,), (1,), (5,)), tmp_path)


@pytest.mark.parametrize(("numbers", "count"), [((2, 2, 0), 0), ((4, 2, 1), 2), ((6, 3, 0), 0)])
def test_whole_phases_are_not_cut(numbers: tuple[int, int, int], count: int) -> None:
    """With sizes that are not known, a cut would be a slice of everything."""
    taps, stride, padding = numbers
    aten = torch.ops.aten
    convolution = transposed_decompositions(aten)[aten.convolution.default]
    x, weight = torch.randn(2, 3, 30, 31), torch.randn(3, 5, taps, taps)
    given = x, weight, None, [stride], [padding], [1], True, [0], 1
    graph = make_fx(convolution)(*given)
    assert [node.target for node in graph.graph.nodes].count(aten.slice.Tensor) == count
    torch.testing.assert_close(convolution(*given), aten.convolution.default(*given))


@pytest.mark.parametrize("stride", [2, 3])
def test_phases_of_small_images_are_groups(stride: int) -> None:
    """Those of which one convolution would compute much that is cut."""
    aten = torch.ops.aten
    convolution = transposed_decompositions(aten)[aten.convolution.default]
    for taps, padding, more in ((3, 1, 0), (4, 0, 0), (4, 1, 0), (5, 2, 1), (stride, 1, 1)):
        x, weight = (
            torch.randn(size, dtype=torch.float64) for size in ((2, 3, 2, 4), (3, 5, taps, taps))
        )
        numbers = [stride, stride], [padding, padding], [1, 1], True, [more, more], 1
        expected = aten.convolution.default(x, weight, None, *numbers)
        torch.testing.assert_close(convolution(x, weight, None, *numbers), expected)


@pytest.mark.parametrize("bias", [None, torch.randn(5, dtype=torch.float64)])
def test_transposed_convolutions_of_one_place_are_matmuls(bias: torch.Tensor | None) -> None:
    """They have no convolution, and the weight's own order of channels and taps."""
    aten = torch.ops.aten
    convolution = transposed_decompositions(aten)[aten.convolution.default]
    x, weight = (torch.randn(size, dtype=torch.float64) for size in ((2, 3, 1, 1), (3, 5, 4, 6)))
    for padding in ([0, 0], [1, 2]):
        numbers = [2, 2], padding, [1, 1], True, [0, 0], 1
        expected = aten.convolution.default(x, weight, bias, *numbers)
        graph = make_fx(convolution)(x, weight, bias, *numbers)
        assert aten.convolution.default not in [node.target for node in graph.graph.nodes]
        torch.testing.assert_close(convolution(x, weight, bias, *numbers), expected)


# Stride, dilation and padding of a 3x3 filter, and how many products 14 x 15 points have with it; 0
# where it stays as it is.
DILATED = {
    (1, 12, 12): 18 * 21,
    (2, 12, 12): 9 * 12,
    (1, 24, 24): 14 * 15,
    (3, 8, 9): 10 * 11,
    (1, 6, 6): 30 * 33,
    (1, 5, 5): 0,
    (1, 2, 2): 0,
}


@pytest.mark.parametrize(("numbers", "products"), DILATED.items())
def test_padding_is_not_multiplied(numbers: tuple[int, int, int], products: int) -> None:
    """Where most of what a dilated filter reads is padding."""
    stride, dilation, padding = numbers
    aten = torch.ops.aten
    convolution = transposed_decompositions(aten)[aten.convolution.default]
    x, weight, bias = (
        torch.randn(size, dtype=torch.float64) for size in ((2, 3, 14, 15), (4, 3, 3, 3), (4,))
    )
    given = x, weight, bias, [stride], [padding], [dilation], False, [0, 0], 1
    with FlopCounterMode(display=False) as counter:
        found = convolution(*given)
    assert counter.get_total_flops() == 2 * (2 * 3 * 4) * products
    if products:
        torch.testing.assert_close(found, aten.convolution.default(*given))
    else:
        assert found is NotImplemented


def test_taps_of_narrow_floats_are_not_rounded_apart() -> None:
    """What one convolution rounds once stays one."""
    convolution = transposed_decompositions(torch.ops.aten)[torch.ops.aten.convolution.default]
    x, weight = (torch.ones(size, dtype=torch.float16) for size in ((2, 3, 14, 15), (4, 3, 3, 3)))
    given = x, weight, None, [1], [6], [6], False, [0, 0], 1
    assert convolution(*given) is NotImplemented


def images(number: int) -> Any:
    return (torch.randn(number, 3, 5, 4),)


def test_a_dimension_that_is_divided(tmp_path: Path) -> None:
    """Pairs of a sequence that is even."""
    program = Program(lambda x: x.reshape(x.shape[0], -1, 2, 32).sum(2))
    shapes = ({0: Dim("batch"), 1: 2 * Dim("half")},)
    sizes = ((3, 20), (1, 2), (7, 6))
    check(program, shapes, lambda b, s: (torch.randn(b, s, 32),), sizes, tmp_path)


def refuses(program: Any, given: Any, shapes: Any, wrong: Any, message: str, folder: Path) -> None:
    """An entry for the given arguments' program fails with the message for the wrong ones."""
    options = {"emit": "shared", "out": f"{folder}/", "chips": "sm_75", "name": "net"}
    artifact = aotc.torch.build(program.eval(), given, dynamic_shapes={"x": shapes}, **options)
    library = aotc.load(artifact)
    with pytest.raises(aotc.LibraryError, match=message):
        library.net(*[x.numpy() for x in wrong])
    with pytest.raises(aotc.LibraryError, match=message):
        library.net.result_shapes(*[x.numpy() for x in wrong])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((3, 6, 6), r"'x_1' has another size in dimension 0 than 'x_0' in dimension 0"),
        ((2, 6, 9), r"expected x_0.shape\[1\] \+ 1 == x_1.shape\[1\]"),
        ((2, 65, 66), r"expected x_0.shape\[1\] <= 64"),
        ((2, 3, 4), r"expected 4 <= x_0.shape\[1\]"),
    ],
)
def test_sizes_that_are_refused(wrong: Any, message: str, tmp_path: Path) -> None:
    """Of arguments that are to be equal, or one more, or in a range: by the argument's name."""
    batch, length = Dim("batch"), Dim("length", min=4, max=64)
    program = Program(lambda x, y: x * y[:, 1:])
    given = (torch.randn(3, 20), torch.randn(3, 21))
    shapes = ({0: batch, 1: length}, {0: batch, 1: length + 1})
    rows, *columns = wrong
    others = [torch.randn(count, n) for count, n in zip((2, rows), columns, strict=True)]
    refuses(program, given, shapes, others, message, tmp_path)


def test_parts_that_are_not_equal(tmp_path: Path) -> None:
    """Pairs of an odd sequence."""
    program = Program(lambda x: x.reshape(-1, 2, 4).sum(1))
    shapes = ({0: Dim.DYNAMIC},)
    message = r"'x_0' do not fit: expected .*div\(.*x_0.shape\[0\], 2\)"
    refuses(program, (torch.randn(8, 4),), shapes, (torch.randn(7, 4),), message, tmp_path)


@pytest.mark.parametrize(
    ("ratios", "order"),
    [
        ({2: 0.23, 3: 0.18}, [2, 3]),
        ({2: 2.0, 3: 2.0}, [3, 2]),
        ({2: 1.0, 3: 0.5}, [3, 2]),
        ({2: 0.5, 3: 2.0}, [2, 3]),
        ({2: 0.5, 3: 0.25, 4: 0.5}, [3, 2, 4]),
    ],
)
def test_the_order_of_resized_dimensions(ratios: dict[int, float], order: list[int]) -> None:
    """Along the last one, elements are gathered: of few rows, if others become fewer."""
    assert resize_order(ratios) == order


def test_variances_of_few_rows(tmp_path: Path) -> None:
    """Of fewer than the correction there is none."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.var(0), x.std(0, correction=2), torch.var_mean(x)[0]

    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    some = ({0: torch.export.Dim("n", min=0)},)
    artifact = aotc.torch.build(
        Module(), (torch.randn(5, 3),), name="variances", dynamic_shapes=some, **files
    )
    for count in (0, 1, 2, 7):
        x = torch.randn(count, 3)
        eager = [one.numpy() for one in Module()(x)]
        for got, one in zip(call(artifact, "variances", [x.numpy()], eager), eager, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-5)
