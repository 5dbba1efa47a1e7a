"""Manifest → the library's header, for C11 and C++17, without CUDA headers. It is also the
manual."""

from __future__ import annotations

from aotc.emit.c_text import c_identifier
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
// How to call what is here
//
// An entry has several C functions. For an entry `f`:
//
//   f(A, n, ...)          takes pointers to contiguous elements, row by row, which may be host,
//                         pinned, managed or any GPU's memory, in any mix; the driver knows which.
//                         What a GPU cannot use where it is, is copied there and, if the entry
//                         writes it, back. Behind a pointer stands a size for each `?` of its type.
//                         Returns when the work is done; it comes after what this thread enqueued
//                         on CUDA's default stream.
//   f_async(A, n, ..., s) enqueues the work on the stream `s` (a CUstream or cudaStream_t; NULL is
//                         the default stream) and returns. It waits for nothing and may be captured
//                         into a graph. Pointers are the GPU's, or managed or pinned memory, and
//                         must stay valid until the work is done. Memory is allocated in the
//                         stream's order; in a capture it is the graph's: a result that f allocates
//                         is there anew after each launch, and must be freed before the next one.
//   f_memref(&a, ...)     like f, with MLIR's memref descriptors: strides, offsets, sizes.
//   f_result_shapes(n, ..., shape)
//                         stores the sizes of the memrefs that f would return, if their types leave
//                         some open. It takes the sizes that stand behind f's pointers, and f's
//                         numbers; `shape` has room for all sizes of one result, or is NULL. A size
//                         that depends on elements is -1. No element is read, nothing is allocated,
//                         and no device is needed. Sizes that f refuses are refused here, too.
//   f_workspace_size(n, ..., &bytes)
//                         stores how much memory f needs for temporaries on a GPU, which
//                         {set_workspace}() may give it. It takes what f_result_shapes takes. What
//                         f allocates in loops and branches is not counted, and always allocated.
//   _mlir_ciface_f(&a..)  MLIR's own C interface: nothing is copied, nothing is checked, a failure
//                         is found in {status}() until {clear_error}().
//
// f16 and bf16 are passed as their bits. `const` is what an entry only reads. The same buffer may
// be passed twice. Buffers stay the caller's; results that are memrefs say whose they are. In C, a
// result that is not wanted may be NULL. Of a type with an offset, the pointer is what that counts
// from.
//
// All but MLIR's own return a status, 0 if all is well, which the next call forgets:
//
//   AOTC_INVALID_ARGUMENT   an argument cannot be: nothing was launched
//   AOTC_NO_DEVICE          no driver, no GPU or not the one asked for, and no CPU form
//   AOTC_NO_IMAGE           the library was not built for the GPU that is there
//   AOTC_NO_CPU_KERNEL      a kernel cannot run on the CPU
//   AOTC_OUT_OF_MEMORY      the next call may work
//   AOTC_LAUNCH_FAILED      a kernel could not be launched, or failed, or an assertion in it did
//   AOTC_DRIVER_FAILED      any other failure of the CUDA driver
//   AOTC_UNSUPPORTED        not on this device, or not after a fork
//   AOTC_ASSERTION_FAILED   an assertion of the entry's host code does not hold
//   AOTC_NO_WEIGHTS         the file of weights is not there, or is another build's
//
// Every function may be called from any thread, several at once; only {unload}() must be alone.
// A call uses the calling thread's current CUDA context, if there is one, else the primary context
// of the device that was set (by the first call: a GPU that the library was built for, or the CPU),
// and leaves the current context as it was. The environment can say which: AOTC_DEVICE=cuda:1, or
// cpu. AOTC_CHECK=1 waits behind each kernel, to tell which one failed.
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
// The message of this thread's last call, "" if it went well: what failed, of which kernel, on
// which device, and what would have worked. Valid until the thread's next call.
const char *{last_error}(void);

// Which device this thread's calls use where it has no current CUDA context: a GPU's number, or -1
// for the CPU, which must come before the first call of the process.
int32_t {set_device}(int32_t ordinal);

