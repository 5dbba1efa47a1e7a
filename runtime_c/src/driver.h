// The interface between the runtime and the drivers of devices. The runtime's other files name no
// type or function of a particular driver. docs/adding_a_target.md explains how to write a driver.
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
// Opaque objects of a driver

typedef struct aotc_rt_driver_context *aotc_rt_context_handle;
typedef struct aotc_rt_driver_module *aotc_rt_module_handle;
typedef struct aotc_rt_driver_function *aotc_rt_function;
typedef struct aotc_rt_driver_stream *aotc_rt_stream; // NULL: the default stream
typedef struct aotc_rt_driver_event *aotc_rt_event;
typedef struct aotc_rt_driver_graph *aotc_rt_graph; // ready to be launched

// The default stream as a handle that is not NULL, and the thread's own default stream.
#define AOTC_RT_STREAM_DEFAULT ((aotc_rt_stream)1)
#define AOTC_RT_STREAM_OF_THREAD ((aotc_rt_stream)2)

// -------------------------------------------------------------------------------------------------
// Results

typedef enum aotc_rt_meaning {
  AOTC_RT_OF_THIS_CALL = 0,
  AOTC_RT_OF_EARLIER_WORK,  // a kernel that was enqueued earlier failed
  AOTC_RT_ALREADY_RELEASED, // the driver has shut down, or the context was destroyed
  AOTC_RT_NO_SUCH_CONTEXT,
} aotc_rt_meaning;

// The result of a driver's call, small enough for a register.
typedef struct aotc_rt_result {
  int32_t code;    // the driver's error code; 0 for success, and then the rest is 0
  uint16_t call;   // the driver's number for the function called, for describe_failure
  uint8_t status;  // aotc_status
  uint8_t meaning; // aotc_rt_meaning
} aotc_rt_result;

// -------------------------------------------------------------------------------------------------
// Arguments and facts

// What a driver reports when it has started.
typedef struct aotc_rt_driver_facts {
  int32_t device_count;        // at least one
  bool has_pdl;                // programmatic dependent launch
  bool has_graphs;             // the graph functions below may be called
  bool has_pages;              // the page functions and kernel_parameter may be called
  const char *why_no_clusters; // NULL if clusters are supported
} aotc_rt_driver_facts;

// A launch with checked sizes.
typedef struct aotc_rt_launch {
  aotc_rt_kernel *kernel;
  int64_t grid[3], block[3];
  int64_t cluster[3]; // 0: no clusters
  bool is_cooperative;
  bool begins_alone; // must not overlap with the kernel before it, even if it could
  int32_t dynamic_shared_bytes;
  void **parameters, **extra;
} aotc_rt_launch;

static inline bool aotc_rt_has_clusters(const aotc_rt_launch *launch) {
  return launch->cluster[0] > 1 || launch->cluster[1] > 1 || launch->cluster[2] > 1;
}

// Attributes that must be enabled on a function before some launches.
typedef enum aotc_rt_allowance {
  AOTC_RT_DYNAMIC_SHARED_BYTES,
  AOTC_RT_LARGE_CLUSTERS, // of more than 8 blocks
} aotc_rt_allowance;

// The location of a pointer. Memory unknown to the driver is host memory.
typedef struct aotc_rt_place {
  bool is_known; // to the driver: host memory is then pinned or registered
  bool is_device;
  bool is_managed; // then the other members are irrelevant
  int ordinal;     // of the device that owns it
} aotc_rt_place;

// The handling of calls that could invalidate another thread's stream capture.
typedef enum aotc_rt_capture_mode {
  AOTC_RT_CAPTURE_STRICT = 0, // they fail
  AOTC_RT_CAPTURE_RELAXED = 2,
} aotc_rt_capture_mode;

// -------------------------------------------------------------------------------------------------
// The driver

