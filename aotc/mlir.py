"""The provider of the MLIR Python bindings.

Nothing else in aotc imports the bindings by their package's name. Two distributions
offer the same API: `mlir` (upstream's own) and `torch_mlir`. `mlir` is taken when it is
importable and complete, else `torch_mlir`.

The bindings carry no type information worth having: everything here is `Any`.
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
            # What the packages of these dialects have beside classes for operations, which take
            # longer to make than most modules to build.
            llvm, gpu, linalg = (
                importlib.import_module(f"{package}._mlir_libs._mlirDialects{name}")
                for name in ("LLVM", "GPU", "Linalg")
            )
            # Incomplete builds lack a dialect or the translation: find out now.
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
    """Stands for NumPy until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _put_off_numpy() -> None:
    """The bindings import NumPy for three builders of attributes, and it takes longer than they do
    (not importlib's LazyLoader: an import statement makes its modules load)."""
    if PROCESS.is_ours and "numpy" not in sys.modules:
        sys.modules["numpy"] = _LateNumpy("numpy")


PROVIDER, ir, PassManager, llvm, gpu, linalg = _load_provider()

_globals = importlib.import_module(f"{PROVIDER}._mlir_libs._mlir").globals
_DIALECTS = f"{PROVIDER}.dialects"


def without_classes() -> None:
    """From now on, operations are of the bindings' general class, not of one for their name.

    For the command's process: aotc needs no other, and those of a dialect are made, for all its
    operations, when the first of them is looked at: that takes longer than many builds.
    """
    if PROCESS.is_ours:
        _globals.dialect_search_modules = [
            module for module in _globals.dialect_search_modules if module != _DIALECTS
        ]


def with_classes() -> None:
    """Takes `without_classes` back, for what is not aotc's own: front ends."""
    if _DIALECTS not in _globals.dialect_search_modules:
        _globals.append_dialect_search_prefix(_DIALECTS)


class Bindings(Struct, frozen=True):
    """The bindings in use: the package, its version and place, and the LLVM it was built from."""

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


# One, as soon as there was a context: to make another takes as long as a stage.
_llvm_versions: list[str] = []


def _llvm_version(context: Any) -> str:
    buffer = io.BytesIO()
    ir.Module.parse("", context).operation.write_bytecode(buffer)
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
    if not _llvm_versions:
        _llvm_versions.append(_llvm_version(context))
    return context
