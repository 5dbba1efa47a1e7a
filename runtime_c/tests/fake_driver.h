// Controls of the fake CUDA driver: what it pretends to be, what it fails, what it saw.
#ifndef AOTC_FAKE_DRIVER_H
#define AOTC_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MAX_DEVICES 4
#define FAKE_MAX_LOG 4096

// Images that the fake loads: these words, chips and kernels separated by commas.
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
  // What it pretends to be; set before the first call.
  int version;
  int device_count;
  int capability[FAKE_MAX_DEVICES]; // 90 for sm_90
  bool has_memory_pools;
  bool has_parameters; // tells those of kernels: one

  // What it fails: the fail_at-th call of all (from 1), or the fail_at-th call of fail_symbol.
  int fail_at;    // 0: none
  int fail_count; // how many of them fail from there on; 0: one
  const char *fail_symbol;
  int fail_result;
  bool is_shut_down;       // every call says CUDA_ERROR_DEINITIALIZED
  int asynchronous_result; // what synchronizing calls say, 0: success
  bool is_capturing;       // what every stream says

  // What it saw. The log has every call's symbol in order, of all threads.
  int call_count;
  const char *log[FAKE_MAX_LOG];
  const char *failed_symbol; // of the call that was failed
  int failed_index;          // its place in the log
  int launch_count;
  fake_launch last_launch;
  int copy_count;
  uint64_t last_copy_bytes;
  int allocation_count;
  int live_memory; // allocations not freed yet
  int live_pools;
  uint64_t kept_bytes; // by pools that nobody uses
  int live_events;
  int live_graphs; // and executable ones
  int graph_launch_count;
  int live_streams;
  int live_modules; // modules and libraries
  int live_registrations;
  int primary_references; // primary contexts retained and not released
  unsigned int last_register_flags;
  uintptr_t last_register_start;
  uint64_t last_register_bytes;
  uint64_t last_allocation_bytes;
  int jit_optimization_level; // of the last load, -1: not given
  // Tensor maps: what the last call was given.
  int tensor_map_count;
  uint32_t tensor_map_rank;
  void *tensor_map_address;
  uint64_t tensor_map_sizes[5], tensor_map_strides[5];
  uint32_t tensor_map_box_sizes[5], tensor_map_element_strides[5];
  int tensor_map_data_type, tensor_map_interleave, tensor_map_swizzle, tensor_map_l2_promotion,
      tensor_map_oob_fill;
  size_t parameter_bytes;            // of has_parameters
  int live_reservations, live_pages; // of addresses, and of memory behind them
  uint64_t page_bytes;               // of all pages that were made
  // A use that a real driver would punish later, "" when there was none.
  char violation[256];
  int ptx_version;                                            // that kernels are made of
  int tensor_map_lower_corner[3], tensor_map_upper_corner[3]; // of the last map of im2col
} fake_driver;

// The controls of the driver in this process; exported by the fake libcuda.so.1.
fake_driver *fake_driver_get(void);

// The contexts on this thread's stack, and a context of the program's own for a device.
int fake_context_depth(void);
void *fake_context_make(int ordinal);
void fake_context_push(void *context);
void *fake_context_pop(void);
void fake_context_destroy(void *context);

// What a pointer is to the driver.
typedef enum fake_kind { FAKE_UNKNOWN, FAKE_REGISTERED, FAKE_DEVICE, FAKE_MANAGED } fake_kind;
fake_kind fake_kind_of(const void *pointer);

// What was called so far, oldest first; NULL behind the last.
const char *fake_call(int index);

// From now on streams work as late as they may: copies, launches and frees are done when they are
// waited for, in one order. Device memory begins with 0xa5 bytes. A launch is shown to `launched`,
// whose answer `run` gets when its turn comes.
void fake_work_late(int (*launched)(const char *kernel, void **parameters), void (*run)(int));

#endif // AOTC_FAKE_DRIVER_H
