// Controls of the fake CUDA driver: its properties, the failures to inject, and what it observed.
#ifndef AOTC_FAKE_DRIVER_H
#define AOTC_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MAX_DEVICES 4
#define FAKE_MAX_LOG 4096

// Images that the fake driver loads: these words, with chips and kernels separated by commas.
#define FAKE_IMAGE(chips, kernels)                                                                 \
  "\x7f"                                                                                           \
  "FAKE chips=" chips ", kernels=" kernels ","

typedef struct fake_launch {
  char kernel[64];
  uint32_t grid[3], block[3], cluster[3];
  uint32_t dynamic_shared_bytes;
  bool is_cooperative, uses_pdl;
  void *stream;
  int first_parameter; // the first parameter as an int, 0 if there is none
} fake_launch;

typedef struct fake_driver {
  // Properties; set before the first call.
  int version;
  int device_count;
  int capability[FAKE_MAX_DEVICES]; // 90 for sm_90
  bool has_memory_pools;
  bool has_parameters; // reports kernel parameters: one

  // Injected failures: the fail_at-th call of all (from 1), or the fail_at-th call of fail_symbol.
  int fail_at;    // 0 for none
  int fail_count; // number of consecutive failures; 0 means one
  const char *fail_symbol;
  int fail_result;
  bool is_shut_down;       // every call returns CUDA_ERROR_DEINITIALIZED
  int asynchronous_result; // returned by synchronizing calls; 0 for success
  bool is_capturing;       // reported for every stream

  // Observations. The log has the symbols of all threads' calls, in order.
  int call_count;
  const char *log[FAKE_MAX_LOG];
  const char *failed_symbol; // the call that was made to fail
  int failed_index;          // its index in the log
  int launch_count;
  fake_launch last_launch;
  int copy_count;
  uint64_t last_copy_bytes;
  int allocation_count;
  int live_memory; // allocations not freed yet
  int live_pools;
  uint64_t kept_bytes; // the pool's release threshold
  int live_events;
  int live_graphs; // including executable ones
  int graph_launch_count;
  int live_streams;
  int live_modules; // modules and libraries
  int live_registrations;
  int primary_references; // primary contexts retained and not released
  unsigned int last_register_flags;
  uintptr_t last_register_start;
  uint64_t last_register_bytes;
  uint64_t last_allocation_bytes;
  int jit_optimization_level; // of the last load, -1 if not given
  // Tensor maps: the arguments of the last call.
  int tensor_map_count;
  uint32_t tensor_map_rank;
  void *tensor_map_address;
  uint64_t tensor_map_sizes[5], tensor_map_strides[5];
  uint32_t tensor_map_box_sizes[5], tensor_map_element_strides[5];
  int tensor_map_data_type, tensor_map_interleave, tensor_map_swizzle, tensor_map_l2_promotion,
      tensor_map_oob_fill;
  size_t parameter_bytes;            // of has_parameters
  int live_reservations, live_pages; // address reservations, and pages of memory
  uint64_t page_bytes;               // of all pages created
  // The first use that would be undefined with a real driver, "" if none.
  char violation[256];
  int ptx_version;                                            // of the code of kernels from PTX
  int tensor_map_lower_corner[3], tensor_map_upper_corner[3]; // of the last im2col map
} fake_driver;

// The controls of the driver in this process; exported by the fake libcuda.so.1.
fake_driver *fake_driver_get(void);

// The number of contexts on this thread's stack, and a foreign context on a device.
int fake_context_depth(void);
void *fake_context_make(int ordinal);
void fake_context_push(void *context);
void *fake_context_pop(void);
void fake_context_destroy(void *context);

// The driver's classification of a pointer.
typedef enum fake_kind { FAKE_UNKNOWN, FAKE_REGISTERED, FAKE_DEVICE, FAKE_MANAGED } fake_kind;
fake_kind fake_kind_of(const void *pointer);

// The calls so far, oldest first; NULL after the last.
const char *fake_call(int index);

// From now on streams run their work as late as possible: copies, launches and frees are done when
// they are waited for, in one order. Device memory is initialized with 0xa5 bytes. Each launch is
// passed to `launched`, and its return value to `run` when the launch is run.
void fake_work_late(int (*launched)(const char *kernel, void **parameters), void (*run)(int));

#endif // AOTC_FAKE_DRIVER_H
