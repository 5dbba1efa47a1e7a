// The entries of a generated program or library as data, and the calls of them that its C functions
// make. The data is generated beside the module; the harness reads it, too.
//
// A C function of a library is a call of this kind: it forgets the thread's earlier failure, and
// what it returns is its own: aotc_status_get says it until the next call, and it stops nothing.
// MLIR's C interface (_mlir_ciface_NAME) is not: it does what the module says with the pointers
// that it is given, and a failure stays until aotc_error_clear.
#ifndef AOTC_ENTRY_H
#define AOTC_ENTRY_H

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aotc_dtype {
  AOTC_DTYPE_BOOL, // i1: one byte, 0 or 1
  AOTC_DTYPE_I8,
  AOTC_DTYPE_I16,
  AOTC_DTYPE_I32,
  AOTC_DTYPE_I64, // index too
  AOTC_DTYPE_U8,
  AOTC_DTYPE_U16,
  AOTC_DTYPE_U32,
  AOTC_DTYPE_U64,
  AOTC_DTYPE_F16,
  AOTC_DTYPE_BF16,
  AOTC_DTYPE_F32,
  AOTC_DTYPE_F64,
  AOTC_DTYPE_C64,  // complex<f32>
  AOTC_DTYPE_C128, // complex<f64>
  AOTC_DTYPE_F8E4M3FN,
  AOTC_DTYPE_F8E5M2,
} aotc_dtype;

// A dimension, a stride or an offset that is known only when the program runs.
#define AOTC_DYNAMIC INT64_MIN

// An argument or a result of an entry.
typedef struct aotc_value {
  const char *name; // "A", "result0"
  const char *type; // the MLIR type, for messages: "memref<128x64xf32>"
  aotc_dtype dtype;
  int32_t rank;            // -1: a scalar; 0: a memref of rank 0
  const int64_t *shape;    // rank values, AOTC_DYNAMIC where '?'
  const int64_t *strides;  // rank values in elements; NULL: row-major and contiguous.
                           // AOTC_DYNAMIC: the stride that packs the dimension
  int64_t offset;          // in elements; AOTC_DYNAMIC: 0 is passed
  uint64_t bytes;          // of a memref whose type alone says that its elements lie in a row, from
                           // the pointer on; else 0
  bool is_read;            // arguments: the entry reads the buffer
  bool is_written;         // arguments: the entry writes the buffer
  aotc_memory_kind memory; // arguments: where the buffer must be when the device is CUDA;
                           // owned results: where it is, HOST meaning that free() frees it
  bool is_owned;           // memref results: the caller frees the allocated pointer
  int32_t aliases;         // memref results: the index of the argument that it is, or -1
  const char *state;       // arguments: the field of the state that it is (aotc_state.h), or NULL
} aotc_value;

typedef struct aotc_entry {
  const char *name;
  int32_t argument_count, result_count;
  const aotc_value *arguments, *results;
  // values[i] is the address of scalar argument i, or of its memref descriptor; then one for each
  // result, likewise, which the call writes in any case: zeros after a failure. A descriptor is
  // MLIR's: {void *allocated, *aligned; int64_t offset, sizes[rank], strides[rank]}.
  void (*call)(void **values);
  bool touches_memory_on_host; // then the caller's stream must synchronize inside the entry
  const char *why_not_async;   // NULL: aotc_entry_enqueue can call it
  // Computes the sizes of the memrefs that the entry returns, one behind the other: AOTC_DYNAMIC
  // for what depends on elements. `given` is as in aotc_entry_size_results. NULL: there is none.
  void (*size_results)(const void *const *given, int64_t *out_sizes);
  // The bytes of its temporaries on a GPU; where they depend on sizes, 0 and a function of these.
  uint64_t workspace_bytes;
  void (*size_workspace)(const void *const *given, int64_t *out_bytes);
} aotc_entry;

// Fills the descriptor of a memref at `pointer`: `sizes` has one number for each dynamic dimension,
// in their order; strides are those of the type, or else what packs the elements, row by row. Sizes
// that make no sense are found by the call.
AOTC_API void aotc_entry_describe(const aotc_value *value, const void *pointer,
                                  const int64_t *sizes, void *out_descriptor);

