// What the runtime knows: the state of the process, of a thread, of a context, of a call.
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

// What a launch was, for the message of a failure that surfaces later.
#define AOTC_RT_LABEL_BYTES 64
typedef struct aotc_rt_launch_label {
  char kernel[AOTC_RT_LABEL_BYTES]; // cut, "" when there was no launch
  uint32_t grid[3], block[3];
} aotc_rt_launch_label;

// What a caller gave for the memory of this thread's calls; all zeros: nothing.
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
  aotc_rt_error told;    // of the last call of an entry: its status was returned, it stops nothing
  aotc_rt_error aside;   // what an assertion that fails next is about, else AOTC_OK
  aotc_rt_error *sink;   // where failures go instead while something is only tried, else NULL
  aotc_status latest;    // of the latest failure, recorded or not
  const char *operation; // the public function under way, for messages
  const aotc_rt_context *context; // its context, for messages; NULL while there is none
  bool has_adopted_stream, synchronizes_adopted_stream;
  void *adopted_stream;
  bool is_adopted_stream_idle; // waited for, and nothing was enqueued there since
  bool has_default_ordinal;    // mgpuSetDefaultDevice, aotc_device_set
  bool prefers_current;        // to the default device: the context that is current
  int32_t default_ordinal;
  const char *entry;              // the entry under way, for messages
  aotc_rt_context *entry_context; // what it runs in: current, so that nobody need ask
  bool has_device_results;        // the memory that it returns is the device's, not managed
  bool is_result_next;            // of aotc_result_prepare, for the next allocation
  aotc_rt_allocator allocator;
  aotc_rt_workspace workspace;
  struct aotc_rt_recording *recording; // of the entry's launches; NULL: each is launched at once
  int launches_of_entry;               // so far
  int32_t lock_depth;                  // of locks: the state's, of weights under a budget
  bool has_untold;                     // a failure that the hook is to hear of after the lock
  aotc_rt_launch_label last_launch;
  uint64_t least_weights_budget; // for the launches that were left out; 0: there is none
  const void *launch_values; // of aotc_concurrent_launch_prepare, for the next launch; else NULL
  size_t launch_value_bytes;
  aotc_rt_result failed; // of the latest call of a driver that failed
} aotc_rt_thread;

extern _Thread_local aotc_rt_thread aotc_rt_this_thread;

// Records a failure unless there is one already; returns `status`.
__attribute__((format(printf, 2, 3))) aotc_status aotc_rt_fail(aotc_status status,
                                                               const char *format, ...);

// Makes a failure that was kept apart (in a sink) the thread's, in place of an earlier one; nothing
// happens if there is none. Returns its status.
aotc_status aotc_rt_replace_failure(const aotc_rt_error *failure);

// Tells the hook of what was recorded under the lock.
void aotc_rt_tell_untold(void);

// Sees to it that forks leave the locks in order; not to be called under one.
void aotc_rt_fork_prepare(void);

// Keep the hook right over a fork.
void aotc_rt_hook_before_fork(void);
void aotc_rt_hook_after_fork(void);

// Appends to the text in a buffer, and cuts it at the buffer's end.
__attribute__((format(printf, 3, 4))) void aotc_rt_append(char *text, size_t bytes,
                                                          const char *format, ...);

// -------------------------------------------------------------------------------------------------
// Contexts (context.c)

#define AOTC_RT_STREAMS_PER_BLOCK 32

// Streams are never destroyed; a slot is taken and given back. Slots are found without a lock.
typedef struct aotc_rt_stream_block {
  struct {
    _Atomic(aotc_rt_stream) stream; // NULL until one is made, then it stays
    atomic_bool is_taken;
  } slots[AOTC_RT_STREAMS_PER_BLOCK];
  _Atomic(struct aotc_rt_stream_block *) next;
} aotc_rt_stream_block;

// Buffers that calls of entries copy to; by the power of 2 of their size, in steps of a quarter.
#define AOTC_RT_STAGING_CLASSES 256
typedef struct aotc_rt_staging_buffer aotc_rt_staging_buffer;
typedef struct aotc_rt_staging {
  aotc_rt_staging_buffer *unused[3][AOTC_RT_STAGING_CLASSES]; // by aotc_memory_kind
} aotc_rt_staging;

