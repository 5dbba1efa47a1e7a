"""Lowers complex tensors to real tensors with a last dimension of two: the real and imaginary
parts.

Each operator on complex tensors is traced as `view_as_real`, operators on real tensors, and
`view_as_complex`. Where `view_as_real` follows `view_as_complex`, both are removed, so the final
graph has neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aotc.errors import InputError
from aotc.frontends.torch.fourier import fourier_decompositions
from aotc.frontends.torch.places import place_of_node

Tensor = Any
# The real and the imaginary part. Each is a tensor or a number.
Parts = tuple[Any, Any]


def with_complex_numbers(table: Mapping[Any, Any]) -> dict[Any, Any]:
    """The decompositions of `table`, extended by those of operators on complex tensors."""
    import torch

    aten = torch.ops.aten
    made = {**table, **fourier_decompositions(aten)}
    made |= {aten.polar.default: _polar, aten.complex.default: _whole}
    for operator in _composites(aten):
        made.setdefault(operator, _composite(operator))
    functions = {
        **{name: _composite(_overload(aten, name)) for name in _COMPOSITES},
        **{name: _moved(function) for name, function in _MOVES.items()},
        **_ARITHMETIC,
    }
    for name, function in functions.items():
        operator = _overload(aten, name)
        made[operator] = _where_complex(function, made.get(operator))
    return made


def _overload(aten: Any, name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload)


def _composites(aten: Any) -> list[Any]:
    """PyTorch's Fourier operators that it decomposes itself, into the three `_fft_*` operators."""
    found = [getattr(aten, name).default for name in dir(aten) if name.startswith("fft_")]
    return [one for one in (*found, aten.stft.default, aten.stft.center) if one._can_decompose()]


def _composite(operator: Any) -> Callable[..., Any]:
    """PyTorch's own decomposition of a composite operator."""
    import torch

    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return functools.partial(operator._op_dk, key)


def _where_complex(
    function: Callable[..., Any], otherwise: Callable[..., Any] | None
) -> Callable[..., Any]:
    def decomposed(*arguments: Any, **named: Any) -> Any:
        if any(map(_is_complex, (*arguments, *named.values()))):
            return function(*arguments, **named)
        return NotImplemented if otherwise is None else otherwise(*arguments, **named)

    return decomposed


def _is_complex(argument: Any) -> bool:
    import torch

    if isinstance(argument, list | tuple):
        return any(map(_is_complex, argument))
    if isinstance(argument, torch.Tensor):
        return bool(argument.is_complex())
    return isinstance(argument, complex) or (
        isinstance(argument, torch.dtype) and argument.is_complex
    )


# --- Parts ----------------------------------------------------------------------------------------


def _pair(value: Any) -> Tensor:
    """A tensor, real or complex, as pairs [..., 2]."""
    import torch

    if value.is_complex():
        return torch.view_as_real(value)
    return torch.stack([value, torch.zeros_like(value)], -1)


def _parts(value: Any) -> Parts:
    import torch

    if isinstance(value, torch.Tensor):
        if not value.is_complex():
            return value, 0
        pair = torch.view_as_real(value)
        return pair.select(-1, 0), pair.select(-1, 1)
    return (value.real, value.imag) if isinstance(value, complex) else (value, 0)


def _whole(real: Any, imaginary: Any) -> Tensor:
    """The complex tensor with these parts. At least one of them is a tensor."""
    import torch

    if not isinstance(real, torch.Tensor):
        real = torch.full_like(imaginary, real)
    if not isinstance(imaginary, torch.Tensor):
        imaginary = torch.full_like(real, imaginary)
    broadcast: Any = torch.broadcast_tensors
    return torch.view_as_complex(torch.stack(broadcast(real, imaginary), -1))


def _is_zero(part: Any) -> bool:
    return isinstance(part, int | float) and part == 0


