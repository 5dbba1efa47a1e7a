// The waist of the runtime: what a kind of device with a driver of its own does for the files here.
// They name no type and no function of such a driver. docs/adding_a_target.md tells how to write
// one.
#ifndef AOTC_RT_DRIVER_H
#define AOTC_RT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

typedef struct aotc_rt_context aotc_rt_context;
typedef struct aotc_rt_module aotc_rt_module;
typedef struct aotc_rt_kernel aotc_rt_kernel;
typedef struct aotc_rt_binding aotc_rt_binding;

// -------------------------------------------------------------------------------------------------
// A driver's things, known to the driver alone

typedef struct aotc_rt_driver_context *aotc_rt_context_handle;
typedef struct aotc_rt_driver_module *aotc_rt_module_handle;
typedef struct aotc_rt_driver_function *aotc_rt_function;
typedef struct aotc_rt_driver_stream *aotc_rt_stream; // NULL: the default stream
typedef struct aotc_rt_driver_event *aotc_rt_event;
typedef struct aotc_rt_driver_graph *aotc_rt_graph; // ready to be launched

// The default stream by a name that is not NULL, and each thread's own.
#define AOTC_RT_STREAM_DEFAULT ((aotc_rt_stream)1)
#define AOTC_RT_STREAM_OF_THREAD ((aotc_rt_stream)2)

// -------------------------------------------------------------------------------------------------
// Results

typedef enum aotc_rt_meaning {
  AOTC_RT_OF_THIS_CALL = 0,
  AOTC_RT_OF_EARLIER_WORK,  // a kernel that was enqueued went wrong
  AOTC_RT_ALREADY_RELEASED, // the driver has shut down, or the context was destroyed
  AOTC_RT_NO_SUCH_CONTEXT,
} aotc_rt_meaning;

// What a driver says of a call, small enough for a register.
typedef struct aotc_rt_result {
  int32_t code;    // the driver's number; 0: success, and the rest is 0
  uint16_t call;   // the driver's number of its function, for describe_failure
  uint8_t status;  // aotc_status
  uint8_t meaning; // aotc_rt_meaning
} aotc_rt_result;

// -------------------------------------------------------------------------------------------------
// What is asked for

// What a driver says of itself when it has started.
typedef struct aotc_rt_driver_facts {
  int32_t device_count;        // at least one
  bool has_pdl;                // that wait themselves for the kernel before them
  bool has_graphs;             // the functions of graphs below may be called
  bool has_pages;              // likewise those of pages, and kernel_parameter
  const char *why_no_clusters; // NULL where kernels can have clusters
} aotc_rt_driver_facts;

// A launch whose sizes were checked.
typedef struct aotc_rt_launch {
  aotc_rt_kernel *kernel;
  int64_t grid[3], block[3];
  int64_t cluster[3]; // 0: no clusters
  bool is_cooperative;
  bool begins_alone; // not while the kernel before it runs, also if it could
  int32_t dynamic_shared_bytes;
  void **parameters, **extra;
} aotc_rt_launch;

static inline bool aotc_rt_has_clusters(const aotc_rt_launch *launch) {
  return launch->cluster[0] > 1 || launch->cluster[1] > 1 || launch->cluster[2] > 1;
}

// What a function is not launched with unless it is allowed.
typedef enum aotc_rt_allowance {
  AOTC_RT_DYNAMIC_SHARED_BYTES,
  AOTC_RT_LARGE_CLUSTERS, // of more than 8 blocks
} aotc_rt_allowance;

// Where a pointer leads. Memory that the driver does not know is the host's.
typedef struct aotc_rt_place {
  bool is_known; // to the driver: pinned or registered, if it is the host's
  bool is_device;
  bool is_managed; // then the rest does not matter
  int ordinal;     // of the device that has it
} aotc_rt_place;

// How calls that could break another thread's capture of a stream are met.
typedef enum aotc_rt_capture_mode {
  AOTC_RT_CAPTURE_STRICT = 0, // they are refused
  AOTC_RT_CAPTURE_RELAXED = 2,
} aotc_rt_capture_mode;

// -------------------------------------------------------------------------------------------------
// The driver

