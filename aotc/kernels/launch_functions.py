"""Functions that launch the kernels of equal operations, such as the equal layers of a network.

The kernels are built, simplified and outlined once for all the calls. Then the calls are replaced
by the bodies, which have the outlined launches: later passes find the same host code as for
separate kernels.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.constants import is_constant
from aotc.attributes import CONSTANT_ARGUMENTS, LAUNCH_FUNCTION
from aotc.builder.numbers import Value, wrap
from aotc.kernels.launches import name_modules
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest

_OFFSET = re.compile(r", offset: \d+")


class LaunchFunctions:
    """The launch functions of a module, by the problem and the kernel that each is for.

    `prefix` is that of the functions' names. `repeated` are the problems with several operations:
    others launch their kernels in place.
    """

    def __init__(
        self, module: Any, request: BuildRequest, prefix: str, problems: Iterable[Hashable]
    ) -> None:
        self.request, self._module, self._prefix = request, module, prefix
        # The lines of a kernel are those of its operation.
        counts = Counter(() if request.debug else problems)
        forms = Counter(map(_without_offsets, counts))
        # Problems that only differ in the offsets of their operands have one function.
        self._differ = {form for form, count in forms.items() if count > 1}
        self._repeated = {
            problem
            for problem, count in counts.items()
            if count > 1 or _without_offsets(problem) in self._differ
        }
        self._names: dict[Hashable, str] = {}
        self._taken = {
            ir.StringAttr(one.attributes["sym_name"]).value
            for one in ops.operations_in(ops.body_of_module(module))
            if "sym_name" in one.attributes
        }

    def launch(
        self,
        keys: tuple[Hashable, Hashable],
        values: Sequence[Value],
        dispatch: str,
        build: Callable[[Sequence[Value]], None],
    ) -> None:
        """Launches the kernel that `build(values)` builds, at the insertion point. `keys`: the
        problem, and the kernel among the problem's. `dispatch`: see `name_modules`."""
        problem, kernel = keys
        if problem not in self._repeated:
            build(values)
            return
        if (form := _without_offsets(problem)) in self._differ:
            problem, kernel = form, _without_offsets(kernel)
            values = [_with_any_offset(value) for value in values]
        constants = [_constant(value) for value in values]
        operands = [value for value, one in zip(values, constants, strict=True) if one is None]
        described = tuple(
            str(value.type if one is None else one)
            for value, one in zip(values, constants, strict=True)
        )
        # Kernels may read constants before the previous kernel has ended.
        of_module = [i for i, value in enumerate(operands) if is_constant(value)]
        key = problem, kernel, described, tuple(of_module)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._new_name()
            self._taken.add(name)
            self._create(name, (operands, of_module), constants, dispatch, build)
        ops.call(name, operands)

    def _new_name(self) -> str:
        """A symbol that the module does not have: functions of outlined operations have such names,
        too."""
        numbers = itertools.count(len(self._names))
        return next(name for i in numbers if (name := f"{self._prefix}{i}") not in self._taken)

    def _create(
        self,
        name: str,
        given: tuple[Sequence[Value], Sequence[int]],
        constants: Sequence[Any | None],
        dispatch: str,
        build: Callable[[Sequence[Value]], None],
    ) -> None:
        """Adds the function. `given`: the operands of its call, and the numbers of those that are
        constants of the module. Constant scalars are no arguments, as kernels contain them."""
        operands, of_module = given
        with ir.InsertionPoint.at_block_begin(ops.body_of_module(self._module)):
            function = ops.create_function(name, [value.type for value in operands], [])
        function.attributes[LAUNCH_FUNCTION] = ir.UnitAttr.get()
        function.attributes[CONSTANT_ARGUMENTS] = ir.DenseI32ArrayAttr.get(of_module)
        body = function.regions[0].blocks.append(*[value.type for value in operands])
        with ir.InsertionPoint(body):
            arguments = iter(body.arguments)
            build(
                [
                    wrap(next(arguments) if one is None else _clone(one).results[0])
                    for one in constants
                ]
            )
            ops.create("func.return")
        name_modules(function, self.request.capabilities, dispatch)


def _without_offsets(key: Any) -> Any:
    """A key without the static offsets in its types."""
    if isinstance(key, str):
        return _OFFSET.sub("", key)
    if isinstance(key, tuple):
        return tuple(map(_without_offsets, key))
    if not isinstance(key, Struct):
        return key
    fields = {name: getattr(key, name) for name in key.__struct_fields__}
    return replace(key, **{name: _without_offsets(field) for name, field in fields.items()})


def _with_any_offset(value: Value) -> Value:
    """A buffer with a static offset as one with a dynamic offset; another value as it is."""
    type_ = value.type
    if not isinstance(type_, ir.MemRefType) or not _OFFSET.search(str(type_)):
        return value
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, strides)
    made = ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)
    return wrap(ops.create("memref.cast", [value], [made]).result)


def _constant(value: Value) -> Any | None:
    """The operation of a constant; None for another value."""
    owner = ops.defining(value)
    return owner if owner is not None and owner.name == "arith.constant" else None


def _clone(operation: Any) -> Any:
    return operation.clone(ir.InsertionPoint.current).operation


def inline_launch_functions(module: Any) -> None:
    """Replaces the calls of launch functions by their bodies, with the locations of the calls, and
    erases the functions."""
    with module.context:
        functions = {
            symbol_of(function): function
            for function in ops.find(module.operation, "func.func")
            if LAUNCH_FUNCTION in function.attributes
        }
        for call in ops.find(module.operation, "func.call") if functions else ():
            if (function := functions.get(ops.callee_of(call))) is not None:
                _inline(call, function)
        for function in functions.values():
            ops.erase(function)


def _inline(call: Any, function: Any) -> None:
    block = function.regions[0].blocks[0]
    values = dict(zip(block.arguments, call.operands, strict=True))
    with ir.InsertionPoint(call):
        for operation in ops.operations_in(block)[:-1]:
            clone = _clone(operation)
            values |= zip(operation.results, clone.results, strict=True)
            for inner in ops.walk(clone):
                inner.location = call.location
                for number, operand in enumerate(inner.operands):
                    if (value := values.get(operand)) is not None:
                        inner.operands[number] = value
    ops.erase(call)