# --- Data movement --------------------------------------------------------------------------------


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of complex tensors that applies `function` to their pairs."""

    def of_complex(value: Any, *arguments: Any, **named: Any) -> Any:
        import torch

        # The tensor is real if only the `dtype` of the result is complex.
        first = _pair(value) if isinstance(value, torch.Tensor) else _pairs(value)
        moved = function(first, *map(_pairs, arguments), **named)
        if moved is NotImplemented:
            return moved
        if isinstance(moved, list | tuple):
            return [torch.view_as_complex(one.contiguous()) for one in moved]
        return torch.view_as_complex(moved.contiguous())

    return of_complex


def _pairs(argument: Any) -> Any:
    import torch

    if isinstance(argument, torch.Tensor):
        return _pair(argument) if argument.is_complex() else argument
    if _is_complex(argument):
        return [_pair(one) for one in argument]
    return argument


def _at(pair: Tensor, dim: int, more: int = 0) -> int:
    """A dimension of the complex tensor, counted from the start. `more` is the number of dimensions
    that the result has in addition."""
    return dim if dim >= 0 else dim + pair.dim() - 1 + more


def _all_at(pair: Tensor, dims: Sequence[int] | int | None) -> list[int]:
    listed = [dims] if isinstance(dims, int) else dims
    return [_at(pair, one) for one in listed or range(pair.dim() - 1)]


def _along(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Extends a function along dimensions of pairs: a single number is left as it is, whatever the
    dimension, and the elements are converted to `dtype` first."""

    def of_pairs(p: Tensor, *arguments: Any, dtype: Any = None, **named: Any) -> Any:
        if dtype is not None:
            if not dtype.is_complex:
                return NotImplemented
            p = p.to(dtype.to_real())
        return function(p, *arguments, **named) if p.dim() > 1 else p.clone()

    return of_pairs


def _rolled(p: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return p.reshape(-1, 2).roll(shifts, [0]).reshape(p.shape)
    return p.roll(shifts, _all_at(p, dims))


def _put(p: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    import torch

    return torch.ops.aten.index_put.default(p, indices, values, accumulate)


_MOVES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("alias.default", "detach.default"), lambda p: p.alias()),
    "lift_fresh_copy.default": lambda p: p.clone(),
    "clone.default": lambda p, memory_format=None: p.clone(),
    "contiguous.default": lambda p, memory_format=None: p.contiguous(),
    **dict.fromkeys(
        ("view.default", "_unsafe_view.default", "reshape.default"),
        lambda p, sizes: p.reshape([*sizes, 2]),
    ),
    "expand.default": lambda p, sizes, implicit=False: p.expand([*sizes, 2]),
    "repeat.default": lambda p, counts: p.repeat([*counts, 1]),
    "permute.default": lambda p, dims: p.permute([*_all_at(p, dims), p.dim() - 1]),
    "transpose.int": lambda p, one, other: p.transpose(_at(p, one), _at(p, other)),
    "t.default": lambda p: p.transpose(0, 1) if p.dim() == 3 else p,
    "unsqueeze.default": lambda p, dim: p.unsqueeze(_at(p, dim, 1)),
    "squeeze.dim": _along(lambda p, dim: p.squeeze(_at(p, dim))),
    "squeeze.dims": _along(lambda p, dims: p.squeeze(_all_at(p, dims)) if dims else p),
    "squeeze.default": lambda p: p.squeeze(),
    "select.int": lambda p, dim, index: p.select(_at(p, dim), index),
    "slice.Tensor": lambda p, dim=0, start=None, end=None, step=1: _slice(p, dim, start, end, step),
    "narrow.default": lambda p, dim, start, length: p.narrow(_at(p, dim), start, length),
    "index_select.default": lambda p, dim, index: p.index_select(_at(p, dim), index),
    "index.Tensor": lambda p, indices: p[tuple(slice(None) if i is None else i for i in indices)],
    "index_put.default": _put,
    "flip.default": _along(lambda p, dims: p.flip(_all_at(p, dims)) if dims else p.clone()),
    "roll.default": _rolled,
    "unbind.int": lambda p, dim=0: p.unbind(_at(p, dim)),
    "split.Tensor": lambda p, size, dim=0: p.split(size, _at(p, dim)),
    "split_with_sizes.default": lambda p, sizes, dim=0: p.split(sizes, _at(p, dim)),
    "cat.default": lambda pairs, dim=0: _cat(pairs, dim),
    "stack.default": lambda pairs, dim=0: _stack(pairs, dim),
    "constant_pad_nd.default": lambda p, pads, value=0: _padded(p, pads, value),
    "select_scatter.default": lambda p, q, dim, index: p.select_scatter(q, _at(p, dim), index),
    "slice_scatter.default": lambda p, q, dim=0, start=None, end=None, step=1: _put_slice(
        p, q, dim, start, end, step
    ),
    "unfold.default": lambda p, dim, size, step: p.unfold(_at(p, dim), size, step).transpose(
        -1, -2
    ),
    "diagonal.default": lambda p, offset=0, one=0, other=1: p.diagonal(
        offset, _at(p, one), _at(p, other)
    ).transpose(-1, -2),
    "sum.default": _along(lambda p: p.sum(_all_at(p, None))),
    "sum.dim_IntList": _along(lambda p, dim, keepdim=False: p.sum(_all_at(p, dim), keepdim)),
    "mean.default": _along(lambda p: p.mean(_all_at(p, None))),
    "mean.dim": _along(lambda p, dim, keepdim=False: p.mean(_all_at(p, dim), keepdim)),
    "cumsum.default": _along(lambda p, dim: p.cumsum(_at(p, dim))),
}