// A function that returns a bool or a pointer records its failure itself. A failure returned as a
// result is recorded by the caller (AOTC_RT_TRY), with a message about what it was doing.
//
// start, describe_device, capture_mode_exchange and the context functions do not need a current
// context on the thread; the other functions do.
// is current on the thread; where one of the others is called, there is one.
typedef struct aotc_rt_driver {
  const char *name; // "cuda", as in "cuda:0"
  aotc_device_kind kind;

  // Loads and initializes the driver.
  bool (*start)(aotc_rt_driver_facts *out_facts);
  // "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"
  void (*describe_failure)(aotc_rt_result result, char *text, size_t bytes);
  bool (*describe_device)(int32_t ordinal, aotc_device *out_description);

  // The context of a stream, or the thread's current context for NULL; NULL if there is none, as
  // for the default streams.
  aotc_rt_result (*context_of)(aotc_rt_stream stream, aotc_rt_context_handle *out_context);
  // Creates the runtime's object for the thread's current context, `handle`, or for NULL, for the
  // primary context of device `ordinal`. context_close releases what the context holds, but not the
  // struct itself, which is released with free().
  aotc_rt_context *(*context_open)(aotc_rt_context_handle handle, int32_t ordinal);
  aotc_rt_result (*context_close)(aotc_rt_context *context);
  // Frees what the driver itself keeps in the context for kernels. If the context cannot be made
  // current any more, only forgets it.
  void (*context_empty)(aotc_rt_context *context, bool is_current);
  // False if a context that was not created here has been destroyed.
  bool (*context_exists)(const aotc_rt_context *context);
  aotc_rt_result (*context_push)(aotc_rt_context_handle handle);
  aotc_rt_result (*context_pop)(void);
  aotc_rt_result (*context_synchronize)(void);
  aotc_rt_result (*capture_mode_exchange)(aotc_rt_capture_mode *mode);

  // Loads a module into the current context. A driver with per-process modules stores the module in
  // module->library, as a single malloc allocation that is sufficient for unloading it; then there
  // is no handle, and no context need be current.
  bool (*module_load)(aotc_rt_module *module, aotc_rt_module_handle *out_handle);
  aotc_rt_result (*module_unload)(const aotc_rt_module *module, aotc_rt_module_handle handle);
  // Sets the binding's function and dynamic_shared_limit; clears uses_pdl if the loaded code does
  // not support it.
  bool (*kernel_find)(const aotc_rt_kernel *kernel, aotc_rt_module_handle handle,
                      aotc_rt_binding *binding);
  aotc_rt_result (*kernel_allow)(aotc_rt_function function, aotc_rt_allowance what, int value);
  aotc_rt_result (*launch)(const aotc_rt_binding *binding, const aotc_rt_launch *launch,
                           aotc_rt_stream stream);

  // The size of a kernel's parameter; *out_is_there is false past the last one.
  aotc_rt_result (*kernel_parameter)(aotc_rt_function function, uint32_t index, size_t *out_bytes,
                                     bool *out_is_there);
  // Builds a graph of `count` launches. Between begin and end, launches on the stream are only
  // recorded, and note follows each. end consumes what begin has returned; it makes a graph only if
  // is_whole.
  aotc_rt_result (*graph_begin)(aotc_rt_stream stream, int count, void **out_nodes);
  aotc_rt_result (*graph_note)(aotc_rt_stream stream, void *nodes, int index);
  aotc_rt_result (*graph_end)(aotc_rt_stream stream, void *nodes, bool is_whole,
                              aotc_rt_graph *out_graph);
  // Changes grid, block, shared memory and parameters of a launch, from the graph's next launch on.
  aotc_rt_result (*graph_update)(aotc_rt_graph graph, int index, const aotc_rt_binding *binding,
                                 const aotc_rt_launch *launch);
  aotc_rt_result (*graph_launch)(aotc_rt_graph graph, aotc_rt_stream stream);
  aotc_rt_result (*graph_destroy)(aotc_rt_graph graph);

  aotc_rt_result (*stream_create)(aotc_rt_stream *out_stream);
  aotc_rt_result (*stream_destroy)(aotc_rt_stream stream);
  aotc_rt_result (*stream_synchronize)(aotc_rt_stream stream);
  aotc_rt_result (*stream_wait_event)(aotc_rt_stream stream, aotc_rt_event event);
  // Whether work enqueued on the stream is only being captured, for a graph.
  aotc_rt_result (*stream_is_capturing)(aotc_rt_stream stream, bool *out_is_capturing);

  aotc_rt_result (*event_create)(bool is_timed, aotc_rt_event *out_event);
  aotc_rt_result (*event_destroy)(aotc_rt_event event);
  aotc_rt_result (*event_record)(aotc_rt_event event, aotc_rt_stream stream);
  aotc_rt_result (*event_synchronize)(aotc_rt_event event);
  aotc_rt_result (*event_elapsed)(aotc_rt_event start, aotc_rt_event stop, float *out_milliseconds);

  // Memory of the device, or shared with the host (AOTC_MEMORY_MANAGED). With a stream, the memory
  // is used first by that stream's kernels; it is allocated and freed in stream order if the
  // context supports that (memory_is_ordered). With NULL it is usable immediately.
  aotc_rt_result (*memory_allocate)(const aotc_rt_context *context, aotc_memory_kind kind,
                                    size_t bytes, aotc_rt_stream stream, void **out_pointer);
  aotc_rt_result (*memory_free)(void *pointer, aotc_rt_stream stream);
  aotc_rt_result (*memory_is_ordered)(const aotc_rt_context *context, const void *pointer,
                                      aotc_rt_stream stream, bool *out_is_ordered);
  aotc_rt_result (*memory_locate)(const void *pointer, aotc_rt_place *out_place);
  aotc_rt_result (*memory_copy)(void *to, const void *from, size_t bytes, aotc_rt_stream stream);
  // For elements of 2 or 4 bytes.
  aotc_rt_result (*memory_fill)(void *to, uint32_t value, size_t element_bytes, size_t count,
                                aotc_rt_stream stream);
  // Virtual addresses of the device, and pages of memory that are mapped to them: both start at a
  // multiple of the granularity. A page must not be in use when it is unmapped.
  aotc_rt_result (*pages_granularity)(const aotc_rt_context *context, size_t *out_bytes);
  aotc_rt_result (*pages_reserve)(size_t bytes, void **out_pointer);
  aotc_rt_result (*pages_unreserve)(void *pointer, size_t bytes);
  aotc_rt_result (*page_make)(const aotc_rt_context *context, size_t bytes, uint64_t *out_page);
  aotc_rt_result (*page_free)(uint64_t page);
  aotc_rt_result (*page_map)(const aotc_rt_context *context, void *pointer, size_t bytes,
                             uint64_t page);
  aotc_rt_result (*page_unmap)(void *pointer, size_t bytes);
  // Makes host memory accessible to every device.
  aotc_rt_result (*memory_register)(void *pointer, size_t bytes);
  aotc_rt_result (*memory_unregister)(void *pointer);
} aotc_rt_driver;

