"""Manifest → the library's header, for C11 and C++17, without CUDA headers. It is also the
manual."""

from __future__ import annotations

from aotc.emit.c_text import c_identifier, in_comment
from aotc.emit.c_types import (
    NO_C_SCALAR,
    define_types,
    element_type,
    memref_type,
    result_type,
    scalar_type,
)
from aotc.emit.cxx import generate_cxx
from aotc.emit.signatures import parameter_list, prototypes, signature
from aotc.manifest import Entry, Field, Manifest, Memory, Value

_MANUAL = """\
// How to call this library
//
// An entry has several C functions. For an entry `f`:
//
//   f(A, n, ...)          takes pointers to contiguous elements in row-major order. They may point
//                         to host, pinned, managed or any GPU's memory, in any combination. Memory
//                         that the GPU cannot access is copied to it and, if the entry writes it,
//                         copied back. Each pointer is followed by a size for each `?` of its type.
//                         Returns when the work is done. The work is ordered after work that this
//                         thread has enqueued on CUDA's default stream.
//   f_async(A, n, ..., s) enqueues the work on the stream `s` (a CUstream or cudaStream_t; NULL is
//                         the default stream) and returns. It does not wait, and may be captured
//                         into a graph. Pointers must be to device, managed or pinned memory that
//                         stays valid until the work is done. Memory is allocated in stream order.
//                         In a capture it belongs to the graph: a result that f allocates is
//                         allocated by each launch, and must be freed before the next launch.
//   f_memref(&a, ...)     like f, with MLIR's memref descriptors: strides, offsets, sizes.
//   f_result_shapes(n, ..., shape)
//                         stores the sizes of the memrefs that f would return, if their types have
//                         dynamic sizes. It takes the sizes that follow f's pointers, and f's
//                         scalars; `shape` has room for all sizes of one result, or is NULL. A size
//                         that depends on element values is -1. No elements are read, nothing is
//                         allocated, and no device is needed. Sizes that f rejects are rejected.
//   f_workspace_size(n, ..., &bytes)
//                         stores how much memory f needs for temporaries on a GPU, which
//                         {set_workspace}() can provide. It takes the arguments
//                         of f_result_shapes. Memory that f allocates in loops and branches is not
//                         included, and is always allocated by f.
//   _mlir_ciface_f(&a..)  MLIR's own C interface: nothing is copied or checked, and a failure is
//                         reported by {status}() until {clear_error}().
//
// f16 and bf16 are passed as their bits. Arguments that an entry only reads are `const`. The same
// buffer may be passed more than once. The caller keeps ownership of its buffers; the ownership of
// memref results is stated for each entry. In C, a result that is not needed may be NULL. If a type
// has an offset, the pointer is the base that the offset is relative to.
//
// All functions except MLIR's own return a status, which is 0 for success. Each call resets it:
//
//   AOTC_INVALID_ARGUMENT   an argument is invalid: nothing was launched
//   AOTC_NO_DEVICE          no driver, no GPU or not the requested one, and no CPU code
//   AOTC_NO_IMAGE           the library was not built for this GPU
//   AOTC_NO_CPU_KERNEL      a kernel cannot run on the CPU
//   AOTC_OUT_OF_MEMORY      the next call may succeed
//   AOTC_LAUNCH_FAILED      a kernel launch, a kernel, or an assertion in a kernel failed
//   AOTC_DRIVER_FAILED      any other failure of the CUDA driver
//   AOTC_UNSUPPORTED        not supported on this device, or after a fork
//   AOTC_ASSERTION_FAILED   an assertion in the entry's host code failed
//   AOTC_NO_WEIGHTS         the file of weights is missing, or belongs to another build
//
// Except for {unload}(), every function may be called from any thread, also concurrently.
// Calls that write the same memory must not overlap. The module's variables (memref.global and
// ml_program.global that are not constant) are such memory: the process has one of each.
//
// A call uses the calling thread's current CUDA context. If there is none, it uses the primary
// context of the device that was set; otherwise the first call selects a GPU that the library was
// built for, or the CPU. The current context is restored. The environment can select the device:
// AOTC_DEVICE=cuda:1, or cpu. AOTC_CHECK=1 waits after each kernel, to find the one that failed.
"""

