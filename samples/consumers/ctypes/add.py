"""Adds two vectors with libvector_add.so from Python: NumPy and ctypes, nothing of aotc's.

python add.py /path/to/package
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Element types, as manifests call them: those that this program has use for, and some more.
SCALARS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def load(package: Path, name: str) -> ctypes.CDLL:
    """The library, its functions declared as its manifest says."""
    manifest = json.loads((package / f"{name}.json").read_text())
    library = ctypes.CDLL(str(package / "lib" / f"lib{name}.so"))
    getattr(library, manifest["functions"]["last_error"]).restype = ctypes.c_char_p
    for entry in manifest["entries"]:
        function = getattr(library, entry["functions"]["call"])
        function.argtypes = [type_ for value in entry["arguments"] for type_ in parameters(value)]
        function.restype = ctypes.c_int32
    return library


def parameters(value: dict[str, Any]) -> list[Any]:
    """What an argument is in C: a number, or a pointer and a size for each `?` of its type."""
    if value["shape"] is None:
        return [SCALARS[value["dtype"]]]
    flags = ["C_CONTIGUOUS", *(["WRITEABLE"] if value["is_written"] else [])]
    pointer = np.ctypeslib.ndpointer(SCALARS[value["dtype"]], len(value["shape"]), flags=flags)
    return [pointer, *(ctypes.c_int64 for size in value["shape"] if size is None)]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    library = load(Path(sys.argv[1]), "vector_add")
    x, y = np.random.default_rng(1).random((2, 4096), dtype=np.float32)
    z = np.zeros_like(x)
    # A size that cannot be: a status, and a message that names the argument.
    if library.vector_add(x, -1, y, y.size, z, z.size) == 0 or z.any():
        print("-1 elements were added", file=sys.stderr)
        return 1
    print(f"Python: {library.vector_add_last_error().decode()}")
    # The next call forgets it.
    if library.vector_add(x, x.size, y, y.size, z, z.size) != 0:
        print(library.vector_add_last_error().decode(), file=sys.stderr)
        return 1
    np.testing.assert_array_equal(z, x + y)
    print(f"Python: {z.size} sums are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