// The available drivers.
extern const aotc_rt_driver aotc_rt_cuda;

// -------------------------------------------------------------------------------------------------
// Checking results (driver.c)

// Whether `result` is success; otherwise records the failure with the formatted message.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// The same after waiting for one launch: every failure is attributed to that kernel.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check_kernel(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// The same for calls that release something: a driver that has shut down (at process exit) or a
// destroyed context has already released it, which is not a failure.
__attribute__((format(printf, 3, 4))) bool
aotc_rt_check_release(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...);

// Makes a driver call and checks it: AOTC_RT_TRY(driver, context_pop(), "after %s", what). A call
// that succeeds only costs the test of its result.
#define AOTC_RT_TRY(driver, call, ...)                                                             \
  (aotc_rt_is_success((driver)->call) ? true                                                       \
                                      : aotc_rt_check((driver), aotc_rt_failed(), __VA_ARGS__))
#define AOTC_RT_TRY_RELEASE(driver, call, ...)                                                     \
  (aotc_rt_is_success((driver)->call)                                                              \
       ? true                                                                                      \
       : aotc_rt_check_release((driver), aotc_rt_failed(), __VA_ARGS__))

// Saves a failure for aotc_rt_failed on this thread; returns false.
bool aotc_rt_keep_failed(aotc_rt_result result);
aotc_rt_result aotc_rt_failed(void);

static inline bool aotc_rt_is_success(aotc_rt_result result) {
  return result.code == 0 || aotc_rt_keep_failed(result);
}

#endif // AOTC_RT_DRIVER_H