// Calls an entry, and returns when it is done. `values` is as in aotc_entry.call, but the address
// of a result that the caller does not want may be NULL: what it would own is freed.
//
// Buffers may be anywhere: each argument's memory is host, pinned, managed or the memory of any
// GPU, as the driver tells. The GPU's own and managed memory is used in place by what reaches it;
// the rest is copied to a buffer of the runtime's before the call, and back behind it if the entry
// writes it, unless the call failed. That goes for the whole range from the lowest element to the
// highest: nobody else may write there meanwhile. Ranges that overlap share one buffer. A result
// that is an argument has the caller's address. The buffers are kept for later calls.
//
// The work is done on CUDA's per-thread default stream, so it comes after what the caller enqueued
// on the default stream. It is done in the context that is current, else in the primary one of the
// thread's device; the current context stays what it was.
//
// Refused before anything is launched, with the argument's name (AOTC_INVALID_ARGUMENT): NULL where
// there are elements, a pointer that is not aligned to its elements, sizes that are negative, do
// not match the type, or overflow. So are strides and offsets that the type does not say, but for
// the strides of dimensions of one element. A buffer without elements may be anywhere.
//
// A result that the entry allocates, and whose memory follows the caller, is in the device's memory
// if the memrefs that it was given are (those with elements; the state's do not count, and managed
// ones are as good), else in managed memory.
//
// After a failure, results are zeros: there is nothing to free.
AOTC_API aotc_status aotc_entry_call(const aotc_entry *entry, void **values);

// Enqueues an entry on the caller's stream (a CUstream or cudaStream_t; NULL is the default
// stream), and returns at once (descriptors are as aotc_entry_describe makes them): it waits for
// nothing, and may be captured into a graph. What it allocates is the device's memory, in the
// stream's order; in a capture that is the graph's: a result is there anew after each launch of the
// graph, and must be freed before the next one. The pointers must be the GPU's, managed or pinned
// memory: they are used as they are. On the CPU device it is done when it
// returns. AOTC_UNSUPPORTED for an entry with a `why_not_async`. A thread without a current context
// uses the stream's own; arguments are checked as above. With AOTC_CHECK=1 a pointer that the GPU
// cannot reach is refused, and each launch is waited for (but not while it is captured), so that a
// kernel that fails is told from the others.
AOTC_API aotc_status aotc_entry_enqueue(const aotc_entry *entry, void **values, void *stream);

// The device that this thread's later calls use when it has no current CUDA context: a GPU's
// number, or AOTC_CPU, which must come before the process's first call. AOTC_INVALID_ARGUMENT for
// any other number, AOTC_NO_DEVICE for a GPU that is not there; a GPU is AOTC_INVALID_ARGUMENT,
// too, where the CPU was requested or is in use. AOTC_DEVICE=cuda:N outranks it.
#define AOTC_CPU (-1)
AOTC_API aotc_status aotc_device_set(int32_t ordinal);

// Computes the sizes of the memrefs that an entry with `size_results` would return. It reads no
// element, launches nothing and needs no device. given[i] is the address of scalar argument i, or
// of as many numbers as memref i has dynamic dimensions (NULL where it has none). `sizes` is room
// for the sizes of all of these results. out_shapes[i] gets those of result i: -1 for a size that
// depends on elements. It may be NULL, and is not looked at for scalars.
//
// Refused as by aotc_entry_call: sizes of arguments that are negative or overflow
// (AOTC_INVALID_ARGUMENT), that the entry asserts not to be (AOTC_ASSERTION_FAILED), and results
// that no memory can hold (AOTC_OUT_OF_MEMORY). After a failure, all sizes are 0.
AOTC_API aotc_status aotc_entry_size_results(const aotc_entry *entry, const void *const *given,
                                             int64_t *sizes, int64_t *const *out_shapes);

