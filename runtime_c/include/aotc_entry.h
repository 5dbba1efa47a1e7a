// The entries of a generated program or library as data, and the calls that its C functions make.
// The data is generated beside the module; the harness reads it, too.
//
// A C function of a library makes such a call. It clears the thread's earlier failure, and returns
// its own, which aotc_status_get also returns until the next call, but which stops nothing. MLIR's
// C interface (_mlir_ciface_NAME) is not such a call: it uses the pointers as the module says, and
// a failure stays until aotc_error_clear.
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

// Stands for a dimension, a stride or an offset that is known only at run time.
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
  // values[i] is the address of scalar argument i, or of memref descriptor i. The addresses of the
  // results follow. The call always writes the results: zeros after a failure. A descriptor is
  // MLIR's: {void *allocated, *aligned; int64_t offset, sizes[rank], strides[rank]}.
  void (*call)(void **values);
  bool touches_memory_on_host; // then the caller's stream must synchronize inside the entry
  const char *why_not_async;   // NULL: aotc_entry_enqueue can call it
  // Computes the sizes of all memrefs that the entry returns, in order: AOTC_DYNAMIC for a size
  // that depends on elements. `given` is as in aotc_entry_size_results. NULL: there is no such
  // function.
  void (*size_results)(const void *const *given, int64_t *out_sizes);
  // The bytes of its temporaries on a GPU. If they depend on sizes, it is 0, and the function
  // computes them.
  uint64_t workspace_bytes;
  void (*size_workspace)(const void *const *given, int64_t *out_bytes);
} aotc_entry;

// Fills the descriptor of a memref at `pointer`. `sizes` has one number for each dynamic dimension,
// in order. Strides are those of the type, or else row-major and contiguous. Invalid sizes are
// reported by the call.
AOTC_API void aotc_entry_describe(const aotc_value *value, const void *pointer,
                                  const int64_t *sizes, void *out_descriptor);

// Calls an entry, and returns when it is done. `values` is as in aotc_entry.call, except that the
// address of a result that the caller does not want may be NULL; if the caller would own it, it is
// freed.
//
// Buffers may be in any memory: host, pinned, managed, or that of any GPU; the driver is asked
// which it is. Managed memory, and memory of the GPU that is used, is used in place. Any other
// buffer is copied to a buffer of the runtime before the call, and, if the entry writes it and the
// call does not fail, copied back afterwards. That is done for the whole range from its lowest to
// its highest element, so nobody else may write there during the call. Ranges that overlap share
// one buffer. A result that is an argument has the caller's address. The runtime's buffers are kept
// for later calls.
//
// The work runs on CUDA's per-thread default stream, so it comes after what the caller enqueued on
// the default stream. It runs in the current context, else in the primary context of the thread's
// device; the current context is not changed.
//
// These are refused before anything is launched, with the argument's name (AOTC_INVALID_ARGUMENT):
// NULL for a buffer that has elements; a pointer that is not aligned to its elements; sizes that
// are negative, do not match the type, or overflow; strides and offsets that do not match the type,
// except the strides of dimensions of size 1. A buffer without elements may have any address.
//
// Some results follow the caller: memory that the entry allocates for them is device memory if all
// memrefs that were passed are in device or managed memory (those without elements, and those of
// the state, do not count); otherwise it is managed memory.
//
// After a failure, results are zeros: there is nothing to free.
AOTC_API aotc_status aotc_entry_call(const aotc_entry *entry, void **values);

// Enqueues an entry on the caller's stream (a CUstream or cudaStream_t; NULL is the default
// stream), and returns at once. It waits for nothing, and may be captured into a graph. Descriptors
// are as aotc_entry_describe makes them. Memory that it allocates is device memory, in stream
// order. During a capture that memory is the graph's: a result is allocated by each launch of the
// graph, and must be freed before the next launch. Pointers must be device, managed or pinned
// memory: they are used as they are. On the CPU device the entry is done when the function returns.
//
// AOTC_UNSUPPORTED for an entry with a `why_not_async`. A thread without a current context uses the
// context of the stream. Arguments are checked as in aotc_entry_call. With AOTC_CHECK=1 a pointer
// that the GPU cannot access is refused, and each launch is waited for (except during a capture),
// so that the kernel that fails is known.
AOTC_API aotc_status aotc_entry_enqueue(const aotc_entry *entry, void **values, void *stream);

// Sets the device that this thread's later calls use if it has no current CUDA context: a GPU's
// number, or AOTC_CPU, which must be set before the process's first call. AOTC_INVALID_ARGUMENT for
// any other number, and for a GPU if the CPU was requested or is in use. AOTC_NO_DEVICE for a GPU
// that does not exist. AOTC_DEVICE=cuda:N takes precedence.
#define AOTC_CPU (-1)
AOTC_API aotc_status aotc_device_set(int32_t ordinal);

