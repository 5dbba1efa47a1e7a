// The runtime's state: of the process, of threads, of contexts, and of calls.
#ifndef AOTC_RT_STATE_H
#define AOTC_RT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "driver.h"

// -------------------------------------------------------------------------------------------------
// Errors (error.c)

#define AOTC_RT_MESSAGE_BYTES 4096

typedef struct aotc_rt_error {
  aotc_status status;
  char message[AOTC_RT_MESSAGE_BYTES];
} aotc_rt_error;

// Describes a launch, for the message of a failure that is detected later.
#define AOTC_RT_LABEL_BYTES 64
typedef struct aotc_rt_launch_label {
  char kernel[AOTC_RT_LABEL_BYTES]; // truncated; "" if there was no launch
  uint32_t grid[3], block[3];
} aotc_rt_launch_label;

// The caller's allocator for this thread's calls; all zeros if not set.
typedef struct aotc_rt_allocator {
  aotc_allocate_function allocate;
  aotc_free_function release;
  void *data;
} aotc_rt_allocator;

typedef struct aotc_rt_workspace {
  uintptr_t start;
  uint64_t bytes, used;
} aotc_rt_workspace;

typedef struct aotc_rt_thread {
  aotc_rt_error error;   // the first failure since the last clear
  aotc_rt_error told;    // returned by the last call of an entry; does not block later calls
  aotc_rt_error aside;   // the failure that a following failed assertion is about, else AOTC_OK
  aotc_rt_error *sink;   // receives failures while something is only tried, else NULL
  aotc_status latest;    // of the latest failure, recorded or not
  const char *operation; // the public function being called, for messages
  const aotc_rt_context *context; // its context, for messages; NULL if there is none yet
  bool has_adopted_stream, synchronizes_adopted_stream;
  void *adopted_stream;
  bool is_adopted_stream_idle; // it was synchronized, and nothing was enqueued since
  bool has_default_ordinal;    // mgpuSetDefaultDevice, aotc_device_set
  bool prefers_current;        // prefers the current context to the default device
  int32_t default_ordinal;
  const char *entry;              // the entry being called, for messages
  aotc_rt_context *entry_context; // the entry's context, which is current and need not be queried
  bool has_device_results;        // the results' memory is device memory, not managed
  bool is_result_next;            // set by aotc_result_prepare for the next allocation
  aotc_rt_allocator allocator;
  aotc_rt_workspace workspace;
  struct aotc_rt_recording *recording; // of the entry's launches; NULL to launch immediately
  int launches_of_entry;               // so far
  int32_t lock_depth;                  // number of locks held: the state's, paged weights'
  bool has_untold;                     // the hook must be called once the lock is released
  aotc_rt_launch_label last_launch;
  uint64_t least_weights_budget; // needed for the skipped launches; 0 if there are none
  const void *launch_values; // set by aotc_concurrent_launch_prepare for the next launch, or NULL
  size_t launch_value_bytes;
  aotc_rt_result failed; // of the latest driver call that failed
} aotc_rt_thread;

extern _Thread_local aotc_rt_thread aotc_rt_this_thread;

// Records a failure unless one is recorded already; returns `status`.
__attribute__((format(printf, 2, 3))) aotc_status aotc_rt_fail(aotc_status status,
                                                               const char *format, ...);

// Replaces the thread's failure by one that was kept in a sink; does nothing if that is AOTC_OK.
// Returns its status.
aotc_status aotc_rt_replace_failure(const aotc_rt_error *failure);

// Calls the hook for failures that were recorded under the lock.
void aotc_rt_tell_untold(void);

// Makes sure that locks stay usable after a fork; must not be called while holding one.
void aotc_rt_fork_prepare(void);

// Keep the hook consistent across a fork.
void aotc_rt_hook_before_fork(void);
void aotc_rt_hook_after_fork(void);
void aotc_rt_unload_after_fork_in_child(void);

