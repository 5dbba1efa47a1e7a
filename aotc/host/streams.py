"""Functions marked `aotc.one_stream` → one stream for everything that they enqueue.

`gpu-to-llvm` creates a stream for each operation, waits for it and destroys it. A marked function
gets one stream, created at its beginning. The function waits for the stream where it calls
`@aotc_wait`, and before it returns.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import ONE_STREAM
from aotc.host.llvm_dialect import create_call
from aotc.mlir import ir
from aotc.module_names import WAIT
from aotc.ops import symbol_of

_CREATE, _SYNCHRONIZE, _DESTROY = (
    "mgpuStreamCreate",
    "mgpuStreamSynchronize",
    "mgpuStreamDestroy",
)


def use_one_stream(host: Any) -> dict[str, Any]:
    """Changes the marked functions of `host` in place.

    Returns function name → its stream, for the launches in the function.
    """
    streams = {}
    for function in ops.content(host):
        if function.name == "llvm.func" and ONE_STREAM in function.attributes:
            del function.attributes[ONE_STREAM]
            if _enqueues(function):
                streams[symbol_of(function)] = _unite_streams(function)
    for function in ops.content(host):
        if function.name == "llvm.func" and symbol_of(function) == WAIT:
            ops.erase(function)
    return streams


def _calls(function: Any) -> list[tuple[str, Any]]:
    return [
        (ops.callee_of(call), call)
        for call in ops.find(function, "llvm.call")
        if "callee" in call.attributes
    ]


def _enqueues(function: Any) -> bool:
    return bool(ops.find(function, "gpu.launch_func")) or any(
        callee in (_CREATE, WAIT) for callee, _ in _calls(function)
    )


def _unite_streams(function: Any) -> Any:
    with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        stream = create_call(_CREATE, [], "!llvm.ptr")
    created = ops.defining(stream)
    calls = [(callee, call) for callee, call in _calls(function) if call != created]
    made = [call for callee, call in calls if callee == _CREATE]
    ours = [call.results[0] for call in made]
    for callee, call in calls:
        if callee in (_SYNCHRONIZE, _DESTROY) and call.operands[0] in ours:
            ops.erase(call)
        elif callee == WAIT:
            with call.location, ir.InsertionPoint(call):
                create_call(_SYNCHRONIZE, [stream])
            ops.erase(call)
    for call in made:
        ops.replace(call, [stream])
    for end in ops.find(function, "llvm.return"):
        with end.location, ir.InsertionPoint(end):
            create_call(_SYNCHRONIZE, [stream])
            create_call(_DESTROY, [stream])
    return stream