// A function that gives a bool or a pointer records its failure itself; that of a result is
// recorded by who calls it (AOTC_RT_TRY), in the words of what it was to do.
//
// start, describe_device, capture_mode_exchange and the functions of contexts need no context that
// is current on the thread; where one of the others is called, there is one.
typedef struct aotc_rt_driver {
  const char *name; // "cuda", as in "cuda:0"
  aotc_device_kind kind;

  // Finds and starts the driver.
  bool (*start)(aotc_rt_driver_facts *out_facts);
  // "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"
  void (*describe_failure)(aotc_rt_result result, char *text, size_t bytes);
  bool (*describe_device)(int32_t ordinal, aotc_device *out_description);

  // The context of a stream, or with NULL the thread's current one; NULL where there is none, as
  // for the default streams.
  aotc_rt_result (*context_of)(aotc_rt_stream stream, aotc_rt_context_handle *out_context);
  // Makes what the runtime knows of the thread's current context, `handle`; with NULL, of the one
  // that programs share on device `ordinal`. context_close gives back what the context holds, and
  // leaves the struct itself to free().
  aotc_rt_context *(*context_open)(aotc_rt_context_handle handle, int32_t ordinal);
  aotc_rt_result (*context_close)(aotc_rt_context *context);
  // Frees what the driver keeps of its own for kernels there. Where the context cannot be made
  // current any more, it is only forgotten.
  void (*context_empty)(aotc_rt_context *context, bool is_current);
  // False when a context that was not opened here was destroyed.
  bool (*context_exists)(const aotc_rt_context *context);
  aotc_rt_result (*context_push)(aotc_rt_context_handle handle);
  aotc_rt_result (*context_pop)(void);
  aotc_rt_result (*context_synchronize)(void);
  aotc_rt_result (*capture_mode_exchange)(aotc_rt_capture_mode *mode);

  // Loads a module into the current context. A driver that has modules of the process remembers
  // this one's in module->library, one piece of memory for free(), and unloads it by that alone:
  // then there is no handle, and no context need be current.
  bool (*module_load)(aotc_rt_module *module, aotc_rt_module_handle *out_handle);
  aotc_rt_result (*module_unload)(const aotc_rt_module *module, aotc_rt_module_handle handle);
  // Sets the binding's function and its dynamic_shared_limit; unsets uses_pdl where what was loaded
  // cannot be launched so.
  bool (*kernel_find)(const aotc_rt_kernel *kernel, aotc_rt_module_handle handle,
                      aotc_rt_binding *binding);
  aotc_rt_result (*kernel_allow)(aotc_rt_function function, aotc_rt_allowance what, int value);
  aotc_rt_result (*launch)(const aotc_rt_binding *binding, const aotc_rt_launch *launch,
                           aotc_rt_stream stream);

  // The bytes of a kernel's parameter; *out_is_there is false behind the last one.
  aotc_rt_result (*kernel_parameter)(aotc_rt_function function, uint32_t index, size_t *out_bytes,
                                     bool *out_is_there);
  // Makes a graph of `count` launches. Between begin and end, launches on the stream are recorded
  // alone; note follows each. What begin has given, end takes; it makes no graph unless is_whole.
  aotc_rt_result (*graph_begin)(aotc_rt_stream stream, int count, void **out_nodes);
  aotc_rt_result (*graph_note)(aotc_rt_stream stream, void *nodes, int index);
  aotc_rt_result (*graph_end)(aotc_rt_stream stream, void *nodes, bool is_whole,
                              aotc_rt_graph *out_graph);
  // Changes grid, block, shared memory and parameters of a launch, for when it is launched next.
  aotc_rt_result (*graph_update)(aotc_rt_graph graph, int index, const aotc_rt_binding *binding,
                                 const aotc_rt_launch *launch);
  aotc_rt_result (*graph_launch)(aotc_rt_graph graph, aotc_rt_stream stream);
  aotc_rt_result (*graph_destroy)(aotc_rt_graph graph);

  aotc_rt_result (*stream_create)(aotc_rt_stream *out_stream);
  aotc_rt_result (*stream_destroy)(aotc_rt_stream stream);
  aotc_rt_result (*stream_synchronize)(aotc_rt_stream stream);
  aotc_rt_result (*stream_wait_event)(aotc_rt_stream stream, aotc_rt_event event);
  // Whether work that is enqueued there is only recorded, for a graph.
  aotc_rt_result (*stream_is_capturing)(aotc_rt_stream stream, bool *out_is_capturing);

  aotc_rt_result (*event_create)(bool is_timed, aotc_rt_event *out_event);
  aotc_rt_result (*event_destroy)(aotc_rt_event event);
  aotc_rt_result (*event_record)(aotc_rt_event event, aotc_rt_stream stream);
  aotc_rt_result (*event_synchronize)(aotc_rt_event event);
  aotc_rt_result (*event_elapsed)(aotc_rt_event start, aotc_rt_event stop, float *out_milliseconds);

  // Memory that the device has, or shares with the host (AOTC_MEMORY_MANAGED). With a stream, that
  // stream's kernels are the first to use it: where the context has such memory, it is allocated
  // and freed in the stream's order (memory_is_ordered). With NULL it is there at once.
  aotc_rt_result (*memory_allocate)(const aotc_rt_context *context, aotc_memory_kind kind,
                                    size_t bytes, aotc_rt_stream stream, void **out_pointer);
  aotc_rt_result (*memory_free)(void *pointer, aotc_rt_stream stream);
  aotc_rt_result (*memory_is_ordered)(const aotc_rt_context *context, const void *pointer,
                                      aotc_rt_stream stream, bool *out_is_ordered);
  aotc_rt_result (*memory_locate)(const void *pointer, aotc_rt_place *out_place);
  aotc_rt_result (*memory_copy)(void *to, const void *from, size_t bytes, aotc_rt_stream stream);
  // Elements of 2 or 4 bytes.
  aotc_rt_result (*memory_fill)(void *to, uint32_t value, size_t element_bytes, size_t count,
                                aotc_rt_stream stream);
  // Addresses of the device, and memory in pages that is put behind them: both begin at a multiple
  // of the granularity. Nothing that reads a page may be under way when it is unmapped.
  aotc_rt_result (*pages_granularity)(const aotc_rt_context *context, size_t *out_bytes);
  aotc_rt_result (*pages_reserve)(size_t bytes, void **out_pointer);
  aotc_rt_result (*pages_unreserve)(void *pointer, size_t bytes);
  aotc_rt_result (*page_make)(const aotc_rt_context *context, size_t bytes, uint64_t *out_page);
  aotc_rt_result (*page_free)(uint64_t page);
  aotc_rt_result (*page_map)(const aotc_rt_context *context, void *pointer, size_t bytes,
                             uint64_t page);
  aotc_rt_result (*page_unmap)(void *pointer, size_t bytes);
  // Makes host memory one that every device reaches.
  aotc_rt_result (*memory_register)(void *pointer, size_t bytes);
  aotc_rt_result (*memory_unregister)(void *pointer);
} aotc_rt_driver;