// A context that was used. Made under the lock, found without it, freed by aotc_unload. A driver's
// own context begins with one.
struct aotc_rt_context {
  aotc_rt_context *next; // does not change once the context can be found
  aotc_rt_context_handle handle;
  atomic_bool is_gone;
  bool is_primary; // the one that programs share on a device: open, it cannot go away
  aotc_device description;
  aotc_rt_stream_block streams;
  aotc_rt_staging staging;                             // under a lock of its own
  struct aotc_rt_kept_graph *graphs;                   // likewise
  struct aotc_rt_uploads *uploads;                     // likewise
  _Atomic(struct aotc_rt_weight_pages *) weight_pages; // NULL: no weights with a budget were used
  atomic_bool has_paged_weights;                       // some do not fit into it
};

// As one number: 90 for 9.0.
int32_t aotc_rt_capability(const aotc_device *description);

// A context that was used before; NULL if it was not. No lock is needed.
aotc_rt_context *aotc_rt_context_find(const aotc_rt_driver *driver, aotc_rt_context_handle handle);
aotc_rt_context *aotc_rt_context_find_primary(int32_t ordinal);
aotc_rt_context *aotc_rt_context_find_any(void);

// The context of `current` (a thread's current context), or the primary context of device
// `ordinal`. Under the lock. NULL, with the failure recorded, if there is none.
aotc_rt_context *aotc_rt_context_of_locked(const aotc_rt_driver *driver,
                                           aotc_rt_context_handle current);
aotc_rt_context *aotc_rt_context_primary_locked(const aotc_rt_driver *driver, int32_t ordinal);

// Gives up a context on which the program's images did not load.
void aotc_rt_context_drop_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// Whether the context still exists: somebody else's may have been destroyed.
bool aotc_rt_context_is_alive(const aotc_rt_driver *driver, aotc_rt_context *context);

// Makes a context current to give back what is in it; false if it is gone, or with the failure
// recorded.
bool aotc_rt_context_enter_to_release(const aotc_rt_driver *driver, aotc_rt_context *context,
                                      const char *why);

typedef struct aotc_rt_state aotc_rt_state;

// -------------------------------------------------------------------------------------------------
// Modules and kernels (module.c, module_load.c, kernel.c)

// The bytes of a kernel's parameters, and of all when each begins at a slot.
#define AOTC_RT_SLOT_BYTES 8
typedef struct aotc_rt_parameters {
  uint32_t count;
  size_t recorded_bytes;
  uint32_t bytes[];
} aotc_rt_parameters;

// A kernel on one context. Made under the lock, found without it.
struct aotc_rt_binding {
  aotc_rt_binding *next;
  const aotc_rt_context *context;
  aotc_rt_function function;
  bool uses_pdl;                            // it waits itself for the kernel before it
  atomic_int dynamic_shared_limit;          // what the function may be launched with as it is now
  atomic_bool allows_large_clusters;        // clusters of more than 8 blocks
  _Atomic(aotc_rt_parameters *) parameters; // NULL: not asked for
};

struct aotc_rt_kernel {
  aotc_rt_kernel *next;
  aotc_rt_module *module;
  _Atomic(aotc_rt_binding *) bindings;
  _Atomic(const aotc_cpu_kernel *) cpu;
  char label[AOTC_RT_LABEL_BYTES]; // the name, cut to this size
  char name[];
};

// Finds the kernel on the context, after loading its module there if need be; the context is
// current. NULL, with the failure recorded.
aotc_rt_binding *aotc_rt_kernel_bind(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                     aotc_rt_context *context);

// What the kernel's parameters are; NULL, with nothing recorded, if the driver does not tell.
const aotc_rt_parameters *aotc_rt_binding_parameters(const aotc_rt_driver *driver,
                                                     aotc_rt_binding *binding);

// Hands a launch, whose sizes and function were prepared for it, to the driver (launch.c).
bool aotc_rt_launch_now(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                        const aotc_rt_binding *binding, aotc_rt_stream stream);

// A launch for later (graphs.c): the values of its parameters are elsewhere.
typedef struct aotc_rt_recorded {
  aotc_rt_launch launch;
  aotc_rt_binding *binding;
  size_t values_at, value_bytes;
} aotc_rt_recorded;
typedef struct aotc_rt_recording aotc_rt_recording;