// Appends to the text in a buffer, truncating at the buffer's end.
__attribute__((format(printf, 3, 4))) void aotc_rt_append(char *text, size_t bytes,
                                                          const char *format, ...);

// -------------------------------------------------------------------------------------------------
// Contexts (context.c)

#define AOTC_RT_STREAMS_PER_BLOCK 32

// Streams are never destroyed: slots are acquired and released. They are looked up without a lock.
typedef struct aotc_rt_stream_block {
  struct {
    _Atomic(aotc_rt_stream) stream; // NULL until it is created; never changes afterwards
    atomic_bool is_taken;
  } slots[AOTC_RT_STREAMS_PER_BLOCK];
  _Atomic(struct aotc_rt_stream_block *) next;
} aotc_rt_stream_block;

// Unused staging buffers, in size classes: four for each power of 2.
#define AOTC_RT_STAGING_CLASSES 256
typedef struct aotc_rt_staging_buffer aotc_rt_staging_buffer;
typedef struct aotc_rt_staging {
  aotc_rt_staging_buffer *unused[3][AOTC_RT_STAGING_CLASSES]; // by aotc_memory_kind
} aotc_rt_staging;

// A context that was used. Added under the lock, looked up without it, freed by aotc_unload. A
// driver's own context struct starts with this one.
struct aotc_rt_context {
  aotc_rt_context *next; // does not change after the context was added
  aotc_rt_context_handle handle;
  atomic_bool is_gone;
  bool is_primary; // the device's shared context, which cannot be destroyed while retained
  aotc_device description;
  aotc_rt_stream_block streams;
  aotc_rt_staging staging;                             // has its own lock
  struct aotc_rt_kept_graph *graphs;                   // likewise
  struct aotc_rt_uploads *uploads;                     // likewise
  _Atomic(struct aotc_rt_weight_pages *) weight_pages; // NULL until weights with a budget are used
  atomic_bool has_paged_weights;                       // the weights do not all fit
};

// As one number: 90 for 9.0.
int32_t aotc_rt_capability(const aotc_device *description);

// Finds a context that was used before, or NULL. Needs no lock.
aotc_rt_context *aotc_rt_context_find(const aotc_rt_driver *driver, aotc_rt_context_handle handle);
aotc_rt_context *aotc_rt_context_find_primary(int32_t ordinal);
aotc_rt_context *aotc_rt_context_find_any(void);

// The object of `current` (the thread's current context), or of the primary context of device
// `ordinal`. Under the lock. NULL, with the failure recorded.
aotc_rt_context *aotc_rt_context_of_locked(const aotc_rt_driver *driver,
                                           aotc_rt_context_handle current);
aotc_rt_context *aotc_rt_context_primary_locked(const aotc_rt_driver *driver, int32_t ordinal);

// Discards a context in which the program's images failed to load.
void aotc_rt_context_drop_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// Whether the context still exists: a foreign one may have been destroyed.
bool aotc_rt_context_is_alive(const aotc_rt_driver *driver, aotc_rt_context *context);

// Makes a context current in order to release its objects; false if it is destroyed, or with the
// failure recorded.
bool aotc_rt_context_enter_to_release(const aotc_rt_driver *driver, aotc_rt_context *context,
                                      const char *why);

typedef struct aotc_rt_state aotc_rt_state;

// -------------------------------------------------------------------------------------------------
// Modules and kernels (module.c, module_load.c, kernel.c)

// The sizes of a kernel's parameters, and the total with each aligned to a slot.
#define AOTC_RT_SLOT_BYTES 8
typedef struct aotc_rt_parameters {
  uint32_t count;
  size_t recorded_bytes;
  uint32_t bytes[];
} aotc_rt_parameters;

// A kernel in one context. Added under the lock, looked up without it.
struct aotc_rt_binding {
  aotc_rt_binding *next;
  const aotc_rt_context *context;
  aotc_rt_function function;
  bool uses_pdl;                            // the kernel itself waits for the one before it
  atomic_int dynamic_shared_limit;          // the current limit of the function
  atomic_bool allows_large_clusters;        // clusters of more than 8 blocks
  _Atomic(aotc_rt_parameters *) parameters; // NULL until they are queried
};