def _slice(p: Tensor, dim: int, start: Any, end: Any, step: Any) -> Tensor:
    import torch

    return torch.ops.aten.slice.Tensor(p, _at(p, dim), start, end, step)


def _put_slice(p: Tensor, q: Tensor, dim: int, start: Any, end: Any, step: Any) -> Tensor:
    import torch

    return torch.ops.aten.slice_scatter.default(p, q, _at(p, dim), start, end, step)


def _cat(pairs: Sequence[Tensor], dim: int) -> Tensor:
    import torch

    return torch.cat(list(pairs), _at(pairs[0], dim))


def _stack(pairs: Sequence[Tensor], dim: int) -> Tensor:
    import torch

    return torch.stack(list(pairs), _at(pairs[0], dim, 1))


def _padded(p: Tensor, pads: Sequence[Any], value: Any) -> Tensor:
    import torch

    if value == 0:
        return torch.constant_pad_nd(p, [0, 0, *pads], 0)
    parts = zip(p.unbind(-1), (value.real, value.imag), strict=True)
    return torch.stack([torch.constant_pad_nd(one, pads, number) for one, number in parts], -1)


# --- Arithmetic -----------------------------------------------------------------------------------


def _sum(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    (a, b), (c, d) = _parts(x), _product_of_parts(_parts(y), _parts(alpha))
    return _whole(_added(a, c), _added(b, d))


def _difference(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return _sum(x, y, -alpha)


def _added(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def _product_of_parts(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    if _is_zero(b):
        return _scaled(a, c), _scaled(a, d)
    if _is_zero(d):
        return _scaled(c, a), _scaled(c, b)
    return a * c - b * d, a * d + b * c


def _scaled(a: Any, b: Any) -> Any:
    return b if isinstance(a, int) and a == 1 else 0 if _is_zero(b) else a * b


def _product(x: Any, y: Any) -> Tensor:
    return _whole(*_product_of_parts(_parts(x), _parts(y)))


def _quotient(x: Any, y: Any) -> Tensor:
    """Divides after scaling by the larger part of the divisor, because the square of that part may
    overflow."""
    import torch

    (a, b), (c, d) = _parts(x), _parts(y)
    if _is_zero(d):
        return _whole(a / c, b / c)
    if not isinstance(c, torch.Tensor):
        return _whole(*_product_of_parts((a, b), _parts(1 / complex(c, d))))
    scale = torch.maximum(c.abs(), d.abs())
    c, d = c / scale, d / scale
    square = c * c + d * d
    real, imaginary = _product_of_parts((a, b), (c, -d))
    return _whole(real / square / scale, imaginary / square / scale)


def _power(x: Any, exponent: Any) -> Tensor:
    if not isinstance(exponent, int) or not 0 <= exponent <= 16:
        return NotImplemented
    found: Parts = (1, 0)
    for _ in range(exponent):
        found = _product_of_parts(_parts(x), found)
    if exponent == 0:
        return _product(x, 0) + 1
    return _whole(*found)


def _absolute(x: Any) -> Tensor:
    import torch

    return torch.hypot(*_parts(x))


def _angle(x: Any) -> Tensor:
    import torch

    a, b = _parts(x)
    return torch.atan2(b, a)


def _exponential(x: Any) -> Tensor:
    a, b = _parts(x)
    size = a.exp()
    return _whole(size * b.cos(), size * b.sin())


def _logarithm(x: Any) -> Tensor:
    return _whole(_absolute(x).log(), _angle(x))


def _polar(size: Any, angle: Any) -> Tensor:
    return _whole(size * angle.cos(), size * angle.sin())


def _sign(x: Any) -> Tensor:
    import torch

    a, b = _parts(x)
    size = _absolute(x)
    size = torch.where(size == 0, 1, size)
    return _whole(a / size, b / size)


def _matmul(operator: str) -> Callable[..., Any]:
    def product(x: Any, y: Any) -> Tensor:
        import torch

        function = getattr(torch, operator)
        (a, b), (c, d) = _parts(x), _parts(y)
        if _is_zero(b):
            return _whole(function(a, c), function(a, d))
        if _is_zero(d):
            return _whole(function(a, c), function(b, c))
        return _whole(function(a, c) - function(b, d), function(a, d) + function(b, c))

    return product


def _equal(x: Any, y: Any) -> Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    return (a == c) & (b == d)


def _where(condition: Any, x: Any, y: Any) -> Tensor:
    import torch

    (a, b), (c, d) = _parts(x), _parts(y)
    return _whole(torch.where(condition, a, c), torch.where(condition, b, d))


def _converted(x: Any, *arguments: Any, dtype: Any = None, **named: Any) -> Any:
    """Converts to another dtype, from a real or a complex one."""
    import torch

    del arguments, named
    if dtype is None:
        return torch.view_as_complex(_pair(x).clone())
    part = dtype.to_real() if dtype.is_complex else dtype
    if not dtype.is_complex:
        return _parts(x)[0].to(part)
    return torch.view_as_complex(_pair(x).to(part).contiguous())


def _full(x: Any, value: Any, *, dtype: Any = None, **named: Any) -> Tensor:
    import torch

    del named
    like = _parts(x)[0]
    if dtype is not None:
        if not dtype.is_complex:
            return torch.full_like(like, value, dtype=dtype)
        like = like.to(dtype.to_real())
    a, b = _parts(value)
    return _whole(torch.full_like(like, a), torch.full_like(like, b))


def _filled(sizes: Sequence[Any], value: Any, *, dtype: Any = None, **named: Any) -> Tensor:
    import torch

    del named
    type_ = (dtype or torch.complex64).to_real()
    return _whole(*(torch.full(sizes, part, dtype=type_) for part in _parts(value)))


def _copied(x: Tensor, source: Any, non_blocking: bool = False) -> Any:
    copy = _converted(source, dtype=x.dtype)
    return copy.expand(x.shape).clone()


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "scalar_tensor.default": lambda value, **named: _filled([], value, **named),
    "full.default": _filled,
    "zeros.default": lambda sizes, **named: _filled(sizes, 0, **named),
    "ones.default": lambda sizes, **named: _filled(sizes, 1, **named),
    "empty.memory_format": lambda sizes, **named: _filled(sizes, 0, **named),
    "new_zeros.default": lambda x, sizes, **named: _filled(sizes, 0, dtype=x.dtype),
    "copy.default": _copied,
    **dict.fromkeys(("add.Tensor", "add.Scalar"), _sum),
    **dict.fromkeys(("sub.Tensor", "sub.Scalar"), _difference),
    "rsub.Scalar": lambda x, y, alpha=1: _difference(y, x, alpha),
    **dict.fromkeys(("mul.Tensor", "mul.Scalar"), _product),
    **dict.fromkeys(("div.Tensor", "div.Scalar"), _quotient),
    "reciprocal.default": lambda x: _quotient(1, x),
    **dict.fromkeys(("neg.default", "_neg_view.default"), lambda x: _product(x, -1)),
    **dict.fromkeys(
        ("_conj.default", "_conj_physical.default", "conj_physical.default"),
        lambda x: _whole(_parts(x)[0], -_parts(x)[1]),
    ),
    "square.default": lambda x: _product(x, x),
    "pow.Tensor_Scalar": _power,
    "abs.default": _absolute,
    "angle.default": _angle,
    "exp.default": _exponential,
    "log.default": _logarithm,
    "sgn.default": _sign,
    "mm.default": _matmul("mm"),
    "bmm.default": _matmul("bmm"),
    "mv.default": _matmul("mv"),
    "dot.default": _matmul("dot"),
    "addmm.default": lambda z, x, y, beta=1, alpha=1: _sum(
        _product(z, beta), _product(_matmul("mm")(x, y), alpha)
    ),
    "eq.Tensor": _equal,
    "eq.Scalar": _equal,
    "ne.Tensor": lambda x, y: ~_equal(x, y),
    "ne.Scalar": lambda x, y: ~_equal(x, y),
    "isnan.default": lambda x: _parts(x)[0].isnan() | _parts(x)[1].isnan(),
    "where.self": _where,
    "_to_copy.default": _converted,
    "full_like.default": _full,
    "zeros_like.default": lambda x, **named: _full(x, 0, dtype=named.get("dtype")),
    "ones_like.default": lambda x, **named: _full(x, 1, dtype=named.get("dtype")),
}
# Operators that PyTorch itself decomposes into others.
_COMPOSITES = ("einsum.default", "matmul.default", "linear.default")


# --- The resulting graph --------------------------------------------------------------------------


def remove_complex_numbers(program: Any) -> None:
    """Changes the graph of a `torch.export.ExportedProgram` in place so that its complex
    parameters, and all complex values, are pairs of real numbers.

    Raises InputError for operators on complex tensors that have no decomposition, and for complex
    inputs and results.
    """
    import torch

    aten, graph = torch.ops.aten, program.graph
    real, whole = aten.view_as_real.default, aten.view_as_complex.default
    kept = _complex_state(program)
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not real:
            continue
        (of,) = node.args
        if of.target is whole:
            node.replace_all_uses_with(of.args[0])
        elif of.name in kept:
            node.replace_all_uses_with(of)
    for node in reversed(list(graph.nodes)):
        if node.target in (real, whole) and not node.users:
            graph.erase_node(node)
    for node in graph.nodes:
        if node.name in kept:
            _make_pairs(program, node, kept[node.name])
    _forward_parts(graph, aten)
    _check(program, set(kept))


def _complex_state(program: Any) -> dict[str, str]:
    """Maps the node names of complex parameters, buffers and constants to their names in the
    program's state."""
    signature = program.graph_signature
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    return {
        node: name
        for node, name in names.items()
        if _is_complex(program.state_dict.get(name, program.constants.get(name)))
    }


def _make_pairs(program: Any, node: Any, name: str) -> None:
    import torch

    for place in (program.state_dict, program.constants):
        if name in place:
            pairs = torch.view_as_real(place[name].detach().resolve_conj())
            place[name] = torch.nn.Parameter(pairs, requires_grad=False)
    if "val" in node.meta:
        with node.meta["val"].fake_mode:
            node.meta["val"] = torch.view_as_real(node.meta["val"].detach().clone())
    node.meta["tensor_meta"] = None


def _forward_parts(graph: Any, aten: Any) -> None:
    """Replaces the selection of a part from pairs by that part, if the pairs were stacked from two
    parts."""
    for node in graph.find_nodes(op="call_function", target=aten.select.int):
        of, dim, index = node.args
        parts = _parts_of(of, aten)
        if parts and dim % of.meta["val"].dim() == of.meta["val"].dim() - 1:
            node.replace_all_uses_with(parts[index])
    graph.eliminate_dead_code()


def _parts_of(pairs: Any, aten: Any) -> list[Any]:
    """The nodes that a node stacks along a new last dimension. Empty if it does not do that."""
    if pairs.target not in (aten.stack.default, aten.cat.default) or len(pairs.args) < 2:
        return []
    parts, dim = pairs.args
    last = pairs.meta["val"].dim() - 1
    if dim % (last + 1) != last:
        return []
    if pairs.target is aten.stack.default:
        return list(parts)
    if any(one.target is not aten.unsqueeze.default for one in parts):
        return []
    if any(one.args[1] % (last + 1) != last for one in parts):
        return []
    return [one.args[0] for one in parts]


def _check(program: Any, kept: set[str]) -> None:
    import torch

    given, whole = set(program.graph_signature.user_inputs), torch.ops.aten.view_as_complex.default
    for node in program.graph.nodes:
        values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
        if not _is_complex(values) or node.name in kept:
            continue
        if node.name in given:
            raise InputError(
                f"The input '{node.name}' is complex: that is not supported.",
                hint="give torch.view_as_real of it, and call torch.view_as_complex in the module.",
            )
        if node.op == "output":
            made = next(one for one in node.all_input_nodes if _is_complex(one.meta.get("val")))
            raise InputError(
                f"{place_of_node(made)}the result '{made.name}' is complex: that is not supported.",
                hint="return torch.view_as_real of it.",
            )
        if node.target is not whole:
            raise InputError(
                f"{place_of_node(node)}{node.target} of complex numbers has no lowering.",
                hint="compute with their real and imaginary parts: torch.view_as_real.",
            )
