"""`data_dir`: the C sources and templates that aotc includes; and the names of what they build."""

from __future__ import annotations

from pathlib import Path

from aotc.errors import InternalError

_PACKAGE = Path(__file__).resolve().parent.parent

RUNTIME_NAME = "mlir_cuda_runtime"
# The runtime library of libraries that share one.
SHARED_RUNTIME = f"lib{RUNTIME_NAME}.so"


def data_dir(name: str, *, package: Path = _PACKAGE) -> Path:
    """The folder `runtime_c` or `templates`.

    A wheel has it inside the package, under `_data`; a checkout has it beside the package.
    """
    places = (package / "_data" / name, package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise InternalError(
        f"aotc's own files '{name}' are missing: neither {places[0]} nor {places[1]} is there.",
        hint="Install aotc again: pip install --force-reinstall aotc",
    )