struct aotc_rt_kernel {
  aotc_rt_kernel *next;
  aotc_rt_module *module;
  _Atomic(aotc_rt_binding *) bindings;
  _Atomic(const aotc_cpu_kernel *) cpu;
  char label[AOTC_RT_LABEL_BYTES]; // the name, truncated to this size
  char name[];
};

// Binds the kernel to the current context, and loads its module first if necessary. NULL, with the
// failure recorded.
aotc_rt_binding *aotc_rt_kernel_bind(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                     aotc_rt_context *context);

// The kernel's parameters; NULL, with no failure recorded, if the driver does not report them.
const aotc_rt_parameters *aotc_rt_binding_parameters(const aotc_rt_driver *driver,
                                                     aotc_rt_binding *binding);

// Passes a launch with checked sizes and a prepared function to the driver (launch.c).
bool aotc_rt_launch_now(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                        const aotc_rt_binding *binding, aotc_rt_stream stream);

// A deferred launch (graphs.c); the values of its parameters are stored separately.
typedef struct aotc_rt_recorded {
  aotc_rt_launch launch;
  aotc_rt_binding *binding;
  size_t values_at, value_bytes;
} aotc_rt_recorded;
typedef struct aotc_rt_recording aotc_rt_recording;

// The kernel's CPU form; NULL, with AOTC_NO_CPU_KERNEL recorded, if it has none.
const aotc_cpu_kernel *aotc_rt_kernel_cpu_form(aotc_rt_kernel *kernel);

// The name of a kernel's module in messages.
const char *aotc_rt_module_name(const aotc_rt_module *module);
const char *aotc_rt_module_built_for(const aotc_rt_module *module);

// Loads every module of the program into the current context.
bool aotc_rt_modules_load_all_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// Unloads every module from the current context, which is being discarded.
void aotc_rt_modules_drop_locked(const aotc_rt_driver *driver, const aotc_rt_context *context);

