"""Functions that return a large struct → functions that write its fields through a pointer.

MLIR returns several results as one struct, built by an `insertvalue` for each. LLVM copies the list
of all fields at each of them: the time is quadratic, and 2000 memrefs take minutes. Here each field
is stored to its place, by a function that is not inlined, because thousands of stores in one block
take LLVM's vectorizer and scheduler quadratic time, too. Functions that are called from outside of
the module are not changed: their C interfaces have such a pointer anyway.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import append, create_call, create_constant
from aotc.mlir import ir, llvm
from aotc.ops import symbol_of

# A struct with more fields than this is large.
_LARGE = 32
_POINTER = "!llvm.ptr"


def pass_large_results_by_pointer(host: Any, packed_calls: Collection[str]) -> None:
    """Changes the internal functions of `host`, and loads of large structs, in place.
    `packed_calls` are functions that only pass on fields of what other functions wrote."""
    large = {symbol_of(op): op for op in ops.content(host) if _returns_much(op)}
    for address in ops.find(host, "llvm.mlir.addressof") if large else ():
        large.pop(str(ir.FlatSymbolRefAttr(address.attributes["global_name"]).value), None)
    types = {name: _named(function) for name, function in large.items()}
    calls = [
        call
        for call in (ops.find(host, "llvm.call") if large else ())
        if "callee" in call.attributes and ops.callee_of(call) in large
    ]
    for call in calls:
        _call_with_pointer(call, types[ops.callee_of(call)])
    stores = _Stores(host)
    for name, function in large.items():
        _return_through_pointer(function, types[name], stores)
    for load in ops.find(host, "llvm.load"):
        if _is_large(load.results[0].type):
            function = ops.enclosing(load, "llvm.func")
            type_ = _with_name(load.results[0].type, symbol_of(function))
            copies = stores if symbol_of(function) in packed_calls else None
            _load_parts(load, load.operands[0], type_, copies)


class _Stores:
    """Functions that store or copy a struct, one for each type."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self._names: dict[tuple[str, Any], str] = {}

    def store(self, value: Any, pointer: Any) -> None:
        if isinstance(value.type, llvm.StructType):
            type_ = value.type
            body = f"llvm.store %from, %to : {type_}, !llvm.ptr"
            create_call(self._function("store", type_, str(type_), body), [value, pointer])
        else:
            ops.create("llvm.store", [value, pointer])

    def copy(self, type_: Any, source: Any, pointer: Any) -> None:
        body = f"""%value = llvm.load %from : !llvm.ptr -> {type_}
  llvm.store %value, %to : {type_}, !llvm.ptr"""
        create_call(self._function("copy", type_, _POINTER, body), [source, pointer])

    def _function(self, does: str, type_: Any, source: str, body: str) -> str:
        key = (does, type_)
        if key not in self._names:
            self._names[key] = name = f"aotc_{does}_result_{len(self._names)}"
            text = f"""llvm.func internal @{name}(%from: {source}, %to: !llvm.ptr)
    attributes {{passthrough = ["noinline"]}} {{
  {body}
  llvm.return
}}"""
            append(self._host, text)
        return self._names[key]


def _is_large(type_: Any) -> bool:
    if not isinstance(type_, llvm.StructType) or type_.opaque or type_.packed:
        return False
    return len(type_.body) > _LARGE


def _returns_much(operation: Any) -> bool:
    if operation.name != "llvm.func" or not operation.regions[0].blocks:
        return False
    if "internal" not in str(operation.attributes["linkage"]):
        return False
    return _is_large(_function_type(operation).return_type)


def _function_type(function: Any) -> Any:
    return llvm.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _named(function: Any) -> Any:
    return _with_name(_function_type(function).return_type, symbol_of(function))


def _with_name(type_: Any, name: str) -> Any:
    """The struct type with a name: in LLVM's text, a use has the name instead of all fields."""
    return llvm.StructType.new_identified(f"aotc_results_of_{name}", list(type_.body))