// Frees the `allocated` pointer of a result that the caller owns, wherever it is; NULL is fine.
int32_t {free}(void *allocated);

// The same in the order of a stream (NULL is the default stream), whose work so far may still use
// the memory. Waits for nothing, if the memory was allocated in the order of a stream.
int32_t {free_async}(void *allocated, void *stream);

// Copies between any mix of host, managed and device memory, and waits until it is done.
int32_t {copy}(void *to, const void *from, uint64_t bytes);

// The allocator of this thread's later calls on a GPU, for temporaries and for results in the
// device's memory; NULL for both takes it back: then it is the driver's. `device` is the GPU's
// number. Memory must be aligned to 256 bytes. Work on `stream` (a CUstream) is the first to use
// it, and may still use it when it is released. NULL for memory makes the call
// AOTC_OUT_OF_MEMORY. A result goes back to the allocator that it came from, by {free} with
// NULL as its stream. Neither function may call into the library.
int32_t {set_allocator}(void *(*allocate)(uint64_t bytes, int32_t device, void *stream, void *data),
                        void (*release)(void *pointer, uint64_t bytes, int32_t device, void *stream,
                                        void *data),
                        void *data);

// Device memory, aligned to 256 bytes, for the temporaries of this thread's later calls on a GPU:
// f_workspace_size() says how much f needs. What does not fit is allocated. NULL takes it back.
// Calls must not share one at a time: those on one stream come one after another.
int32_t {set_workspace}(void *memory, uint64_t bytes);

// `hook` is called with each failure as it happens, on its thread. NULL takes it back.
void {set_error_hook}(void (*hook)(int32_t status, const char *message, void *data), void *data);

// Gives back all that the library holds: device memory, streams, modules, contexts, threads. No
// other call may be under way. A later call starts anew, but for what the module's variables hold.
// Not needed before the process ends.
int32_t {unload}(void);

// For MLIR's own C interface: this thread's first failure since the last call or clear.
int32_t {status}(void);
void {clear_error}(void);
"""


_STATE_DECLARATIONS = """\
// The state: an object that keeps what entries remember from call to call. Entries that have some
// take it first. A program may have many; each may be used by any thread, by one call at a time.
// It is on the device that the thread which makes it would use for a call, and must be freed before
// {unload}(). Wait for a stream that works on it before any of the functions below.
//
// Its fields, whose elements lie row by row:
//
{fields}//
typedef struct {state} {state};

// Makes one, whose fields are as they begin; NULL after a failure. Free takes NULL, too.
int32_t {state_create}({state} **out_state);
int32_t {state_free}({state} *state);

// Lets it begin again.
int32_t {state_reset}({state} *state);

// Copies what is in another one.
int32_t {state_copy}({state} *to, const {state} *from);

// Copies all of a field, from or to memory of any kind. `bytes` must be the field's size.
int32_t {state_read}(const {state} *state, const char *field, void *to, uint64_t bytes);
int32_t {state_write}({state} *state, const char *field, const void *from, uint64_t bytes);

// Lets those elements of a field begin again whose index along a dimension is `length` or more: a
// cache of keys becomes as short as that.
int32_t {state_truncate}({state} *state, const char *field, int32_t dimension, int64_t length);

