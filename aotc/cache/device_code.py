"""`DeviceCode`: the LLVM IR of a gpu.module, by the text of the gpu.module.

A gpu.module is lowered independently of the host code and of other gpu.modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotc.cache.result import Digest
from aotc.cache.results import PLACE, Made, Results
from aotc.ops import symbol_of

# Limit for texts that are used as keys: printing larger ones takes too long.
_LARGEST = 8 << 20


class DeviceCode:
    """Finds and stores LLVM IR texts; `common` has their inputs other than the gpu.module."""

    def __init__(self, results: Results, common: Mapping[str, str]) -> None:
        self._results = results
        self._common = common
        # The key components of failed lookups, by the file's name.
        self._missed: dict[str, dict[str, str]] = {}

    def find(self, file: str, gpu_module: Any) -> str | None:
        """The LLVM IR text that the operation was lowered to before. `file` is its name."""
        name = symbol_of(gpu_module)
        # LLVM IR does not contain the gpu.module's name: inputs with other names share the entry.
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
        """Stores the text, if it was looked up before. A text with places in the input is not
        stored, because they differ for another input with the same gpu.module."""
        components = self._missed.get(file)
        data = llvm_ir.encode()
        if components is not None and not PLACE.search(data):
            self._results.keep(components, Made({"device.ll": data}))