def _call_with_pointer(call: Any, type_: Any) -> None:
    result = call.results[0]
    uses = [use.owner.operation for use in result.uses]
    with call.location:
        if len(uses) == 1 and uses[0].name == "llvm.store" and _is_next(call, uses[0]):
            pointer = uses[0].operands[1]
            uses[0].erase()
        else:
            function: Any = ops.enclosing(call, "llvm.func")
            with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                pointer = ops.create(
                    "llvm.alloca",
                    [create_constant(1, 64)],
                    [ir.Type.parse(_POINTER)],
                    {"elem_type": ir.TypeAttr.get(type_)},
                ).result
            _load_parts(call, pointer, type_)
        attributes = ops.attributes_of(call)
        count = len(call.operands)
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([count + 1, 0])
        attributes.pop("res_attrs", None)
        attributes.pop("arg_attrs", None)
        with ir.InsertionPoint(call):
            ops.create("llvm.call", [*call.operands, pointer], attributes=attributes)
    call.erase()


def _is_next(call: Any, store: Any) -> bool:
    """Whether the store directly follows the call."""
    block = ops.operations_in(call.block)
    return bool(block[block.index(call) + 1] == store)


def _load_parts(made: Any, pointer: Any, type_: Any, copies: _Stores | None = None) -> None:
    """Loads the fields that are used of the struct that `made` has written to `pointer`. With
    `copies`, nothing is written there before the fields are used."""
    value = made.results[0]
    block = ops.operations_in(made.block)
    with made.location, ir.InsertionPoint(block[block.index(made) + 1]):
        users = [use.owner.operation for use in value.uses]
        parts = [user for user in users if user.name == "llvm.extractvalue"]
        for part in parts:
            place, part_type = _part(pointer, type_, _position(part)), part.results[0].type
            stored = [use.owner.operation for use in part.results[0].uses]
            if copies is not None and all(op.name == "llvm.store" for op in stored):
                for store in stored:
                    with ir.InsertionPoint(store):
                        copies.copy(part_type, place, store.operands[1])
                    store.erase()
                continue
            found = ops.unary("llvm.load", place, part_type)
            part.results[0].replace_all_uses_with(found)
        for part in parts:
            part.erase()
        if made.name == "llvm.load":
            if len(parts) == len(users):
                made.erase()
        elif len(parts) < len(users):
            whole = ops.unary("llvm.load", pointer, value.type)
            value.replace_all_uses_with(whole)


def _return_through_pointer(function: Any, type_: Any, stores: _Stores) -> None:
    old = _function_type(function)
    pointer_type = ir.Type.parse(_POINTER)
    pointer = function.regions[0].blocks[0].add_argument(pointer_type, function.location)
    inputs = [*old.inputs, pointer_type]
    void = ir.Type.parse("!llvm.void")
    function.attributes["function_type"] = ir.TypeAttr.get(llvm.FunctionType.get(void, inputs))
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    if "arg_attrs" in function.attributes:
        given = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, ir.DictAttr.get({})])
    for returned in ops.find(function, "llvm.return"):
        value = returned.operands[0]
        with returned.location, ir.InsertionPoint(returned):
            chain = _store_parts(value, pointer, type_, stores)
            ops.create("llvm.return")
        returned.erase()
        for insertion in chain:
            if not list(insertion.results[0].uses):
                insertion.erase()


def _store_parts(value: Any, pointer: Any, type_: Any, stores: _Stores) -> list[Any]:
    """Stores the fields that were inserted into a struct; returns the insertions, the last one
    first."""
    chain: list[Any] = []
    maker = ops.defining(value)
    while maker is not None and maker.name == "llvm.insertvalue":
        chain.append(maker)
        value = maker.operands[0]
        maker = ops.defining(value)
    name = "" if maker is None else maker.name
    if name == "llvm.mlir.zero":
        for number, part_type in enumerate(type_.body):
            zero = ops.create("llvm.mlir.zero", results=[part_type]).result
            ops.create("llvm.store", [zero, _part(pointer, type_, [number])])
    elif name not in ("llvm.mlir.poison", "llvm.mlir.undef"):
        ops.create("llvm.store", [value, pointer])
    for insertion in reversed(chain):
        place = _part(pointer, type_, _position(insertion))
        stores.store(insertion.operands[1], place)
    return chain


def _position(operation: Any) -> list[int]:
    return list(ir.DenseI64ArrayAttr(operation.attributes["position"]))


def _part(pointer: Any, type_: Any, position: list[int]) -> Any:
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([0, *position]),
        "elem_type": ir.TypeAttr.get(type_),
    }
    results = [ir.Type.parse(_POINTER)]
    return ops.create("llvm.getelementptr", [pointer], results, attributes).result
