"""Large constants of the host module → a file beside the artifact, which maps it into memory.

docs/weights.md describes the format. The file is written before the module is translated. Uses of
the variables become calls of the runtime (`aotc_weight` of aotc_runtime.h).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.emit.table import weight_symbol
from aotc.errors import InternalError
from aotc.host.constants import Constant, constant_of, declare, is_private
from aotc.host.device_constants import rows_of_copy
from aotc.host.llvm_dialect import (
    Initializer,
    append,
    append_with_declarations,
    declaration,
    runtime_declarations,
    string_global,
)
from aotc.host.managed_globals import replace_by_calls, types_of_variables, uses_of_variables
from aotc.input.weights import HeldWeight
from aotc.manifest import NamedWeight, Weights
from aotc.mlir import ir
from aotc.module_names import CPU_COPIES, DEVICE_COPY
from aotc.ops import symbol_of
from aotc.weights_file import Content, digest_of, write_weights_file

# In bytes. Smaller constants stay in the artifact.
LEAST = 1 << 10
# The file is mapped at an address that is a multiple of this.
_PAGE = 1 << 12

_CONSTANT = "struct<(ptr, i64, ptr, ptr)>"
_WEIGHT = f"!llvm.struct<(ptr, array<32 x i8>, {_CONSTANT}, ptr)>"  # aotc_weight
_WEIGHTS = "!llvm.struct<(ptr, ptr, i64, ptr, ptr, i64)>"  # aotc_weights
_FILE, _FILE_NAME, _RELEASE = "aotc_weights", "aotc_weights_file", "aotc_release_weights"
_LIST = "aotc_weight_list"
_PRIORITY = 123
# Prefix of a copy's declaration → suffix of the function that returns the copy.
_COPIES = {DEVICE_COPY: "_on_device"} | {prefix: f"_{form}" for prefix, form in CPU_COPIES.items()}
# These are not weak references: upstream's runtime does not support weights files.
_FUNCTIONS = {
    "aotc_weight_get": declaration("aotc_weight_get", ["!llvm.ptr"], "!llvm.ptr"),
    "aotc_weight_get_on_device": declaration(
        "aotc_weight_get_on_device", ["!llvm.ptr"], "!llvm.ptr"
    ),
    **{
        (name := f"aotc_weight_get_{form}"): declaration(name, ["!llvm.ptr", "i64"], "!llvm.ptr")
        for form in CPU_COPIES.values()
    },
    "aotc_weights_release": declaration("aotc_weights_release", ["!llvm.ptr"], "void"),
}


class Weight(Struct, frozen=True):
    """A constant, and the SHA-256 that identifies its bytes in the file. `number` is its position
    among the replaceable weights; None if it is not replaceable."""

    symbol: str
    digest: bytes
    size: int
    number: int | None = None

    @property
    def table(self) -> str:
        """The symbol of its `aotc_weight`."""
        return f"aotc_weight_{self.symbol}" if self.number is None else weight_symbol(self.number)


class WeightsFile(Struct, frozen=True):
    """The weights file as the manifest describes it, and its weights, in order."""

    description: Weights
    weights: tuple[Weight, ...]


def take_weights(host: Any, held: Collection[str] = ()) -> list[Constant]:
    """Makes declarations of the constants of `host` that go into a file: those of 1 KiB and more
    that only code refers to, and those with the symbols `held`, which are replaceable."""
    with host.context:
        elsewhere = _named_by_variables(host)
        taken = []
        for variable in ops.content(host):
            if variable.name == "llvm.mlir.global" and symbol_of(variable) in held:
                constant = constant_of(variable, 0)
                if constant is None:
                    raise InternalError(f"The weight {symbol_of(variable)} has no value any more.")
                declare(variable)
                taken.append(constant)
                continue
            constant = constant_of(variable, LEAST)
            if constant is None or constant.symbol in elsewhere or not is_private(variable):
                continue
            if constant.is_constant and not constant.is_zero and constant.alignment <= _PAGE:
                declare(variable)
                taken.append(constant)
    return taken


def write_weights(
    constants: Sequence[Constant], place: Path, name: str, held: Sequence[HeldWeight]
) -> WeightsFile:
    """Writes the file. `name` is the file name that the artifact will search. Those of the `held`
    weights that still exist are replaceable."""
    symbols = [one.symbol for one in held]
    numbers = itertools.count()
    weights = [
        Weight(
            constant.symbol,
            digest_of(constant.pieces()),
            constant.size,
            next(numbers) if constant.symbol in symbols else None,
        )
        for constant in constants
    ]
    size, digest = write_weights_file(
        place,
        [
            Content(one.symbol, one.digest, one.size, constant.alignment, constant.pieces)
            for one, constant in zip(weights, constants, strict=True)
        ],
    )
    by_symbol = {one.symbol: one.value for one in held}
    named = [by_symbol[one.symbol] for one in weights if one.number is not None]
    types = [
        NamedWeight(value.name, value.type, value.dtype, tuple(n or 0 for n in value.shape or ()))
        for value in named
    ]
    return WeightsFile(Weights(name, size, digest.hex(), tuple(types)), tuple(weights))


def _named_by_variables(host: Any) -> frozenset[str]:
    """The symbols that the initial values of variables refer to."""
    return frozenset(
        str(ir.FlatSymbolRefAttr(use.attributes["global_name"]).value)
        for variable in ops.content(host)
        if variable.name == "llvm.mlir.global"
        for use in ops.find(variable, "llvm.mlir.addressof")
    )


def use_weights(host: Any, file: WeightsFile) -> None:
    """Replaces uses of the constants that `take_weights` declared by the file's content; changes
    `host` in place."""
    uses = uses_of_variables(host)
    variables = {symbol_of(op): op for op in ops.content(host) if op.name == "llvm.mlir.global"}
    append(host, "\n".join([*_FUNCTIONS.values(), *_file_texts(file)]))
    types = types_of_variables(host)
    for weight in file.weights:
        rows = {
            prefix: rows_of_copy(prefix, types[name])
            for prefix in CPU_COPIES
            if (name := f"{prefix}{weight.symbol}") in types
        }
        append_with_declarations(host, _getters(weight, rows), _declarations(weight))
        replace_by_calls(uses.get(weight.symbol, []), _getter(weight))
        ops.erase(variables[weight.symbol])
        copies = {
            where: copy
            for prefix, where in _COPIES.items()
            if (copy := f"{prefix}{weight.symbol}") in variables
        }
        for where, copy in copies.items():
            replace_by_calls(uses.get(copy, []), _getter(weight, where))
            ops.erase(variables[copy])
    append_with_declarations(host, _release_text(), _declarations())


def _getter(weight: Weight, where: str = "") -> str:
    return f"aotc_get_weight{where}_{weight.symbol}"


def _declarations(*weights: Weight) -> dict[str, str]:
    """The declarations of the symbols that the texts refer to, and `host` has already."""
    names = {_FILE: _WEIGHTS, **{weight.table: _WEIGHT for weight in weights}}
    variables = {
        name: f'llvm.mlir.global external @"{name}"() {{addr_space = 0 : i32}} : {type_}'
        for name, type_ in names.items()
    }
    return {**runtime_declarations(), **_FUNCTIONS, **variables}


def _file_texts(file: WeightsFile) -> Iterator[str]:
    """The artifact's `aotc_weights`, the `aotc_weight`s, and the list of these."""
    yield string_global(_FILE_NAME, file.description.file)
    value = Initializer(_WEIGHTS)
    value.put_address(_FILE_NAME, 0)
    value.put_address(_LIST, 1)
    value.put_number(len(file.weights), "i64", 2)
    yield _writable(value.text(_FILE))
    every = Initializer(f"!llvm.array<{len(file.weights)} x ptr>")
    for i, weight in enumerate(file.weights):
        every.put_address(weight.table, i)
        yield _weight_text(weight)
    yield every.text(_LIST)


