"""An entry that was a PyTorch module, called like the module: with its arguments, in their
structure, for its results."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import math
from collections.abc import Sequence
from typing import Any

from aotc.errors import InputError
from aotc.library.frameworks import Torch
from aotc.library.opened import Function
from aotc.library.outputs import MADE
from aotc.manifest import Leaf, Value

_NOT_FINITE = ("nan", "inf", "-inf")


class Module:
    """A function with the signature of the exported module.

    Arguments are given by position or by name. They may be tensors, numbers, tuples, dicts and
    classes that PyTorch knows. Constants (None, texts, numbers, flags) must have the values of the
    export.

    Results are new tensors on the device of the arguments. If all of these are on a GPU and the
    entry has an asynchronous form, the work is enqueued on PyTorch's current stream, like PyTorch's
    own operations. Gradients are not recorded: arguments that require them are refused outside of
    `torch.no_grad()`. `state` has the buffers that the module changes. It is made with this object,
    and may be replaced.
    """

    def __init__(self, function: Function, structures: tuple[Any, Any] | None = None) -> None:
        """`structures` are the treespecs of (args, kwargs) and of the results. By default, they are
        read from the manifest."""
        call = function.entry.call
        assert call is not None
        self._function, self._call = function, call
        self.__name__ = function.entry.name
        self._inputs, self._outputs = structures or (
            _structure(call.inputs, "arguments"),
            _structure(call.outputs, "results"),
        )
        self._is_one = self._outputs.is_leaf()
        positional, named = self._inputs.children()
        leaves = [*positional.children(), *named.children()]
        # True if no argument has a structure, so that the arguments are the leaves.
        self._is_flat = all(leaf.is_leaf() for leaf in leaves)
        # True if the arguments and the results are only tensors.
        self._is_plain = all(
            leaf.constant is None and leaf.dtype is not None
            for leaf in (*call.given, *call.returned)
        )
        self._count = positional.num_children
        self._keywords = tuple(named.context or ())
        self.state = None if function.entry.state is None else function.library.state()
        self._parameters = [v for v in function.entry.given if v.result is None]
        self._made = [MADE] * (len(function.entry.given) - len(self._parameters))

    def __repr__(self) -> str:
        return f"<module {self.__name__}({', '.join(self._known())})>"

    @property
    def function(self) -> Function:
        """The entry as an `aotc.load` function."""
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self._leaves(*self._bound(args, kwargs))
        state = () if self.state is None else (self.state.handle,)
        if self._is_plain:
            given = [*leaves, *self._made]
            found = self._function.direct_results(given, state, enqueues=True)
            if found is not None:
                return found[0] if self._is_one else self._outputs.unflatten(found)
        return self._returned(self._results(leaves, state))

    def _results(self, leaves: list[Any], state: Sequence[Any]) -> list[Any]:
        given: list[Any] = []
        values = iter(self._parameters)
        for place, (leaf, thing) in enumerate(zip(self._call.given, leaves, strict=True)):
            if leaf.constant is not None:
                self._check_constant(place, leaf.constant, thing)
                continue
            value = next(values)
            given.append(
                self._number(value.name, thing)
                if leaf.dtype is None
                else self._tensor(value, leaf, thing)
            )
        given += self._made
        return self._function.results(given, state=state, **self._where(given))

    def _returned(self, results: list[Any]) -> Any:
        found = iter(results)
        returned = [
            next(found) if leaf.constant is None else _constant(leaf.constant)
            for leaf in self._call.returned
        ]
        return returned[0] if self._is_one else self._outputs.unflatten(returned)

    def _bound(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments as (args, kwargs) of the export. They may be given by position or by
        name."""
        if not kwargs and len(args) == self._count and not self._keywords:
            return args, kwargs
        names = self._call.names[len(args) : self._count]
        moved = [name for name in names if name in kwargs]
        whole = (*args, *(kwargs[name] for name in moved))
        rest = {name: kwargs[name] for name in self._keywords if name in kwargs}
        is_known = len(moved) + len(rest) == len(kwargs) and list(names[: len(moved)]) == moved
        if len(whole) != self._count or len(rest) != len(self._keywords) or not is_known:
            found = [f"{len(args)} by position", *(f"'{name}'" for name in kwargs)]
            raise InputError(
                f"{self.__name__} was exported with the arguments ({', '.join(self._known())}), "
                f"and was given {', '.join(found)}."
            )
        return whole, rest

    def _known(self) -> list[str]:
        names = list(self._call.names) or [f"argument {i}" for i in range(self._count)]
        return [*names, *(f"{name}=" for name in self._keywords)]

    def _leaves(self, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        if self._is_flat:
            return [*args, *kwargs.values()]
        try:
            leaves: list[Any] = self._inputs.flatten_up_to((args, kwargs))
        except ValueError as error:
            raise InputError(
                f"{self.__name__}: the arguments have another structure than those of the export: "
                f"{str(error).rstrip('.')}."
            ) from None
        return leaves

    def _check_constant(self, place: int, constant: str, thing: Any) -> None:
        expected = _constant(constant)
        is_nan = isinstance(thing, float) and math.isnan(thing) and constant == "nan"
        if not is_nan and (type(thing) is not type(expected) or thing != expected):
            raise InputError(
                f"{self.__name__}: {self._place(place)} is {_shown(thing)}, and the module was "
                f"exported with {constant} there, which is a constant of the program.",
                hint="export it again for another value.",
            )

    def _place(self, leaf: int) -> str:
        """The place of a leaf in the arguments, such as `'opt'` or `'d'['a']`."""
        from torch.utils import _pytree

        tree = self._inputs.unflatten(range(self._inputs.num_leaves))
        _, key, *rest = [path for path, _ in _pytree.tree_leaves_with_path(tree)][leaf]
        name: Any = getattr(key, "key", None)
        if name is None:
            place: int = getattr(key, "idx", 0)
            names = self._call.names
            name = names[place] if place < len(names) else f"argument {place}"
        return f"'{name}'{''.join(map(str, rest))}"

    def _number(self, name: str, thing: Any) -> Any:
        if isinstance(thing, bool) or not hasattr(thing, "__index__"):
            raise InputError(
                f"{self.__name__}: argument '{name}' must be a whole number, and is "
                f"{_shown(thing)}."
            )
        return thing

    def _tensor(self, value: Value, leaf: Leaf, thing: Any) -> Any:
        import torch

        wrong = None
        if not isinstance(thing, torch.Tensor):
            wrong = f"is {_shown(thing)}, and must be a tensor"
        elif _dtype_name(thing.dtype) != leaf.dtype:
            wrong = f"has elements of {thing.dtype}, and must have torch.{leaf.dtype}"
        elif thing.requires_grad and torch.is_grad_enabled():
            wrong = "requires a gradient, which is not recorded: use torch.no_grad() or .detach()"
        elif value.is_written and not thing.is_contiguous():
            wrong = "is changed in place, and must be contiguous"
        if wrong is not None:
            raise InputError(f"{self.__name__}: argument '{value.name}' {wrong}.")
        if thing.layout is not torch.strided:
            return thing  # its package refuses it later
        if thing.is_conj() or thing.is_neg() or thing.requires_grad or not thing.is_contiguous():
            return thing.detach().resolve_conj().resolve_neg().contiguous()
        return thing

    def _where(self, given: list[Any]) -> dict[str, Any]:
        import torch

        tensors = [thing for thing in given if isinstance(thing, torch.Tensor)]
        where: dict[str, Any] = {"framework": Torch(None, tensors)}
        is_on_gpu = bool(tensors) and all(tensor.is_cuda for tensor in tensors)
        if is_on_gpu and self._function.entry.why_not_async is None:
            where["stream"] = torch.cuda.current_stream(tensors[0].device)
        return where


@functools.cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


@functools.cache
def _constant(text: str) -> Any:
    return float(text) if text in _NOT_FINITE else ast.literal_eval(text)


def _shown(thing: Any) -> str:
    if thing is None or isinstance(thing, bool | int | float | str):
        return repr(thing)
    return f"of the type {type(thing).__name__}"


def _structure(text: str | None, what: str) -> Any:
    """A treespec from its text. The modules of its classes are imported, so that they register the
    classes with PyTorch."""
    from torch.utils import _pytree

    if text is None:
        raise InputError(
            f"The module's {what} have a class that PyTorch cannot write down.",
            hint="register it with a serialized_type_name; or call what aotc.torch.build returned.",
        )
    for name in _classes(json.loads(text)[1]):
        if name not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            _import_class(name, what)
    return _pytree.treespec_loads(text)


def _classes(spec: Any) -> list[str]:
    own = [] if spec["type"] is None else [spec["type"]]
    return [*own, *(name for child in spec["children_spec"] for name in _classes(child))]


def _import_class(name: str, what: str) -> None:
    from torch.utils import _pytree

    reason = "its module does not register it"
    try:
        importlib.import_module(name.rpartition(".")[0])
    except (ImportError, ValueError) as error:
        reason = str(error)
    if name not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise InputError(
            f"The module's {what} have the class {name}, which PyTorch does not know here: "
            f"{reason}.",
            hint="import what registers it (torch.utils._pytree) before aotc.torch.load.",
        )