_STATUS_CODES = """\
#ifndef AOTC_STATUS_CODES
#define AOTC_STATUS_CODES
typedef enum aotc_status {
  AOTC_OK = 0,
  AOTC_INVALID_ARGUMENT = 1,
  AOTC_NO_DEVICE = 2,
  AOTC_NO_IMAGE = 3,
  AOTC_NO_CPU_KERNEL = 4,
  AOTC_OUT_OF_MEMORY = 5,
  AOTC_LAUNCH_FAILED = 6,
  AOTC_DRIVER_FAILED = 7,
  AOTC_UNSUPPORTED = 8,
  AOTC_ASSERTION_FAILED = 9,
  AOTC_NO_WEIGHTS = 10
} aotc_status;
#endif
"""

_OWN_DECLARATIONS = """\
// The message of this thread's last call, "" if it succeeded: what failed, in which kernel, on
// which device, and what would have worked. Valid until the thread's next call.
const char *{last_error}(void);

// Sets the device for this thread's calls if it has no current CUDA context: a GPU's number, or -1
// for the CPU, which can only be set before the first call of the process.
int32_t {set_device}(int32_t ordinal);

// Frees the `allocated` pointer of a result that the caller owns, in any kind of memory, or NULL.
int32_t {free}(void *allocated);

// The same in stream order (NULL is the default stream): work enqueued so far may still use the
// memory. Does not wait if the memory was allocated in stream order.
int32_t {free_async}(void *allocated, void *stream);

// Copies between any combination of host, managed and device memory, and waits for completion.
int32_t {copy}(void *to, const void *from, uint64_t bytes);

// Sets the allocator for this thread's later calls on a GPU, for temporaries and for results in
// device memory. NULL for both functions restores the driver's allocator. `device` is the GPU's
// number. Memory must be aligned to 256 bytes. It is used first by work on `stream` (a CUstream),
// which may still be using it when it is released. If `allocate` returns NULL, the call fails with
// AOTC_OUT_OF_MEMORY. {free} returns a result to the allocator that
// it came from, with NULL as the stream. Neither function may call into the library.
int32_t {set_allocator}(void *(*allocate)(uint64_t bytes, int32_t device, void *stream, void *data),
                        void (*release)(void *pointer, uint64_t bytes, int32_t device, void *stream,
                                        void *data),
                        void *data);

// Sets device memory, aligned to 256 bytes, for the temporaries of this thread's later calls on a
// GPU; f_workspace_size() returns how much f needs. Temporaries that do not fit are allocated. NULL
// removes it. Concurrent calls must not share a workspace; calls on one stream run in order.
int32_t {set_workspace}(void *memory, uint64_t bytes);

// Sets a function that is called for each failure, on the thread where it happens. NULL removes it.
void {set_error_hook}(void (*hook)(int32_t status, const char *message, void *data), void *data);

// Releases all resources of the library: device memory, streams, modules, contexts, threads. No
// other call may be running. The library can be used again afterwards; the module's variables keep
// their values. Not needed before the process ends.
int32_t {unload}(void);

// For MLIR's own C interface: this thread's first failure since the last call or clear.
int32_t {status}(void);
void {clear_error}(void);
"""


_STATE_DECLARATIONS = """\
// The state: an object with the values that entries keep from call to call. It is the first
// argument of the entries that use it. A program may create several; each may be used from any
// thread, but only by one call at a time. It is created on the device that a call from the same
// thread would use, and must be freed before {unload}(). Synchronize streams that work on it before
// calling any of the functions below.
//
// Its fields, with elements in row-major order:
//
{fields}//
typedef struct {state} {state};

// Creates a state with the fields' initial values; *out_state is NULL after a failure. Freeing NULL
// has no effect.
int32_t {state_create}({state} **out_state);
int32_t {state_free}({state} *state);

// Resets all fields to their initial values.
int32_t {state_reset}({state} *state);

// Copies all fields from another state.
int32_t {state_copy}({state} *to, const {state} *from);

// Copies all elements of a field, to or from memory of any kind. `bytes` must be the field's size.
int32_t {state_read}(const {state} *state, const char *field, void *to, uint64_t bytes);
int32_t {state_write}({state} *state, const char *field, const void *from, uint64_t bytes);

// Resets the elements of a field with an index of `length` or more along a dimension to their
// initial values: this truncates a key cache to that length.
int32_t {state_truncate}({state} *state, const char *field, int32_t dimension, int64_t length);

// Save to a file, which is written atomically, and load from a file that was saved by a library
// with the same fields.
int32_t {state_save}(const {state} *state, const char *path);
int32_t {state_load}({state} *state, const char *path);
"""