def _weight_text(weight: Weight) -> str:
    numbers = ", ".join(map(str, weight.digest))
    value = Initializer(_WEIGHT)
    value.put_address(_FILE, 0)
    value.put(f"llvm.mlir.constant(dense<[{numbers}]> : tensor<32xi8>) : !llvm.array<32 x i8>", 1)
    value.put_number(weight.size, "i64", 2, 1)
    text = _writable(value.text(weight.table))
    if weight.number is not None:
        # The library's C functions refer to it.
        text = text.replace("global internal", "global external hidden", 1)
    return text


def _getters(weight: Weight, rows: Mapping[str, int]) -> str:
    """The functions that return the weight's data. `rows` maps the prefix of each copy for the CPU
    device to the number of rows that the runtime needs."""
    getters = [
        f"""llvm.func internal @"{_getter(weight, where)}"() -> !llvm.ptr {{
  %weight = llvm.mlir.addressof @"{weight.table}" : !llvm.ptr
  %data = llvm.call @aotc_weight_get{where}(%weight) : (!llvm.ptr) -> !llvm.ptr
  llvm.return %data : !llvm.ptr
}}"""
        for where in ("", "_on_device")
    ]
    getters += [_cpu_getter(weight, _COPIES[prefix], count) for prefix, count in rows.items()]
    return "\n".join(getters)


def _cpu_getter(weight: Weight, where: str, rows: int) -> str:
    return f"""llvm.func internal @"{_getter(weight, where)}"() -> !llvm.ptr {{
  %weight = llvm.mlir.addressof @"{weight.table}" : !llvm.ptr
  %rows = llvm.mlir.constant({rows} : i64) : i64
  %data = llvm.call @aotc_weight_get{where}(%weight, %rows) : (!llvm.ptr, i64) -> !llvm.ptr
  llvm.return %data : !llvm.ptr
}}"""


def _writable(text: str) -> str:
    """The text of a variable that the runtime writes to."""
    return text.replace("internal constant", "internal", 1)


def _release_text() -> str:
    return f"""llvm.func internal @"{_RELEASE}"() {{
  %file = llvm.mlir.addressof @"{_FILE}" : !llvm.ptr
  llvm.call @aotc_weights_release(%file) : (!llvm.ptr) -> ()
  llvm.return
}}
llvm.mlir.global_dtors
    dtors = [@"{_RELEASE}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]"""