// Unloads every module from all contexts; the registrations stay.
void aotc_rt_modules_unload_locked(aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// The process (device.c)

typedef enum aotc_rt_phase {
  AOTC_RT_UNRESOLVED = 0, // no device has been needed so far
  AOTC_RT_ON_CPU,
  AOTC_RT_ON_GPU,
  AOTC_RT_FORKED, // forked from a process that used a GPU: the driver must not be called
} aotc_rt_phase;

typedef enum aotc_rt_wish {
  AOTC_RT_AUTO = 0,
  AOTC_RT_GPU,
  AOTC_RT_GPU_ORDINAL,
  AOTC_RT_CPU
} aotc_rt_wish;

typedef struct aotc_rt_request {
  aotc_rt_wish wish;
  int32_t ordinal; // for AOTC_RT_GPU_ORDINAL
} aotc_rt_request;

// A range of host memory that was registered, or that was accessible to the GPU already.
typedef struct aotc_rt_registration {
  struct aotc_rt_registration *next;
  uintptr_t start;
  uint64_t bytes;
  int64_t count;
  bool is_ours; // registered here, so it must be unregistered
} aotc_rt_registration;

#define AOTC_RT_CALLER_MEMORY_BUCKETS 64

struct aotc_rt_state {
  // Held while selecting the device, loading modules, binding kernels, registering memory; not for
  // launching.
  pthread_mutex_t lock;

  _Atomic(aotc_rt_phase) phase;
  // Written under the lock before `phase` leaves AOTC_RT_UNRESOLVED, constant afterwards.
  aotc_rt_request choice;
  aotc_device device;
  bool checks_launches;         // AOTC_CHECK=1
  bool uses_graphs;             // the driver supports them, and AOTC_GRAPHS=0 is not set
  uint64_t weights_budget;      // for each device; 0 for no budget
  bool has_weights_budget;      // set by the program
  const aotc_rt_driver *driver; // NULL until one has started
  aotc_rt_driver_facts facts;   // of the driver

  // Protected by the lock.
  bool has_request;
  aotc_rt_request request; // by aotc_device_request
  bool is_driver_lost;     // the driver was started in the parent process, before a fork
  aotc_rt_module *modules;
  struct aotc_rt_registered_info *infos;
  aotc_rt_registration *registrations;
  struct aotc_rt_stand_in *stand_ins;
  struct aotc_constant *constants; // the constants with copies
  struct aotc_rt_constant_block *constant_blocks;
  struct aotc_rt_weights_file *weights_files; // the mapped files
  struct aotc_rt_caller_memory *caller_memory[AOTC_RT_CALLER_MEMORY_BUCKETS];

  atomic_size_t stand_in_count;        // changed under the lock
  atomic_size_t caller_memory_count;   // likewise
  _Atomic(aotc_rt_context *) contexts; // added to under the lock
};

extern aotc_rt_state aotc_rt_state_of_process;

// Lock and unlock the state.
void aotc_rt_lock(void);
void aotc_rt_unlock(void);

// Records that the driver cannot be used in this process, because it was forked.
aotc_status aotc_rt_fail_forked(void);

// Selects the device if none is selected yet; false, with the failure recorded.
bool aotc_rt_resolve(void);

// The device requested by number, by the user or otherwise by the program.
bool aotc_rt_wanted_ordinal(const aotc_rt_request *request, const aotc_rt_thread *thread,
                            int32_t *out_ordinal);
// Whether the wanted device takes precedence over the current context's device.
bool aotc_rt_outranks_current(const aotc_rt_request *request, const aotc_rt_thread *thread);
// Whether the driver has a GPU of this ordinal; false, with the failure recorded.
bool aotc_rt_check_ordinal(int32_t ordinal);
// The driver to release objects with; NULL after a fork, when it must not be called.
const aotc_rt_driver *aotc_rt_driver_to_release(const aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// A call under way (scope.c)

typedef struct aotc_rt_scope {
  aotc_rt_thread *thread;
  const aotc_rt_driver *driver; // NULL if the device is the CPU
  aotc_rt_context *context;     // NULL if the device is the CPU
  bool is_current;              // the context is the thread's current one
  bool is_pushed;               // it was made current by the scope
  bool is_release;              // the call releases something
} aotc_rt_scope;

// Makes a driver call within a scope and checks it; in a scope that releases something, by the rule
// for releasing calls.
#define AOTC_RT_TRY_IN(scope, call, ...)                                                           \
  (aotc_rt_is_success((scope)->driver->call)                                                       \
       ? true                                                                                      \
       : ((scope)->is_release ? aotc_rt_check_release                                              \
                              : aotc_rt_check)((scope)->driver, aotc_rt_failed(), __VA_ARGS__))

// Begins a call: selects the device if necessary, and finds the context. False, with the failure
// recorded, if there is none; then the call has ended. Otherwise aotc_rt_end must be called.
bool aotc_rt_begin(aotc_rt_scope *out_scope, const char *operation);

// The same for work on a caller's stream: a thread without a current context uses the stream's
// context.
bool aotc_rt_begin_on_stream(aotc_rt_scope *out_scope, const char *operation,
                             aotc_rt_stream stream);

// The same for the mgpu* functions: false if this thread has failed.
bool aotc_rt_begin_unless_failed(aotc_rt_scope *out_scope, const char *operation);

// The same for releasing: false if no device was ever selected, because then there is nothing to
// release.
bool aotc_rt_begin_release(aotc_rt_scope *out_scope, const char *operation);

// Makes the scope's context current if necessary; does nothing on the CPU.
bool aotc_rt_make_current(aotc_rt_scope *scope);

// Ends a call; false, with the failure recorded, if the thread's context cannot be restored.
bool aotc_rt_end(aotc_rt_scope *scope);

// While a thread captures a stream, the driver rejects calls that could invalidate the capture,
// such as loading a module. Between these two functions such calls are allowed: the runtime's calls
// do not affect captured streams.
bool aotc_rt_capture_relax(const aotc_rt_driver *driver, aotc_rt_capture_mode *out_before);
bool aotc_rt_capture_restore(const aotc_rt_driver *driver, aotc_rt_capture_mode before);

// -------------------------------------------------------------------------------------------------
// Streams (stream.c)

// Converts a stream handle of the caller.
aotc_rt_stream aotc_rt_stream_of(const aotc_rt_thread *thread, void *stream);

// The same for work that will be waited for.
aotc_rt_stream aotc_rt_stream_for_work(aotc_rt_thread *thread, void *stream);

// Takes a stream of the pool; the context need not be current. NULL, with the failure recorded.
aotc_rt_stream aotc_rt_stream_take(aotc_rt_scope *scope);
// Returns a stream to the pool; false if it is not the pool's.
bool aotc_rt_stream_give_back(aotc_rt_stream stream);

// Destroys the pool's streams; the context is current. Without a driver they are only forgotten.
void aotc_rt_streams_unload(const aotc_rt_driver *driver, aotc_rt_context *context);

// -------------------------------------------------------------------------------------------------
// Memory (memory.c)

// Allocations of zero bytes get one byte: the driver rejects zero, and memrefs without elements
// need a pointer, too.
static inline size_t aotc_rt_at_least_one(uint64_t bytes) {
  return bytes > 0 ? (size_t)bytes : 1;
}

// Host memory aligned to 64 bytes, for free(); NULL, with the failure recorded.
void *aotc_rt_host_allocate(uint64_t bytes);

// Frees the kept memory of the CPU device.
void aotc_rt_host_unload(void);

// Queries the driver for the location of a pointer.
bool aotc_rt_pointer_locate(aotc_rt_scope *scope, const void *pointer, aotc_rt_place *out_place);

// Frees device memory in the order of a stream, if possible; the context is current.
bool aotc_rt_release_in_order(aotc_rt_scope *scope, void *pointer, aotc_rt_stream stream);

// Frees memory of any kind, as determined by the driver. With a stream, it is freed in stream order
// if possible.
aotc_status aotc_rt_memory_free_anywhere(void *allocated, aotc_rt_stream stream);

// -------------------------------------------------------------------------------------------------
// Memory from callers (caller_memory.c)

// Allocates with the thread's allocator, which must be set; the context is current. NULL, with the
// failure recorded.
void *aotc_rt_caller_allocate(const aotc_rt_scope *scope, uint64_t bytes, aotc_rt_stream stream);

// False if `pointer` is not from a caller's allocator. NULL: the caller knows the order of its
// work.
bool aotc_rt_caller_free(const void *pointer, aotc_rt_stream stream);

// Takes all memory from callers' allocators; the second function frees it, without the lock.
struct aotc_rt_caller_memory *aotc_rt_caller_memory_take_locked(aotc_rt_state *state);
void aotc_rt_caller_memory_unload(struct aotc_rt_caller_memory *all);

// Takes memory of the workspace for the rest of the call; NULL if there is not enough.
void *aotc_rt_workspace_take(aotc_rt_thread *thread, uint64_t bytes);
bool aotc_rt_workspace_has(const aotc_rt_thread *thread, const void *pointer);

// -------------------------------------------------------------------------------------------------
// Stand-ins for managed memory that could not be allocated (stand_in.c)

// Zeroed host memory; NULL, with no failure recorded, if there is none.
void *aotc_rt_stand_in_allocate(uint64_t bytes);
// False if `pointer` is not a stand-in.
bool aotc_rt_stand_in_release(void *pointer);

// Frees all stand-ins.
void aotc_rt_stand_ins_unload_locked(aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// Memrefs (memref.c)

// MLIR's memref descriptors; the sizes and the strides follow the offset.
typedef struct aotc_rt_memref {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[];
} aotc_rt_memref;

// The range of bytes a memref accesses, from its lowest to its highest element; 0 bytes if it has
// none. False if the sizes and strides are invalid.
bool aotc_rt_measure(int64_t rank, const aotc_rt_memref *memref, int64_t element_bytes,
                     uintptr_t *out_start, uint64_t *out_bytes);

// -------------------------------------------------------------------------------------------------
// Host memory that a GPU can access (registration.c)

// Forgets all registrations. With a driver also unregisters them; a context is current then.
void aotc_rt_registrations_unload_locked(aotc_rt_state *state, const aotc_rt_driver *driver);

// -------------------------------------------------------------------------------------------------
// Constants (constants.c, constant_forms.c, constant_replace.c)

// The address of the constant, with its data at `data`, for kernels: like aotc_constant_get.
void *aotc_rt_constant_copy_of(aotc_constant *constant, const void *data);

// How a constant's copy on the CPU device is transformed.
typedef struct aotc_rt_constant_form aotc_rt_constant_form;
extern const aotc_rt_constant_form aotc_rt_constant_packed;
extern const aotc_rt_constant_form aotc_rt_constant_transposed;
extern const aotc_rt_constant_form aotc_rt_constant_grouped_words;
extern const aotc_rt_constant_form aotc_rt_constant_grouped_halves;
extern const aotc_rt_constant_form aotc_rt_constant_grouped_bytes;
extern const aotc_rt_constant_form aotc_rt_constant_winograd;

// Like aotc_constant_get_packed, for data at `data`, in the given form.
void *aotc_rt_constant_in_form(aotc_constant *constant, const void *data, uint64_t rows,
                               const aotc_rt_constant_form *form);

// Whether any context has a copy.
bool aotc_rt_constant_is_copied(const aotc_constant *constant);

// Whether a program has replaced the constant's data.
bool aotc_rt_constant_is_replaced(const aotc_constant *constant);

// Replaces the constant's data by data in memory of any kind. No call that reads it may be running.
aotc_status aotc_rt_constant_replace(aotc_constant *constant, const void *data);

// Restores the original data, at `data`, of a replaced constant; on a GPU the address stays the
// same.
aotc_status aotc_rt_constant_restore(aotc_constant *constant, const void *data);

// The location of a replaced constant's data: in host memory if there is a copy there, else on a
// device. NULL for other constants.
const void *aotc_rt_constant_source(const aotc_constant *constant);

// The data of a replaced constant, in host memory; NULL, with the failure recorded.
const void *aotc_rt_constant_in_host_memory(aotc_constant *constant);

// The number of bytes of a constant that are copied to a device at a time.
#define AOTC_RT_PIECE_BYTES ((uint64_t)32 << 20)

// Ask the system to read a part of a mapped weights file ahead, and to drop it from the process's
// memory after use; the page cache keeps it. No effect on other memory.
void aotc_rt_weights_read_ahead_locked(const void *data, uint64_t bytes);
void aotc_rt_weights_forget_locked(const void *data, uint64_t bytes);

// Moves the copies of a constant to another one, which has none.
void aotc_rt_constant_move_locked(aotc_constant *from, aotc_constant *to);

// Like aotc_constant_release.
void aotc_rt_constant_release_locked(aotc_constant *constant);

// Like aotc_rt_constant_replace, for a weight (weights.c).
aotc_status aotc_rt_weight_replace(aotc_weight *weight, const void *data);

// The weight's data in its file (weights.c), even if replaced; zeros, with the failure recorded.
const void *aotc_rt_weight_in_file(aotc_weight *weight);

// Frees the copies of all constants. Without a driver they are only forgotten.
void aotc_rt_constants_unload_locked(aotc_rt_state *state);

#endif // AOTC_RT_STATE_H
