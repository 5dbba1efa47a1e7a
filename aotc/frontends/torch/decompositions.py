"""Decompositions of PyTorch's operators that torch-mlir does not support, or lowers wrongly.

Each function has the parameters of its operator. torch.export traces it in place of the operator,
on fake tensors, which have no elements. A function returns NotImplemented to keep the operator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from aotc.frontends.torch.attention import attention_decompositions
from aotc.frontends.torch.bags import bag_decompositions
from aotc.frontends.torch.data_dependent import (
    data_dependent_decompositions,
    index_by_masks,
    is_mask,
    one_index,
)
from aotc.frontends.torch.elementwise import elementwise_decompositions
from aotc.frontends.torch.extrema import extremum_decompositions
from aotc.frontends.torch.folds import fold_decompositions
from aotc.frontends.torch.gradients import gradient_decompositions
from aotc.frontends.torch.grids import grid_decompositions
from aotc.frontends.torch.lu import lu_decompositions
from aotc.frontends.torch.normalizations import normalization_decompositions
from aotc.frontends.torch.pads import pad_decompositions
from aotc.frontends.torch.pools import pool_decompositions
from aotc.frontends.torch.quantized import quantized_decompositions
from aotc.frontends.torch.quotients import quotient_decompositions
from aotc.frontends.torch.resampling import resampling_decompositions
from aotc.frontends.torch.scatters import scatter_decompositions
from aotc.frontends.torch.selections import selection_decompositions
from aotc.frontends.torch.special import special_functions
from aotc.frontends.torch.strides import stride_decompositions
from aotc.frontends.torch.transposed import transposed_decompositions
from aotc.frontends.torch.triangular import triangular_decompositions
from aotc.frontends.torch.unsigned import unsigned_decompositions
from aotc.frontends.torch.windows import window_decompositions

Tensor = Any


def decompositions() -> dict[Any, Any]:
    """The decompositions of torch-mlir and of this package, by operator."""
    import torch
    from torch_mlir.extras import fx_decomp_util  # type: ignore[import-not-found, unused-ignore]

    aten = torch.ops.aten
    table: dict[Any, Any] = fx_decomp_util.get_decomposition_table()
    # If no epsilon is given, torch-mlir uses 0 instead of the epsilon of the dtype.
    defaults = torch.export.default_decompositions()
    return {
        **table,
        **special_functions(aten),
        **elementwise_decompositions(aten),
        **extremum_decompositions(aten),
        **bag_decompositions(aten),
        **data_dependent_decompositions(aten),
        **quantized_decompositions(),
        **fold_decompositions(aten, table),
        **gradient_decompositions(aten),
        **grid_decompositions(aten, table),
        **normalization_decompositions(aten),
        **pad_decompositions(aten, table),
        **pool_decompositions(aten),
        **quotient_decompositions(aten),
        **resampling_decompositions(aten, table),
        **stride_decompositions(aten),
        **transposed_decompositions(aten),
        **triangular_decompositions(aten),
        **unsigned_decompositions(aten),
        **lu_decompositions(aten),
        **window_decompositions(aten),
        aten.rms_norm.default: defaults[aten.rms_norm.default],
        **attention_decompositions(aten),
        aten.sort.stable: _sort,
        aten.topk.default: _topk,
        aten.eq.Tensor: _equal,
        aten.isfinite.default: _isfinite,
        aten.signbit.default: _signbit,
        aten.copysign.Tensor: _copysign,
        aten.copysign.Scalar: _copysign,
        aten.hypot.default: _hypot,
        aten.cumprod.default: _cumprod,
        aten.take.default: _take,
        **{one: functools.partial(_of_number, other) for one, other in _numbers_first(aten)},
        torch.ops.prims.scalar_tensor.default: _scalar_tensor,
        aten.__lshift__.Tensor: aten.bitwise_left_shift.Tensor,
        aten.__rshift__.Tensor: aten.bitwise_right_shift.Tensor,
        aten.bitwise_or.Scalar: functools.partial(_bitwise, aten.bitwise_or.Tensor),
        aten.bitwise_xor.Scalar: functools.partial(_bitwise, aten.bitwise_xor.Tensor),
        aten.pow.Tensor_Scalar: _power,
        aten.roll.default: _roll,
        **{one: functools.partial(_mean, one) for one in (aten.mean.default, aten.mean.dim)},
        aten.isin.Tensor_Tensor: _isin,
        aten._cdist_forward.default: _cdist,
        aten._pdist_forward.default: _pdist,
        # torch-mlir's own decomposition leaves a norm over all dimensions.
        aten.linalg_norm.default: defaults[aten.linalg_norm.default],
        aten.linalg_norm.ord_str: defaults[aten.linalg_norm.ord_str],
        aten.all.dims: defaults[aten.all.dims],
        aten._is_all_true.default: lambda x: x.all(),
        aten._is_any_true.default: lambda x: x.any(),
        aten.linalg_vector_norm.default: _vector_norm,
        aten.searchsorted.Tensor: _searchsorted,
        aten.histc.default: _histc,
        **scatter_decompositions(aten),
        **selection_decompositions(aten),
        aten.put.default: _put,
        aten.block_diag.default: _block_diag,
        aten.diagonal_scatter.default: _diagonal_scatter,
        aten.histogram.bin_ct: _histogram,
        aten.fft_fftfreq.default: _frequencies,
        aten.fft_rfftfreq.default: _frequencies_of_half,
        aten.as_strided.default: _as_strided,
        aten._grouped_mm.default: _grouped_mm,
        aten.index.Tensor: _index,
        aten.split_with_sizes.default: _split_with_sizes,
        aten.split.Tensor: _split,
        **_of_pytorch(),
        **_of_libraries(),
    }


def _of_pytorch() -> dict[Any, Any]:
    """PyTorch's own, of operators that torch-mlir does not know, or does not lower."""
    import torch
    from torch._decomp import (
        decomposition_table,
    )

    aten = torch.ops.aten
    operators = (
        *(aten.addmv.default, aten._addmm_activation.default, aten.dist.default),
        *(aten._batch_norm_with_update_functional.default, aten.as_strided_copy.default),
        *(aten.view_copy.default, aten.permute_copy.default, aten.unbind_copy.int),
        aten.narrow_copy.default,
        # torch-mlir's subtract 1 from an exponential, and add 1 to one, which loses small results.
        *(aten.elu.default, aten.logaddexp2.default),
        # torch-mlir's takes the slope from the noise, which is only there in training.
        aten.rrelu_with_noise_backward.default,
    )
    return {one: decomposition_table[one] for one in operators}


