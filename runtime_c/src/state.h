// What the runtime knows: the state of the process, of a thread, of a context, of a call.
#ifndef AOTC_RT_STATE_H
#define AOTC_RT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"
#include "driver.h"

// -------------------------------------------------------------------------------------------------
// Errors (error.c)

#define AOTC_RT_MESSAGE_BYTES 4096

typedef struct aotc_rt_error {
  aotc_status status;
  char message[AOTC_RT_MESSAGE_BYTES];
} aotc_rt_error;

typedef struct aotc_rt_context aotc_rt_context;

// What a launch was, for the message of a failure that surfaces later.
#define AOTC_RT_LABEL_BYTES 64
typedef struct aotc_rt_launch_label {
  char kernel[AOTC_RT_LABEL_BYTES]; // cut, "" when there was no launch
  uint32_t grid[3], block[3];
} aotc_rt_launch_label;

typedef struct aotc_rt_thread {
  aotc_rt_error error;   // the first failure since the last clear
  aotc_rt_error *sink;   // where failures go instead while something is only tried, else NULL
  aotc_status latest;    // of the latest failure, recorded or not
  const char *operation; // the public function under way, for messages
  const aotc_rt_context *context; // its context, for messages; NULL while there is none
  bool has_adopted_stream, synchronizes_adopted_stream;
  void *adopted_stream;
  bool has_default_ordinal; // mgpuSetDefaultDevice
  int32_t default_ordinal;
  aotc_rt_launch_label last_launch;
} aotc_rt_thread;

extern _Thread_local aotc_rt_thread aotc_rt_this_thread;

// Records a failure unless there is one already; returns `status`.
__attribute__((format(printf, 2, 3))) aotc_status aotc_rt_fail(aotc_status status,
                                                               const char *format, ...);

// Appends to the text in a buffer, and cuts it at the buffer's end.
__attribute__((format(printf, 3, 4))) void aotc_rt_append(char *text, size_t bytes,
                                                          const char *format, ...);

// -------------------------------------------------------------------------------------------------
// Contexts (context.c)

#define AOTC_RT_STREAMS_PER_BLOCK 32

// Streams are never destroyed; a slot is taken and given back. Slots are found without a lock.
typedef struct aotc_rt_stream_block {
  struct {
    _Atomic(CUstream) stream; // NULL until one is made, then it stays
    atomic_bool is_taken;
  } slots[AOTC_RT_STREAMS_PER_BLOCK];
  _Atomic(struct aotc_rt_stream_block *) next;
} aotc_rt_stream_block;

typedef struct aotc_rt_tensor_map {
  struct aotc_rt_tensor_map *next;
  CUtensorMap map;
  CUdeviceptr address;
} aotc_rt_tensor_map;

#define AOTC_RT_TENSOR_MAP_BUCKETS 256

// A CUDA context that was used. Made under the lock, found without it, never freed.
struct aotc_rt_context {
  aotc_rt_context *next; // does not change once the context can be found
  CUcontext handle;
  bool has_id; // told apart from a later context at the same address
  unsigned long long id;
  atomic_bool is_gone;
  bool is_primary; // then it is retained, and cannot go away
  CUdevice device;
  bool has_memory_pools;
  aotc_device description;
  aotc_rt_stream_block streams;
  // Under the lock: equal tensor maps share an address, cut from slabs.
  aotc_rt_tensor_map *tensor_maps[AOTC_RT_TENSOR_MAP_BUCKETS];
  CUdeviceptr slab;
  size_t slab_bytes_left;
};

// Describes CUDA device `ordinal`; false, with the failure recorded, if the driver does not say.
bool aotc_rt_describe_gpu(const aotc_rt_driver *driver, int32_t ordinal, CUdevice *out_device,
                          aotc_device *out_description);

// A context that was used before; NULL if it was not. No lock is needed.
aotc_rt_context *aotc_rt_context_find(const aotc_rt_driver *driver, CUcontext handle);
aotc_rt_context *aotc_rt_context_find_primary(int32_t ordinal);
aotc_rt_context *aotc_rt_context_find_any(void);

// The context of `current` (a thread's current context), or the primary context of device
// `ordinal`. Under the lock. NULL, with the failure recorded, if there is none.
aotc_rt_context *aotc_rt_context_of_locked(const aotc_rt_driver *driver, CUcontext current);
aotc_rt_context *aotc_rt_context_primary_locked(const aotc_rt_driver *driver, int32_t ordinal);

// Gives up a context on which the program's images did not load.
void aotc_rt_context_drop_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// -------------------------------------------------------------------------------------------------
// Modules (module.c)

// A kernel on one context. Made under the lock, found without it.
typedef struct aotc_rt_binding {
  struct aotc_rt_binding *next;
  const aotc_rt_context *context;
  CUfunction function;
  atomic_int dynamic_shared_limit;   // what the function may be launched with as it is now
  atomic_bool allows_large_clusters; // clusters of more than 8 blocks
} aotc_rt_binding;

typedef struct aotc_rt_module aotc_rt_module;

typedef struct aotc_rt_kernel {
  struct aotc_rt_kernel *next;
  aotc_rt_module *module;
  _Atomic(aotc_rt_binding *) bindings;
  _Atomic(const aotc_cpu_kernel *) cpu;
  char label[AOTC_RT_LABEL_BYTES]; // the name, cut to this size
  char name[];
} aotc_rt_kernel;

// Finds the kernel on the context, after loading its module there if need be; the context is
// current. NULL, with the failure recorded.
aotc_rt_binding *aotc_rt_kernel_bind(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                     aotc_rt_context *context);