// The kernel's CPU form; NULL, with AOTC_NO_CPU_KERNEL recorded, if it has none.
const aotc_cpu_kernel *aotc_rt_kernel_cpu_form(aotc_rt_kernel *kernel);

// What messages say of the module of a kernel.
const char *aotc_rt_module_name(const aotc_rt_module *module);
const char *aotc_rt_module_built_for(const aotc_rt_module *module);

// Loads every module of the program on the context, which is current.
bool aotc_rt_modules_load_all_locked(const aotc_rt_driver *driver, aotc_rt_context *context);

// Unloads every module from a context that is to be given up; it is current.
void aotc_rt_modules_drop_locked(const aotc_rt_driver *driver, const aotc_rt_context *context);

// Unloads every module from everywhere; what was registered stays.
void aotc_rt_modules_unload_locked(aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// The process (device.c)

typedef enum aotc_rt_phase {
  AOTC_RT_UNRESOLVED = 0, // no device was needed so far
  AOTC_RT_ON_CPU,
  AOTC_RT_ON_GPU,
  AOTC_RT_FORKED, // from a process that was on a GPU: there is nothing to call any more
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

// A range of host memory that was registered, or that the GPU reached already.
typedef struct aotc_rt_registration {
  struct aotc_rt_registration *next;
  uintptr_t start;
  uint64_t bytes;
  int64_t count;
  bool is_ours; // registered here, to be unregistered here
} aotc_rt_registration;

#define AOTC_RT_CALLER_MEMORY_BUCKETS 64

struct aotc_rt_state {
  // Taken to choose the device, load modules, bind kernels, register memory; not to launch.
  pthread_mutex_t lock;

  _Atomic(aotc_rt_phase) phase;
  // Written under the lock before `phase` leaves AOTC_RT_UNRESOLVED, constant afterwards.
  aotc_rt_request choice;
  aotc_device device;
  bool checks_launches;         // AOTC_CHECK=1
  bool uses_graphs;             // of launches; the driver has them, and not AOTC_GRAPHS=0
  uint64_t weights_budget;      // of each device; 0: there is none
  bool has_weights_budget;      // the program has set it
  const aotc_rt_driver *driver; // NULL until one has started
  aotc_rt_driver_facts facts;   // of the driver

  // Under the lock.
  bool has_request;
  aotc_rt_request request; // of aotc_device_request
  bool is_driver_lost;     // it was started before the fork that made this process
  aotc_rt_module *modules;
  struct aotc_rt_registered_info *infos;
  aotc_rt_registration *registrations;
  struct aotc_rt_stand_in *stand_ins;
  struct aotc_constant *constants; // those that have copies
  struct aotc_rt_constant_block *constant_blocks;
  struct aotc_rt_weights_file *weights_files; // those that are mapped
  struct aotc_rt_caller_memory *caller_memory[AOTC_RT_CALLER_MEMORY_BUCKETS];

  atomic_size_t stand_in_count;        // changes under the lock
  atomic_size_t caller_memory_count;   // likewise
  _Atomic(aotc_rt_context *) contexts; // grows under the lock
};

extern aotc_rt_state aotc_rt_state_of_process;

// Takes and gives back the state's lock.
void aotc_rt_lock(void);
void aotc_rt_unlock(void);

// Records that the driver did not come along into this process, a child.
aotc_status aotc_rt_fail_forked(void);

// Chooses the device if that was not done; false, with the failure recorded.
bool aotc_rt_resolve(void);

// The device that is asked for by number, by the user first, else by the program.
bool aotc_rt_wanted_ordinal(const aotc_rt_request *request, const aotc_rt_thread *thread,
                            int32_t *out_ordinal);
// Whether a context of another device that is current gives way to the wanted device.
bool aotc_rt_outranks_current(const aotc_rt_request *request, const aotc_rt_thread *thread);
// Whether the driver has the GPU; false, with the failure recorded.
bool aotc_rt_check_ordinal(int32_t ordinal);
// The driver that gives back what it has; NULL after a fork: then there is nothing to ask.
const aotc_rt_driver *aotc_rt_driver_to_release(const aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// A call under way (scope.c)

typedef struct aotc_rt_scope {
  aotc_rt_thread *thread;
  const aotc_rt_driver *driver; // NULL: the device is the CPU
  aotc_rt_context *context;     // NULL: the device is the CPU
  bool is_current;              // the thread's current context is this one
  bool is_pushed;               // because it was made so
  bool is_release;              // the call releases something
} aotc_rt_scope;

// Makes a call of the driver within a scope and checks it, by the rule for releasing calls if it is
// one.
#define AOTC_RT_TRY_IN(scope, call, ...)                                                           \
  (aotc_rt_is_success((scope)->driver->call)                                                       \
       ? true                                                                                      \
       : ((scope)->is_release ? aotc_rt_check_release                                              \
                              : aotc_rt_check)((scope)->driver, aotc_rt_failed(), __VA_ARGS__))

// Begins a call: chooses the device if that was not done, and finds the context. False, with the
// failure recorded, when there is none; then the call is over. A call that began ends with
// aotc_rt_end.
bool aotc_rt_begin(aotc_rt_scope *out_scope, const char *operation);

// The same for work on a stream of the caller's: on a thread without a current context, it is done
// in the stream's.
bool aotc_rt_begin_on_stream(aotc_rt_scope *out_scope, const char *operation,
                             aotc_rt_stream stream);

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
bool aotc_rt_capture_relax(const aotc_rt_driver *driver, aotc_rt_capture_mode *out_before);
bool aotc_rt_capture_restore(const aotc_rt_driver *driver, aotc_rt_capture_mode before);

// -------------------------------------------------------------------------------------------------
// Streams (stream.c)

// What a stream handle of the caller stands for.
aotc_rt_stream aotc_rt_stream_of(const aotc_rt_thread *thread, void *stream);

// The same for work that somebody will wait for.
aotc_rt_stream aotc_rt_stream_for_work(aotc_rt_thread *thread, void *stream);

// A stream of the pool; the context need not be current. NULL, with the failure recorded.
aotc_rt_stream aotc_rt_stream_take(aotc_rt_scope *scope);
// Whether `stream` was the pool's, and is back there.
bool aotc_rt_stream_give_back(aotc_rt_stream stream);

// Destroys the pool's streams; the context is current. Without a driver they are only forgotten.
void aotc_rt_streams_unload(const aotc_rt_driver *driver, aotc_rt_context *context);

// -------------------------------------------------------------------------------------------------
// Memory (memory.c)

// Memory of no bytes gets one: the driver refuses none, and memrefs without elements need a pointer
// too.
static inline size_t aotc_rt_at_least_one(uint64_t bytes) {
  return bytes > 0 ? (size_t)bytes : 1;
}

// Host memory aligned to 64 bytes, for free(); NULL, with the failure recorded.
void *aotc_rt_host_allocate(uint64_t bytes);

// Frees what is kept of the CPU device's memory.
void aotc_rt_host_unload(void);

// Where a pointer leads, as the driver says.
bool aotc_rt_pointer_locate(aotc_rt_scope *scope, const void *pointer, aotc_rt_place *out_place);

// Frees the device's memory, if it can be in the order of a stream; the context is current.
bool aotc_rt_release_in_order(aotc_rt_scope *scope, void *pointer, aotc_rt_stream stream);

// Frees memory of any kind: the driver says which it is. With a stream, what can be is freed in its
// order.
aotc_status aotc_rt_memory_free_anywhere(void *allocated, aotc_rt_stream stream);

// -------------------------------------------------------------------------------------------------
// Memory that callers give (caller_memory.c)

// Memory of the thread's allocator, which it has; the context is current. NULL, with the failure
// recorded.
void *aotc_rt_caller_allocate(const aotc_rt_scope *scope, uint64_t bytes, aotc_rt_stream stream);

// False when `pointer` is of no caller's allocator. NULL: the caller knows the order of its work.
bool aotc_rt_caller_free(const void *pointer, aotc_rt_stream stream);

// All that allocators of callers gave; then frees it, without the lock.
struct aotc_rt_caller_memory *aotc_rt_caller_memory_take_locked(aotc_rt_state *state);
void aotc_rt_caller_memory_unload(struct aotc_rt_caller_memory *all);

// Memory of the workspace, for the rest of the call; NULL if it has no room.
void *aotc_rt_workspace_take(aotc_rt_thread *thread, uint64_t bytes);
bool aotc_rt_workspace_has(const aotc_rt_thread *thread, const void *pointer);

// -------------------------------------------------------------------------------------------------
// Stand-ins for host-shared memory that is not there (stand_in.c)

// Zeros of the host's; NULL, with nothing recorded, if there is no memory for them.
void *aotc_rt_stand_in_allocate(uint64_t bytes);
// False when `pointer` is no stand-in.
bool aotc_rt_stand_in_release(void *pointer);

// Frees all stand-ins.
void aotc_rt_stand_ins_unload_locked(aotc_rt_state *state);

// -------------------------------------------------------------------------------------------------
// Memrefs (memref.c)

// Memref descriptors, as MLIR lays them out: sizes and strides follow the offset.
typedef struct aotc_rt_memref {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[];
} aotc_rt_memref;

// The bytes that a memref reaches, from its lowest element to its highest; 0 bytes when it has
// none. False when its sizes and strides make no sense.
bool aotc_rt_measure(int64_t rank, const aotc_rt_memref *memref, int64_t element_bytes,
                     uintptr_t *out_start, uint64_t *out_bytes);

// -------------------------------------------------------------------------------------------------
// Host memory that a GPU reaches (registration.c)

// Forgets what was registered. With a driver it is undone, too: a context is current then.
void aotc_rt_registrations_unload_locked(aotc_rt_state *state, const aotc_rt_driver *driver);

// -------------------------------------------------------------------------------------------------
// Constants (constants.c, constant_forms.c, constant_replace.c)

// The constant's data, which are at `data`, where kernels reach them: as aotc_constant_get.
void *aotc_rt_constant_copy_of(aotc_constant *constant, const void *data);

// How a constant's copy on the CPU device is made.
typedef struct aotc_rt_constant_form aotc_rt_constant_form;
extern const aotc_rt_constant_form aotc_rt_constant_packed;
extern const aotc_rt_constant_form aotc_rt_constant_winograd;

// As aotc_constant_get_packed, of data at `data`, in that form.
void *aotc_rt_constant_in_form(aotc_constant *constant, const void *data, uint64_t rows,
                               const aotc_rt_constant_form *form);

// Whether some context has a copy.
bool aotc_rt_constant_is_copied(const aotc_constant *constant);

// Whether a program has given the constant other data.
bool aotc_rt_constant_is_replaced(const aotc_constant *constant);

// Copies other data, in memory of any kind, to the constant's place. No call that reads it may be
// under way.
aotc_status aotc_rt_constant_replace(aotc_constant *constant, const void *data);

// Lets a constant that was replaced have its own data, which are at `data`, again: on a GPU at the
// same address.
aotc_status aotc_rt_constant_restore(aotc_constant *constant, const void *data);

// Where the data are of a constant that was replaced: in host memory, if they are there, else on a
// device. NULL for another.
const void *aotc_rt_constant_source(const aotc_constant *constant);

// The data of a constant that was replaced, in host memory; NULL, with the failure recorded.
const void *aotc_rt_constant_in_host_memory(aotc_constant *constant);

// The bytes that a constant is copied to a device at once.
#define AOTC_RT_PIECE_BYTES ((uint64_t)32 << 20)

// Lets the system read a part of a mapped file of weights before it is needed, and take it out of
// the process's memory when it is not: the page cache keeps it. Nothing happens for other memory.
void aotc_rt_weights_read_ahead_locked(const void *data, uint64_t bytes);
void aotc_rt_weights_forget_locked(const void *data, uint64_t bytes);

// Moves the copies of one constant to another, which has none.
void aotc_rt_constant_move_locked(aotc_constant *from, aotc_constant *to);

// As aotc_constant_release.
void aotc_rt_constant_release_locked(aotc_constant *constant);

// As aotc_rt_constant_replace, for a weight (weights.c).
aotc_status aotc_rt_weight_replace(aotc_weight *weight, const void *data);

// The weight's data in its file (weights.c), replaced or not; zeros, with the failure recorded.
const void *aotc_rt_weight_in_file(aotc_weight *weight);

// Frees the copies of all constants. Without a driver they are only forgotten.
void aotc_rt_constants_unload_locked(aotc_rt_state *state);

#endif // AOTC_RT_STATE_H
