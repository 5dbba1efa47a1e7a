"""`DeviceCode`: the LLVM IR of a gpu.module, by what the gpu.module says.

It is lowered by itself, whatever is around it: what hosts do, and other gpu.modules, make no
difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotc.cache.result import Digest
from aotc.cache.results import PLACE, Made, Results
from aotc.ops import symbol_of

# Of a text that is compared: to print more takes too long.
_LARGEST = 8 << 20


class DeviceCode:
    """Finds and keeps texts; `common` is all that they depend on beside the gpu.module."""

    def __init__(self, results: Results, common: Mapping[str, str]) -> None:
        self._results = results
        self._common = common
        # Of those that were looked for in vain, by the file's name.
        self._missed: dict[str, dict[str, str]] = {}

    def find(self, file: str, gpu_module: Any) -> str | None:
        """The LLVM IR text that the operation was lowered to before. `file` is its name."""
        name = symbol_of(gpu_module)
        # Its name is in no LLVM IR: another input has the same kernels in another gpu.module.
        text: str = gpu_module.get_asm(enable_debug_info=False)
        text = text.replace(f"gpu.module @{name} ", "gpu.module ", 1)
        if len(text) > _LARGEST:
            self._results.report.pass_by(file, "it is too large to be compared")
            return None
        components = {
            "kind": "device code",
            "gpu.module": f"#{Digest.of(text.encode()).hash}",
            **self._common,
        }
        made = self._results.find(file, components, ["device.ll"])
        if made is None:
            self._missed[file] = components
            return None
        return made.files["device.ll"].decode()

    def keep(self, file: str, llvm_ir: str) -> None:
        """Keeps what was made, if it was looked for; but what says where in the input something
        is, for another input with that gpu.module has it elsewhere."""
        components = self._missed.get(file)
        data = llvm_ir.encode()
        if components is not None and not PLACE.search(data):
            self._results.keep(components, Made({"device.ll": data}))