// To a file, which appears whole or not at all, and from one that a library with the same fields
// has saved.
int32_t {state_save}(const {state} *state, const char *path);
int32_t {state_load}({state} *state, const char *path);
"""


_WEIGHTS_FILE_DECLARATIONS = """\
// The bytes that weights may take on each GPU; 0: as many as they need. What is larger comes in
// parts, from the host, while the kernels before it run; streams cannot be captured then. Less
// than one kernel reads is AOTC_OUT_OF_MEMORY, and {last_error}() has the least that works. It
// goes before AOTC_WEIGHTS_BUDGET in the environment, and is AOTC_INVALID_ARGUMENT once a GPU has
// used a weight.
int32_t {set_weights_budget}(uint64_t bytes);
"""


_WEIGHTS_DECLARATIONS = """\
// The weights that can be replaced, by their names, whose elements lie row by row:
//
{weights}//
// {set_weight} copies `data`, in memory of any kind, to the weight's place: elements of `dtype`,
// as above, of `rank` sizes. They are the weight until {unload}(), or until {restore_weight},
// which lets it be what its file has. On a GPU the copy is in the context of the call; one that an
// entry has used before stays at its address, also for graphs that were captured, unless another
// weight or artifact shares its data. {read_weight} copies what the weight is now; `bytes` must be
// its size.
//
// A name that is not above, and another type or shape, are AOTC_INVALID_ARGUMENT. No call that
// reads the weight may be under way: wait for streams.
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
        f"// Generated by aotc {manifest.aotc} from {_one_line(manifest.name)}. Do not edit.\n//\n"
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
        f"//   {_one_line(field.name)}: {field.type}, {field.bytes} bytes of "
        f"{element_type(field.dtype)}; "
        + (
            "its elements begin with different values"
            if field.initial is None
            else f"begins with {_number(field)}"
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
        f"//   {_one_line(one.name)}: {one.dtype.value} [{', '.join(map(str, one.shape))}]\n"
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
// The library's weights are in a file, {manifest.weights.bytes} bytes:
//
//   {_one_line(manifest.weights.file)}
//
// seen from the folder of the shared library, or of the program that the static one is linked into.
// It is looked for when an entry first needs a weight, and must then stay as it is. AOTC_WEIGHTS in
// the environment names another file, or the folder that it is in.
"""


def fill(text: str, manifest: Manifest) -> str:
    """`text` with `{...}` replaced by the names of the library's own functions and types."""
    state = manifest.functions.get("state_create", "").removesuffix("_create")
    for word, symbol in {**manifest.functions, "state": state}.items():
        text = text.replace(f"{{{word}}}", symbol)
    return text


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\\", "/")


def _entry(entry: Entry, free: str) -> str:
    memrefs = [value for value in entry.results if not value.is_scalar]
    notes = [signature(entry), *(_ownership(value, entry, free) for value in memrefs)]
    if entry.why_not_async is not None:
        notes.append(f"There is no asynchronous form: {entry.why_not_async}.")
    lines = [f"// {_one_line(note)}" for note in notes]
    return "\n".join([*lines, *prototypes(entry).values()]) + "\n" + _c_interface(entry)


def _ownership(value: Value, entry: Entry, free: str) -> str:
    argument = None if value.aliases is None else entry.arguments[value.aliases].name
    if argument is not None and value.is_owned:
        return (
            f"{value.name} is the buffer of {argument}, or else the caller's: free it by "
            f"{free}({value.name}.allocated) if it is another."
        )
    if argument is not None:
        return f"{value.name} is the buffer of {argument}."
    if not value.is_owned:
        return (
            f"{value.name} is not the caller's to free: it is an argument's buffer, another "
            "result's, or the library's."
        )
    where = {
        Memory.HOST: "host memory",
        Memory.DEVICE: "the device's memory",
        Memory.MANAGED: "memory that host and device reach",
        Memory.CALLER: "the device's memory where all pointers of the call are, and in the "
        "asynchronous form, else memory that host and device reach",
    }[value.memory]
    return f"{value.name} is {where}, and the caller's: free it by {free}({value.name}.allocated)."


def _c_interface(entry: Entry) -> str:
    """The declaration of MLIR's own C interface, if C can express it."""
    scalars = [v for v in (*entry.arguments, *entry.results) if v.is_scalar]
    odd = next((value for value in scalars if value.dtype in NO_C_SCALAR), None)
    if odd is not None or entry.symbol != c_identifier(entry.symbol):
        reason = (
            f"'{odd.name}' is a {odd.type} by value" if odd is not None else "its name is not C's"
        )
        return f"// MLIR's C interface is not declared here: {_one_line(reason)}.\n"
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
