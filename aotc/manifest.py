"""The manifest of a module, as data: entries, arguments, kernels, chips, tools used.

`Manifest.to_json` gives the text that `--emit manifest` writes. Shapes and strides count
elements; a dynamic size, stride or offset is null.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import MsgspecError, Struct, field

from aotc.attributes import CALL_ATTRIBUTE, SPARSE_ATTRIBUTE
from aotc.errors import InputError
from aotc.pipes import read_file

SCHEMA_VERSION = 2
# The C function of an entry that computes the sizes of its results.
RESULT_SHAPES = "result_shapes"
# The C function of an entry that computes the memory it needs for temporaries.
WORKSPACE = "workspace_size"


class Dtype(Enum):
    """An element type, with its name in the manifest as the value."""

    BOOL = "bool"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"
    F8E4M3FN = "f8e4m3fn"
    F8E5M2 = "f8e5m2"

    @property
    def bytes(self) -> int:
        """The size of an element."""
        return _BYTES[self]


def _bytes(dtype: Dtype) -> int:
    digits = re.match(r"[a-z]+(\d+)", dtype.value)
    return int(digits[1]) // 8 if digits else 1


_BYTES = {dtype: _bytes(dtype) for dtype in Dtype}


class Memory(Enum):
    """Where a buffer must be for an entry to use it on a GPU; for a result, where it is.

    `CALLER`: device memory if all memrefs of the call are there, and in calls on a stream;
    otherwise managed memory."""

    HOST = "host"
    DEVICE = "device"
    MANAGED = "managed"
    CALLER = "caller"


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """An argument or a result of an entry. `shape` is None for a scalar.

    `strides` is None for a row-major contiguous memref. For arguments, `is_read` and `is_written`
    state how the entry accesses the buffer. For memref results, `aliases` is the index of the
    argument that is returned, if any. If the caller owns a result (`is_owned`), `memory` determines
    how to free it: `host` by free(), otherwise by mgpuMemFree. `state` is the field of the
    library's state that the argument is; callers pass the state instead. `result` is the index of
    the value among the results of the module's function; an argument has one, too, if the entry
    writes a result into it.
    """

    name: str
    type: str
    dtype: Dtype
    shape: tuple[int | None, ...] | None = None
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    is_read: bool = True
    is_written: bool = False
    memory: Memory = Memory.HOST
    is_owned: bool = False
    aliases: int | None = None
    state: str | None = None
    result: int | None = None

    @property
    def is_scalar(self) -> bool:
        return self.shape is None


class Leaf(Struct, frozen=True, forbid_unknown_fields=True):
    """An input or a result of a PyTorch program: a tensor of `dtype` (PyTorch's name), an int, or a
    constant, written as Python literal, for which the entry has neither an argument nor a
    result."""

    dtype: str | None = None
    constant: str | None = None


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """The calling convention of the PyTorch module that an entry was built from.

    `inputs` and `outputs` are the structures of (args, kwargs) and of the return value, as
    `torch.utils._pytree.treespec_dumps` writes them; None for classes that PyTorch cannot
    serialize. `given` and `returned` are their leaves. `names` are the positional parameters.
    """

    inputs: str | None
    outputs: str | None
    names: tuple[str, ...]
    given: tuple[Leaf, ...]
    returned: tuple[Leaf, ...]


class SparseTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """A sparse tensor that an entry takes or returns as several values: `arrays` names these
    (`positions1`, `coordinates1`, `values`, `size0`, ...), and `first` is the index of the first
    one among the entry's arguments or results.

    `format` is SciPy's name of the format: csr, csc, coo or bsr; None for others. `order` has the
    dimension of each level (of coo), `block` the rows and columns of a block (of bsr).
    """

    name: str
    type: str
    shape: tuple[int | None, ...]
    arrays: tuple[str, ...]
    first: int
    is_result: bool
    format: str | None = None
    order: tuple[int, ...] = ()
    block: tuple[int, int] | None = None


class Entry(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A function that other programs call.

    `functions` maps each purpose to the C function in a library: `call`, `async` (unless
    `why_not_async` gives the reason for its absence), `memref`, `c_interface`, `result_shapes` if
    the entry returns memrefs with dynamic sizes, and `workspace_size` if it has temporaries on a
    GPU. `workspace_bytes` is the size of the temporaries, null if it depends on the arguments.
    `state` is the C type of the object that callers pass instead of the arguments that are state,
    if there are any. `call` is set for a module of PyTorch. `sparse` has the sparse tensors among
    the arguments and results.
    """

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    touches_memory_on_host: bool = False
    why_not_async: str | None = None
    workspace_bytes: int | None = 0
    functions: dict[str, str] = field(default_factory=dict)
    state: str | None = None
    call: Call | None = None
    sparse: tuple[SparseTensor, ...] = ()

    @functools.cached_property
    def given(self) -> tuple[Value, ...]:
        """The arguments that callers pass one by one: all except those that are state."""
        return tuple(value for value in self.arguments if value.state is None)

    @property
    def lowered_symbol(self) -> str:
        """The symbol of the C interface in MLIR."""
        return f"_mlir_ciface_{self.name}"

    @property
    def symbol(self) -> str:
        """The symbol of the C interface in the artifact."""
        return self.functions.get("c_interface", self.lowered_symbol)


class Resources(Struct, frozen=True, forbid_unknown_fields=True):
    """The resources of one kernel on one chip, as ptxas reports them; sizes in bytes."""

    chip: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    barriers: int


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """A gpu.func. `built_for` names its images: `sm_90a`, or `compute_80` for PTX.
    `why_no_cpu_form` is None if the kernel runs on the CPU device."""

    module: str
    name: str
    built_for: tuple[str, ...]
    why_no_cpu_form: str | None
    resources: tuple[Resources, ...] = ()


def built_for_text(images: Sequence[str]) -> str:
    """The images as messages name them: `sm_80, sm_90a, PTX compute_80`."""
    return ", ".join(f"PTX {name}" if name.startswith("compute_") else name for name in images)


class NamedWeight(Struct, frozen=True, forbid_unknown_fields=True):
    """A constant that programs may replace: contiguous, of static shape. `type` is a memref's."""

    name: str
    type: str
    dtype: Dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The size of all elements."""
        return math.prod(self.shape) * self.dtype.bytes


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of the large constants: its path relative to the artifact's folder, its size and the
    SHA-256 in its header, in hexadecimal digits. Size and hash are those of a file that this build
    alone would write. `replaceable` are the weights that may be replaced."""

    file: str
    bytes: int
    sha256: str
    replaceable: tuple[NamedWeight, ...] = ()


class Field(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor of the state: contiguous, of static shape, in `memory` on a GPU. `initial` has the
    bytes, in hexadecimal digits, of the initial value that all elements share; None if they differ,
    in which case the artifact contains them."""

    name: str
    type: str
    dtype: Dtype
    shape: tuple[int, ...]
    memory: Memory
    initial: str | None

    @property
    def bytes(self) -> int:
        """The size of all elements."""
        return math.prod(self.shape) * self.dtype.bytes


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one build that a program using it may need to know.

    `library` is the base name of its files as a library. `functions` maps purposes to the
    functions of the library itself: `last_error`, `set_device`, ... `weights` is None if the
    artifact contains all constants. `state` has the fields of the state objects; if there are any,
    `functions` includes those that manage such objects (`state_create`, ...). If weights can be
    replaced, it includes those for that (`set_weight`, ...).
    """

    name: str
    library: str
    functions: dict[str, str]
    aotc: str
    target: str
    entries: tuple[Entry, ...]
    kernels: tuple[Kernel, ...]
    optimization: int
    tools: dict[str, str] = field(default_factory=dict)
    weights: Weights | None = None
    state: tuple[Field, ...] = ()

    @property
    def replaceable(self) -> tuple[NamedWeight, ...]:
        """The weights that programs may replace."""
        return () if self.weights is None else self.weights.replaceable

    def to_json(self) -> str:
        document = {"manifest_version": SCHEMA_VERSION, **msgspec.to_builtins(self)}
        return json.dumps(document, indent=2) + "\n"


def read_manifest(path: Path) -> Manifest:
    """Reads a file that `--emit manifest` wrote. Raises InputError for any other file."""
    try:
        text = read_file(path).decode()
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise _no_manifest(f"'{path}'") from None
    return parse_manifest(text, f"'{path}'")


def parse_manifest(text: str, name: str) -> Manifest:
    """The manifest in the JSON `text`; `name` is used in messages. Raises InputError."""
    try:
        document = json.loads(text)
        version = document.pop("manifest_version")
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{name} is a manifest of version {version}; this aotc reads {SCHEMA_VERSION}."
            )
        return msgspec.convert(document, Manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MsgspecError):
        raise _no_manifest(name) from None


def call_text(call: Call) -> str:
    """A `Call` in the form in which front ends attach it to a function."""
    return json.dumps(msgspec.to_builtins(call))


def parse_call(text: str) -> Call:
    """The inverse of `call_text`. Raises InputError for any other text."""
    try:
        return msgspec.convert(json.loads(text), Call)
    except (ValueError, RecursionError, MsgspecError):
        raise InputError(f"The attribute '{CALL_ATTRIBUTE}' of a function is not aotc's.") from None


def sparse_text(tensors: Sequence[SparseTensor]) -> str:
    """Sparse tensors in the form in which they are attached to an entry's function."""
    return json.dumps(msgspec.to_builtins(tensors))


def parse_sparse(text: str) -> tuple[SparseTensor, ...]:
    """The inverse of `sparse_text`. Raises InputError for any other text."""
    try:
        return msgspec.convert(json.loads(text), tuple[SparseTensor, ...])
    except (ValueError, RecursionError, MsgspecError):
        raise InputError(
            f"The attribute '{SPARSE_ATTRIBUTE}' of a function is not aotc's."
        ) from None


def _no_manifest(name: str) -> InputError:
    return InputError(f"{name} is no manifest of aotc's.")