// Computes the bytes of the entry's temporaries on a GPU, for aotc_workspace_set: of those that it
// allocates outside of its loops and branches. `given` and refusals are as above; 0 after one.
AOTC_API aotc_status aotc_entry_size_workspace(const aotc_entry *entry, const void *const *given,
                                               uint64_t *out_bytes);

// aotc_memory_copy, whose failure stops nothing.
AOTC_API aotc_status aotc_entry_copy(void *to, const void *from, uint64_t bytes);

// Frees the allocated pointer of a result that the caller owns, wherever it is; NULL is fine. The
// message of an earlier failure stays, unless this fails.
AOTC_API aotc_status aotc_entry_free(void *allocated);

// The same in the order of a stream (NULL is the default stream): what was enqueued there before
// may still use the memory. Memory that is not of this kind is freed as by aotc_entry_free.
AOTC_API aotc_status aotc_entry_free_async(void *allocated, void *stream);

// The memory that weights of files may take on each device of this process, in bytes; 0: as much as
// they need. Weights that are larger come in parts, while kernels run, which takes as long as to
// copy them from the host: calls are no graphs then, and cannot be captured. A budget that is less
// than one kernel reads is AOTC_OUT_OF_MEMORY, and the message has the least that works. It takes
// precedence over AOTC_WEIGHTS_BUDGET in the environment, and is AOTC_INVALID_ARGUMENT once a
// weight was used on a GPU.
AOTC_API aotc_status aotc_weights_budget_set(uint64_t bytes);

// The allocator of this thread's later calls: on a GPU, an entry gets from it the memory of its
// temporaries, and of results that it returns in the device's memory. NULL for both takes it back:
// then it is the driver's, by its pool. `device` is the GPU's number. Work on `stream` (a CUstream)
// is the first to use the memory, and may still use it when it is freed. The context of the call is
// current. `allocate` gives memory that is aligned to 256 bytes, or NULL: the call is
// AOTC_OUT_OF_MEMORY. A result is freed by the functions that allocated it; its `stream` is NULL
// when it was aotc_entry_free, which waits for nothing then. Neither may call into the library.
typedef void *(*aotc_allocate_function)(uint64_t bytes, int32_t device, void *stream, void *data);
typedef void (*aotc_free_function)(void *pointer, uint64_t bytes, int32_t device, void *stream,
                                   void *data);
AOTC_API aotc_status aotc_allocator_set(aotc_allocate_function allocate, aotc_free_function release,
                                        void *data);

// Device memory for the temporaries of this thread's later calls on a GPU, aligned to 256 bytes.
// What it has no room for is allocated. NULL takes it back. Calls on different streams must not
// share one at a time: nothing waits for it.
AOTC_API aotc_status aotc_workspace_set(void *memory, uint64_t bytes);

// Gives back all that the runtime holds: modules, streams, buffers, contexts, threads. No other
// call may be under way, and pointers that the runtime allocated die. A later call starts anew, and
// chooses a device again. It waits for enqueued work, and what fails does not keep it from the
// rest.
//
// In a process that was forked after CUDA was used, every call that needs it is AOTC_UNSUPPORTED,
// and this and all that releases something does nothing; it ends with _exit or exec, as what
// libcuda does at exit may crash there. On the CPU device calls go on.
AOTC_API aotc_status aotc_unload(void);

// Called with each failure as it is recorded, on its thread; it must not call into the library.
// What follows a thread's first failure is not recorded, until that is forgotten. NULL takes it
// back. One for the process.
typedef void (*aotc_error_hook)(int32_t status, const char *message, void *data);
AOTC_API void aotc_error_hook_set(aotc_error_hook hook, void *data);

// For code that calls an entry's function itself: what lies between the two is a call of `entry` in
// the trace (AOTC_TRACE=FILE), and a range of a profiler (AOTC_NVTX=1).
typedef struct aotc_call_note {
  int64_t begin; // 0: nothing is traced
  bool has_range;
} aotc_call_note;
AOTC_API aotc_call_note aotc_call_begin(const char *entry);
AOTC_API void aotc_call_end(aotc_call_note note, const char *entry);

#ifdef __cplusplus
}
#endif

#endif // AOTC_ENTRY_H
