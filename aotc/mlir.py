"""The provider of the MLIR Python bindings.

Nothing else in aotc imports the bindings by their package's name. Two distributions
offer the same API: `mlir` (upstream's own) and `torch_mlir`. `mlir` is taken when it is
importable and complete, else `torch_mlir`.

The bindings carry no type information worth having: everything here is `Any`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import io
import re
from dataclasses import dataclass
from typing import Any

from aotc.errors import ToolError

_DISTRIBUTIONS = {"mlir": "mlir-python-bindings", "torch_mlir": "torch-mlir"}


def _load_provider() -> tuple[str, Any, Any, Any, Any]:
    failures = []
    for package in _DISTRIBUTIONS:
        try:
            ir = importlib.import_module(f"{package}.ir")
            passmanager = importlib.import_module(f"{package}.passmanager")
            llvm = importlib.import_module(f"{package}.dialects.llvm")
            # Incomplete builds lack a dialect or the translation: find out now.
            gpu = importlib.import_module(f"{package}.dialects.gpu")
            llvm.translate_module_to_llvmir  # noqa: B018
        except (ImportError, AttributeError) as error:
            failures.append(f"{package}: {error}")
            continue
        return package, ir, passmanager.PassManager, llvm, gpu
    raise ToolError(
        "The MLIR Python bindings are missing: " + "; ".join(failures),
        hint="pip install torch-mlir",
    )


PROVIDER, ir, PassManager, llvm, gpu = _load_provider()


@dataclass(frozen=True)
class Bindings:
    """The bindings in use: the package, its version and place, and the LLVM it was built from."""

    package: str
    version: str
    path: str
    llvm_version: str


@functools.cache
def bindings() -> Bindings:
    """Describes the provider; the LLVM version is the producer string of MLIR bytecode."""
    try:
        version = importlib.metadata.version(_DISTRIBUTIONS[PROVIDER])
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    return Bindings(PROVIDER, version, str(ir.__file__), _llvm_version())


def _llvm_version() -> str:
    with ir.Context():
        buffer = io.BytesIO()
        ir.Module.parse("").operation.write_bytecode(buffer)
    found = re.match(rb"ML\xefR.MLIR([0-9][0-9A-Za-z.]*)\x00", buffer.getvalue())
    return found.group(1).decode() if found else "unknown"


def dialect(name: str) -> Any:
    """The bindings' classes and functions of a dialect: `dialect("linalg").transpose(...)`."""
    return importlib.import_module(f"{PROVIDER}.dialects.{name}")


def operations_of(dialect: str) -> tuple[str, ...]:
    """The names of a dialect's operations; none where it is not one of the bindings'."""
    try:
        module = importlib.import_module(f"{PROVIDER}.dialects._{dialect}_ops_gen")
    except ImportError:
        return ()
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    names = (getattr(value, "OPERATION_NAME", None) for value in classes)
    return tuple(sorted({name for name in names if isinstance(name, str)}))


def make_context() -> Any:
    """A context with every dialect, whose diagnostics arrive in exceptions and not on stderr."""
    context = ir.Context()
    context.emit_error_diagnostics = False
    # Modules are small: a thread pool costs more than it saves, and one thread is one order.
    context.enable_multithreading(False)
    return context
