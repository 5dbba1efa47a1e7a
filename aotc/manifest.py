"""What a module offers, as data: entries, arguments, kernels, chips, tools used.

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

from aotc.errors import InputError
from aotc.pipes import read_file

SCHEMA_VERSION = 2
# Among the C functions of an entry, the one that tells the sizes of what the entry returns.
RESULT_SHAPES = "result_shapes"
# The one that tells how much memory it needs for temporaries.
WORKSPACE = "workspace_size"


class Dtype(Enum):
    """An element type, by its name in the manifest."""

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
    """Where a buffer must be for an entry to use it on a GPU; of a result, where it is.

    `caller`: in the device's memory where all memrefs of the call are, and in calls on a stream,
    else managed."""

    HOST = "host"
    DEVICE = "device"
    MANAGED = "managed"
    CALLER = "caller"


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """An argument or a result of an entry. `shape` is None for a scalar.

    `strides` is None for a row-major contiguous memref. For arguments, `is_read` and
    `is_written` say what the entry does with the buffer. For memref results, `aliases` is
    the argument that the result is, and `memory` says how to free it where `is_owned`:
    `host` by free(), else by mgpuMemFree. `state` is the field of the library's state that the
    argument is: callers give the state in its place. `result` is the place of the value among the
    results of the module's function: also of an argument, where the entry writes a result into it.
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
    """An input or a result of a program of PyTorch: a tensor of `dtype` (PyTorch's name), a whole
    number, or a constant, as Python writes it, for which the entry has neither an argument nor a
    result."""

    dtype: str | None = None
    constant: str | None = None


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """How PyTorch calls the module that an entry was made of.

    `inputs` and `outputs` are what `torch.utils._pytree.treespec_dumps` makes of the structures
    of (args, kwargs) and of what is returned; None for classes that PyTorch cannot write down.
    Their leaves are `given` and `returned`. `names` are the parameters given by position.
    """

    inputs: str | None
    outputs: str | None
    names: tuple[str, ...]
    given: tuple[Leaf, ...]
    returned: tuple[Leaf, ...]


class SparseTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """A sparse tensor that an entry takes or returns as several values: `arrays` says what they
    are (`positions1`, `coordinates1`, `values`, `size0`, ...), `first` which of the entry's
    arguments, or results, is the first.

    `format` is SciPy's word for its levels: csr, csc, coo or bsr; None for others. `order` has the
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

    `functions` are its C functions in a library, by what they do: `call`, `async` (unless
    `why_not_async` says why there is none), `memref`, `c_interface`, `result_shapes` where it
    returns memrefs whose sizes are not known, and `workspace_size` where it has temporaries on a
    GPU: `workspace_bytes` is their size, null where it depends on the arguments.
    `state` is the C type of the object that callers give
    in place of the arguments that are state, if there are any. `call` is there for a module of
    PyTorch. `sparse` has the sparse tensors among its arguments and results.
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
        """The arguments that callers give one by one: all but those that are state."""
        return tuple(value for value in self.arguments if value.state is None)

    @property
    def lowered_symbol(self) -> str:
        """What MLIR calls the C interface."""
        return f"_mlir_ciface_{self.name}"

    @property
    def symbol(self) -> str:
        """What the C interface is called in the end."""
        return self.functions.get("c_interface", self.lowered_symbol)


class Resources(Struct, frozen=True, forbid_unknown_fields=True):
    """What ptxas says that one kernel needs on one chip; sizes in bytes."""

    chip: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    barriers: int


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """A gpu.func. `built_for` names its images, as `sm_90a` and (PTX) `compute_80`;
    `why_no_cpu_form` is None where it runs on the cpu device."""

    module: str
    name: str
    built_for: tuple[str, ...]
    why_no_cpu_form: str | None
    resources: tuple[Resources, ...] = ()


def built_for_text(images: Sequence[str]) -> str:
    """`sm_80, sm_90a, PTX compute_80`: as messages say it."""
    return ", ".join(f"PTX {name}" if name.startswith("compute_") else name for name in images)


class NamedWeight(Struct, frozen=True, forbid_unknown_fields=True):
    """A constant that programs may replace: contiguous, of known shape. `type` is a memref's."""

    name: str
    type: str
    dtype: Dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The size of all elements."""
        return math.prod(self.shape) * self.dtype.bytes


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    """The file that has the large constants: its path from the artifact's folder, its size, and the
    SHA-256 that its header has, in hexadecimal digits, both as the build alone would write it; and
    what of it may be replaced."""

    file: str
    bytes: int
    sha256: str
    replaceable: tuple[NamedWeight, ...] = ()


class Field(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor of the state: contiguous, of known shape, in `memory` on a GPU. `initial` has the
    bytes, in hexadecimal digits, of the element that all begin with; None if they differ, and the
    artifact has them."""

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
    """Everything about one build that a program using it may want to know.

    `library` is what its files are called as a library, `functions` the library's own by what
    they do: `last_error`, `set_device`, ... `weights` is None where all of it is in the artifact.
    `state` has the fields of the objects that entries take as their state; where there are some,
    `functions` makes such objects (`state_create`), and so on; where weights can be replaced, it
    does so (`set_weight`).
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
    """The manifest in a file that `--emit manifest` wrote. Raises InputError for another."""
    try:
        text = read_file(path).decode()
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise _no_manifest(f"'{path}'") from None
    return parse_manifest(text, f"'{path}'")


def parse_manifest(text: str, name: str) -> Manifest:
    """The manifest that is the JSON `text`, which messages call `name`. Raises InputError."""
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
    """A `Call` as front ends write it on a function."""
    return json.dumps(msgspec.to_builtins(call))


def parse_call(text: str) -> Call:
    """What `call_text` wrote. Raises InputError for another text."""
    try:
        return msgspec.convert(json.loads(text), Call)
    except (ValueError, RecursionError, MsgspecError):
        raise InputError("The attribute 'aotc.call' of a function is not aotc's.") from None


def sparse_text(tensors: Sequence[SparseTensor]) -> str:
    """Sparse tensors as they are written on an entry's function."""
    return json.dumps(msgspec.to_builtins(tensors))


def parse_sparse(text: str) -> tuple[SparseTensor, ...]:
    """What `sparse_text` wrote. Raises InputError for another text."""
    try:
        return msgspec.convert(json.loads(text), tuple[SparseTensor, ...])
    except (ValueError, RecursionError, MsgspecError):
        raise InputError("The attribute 'aotc.sparse' of a function is not aotc's.") from None


def _no_manifest(name: str) -> InputError:
    return InputError(f"{name} is no manifest of aotc's.")