_WEIGHTS_FILE_DECLARATIONS = """\
// Sets the maximum number of bytes that weights may occupy on each GPU; 0 for no limit. Weights
// that exceed it are copied from the host in parts, while earlier kernels run; streams then cannot
// be captured. If one kernel reads more, calls fail with AOTC_OUT_OF_MEMORY, and {last_error}()
// states the minimum. Takes precedence over the environment variable AOTC_WEIGHTS_BUDGET. Fails
// with AOTC_INVALID_ARGUMENT after a GPU has used a weight.
int32_t {set_weights_budget}(uint64_t bytes);
"""


_WEIGHTS_DECLARATIONS = """\
// The weights that can be replaced, by name, with elements in row-major order:
//
{weights}//
// {set_weight} replaces the weight by `data`, in memory of any kind: elements of `dtype`, as listed
// above, and `rank` sizes. It stays replaced until {unload}(), or until {restore_weight}, which
// restores the contents of the weights file. On a GPU the copy is in the context of the call. A
// copy that an entry has used before keeps its address, also for captured graphs, unless another
// weight or artifact shares its data. {read_weight} copies the weight's current contents; `bytes`
// must be its size.
//
// An unlisted name, or a different type or shape, is AOTC_INVALID_ARGUMENT. No call that reads the
// weight may be running: synchronize streams first.
int32_t {set_weight}(const char *name, const char *dtype, int32_t rank, const int64_t *shape,
                     const void *data);
int32_t {read_weight}(const char *name, void *to, uint64_t bytes);
int32_t {restore_weight}(const char *name);
"""


def generate_header(manifest: Manifest) -> tuple[str, str]:
    """(file name, text) of the header."""
    # The name must not be the guard of a runtime header, as for a library called "entry".
    guard = f"AOTC_LIBRARY_{c_identifier(manifest.library).upper()}_H"
    parts = [
        f"// Generated by aotc {manifest.aotc} from {in_comment(manifest.name)}. Do not edit.\n//\n"
        + fill(_MANUAL, manifest)
        + _weights_note(manifest)
        + f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        _STATUS_CODES,
        *define_types(manifest.entries),
        _state(manifest),
        _weights(manifest),
        *(_entry(entry, manifest.functions["free"]) for entry in manifest.entries),
        fill(_OWN_DECLARATIONS, manifest),
        "#ifdef __cplusplus\n}\n#endif\n",
        generate_cxx(manifest),
        f"#endif // {guard}\n",
    ]
    return f"{manifest.library}.h", "\n".join(part for part in parts if part)


def _state(manifest: Manifest) -> str:
    if not manifest.state:
        return ""
    lines = [
        f"//   {in_comment(field.name)}: {field.type}, {field.bytes} bytes of "
        f"{element_type(field.dtype)}; "
        + (
            "its elements have different initial values"
            if field.initial is None
            else f"initially {_number(field)}"
        )
        + "\n"
        for field in manifest.state
    ]
    return fill(_STATE_DECLARATIONS, manifest).replace("{fields}", "".join(lines))


def _weights(manifest: Manifest) -> str:
    if manifest.weights is None:
        return ""
    budget = fill(_WEIGHTS_FILE_DECLARATIONS, manifest)
    if not manifest.replaceable:
        return budget
    lines = [
        f"//   {in_comment(one.name)}: {one.dtype.value} [{', '.join(map(str, one.shape))}]\n"
        for one in manifest.replaceable
    ]
    named = fill(_WEIGHTS_DECLARATIONS, manifest).replace("{weights}", "".join(lines))
    return f"{named}\n{budget}"