// The drivers that there are.
extern const aotc_rt_driver aotc_rt_cuda;

// -------------------------------------------------------------------------------------------------
// Checking results (driver.c)

// Whether `result` is success; if not, records the failure with what the format says of it.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// The same for the wait behind one launch: whatever goes wrong is that kernel's failure.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check_kernel(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// The same for calls that release something: a driver that has shut down already (this is the end
// of the process) or a context that is gone has released it, and is no failure.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check_release(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// Makes a call of the driver and checks it: AOTC_RT_TRY(driver, context_pop(), "after %s", what).
// A call that succeeds costs no more than the look at its result.
#define AOTC_RT_TRY(driver, call, ...)                                                             \
  (aotc_rt_is_success((driver)->call) ? true                                                       \
                                      : aotc_rt_check((driver), aotc_rt_failed(), __VA_ARGS__))
#define AOTC_RT_TRY_RELEASE(driver, call, ...)                                                     \
  (aotc_rt_is_success((driver)->call)                                                              \
       ? true                                                                                      \
       : aotc_rt_check_release((driver), aotc_rt_failed(), __VA_ARGS__))

// Keeps a failure for aotc_rt_failed on this thread; false.
bool aotc_rt_keep_failed(aotc_rt_result result);
aotc_rt_result aotc_rt_failed(void);

static inline bool aotc_rt_is_success(aotc_rt_result result) {
  return result.code == 0 || aotc_rt_keep_failed(result);
}

#endif // AOTC_RT_DRIVER_H
