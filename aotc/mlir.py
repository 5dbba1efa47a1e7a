"""The provider of the MLIR Python bindings.

Nothing else in aotc imports the bindings by their package's name. Two distributions
offer the same API: `mlir` (upstream's own) and `torch_mlir`. `mlir` is used if it is
importable and complete, otherwise `torch_mlir`.

The bindings have no useful type information: everything here is `Any`.
"""

from __future__ import annotations

import functools
import importlib
import io
import re
import sys
import types
from typing import Any

from msgspec import Struct

from aotc.distributions import version_of
from aotc.errors import ToolError
from aotc.owner import PROCESS

_DISTRIBUTIONS = {"mlir": "mlir-python-bindings", "torch_mlir": "torch-mlir"}


def _load_provider() -> tuple[str, Any, Any, Any, Any, Any]:
    _put_off_numpy()
    failures = []
    for package in _DISTRIBUTIONS:
        try:
            ir = importlib.import_module(f"{package}.ir")
            passmanager = importlib.import_module(f"{package}.passmanager")
            # Import the internal modules of these dialects rather than the public packages, whose
            # classes for operations take longer to create than most modules take to build.
            llvm, gpu, linalg = (
                importlib.import_module(f"{package}._mlir_libs._mlirDialects{name}")
                for name in ("LLVM", "GPU", "Linalg")
            )
            # Incomplete builds lack a dialect or the translation: detect this now.
            llvm.translate_module_to_llvmir  # noqa: B018
            gpu.ObjectAttr  # noqa: B018
            linalg.get_indexing_maps  # noqa: B018
        except (ImportError, AttributeError) as error:
            failures.append(f"{package}: {error}")
            continue
        return package, ir, passmanager.PassManager, llvm, gpu, linalg
    raise ToolError(
        "The MLIR Python bindings are missing: " + "; ".join(failures),
        hint="pip install torch-mlir",
    )


class _LateNumpy(types.ModuleType):
    """Stands for NumPy until one of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _put_off_numpy() -> None:
    """Delays the import of NumPy: the bindings use it for three attribute builders, and it takes
    longer to import than they do. (importlib's LazyLoader does not help: an import statement loads
    its modules.)"""
    if PROCESS.is_ours and "numpy" not in sys.modules:
        sys.modules["numpy"] = _LateNumpy("numpy")


PROVIDER, ir, PassManager, llvm, gpu, linalg = _load_provider()

_globals = importlib.import_module(f"{PROVIDER}._mlir_libs._mlir").globals
_DIALECTS = f"{PROVIDER}.dialects"


def without_classes() -> None:
    """Makes operations instances of the bindings' general class from now on, instead of a class per
    operation.

    For the command's process only: aotc needs no other class, and the bindings create the classes
    of all operations of a dialect when its first operation is accessed, which takes longer than
    many builds.
    """
    if PROCESS.is_ours:
        _globals.dialect_search_modules = [
            module for module in _globals.dialect_search_modules if module != _DIALECTS
        ]


def with_classes() -> None:
    """Reverts `without_classes`, for code outside aotc, such as front ends."""
    if _DIALECTS not in _globals.dialect_search_modules:
        _globals.append_dialect_search_prefix(_DIALECTS)


class Bindings(Struct, frozen=True):
    """The bindings in use: package, version and path, and the LLVM they were built from."""

    package: str
    version: str
    path: str
    llvm_version: str


@functools.cache
def bindings() -> Bindings:
    """Describes the provider; the LLVM version is the producer string of MLIR bytecode."""
    version = version_of(_DISTRIBUTIONS[PROVIDER]) or "unknown"
    if not _llvm_versions:
        make_context()
    return Bindings(PROVIDER, version, str(ir.__file__), _llvm_versions[0])


# Cached by the first context: creating another takes as long as a stage.
_llvm_versions: list[str] = []


def _llvm_version(context: Any) -> str:
    buffer = io.BytesIO()
    ir.Module.parse("", context).operation.write_bytecode(buffer)
    found = re.match(rb"ML\xefR.MLIR([0-9][0-9A-Za-z.]*)\x00", buffer.getvalue())
    return found.group(1).decode() if found else "unknown"


def dialect(name: str) -> Any:
    """The module of a dialect's bindings, as in `dialect("linalg").transpose(...)`."""
    return importlib.import_module(f"{PROVIDER}.dialects.{name}")


def operations_of(dialect: str) -> tuple[str, ...]:
    """The names of a dialect's operations; empty if the bindings do not have the dialect."""
    try:
        module = importlib.import_module(f"{PROVIDER}.dialects._{dialect}_ops_gen")
    except ImportError:
        return ()
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    names = (getattr(value, "OPERATION_NAME", None) for value in classes)
    return tuple(sorted({name for name in names if isinstance(name, str)}))


def make_context() -> Any:
    """A context with all dialects; diagnostics are raised as exceptions, not printed on stderr."""
    context = ir.Context()
    context.emit_error_diagnostics = False
    # Modules are small: a thread pool costs more than it saves, and one thread is deterministic.
    context.enable_multithreading(False)
    if not _llvm_versions:
        _llvm_versions.append(_llvm_version(context))
    return context