def _number(field: Field) -> str:
    """The initial value of all elements of a field: 0, or its bytes."""
    assert field.initial is not None
    return f"bytes {field.initial}" if field.initial.strip("0") else "0"


def _weights_note(manifest: Manifest) -> str:
    if manifest.weights is None:
        return ""
    return f"""\
//
// The library's weights are in a file of {manifest.weights.bytes} bytes:
//
//   {in_comment(manifest.weights.file)}
//
// The path is relative to the folder of the shared library, or of the program that the static
// library is linked into. The file is opened when an entry first needs a weight, and must not
// change afterwards. The environment variable AOTC_WEIGHTS names another file, or its folder.
"""


def fill(text: str, manifest: Manifest) -> str:
    """`text` with `{...}` replaced by the names of the library's own functions and types."""
    state = manifest.functions.get("state_create", "").removesuffix("_create")
    for word, symbol in {**manifest.functions, "state": state}.items():
        text = text.replace(f"{{{word}}}", symbol)
    return text


def _entry(entry: Entry, free: str) -> str:
    memrefs = [value for value in entry.results if not value.is_scalar]
    notes = [signature(entry), *(_ownership(value, entry, free) for value in memrefs)]
    if entry.why_not_async is not None:
        notes.append(f"There is no asynchronous form: {entry.why_not_async}.")
    lines = [f"// {in_comment(note)}" for note in notes]
    return "\n".join([*lines, *prototypes(entry).values()]) + "\n" + _c_interface(entry)


def _ownership(value: Value, entry: Entry, free: str) -> str:
    argument = None if value.aliases is None else entry.arguments[value.aliases].name
    if argument is not None and value.is_owned:
        return (
            f"{value.name} is the buffer of {argument}, or a new buffer owned by the caller, which "
            f"must free it with {free}({value.name}.allocated)."
        )
    if argument is not None:
        return f"{value.name} is the buffer of {argument}."
    if not value.is_owned:
        return (
            f"{value.name} must not be freed: its buffer belongs to an argument, another result, "
            "or the library."
        )
    where = {
        Memory.HOST: "host memory",
        Memory.DEVICE: "device memory",
        Memory.MANAGED: "managed memory",
        Memory.CALLER: "device memory if all pointers of the call are, or in the asynchronous "
        "form, otherwise managed memory",
    }[value.memory]
    return (
        f"{value.name} is {where} owned by the caller: free it with {free}({value.name}.allocated)."
    )


def _c_interface(entry: Entry) -> str:
    """The declaration of MLIR's own C interface, if C can express it."""
    scalars = [v for v in (*entry.arguments, *entry.results) if v.is_scalar]
    odd = next((value for value in scalars if value.dtype in NO_C_SCALAR), None)
    if odd is not None or entry.symbol != c_identifier(entry.symbol):
        reason = (
            f"'{odd.name}' is passed by value as {odd.type}"
            if odd is not None
            else "its name is not an identifier"
        )
        return f"// MLIR's C interface cannot be declared in C: {in_comment(reason)}.\n"
    parameters = [
        f"{scalar_type(value.dtype)} {_position(value, i)}"
        if value.is_scalar
        else f"{memref_type(value)} *{_position(value, i)}"
        for i, value in enumerate(entry.arguments)
    ]
    result = "void"
    struct = ""
    if len(entry.results) == 1 and entry.results[0].is_scalar:
        result = scalar_type(entry.results[0].dtype)
    elif len(entry.results) == 1:
        parameters.insert(0, f"{memref_type(entry.results[0])} *out_result0_")
    elif entry.results:
        name = f"{entry.functions['call']}_results"
        fields = "".join(
            f"  {result_type(value)} {_position(value, i)};\n"
            for i, value in enumerate(entry.results)
        )
        struct = f"typedef struct {name} {{\n{fields}}} {name};\n"
        parameters.insert(0, f"{name} *out_results_")
    return f"{struct}{result} {entry.symbol}({parameter_list(parameters)});\n"


def _position(value: Value, index: int) -> str:
    return f"a{index}_{c_identifier(value.name)}_"