// Computes the sizes of the memrefs that an entry with `size_results` would return. It reads no
// element, launches nothing and needs no device. given[i] is the address of scalar argument i, or
// of the dynamic sizes of memref i (NULL if it has none). `sizes` must have room for the sizes of
// all of these results. out_shapes[i] receives the sizes of result i: -1 for a size that depends on
// elements. It may be NULL, and is ignored for scalars.
//
// These are refused, as by aotc_entry_call: sizes that are negative or overflow
// (AOTC_INVALID_ARGUMENT) or that violate an assertion of the entry (AOTC_ASSERTION_FAILED), and
// results that are larger than any memory (AOTC_OUT_OF_MEMORY). After a failure, all sizes are 0.
AOTC_API aotc_status aotc_entry_size_results(const aotc_entry *entry, const void *const *given,
                                             int64_t *sizes, int64_t *const *out_shapes);

// Computes the bytes of the entry's temporaries on a GPU, for aotc_workspace_set. Those that are
// allocated inside of loops and branches do not count. `given` and refusals are as above; 0 after a
// failure.
AOTC_API aotc_status aotc_entry_size_workspace(const aotc_entry *entry, const void *const *given,
                                               uint64_t *out_bytes);

// As aotc_memory_copy, but a failure stops nothing.
AOTC_API aotc_status aotc_entry_copy(void *to, const void *from, uint64_t bytes);

// Frees the allocated pointer of a result that the caller owns, in any memory; NULL is allowed. The
// message of an earlier failure is kept, unless this fails.
AOTC_API aotc_status aotc_entry_free(void *allocated);

// Frees it in the order of a stream (NULL is the default stream), whose earlier work may still use
// the memory. Memory that was not allocated in stream order is freed as by aotc_entry_free.
AOTC_API aotc_status aotc_entry_free_async(void *allocated, void *stream);

// Sets how many bytes the weights of files may take on each device of this process; 0 means as many
// as they need. Weights that do not fit are copied in parts from the host while kernels run, which
// takes as long as the copies. Calls are then not replayed as graphs, and cannot be captured. If
// the budget is less than what one kernel reads, the call is AOTC_OUT_OF_MEMORY, and its message
// has the smallest budget that works. This takes precedence over AOTC_WEIGHTS_BUDGET in the
// environment. It is AOTC_INVALID_ARGUMENT after a weight was used on a GPU.
AOTC_API aotc_status aotc_weights_budget_set(uint64_t bytes);

// Sets the allocator of this thread's later calls. On a GPU, an entry takes from it the memory of
// its temporaries, and of results that it returns in device memory. NULL for both functions
// restores the driver's pool. `device` is the GPU's number. Work on `stream` (a CUstream) is the
// first to use the memory, and may still use it when it is freed. The context of the call is
// current. `allocate` returns memory aligned to 256 bytes, or NULL, which makes the call
// AOTC_OUT_OF_MEMORY. A result is freed by the `free` of the allocator that it came from; its
// `stream` is NULL if it is freed by aotc_entry_free, which does not wait then. Neither function
// may call into the library.
typedef void *(*aotc_allocate_function)(uint64_t bytes, int32_t device, void *stream, void *data);
typedef void (*aotc_free_function)(void *pointer, uint64_t bytes, int32_t device, void *stream,
                                   void *data);
AOTC_API aotc_status aotc_allocator_set(aotc_allocate_function allocate, aotc_free_function release,
                                        void *data);

// Sets device memory, aligned to 256 bytes, for the temporaries of this thread's later calls on a
// GPU. Temporaries that do not fit are allocated. NULL removes it. Calls on different streams must
// not share a workspace at the same time, as nothing synchronizes them.
AOTC_API aotc_status aotc_workspace_set(void *memory, uint64_t bytes);

// Releases everything that the runtime holds: modules, streams, buffers, contexts, threads. No
// other call may be in progress except another one of this function, and pointers that the runtime
// allocated become invalid. A later call starts again, and chooses a device again. The function
// waits for enqueued work, and goes on after a failure.
//
// In a process that was forked after CUDA was used, every call that needs CUDA is AOTC_UNSUPPORTED,
// and this function and those that release something do nothing. Such a process must end with _exit
// or exec, as libcuda's exit handlers may crash. On the CPU device calls still work.
AOTC_API aotc_status aotc_unload(void);

// A function that is called for each failure when it is recorded, on the failing thread. It must
// not call into the library. Failures after a thread's first one are not recorded until that is
// cleared. NULL removes the hook. The process has one hook.
typedef void (*aotc_error_hook)(int32_t status, const char *message, void *data);
AOTC_API void aotc_error_hook_set(aotc_error_hook hook, void *data);

// For code that calls an entry's function itself. The time between the two calls is a call of
// `entry` in the trace (AOTC_TRACE=FILE), and a range in a profiler (AOTC_NVTX=1).
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