// The kernel's CPU form; NULL, with AOTC_NO_CPU_KERNEL recorded, if it has none.
const aotc_cpu_kernel *aotc_rt_kernel_cpu_form(aotc_rt_kernel *kernel);

// What messages say of the module of a kernel.
const char *aotc_rt_module_name(const aotc_rt_module *module);
const char *aotc_rt_module_built_for(const aotc_rt_module *module);

// Loads every module of the program on the context, which is current.
bool aotc_rt_modules_load_all_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// Unloads every module from a context that is to be given up; it is current.
void aotc_rt_modules_drop_locked(const aotc_rt_driver *driver, const aotc_rt_context *context);

// -------------------------------------------------------------------------------------------------
// The process (device.c)

typedef enum aotc_rt_phase {
  AOTC_RT_UNRESOLVED = 0, // no device was needed so far
  AOTC_RT_ON_CPU,
  AOTC_RT_ON_CUDA,
} aotc_rt_phase;

typedef enum aotc_rt_wish {
  AOTC_RT_AUTO = 0,
  AOTC_RT_CUDA,
  AOTC_RT_CUDA_ORDINAL,
  AOTC_RT_CPU
} aotc_rt_wish;

typedef struct aotc_rt_request {
  aotc_rt_wish wish;
  int32_t ordinal; // for AOTC_RT_CUDA_ORDINAL
} aotc_rt_request;

// A range of host memory that was registered, or that the GPU reached already.
typedef struct aotc_rt_registration {
  struct aotc_rt_registration *next;
  uintptr_t start;
  uint64_t bytes;
  int64_t count;
  bool is_ours; // registered here, to be unregistered here
} aotc_rt_registration;

typedef struct aotc_rt_state {
  // Taken to choose the device, load modules, bind kernels, register memory; not to launch.
  pthread_mutex_t lock;

  _Atomic(aotc_rt_phase) phase;
  // Written under the lock before `phase` leaves AOTC_RT_UNRESOLVED, constant afterwards.
  aotc_rt_request choice;
  aotc_device device;
  aotc_rt_driver driver;

  // Under the lock.
  bool has_request;
  aotc_rt_request request; // of aotc_device_request
  bool has_driver;
  aotc_rt_module *modules;
  struct aotc_rt_registered_info *infos;
  aotc_rt_registration *registrations;
  struct aotc_rt_stand_in *stand_ins;

  atomic_size_t stand_in_count;        // changes under the lock
  _Atomic(aotc_rt_context *) contexts; // grows under the lock
} aotc_rt_state;

extern aotc_rt_state aotc_rt_state_of_process;

// Takes and gives back the state's lock.
void aotc_rt_lock(void);
void aotc_rt_unlock(void);

// -------------------------------------------------------------------------------------------------
// A call under way (device.c)

typedef struct aotc_rt_scope {
  aotc_rt_thread *thread;
  const aotc_rt_driver *driver; // NULL: the device is the CPU
  aotc_rt_context *context;     // NULL: the device is the CPU
  bool is_current;              // the thread's current context is this one
  bool is_pushed;               // because it was made so
  bool is_release;              // the call releases something
} aotc_rt_scope;

// Makes a driver call within a scope and checks it, by the rule for releasing calls if it is one.
#define AOTC_RT_TRY_IN(scope, call, arguments, ...)                                                \
  ((scope)->is_release ? aotc_rt_check_release : aotc_rt_check)(                                   \
      (scope)->driver, (scope)->driver->call arguments, AOTC_RT_CALL_##call, __VA_ARGS__)

// Begins a call: chooses the device if that was not done, and finds the context. False, with the
// failure recorded, when there is none; then the call is over. A call that began ends with
// aotc_rt_end.
bool aotc_rt_begin(aotc_rt_scope *out_scope, const char *operation);

// The same for the mgpu* functions: false when this thread has failed.
bool aotc_rt_begin_unless_failed(aotc_rt_scope *out_scope, const char *operation);

// The same for what releases: false when no device was ever chosen, as there is nothing to release
// then.
bool aotc_rt_begin_release(aotc_rt_scope *out_scope, const char *operation);

// Makes the scope's context current if it is not; does nothing on the CPU.
bool aotc_rt_make_current(aotc_rt_scope *scope);

// Ends a call; false, with the failure recorded, if the thread's context cannot be restored.
bool aotc_rt_end(aotc_rt_scope *scope);

// While some thread captures a stream, the driver refuses calls that could break the capture, such
// as loading a module. Between these two they pass: what the runtime calls there touches no such
// stream.
bool aotc_rt_capture_relax(const aotc_rt_driver *driver, CUstreamCaptureMode *out_before);
bool aotc_rt_capture_restore(const aotc_rt_driver *driver, CUstreamCaptureMode before);

// -------------------------------------------------------------------------------------------------
// Streams (stream.c)

// What a stream handle of the caller stands for.
CUstream aotc_rt_stream_of(const aotc_rt_thread *thread, void *stream);

// A stream of the pool; the context need not be current. NULL, with the failure recorded.
CUstream aotc_rt_stream_take(aotc_rt_scope *scope);
// Whether `stream` was the pool's, and is back there.
bool aotc_rt_stream_give_back(CUstream stream);

// -------------------------------------------------------------------------------------------------
// Memory (memory.c)

// Host memory aligned to 64 bytes, for free(); NULL, with the failure recorded.
void *aotc_rt_host_allocate(uint64_t bytes);

// Memref descriptors, as MLIR lays them out: sizes and strides follow the offset.
typedef struct aotc_rt_memref {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[];
} aotc_rt_memref;

#endif // AOTC_RT_STATE_H