def _of_libraries() -> dict[Any, Any]:
    """The decompositions of operators that other packages register, for those that are
    registered."""
    import torch

    found = {}
    for name, function in _BY_NAME.items():
        library, operator = name.split("::")
        packet = getattr(getattr(torch.ops, library), operator, None)
        if packet is not None:
            found[packet.default] = function
    return found


def _sort(x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    """Drops `stable`: all sorts of aotc are stable."""
    import torch

    del stable
    return torch.ops.aten.sort.default(x, dim, descending)


def _topk(x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Returns sorted elements even if any order is allowed. torch-mlir does not support
    `sorted=False`."""
    if sorted:
        return NotImplemented
    import torch

    return torch.ops.aten.topk.default(x, k, dim, largest)


# --- Mixtures of experts --------------------------------------------------------------------------


def _split_with_sizes(x: Tensor, split_sizes: Sequence[Any], dim: int = 0) -> Any:
    """Splits into parts of any sizes. torch-mlir requires constants, and does not split bytes."""
    parts, start = [], 0
    for size in split_sizes:
        parts.append(x.narrow(dim, start, size))
        start = start + size
    return parts


def _split(x: Tensor, split_size: Any, dim: int = 0) -> Any:
    """Splits into parts of a symbolic size, or splits a dimension of symbolic size. The number of
    parts becomes a condition of the program."""
    size = x.shape[dim]
    if isinstance(size, int) and isinstance(split_size, int):
        return NotImplemented
    count = max(int((size + split_size - 1) // split_size), 1)
    sizes = [split_size] * (count - 1)
    return _split_with_sizes(x, [*sizes, size - split_size * (count - 1)], dim)


def _grouped_mm(
    x: Tensor,
    weights: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """With `offs`, a grouped matmul: the rows up to each offset are multiplied by a matrix of their
    own. Without it, a batched matmul."""
    import torch

    if weights.dim() != 3 or bias is not None or out_dtype not in (None, x.dtype):
        return NotImplemented
    if x.dim() == 3 and offs is None:
        return torch.bmm(x, weights)
    return (
        _rows_by_groups(x, weights, offs) if x.dim() == 2 and offs is not None else NotImplemented
    )


def _rows_by_groups(x: Tensor, weights: Tensor, offs: Tensor) -> Tensor:
    """Multiplies the rows by all matrices, then selects the product of each row's group, because
    the groups depend on values. Rows after the last offset are 0."""
    import torch

    groups, rows = weights.shape[0], torch.arange(x.shape[0])
    group = (offs.unsqueeze(0) <= rows.unsqueeze(1)).sum(1)
    # The index is computed first: a kernel then computes only the rows that are selected.
    index = group.clamp(max=groups - 1).reshape(1, -1, 1).expand(1, -1, weights.shape[2])
    products = torch.bmm(x.unsqueeze(0).expand(groups, -1, -1), weights)
    chosen = products.gather(0, index).squeeze(0)
    return torch.where((group < groups).unsqueeze(1), chosen, 0)


# --- Elementwise ----------------------------------------------------------------------------------


def _equal(x: Tensor, y: Tensor) -> Tensor:
    """torch-mlir lowers `x == x` as true, even for NaN. Its lowering of `!=` is right."""
    if not (x.dtype.is_floating_point or y.dtype.is_floating_point):
        return NotImplemented
    return (x != y).logical_not()


def _isfinite(x: Tensor) -> Tensor:
    if x.dtype.is_floating_point:
        return x.abs() < math.inf  # false for NaN
    return x == x


def _signbit(x: Tensor) -> Tensor:
    """A NaN has the result of a positive number, whatever its sign."""
    if not x.dtype.is_floating_point:
        return x < 0
    return (x < 0) | ((x == 0) & (1 / x < 0))


def _copysign(x: Tensor, sign: Any) -> Tensor:
    import torch

    type_ = torch.result_type(x, sign)
    size = x.to(type_ if type_.is_floating_point else torch.float32).abs()
    if isinstance(sign, torch.Tensor):
        return torch.where(_signbit(sign), -size, size)
    return size if math.copysign(1, sign) > 0 else -size


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """Scales by the larger operand, because its square may overflow."""
    import torch

    larger, smaller = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = smaller / larger
    found = torch.where(larger == 0, larger, larger * torch.sqrt(1 + ratio * ratio))
    return torch.where((x.abs() == math.inf) | (y.abs() == math.inf), math.inf, found)


def _cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Converts the elements first, because torch-mlir lowers products of the same type only."""
    return NotImplemented if dtype is None else x.to(dtype).cumprod(dim)


def _numbers_first(aten: Any) -> list[tuple[Any, Any]]:
    """Operators whose first operand is a number, and those of two tensors."""
    bits = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
    packets = [getattr(aten, name) for name in ("remainder", *bits)]
    return [(packet.Scalar_Tensor, packet.Tensor) for packet in packets]


def _of_number(of_tensors: Any, number: float, x: Tensor) -> Tensor:
    import torch

    return of_tensors(torch.full_like(x, number, dtype=torch.result_type(number, x)), x)


def _scalar_tensor(number: float, *, dtype: Any = None, **_: Any) -> Tensor:
    import torch

    return torch.full((), number, dtype=dtype)


def _bitwise(of_tensors: Any, x: Tensor, number: int) -> Tensor:
    import torch

    return of_tensors(x, torch.full((), number, dtype=torch.result_type(x, number)))


def _power(x: Tensor, exponent: float) -> Tensor:
    """Computes integer powers by repeated squaring. torch-mlir lowers powers of floats only, so
    those are left to it."""
    import torch

    type_ = torch.result_type(x, exponent)
    if type_ != x.dtype:
        return torch.pow(x.to(type_), exponent)
    if type_.is_floating_point or not isinstance(exponent, int) or exponent < 0:
        return NotImplemented
    found, square = None, x
    while exponent:
        if exponent & 1:
            found = square if found is None else found * square
        exponent >>= 1
        if exponent:
            square = square * square
    return x * 0 + 1 if found is None else found


def _mean(operator: Any, x: Tensor, *given: Any, dtype: Any = None) -> Tensor:
    """Converts the elements first, as torch-mlir does not lower means of integers."""
    return NotImplemented if dtype in (None, x.dtype) else operator(x.to(dtype), *given)


def _isin(
    elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    from torch._decomp import decompositions

    defined: Any = decompositions
    # With known sizes, PyTorch chooses the faster of two algorithms by a condition on them.
    if all(isinstance(size, int) for size in (*elements.shape, *test_elements.shape)):
        return defined.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return defined.isin_default(elements, test_elements, invert=invert)


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Rolls the flattened tensor if no dimension is given. Reduces each shift modulo the size of
    its dimension, as torch-mlir requires."""
    import torch

    roll = torch.ops.aten.roll.default
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    sizes = [x.shape[dim] for dim in dims]
    less = [_remainder(shift, size) for shift, size in zip(shifts, sizes, strict=True)]
    moving = [number for number, shift in enumerate(less) if str(shift) != "0"]
    if not moving:
        return x.clone()
    # As text, a number that depends on sizes is compared without a guard on these.
    if str(less) == str(list(shifts)) and len(moving) == len(less):
        return NotImplemented
    return roll(x, [less[number] for number in moving], [dims[number] for number in moving])


def _remainder(shift: Any, size: Any) -> Any:
    """The shift modulo the size. A size of 0 that is known has no remainders. A shift that is at
    most the size of any tensor with elements stays, as empty ones may be rolled, too."""
    if isinstance(size, int) and not size:
        return shift
    if not isinstance(size, int) and isinstance(shift, int) and abs(shift) <= 1:
        return shift
    expressions = [one.node.expr for one in (shift, size) if getattr(one, "node", None)]
    if len(expressions) == 2:
        of_shift, of_size = expressions
        is_part = of_shift.func.__name__ == "FloorDiv" and of_shift.args[1] == 2
        if is_part and of_shift.args[0] in (of_size, of_size + 1):
            return shift
    made = shift % size
    kinds = [getattr(one, "node", None) and one.node.expr.func.__name__ for one in (shift, made)]
    is_remainder = kinds[0] in ("Mod", "PythonMod") and kinds[1] in ("Mod", "PythonMod")
    if is_remainder and shift.node.expr.args[1] == made.node.expr.args[1]:
        return shift
    return made


def _frequencies(n: int, d: float = 1.0, *, dtype: Any = None, **named: Any) -> Tensor:
    import torch

    numbers = torch.arange(n)
    signed = torch.where(numbers < (n + 1) // 2, numbers, numbers - n)
    return signed.to(dtype or torch.get_default_dtype()) * (1.0 / (n * d))


def _frequencies_of_half(n: int, d: float = 1.0, *, dtype: Any = None, **named: Any) -> Tensor:
    import torch

    return torch.arange(n // 2 + 1).to(dtype or torch.get_default_dtype()) * (1.0 / (n * d))


def _as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Gathers elements of a contiguous tensor, where the result is not a view of all elements."""
    import torch

    offset = storage_offset or 0
    sizes = [*x.shape, *x.stride(), *size, *stride, offset, x.storage_offset()]
    if not all(isinstance(one, int) for one in sizes) or math.prod(size) == x.numel():
        return NotImplemented
    if not x.is_contiguous() or x.storage_offset():
        return NotImplemented
    places: Any = torch.full([1] * len(size), offset)
    for dim, (count, distance) in enumerate(zip(size, stride, strict=True)):
        shape = [count if one == dim else 1 for one in range(len(size))]
        places = places + (torch.arange(count) * distance).reshape(shape)
    return x.reshape(-1)[places]


# --- Distances ------------------------------------------------------------------------------------


def _cdist(a: Tensor, b: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """Computes the distances from differences, which avoids the cancellation of the matmul
    formula."""
    import torch

    del compute_mode
    return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)


def _pdist(x: Tensor, p: float = 2) -> Tensor:
    import torch

    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1).unbind(0)
    return torch.linalg.vector_norm(x[first] - x[second], p, -1)


def _vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Handles norms over all elements. torch-mlir lowers those over given dimensions."""
    if dim:
        return NotImplemented
    import torch

    some = x if x.dim() else x.reshape(1)
    norm = torch.linalg.vector_norm(some, ord, list(range(some.dim())), keepdim, dtype=dtype)
    return norm if x.dim() else norm.reshape(())


# --- Counts ---------------------------------------------------------------------------------------


def _searchsorted(
    row: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The number of elements of the sorted row that come before each element of `x`."""
    import torch

    if sorter is not None:
        row = row.gather(-1, sorter)
    if row.dim() > 1:
        row = row.unsqueeze(-2)
    x = x.to(torch.result_type(row, x)).unsqueeze(-1)
    is_before = row <= x if right or side == "right" else row < x
    # All elements come before NaN.
    return (is_before | (x != x)).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts elements in bins of equal width from `min` to `max`. If these are equal, the bins span
    the range of the elements."""
    import torch

    row = x.reshape(-1)
    least, most = (row.amin(), row.amax()) if min == max else (min, max)
    place = ((row - least) * bins / (most - least)).floor().clamp(max=bins - 1)
    is_inside = (row >= least) & (row <= most)
    is_in_bin = place.unsqueeze(0) == torch.arange(bins, dtype=x.dtype).unsqueeze(1)
    return (is_in_bin & is_inside.unsqueeze(0)).sum(1).to(x.dtype)


def _histogram(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    import torch

    if range is None or weight is not None or density:
        return NotImplemented
    least, most = range
    edges = torch.arange(bins + 1, dtype=x.dtype) * ((most - least) / bins) + least
    return _histc(x, bins, least, most), edges


# --- Indices --------------------------------------------------------------------------------------


def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Linearizes several index tensors of symbolic size into one, because torch-mlir does not
    assume that their sizes are equal. An index that is out of bounds stays out of bounds."""
    import torch

    if any(map(is_mask, indices)):
        return index_by_masks(x, indices)
    places = [place for place, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    first, count = places[0], len(places)
    if (
        count < 2
        or places != list(range(first, first + count))
        or any(index.dtype not in (torch.int64, torch.int32) for index in given)
        or all(isinstance(size, int) for index in given for size in index.shape)
    ):
        return NotImplemented
    row, whole = one_index(given, x.shape[first : first + count])
    shape = (*x.shape[:first], whole, *x.shape[first + count :])
    return x.reshape(shape)[(slice(None),) * first + (row,)]


# --- Scatters -------------------------------------------------------------------------------------


def _take(x: Tensor, index: Tensor) -> Tensor:
    """Reads at linear indices of the flattened tensor. PyTorch's own decomposition makes a number
    of an index of rank 0."""
    return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes to linear indices of the flattened tensor."""
    put = x.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate)
    return put.reshape(x.shape)


def _block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Each block is a number, a row or a matrix."""
    import torch

    blocks = [one if one.dim() == 2 else one.reshape(1, -1) for one in tensors]
    type_ = functools.reduce(torch.promote_types, (one.dtype for one in blocks))
    width, before, rows = sum(one.shape[1] for one in blocks), 0, []
    for block in blocks:
        behind = width - before - block.shape[1]
        rows.append(torch.nn.functional.pad(block.to(type_), (before, behind)))
        before += block.shape[1]
    return torch.cat(rows)


def _diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    import torch

    moved = x.movedim((dim1, dim2), (0, 1))
    numbers = torch.arange(source.shape[-1])
    places = [numbers + max(-offset, 0), numbers + max(offset, 0)]
    return moved.index_put(places, source.movedim(-1, 0)).movedim((0, 1), (dim1, dim2)).clone()


_BY_NAME = {"transformers::grouped_mm_fallback": _rows_by_groups}
