// Launches: checked in the same way on every device, then passed to the driver or run on the CPU.
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/streams.h"
#include "graphs.h"
#include "mlir_cuda_runtime.h"
#include "state.h"
#include "trace.h"
#include "weight_pages.h"

// CUDA's limits on every GPU since compute capability 3.0.
#define MAX_GRID_X 2147483647
#define MAX_GRID_YZ 65535
#define MAX_BLOCK_XY 1024
#define MAX_BLOCK_Z 64
#define MAX_BLOCK_THREADS 1024
// Larger clusters must be enabled on the kernel, and the GPU must have room for them.
#define MAX_PORTABLE_CLUSTER_BLOCKS 8

// "kernel 'add' of module 'kernels', built for sm_80, grid 4 x 1 x 1, block 256 x 1 x 1, ..."
static const char *describe(const aotc_rt_launch *l, char *text, size_t bytes) {
  text[0] = '\0';
  aotc_rt_append(text, bytes, "kernel '%s' of module '%s', built for %s", l->kernel->name,
                 aotc_rt_module_name(l->kernel->module),
                 aotc_rt_module_built_for(l->kernel->module));
  aotc_rt_append(text, bytes, ", grid %lld x %lld x %lld, block %lld x %lld x %lld",
                 (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                 (long long)l->block[0], (long long)l->block[1], (long long)l->block[2]);
  if (l->cluster[0] != 0 || l->cluster[1] != 0 || l->cluster[2] != 0) {
    aotc_rt_append(text, bytes, ", cluster %lld x %lld x %lld", (long long)l->cluster[0],
                   (long long)l->cluster[1], (long long)l->cluster[2]);
  }
  aotc_rt_append(text, bytes, ", %d bytes of dynamic shared memory", l->dynamic_shared_bytes);
  return text;
}

#define LAUNCH_TEXT_BYTES 1024

static bool refuse(const aotc_rt_launch *l, aotc_status status, const char *why) {
  char text[LAUNCH_TEXT_BYTES];
  aotc_rt_fail(status, "%s: %s", why, describe(l, text, sizeof(text)));
  return false;
}

static bool is_within(int64_t value, int64_t max) {
  return value >= 1 && value <= max;
}

// Rejects what CUDA rejects, on the CPU as well, and before the sizes are narrowed to CUDA's types.
static bool check_sizes(const aotc_rt_launch *l) {
  if (!is_within(l->grid[0], MAX_GRID_X) || !is_within(l->grid[1], MAX_GRID_YZ) ||
      !is_within(l->grid[2], MAX_GRID_YZ)) {
    return refuse(l, AOTC_LAUNCH_FAILED,
                  "the grid must be from 1 x 1 x 1 to 2147483647 x 65535 x 65535 blocks");
  }
  if (!is_within(l->block[0], MAX_BLOCK_XY) || !is_within(l->block[1], MAX_BLOCK_XY) ||
      !is_within(l->block[2], MAX_BLOCK_Z) ||
      l->block[0] * l->block[1] * l->block[2] > MAX_BLOCK_THREADS) {
    return refuse(l, AOTC_LAUNCH_FAILED,
                  "a block must be from 1 x 1 x 1 to 1024 x 1024 x 64 threads, 1024 in all");
  }
  if (l->dynamic_shared_bytes < 0) {
    return refuse(l, AOTC_LAUNCH_FAILED, "the size of dynamic shared memory must not be negative");
  }
  if (l->cluster[0] == 0 && l->cluster[1] == 0 && l->cluster[2] == 0) {
    return true;
  }
  for (int i = 0; i < 3; ++i) {
    if (l->cluster[i] < 1 || l->grid[i] % l->cluster[i] != 0) {
      return refuse(l, AOTC_LAUNCH_FAILED, "the grid must be whole clusters of 1 x 1 x 1 or more");
    }
  }
  return true;
}

// -------------------------------------------------------------------------------------------------
// GPUs

// Raises the function's limit on dynamic shared memory. Under the lock: a thread that needs less
// must not undo another thread's increase.
static bool allow_shared_locked(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                                aotc_rt_binding *binding) {
  if (l->dynamic_shared_bytes <= atomic_load(&binding->dynamic_shared_limit)) {
    return true;
  }
  char text[LAUNCH_TEXT_BYTES];
  if (!AOTC_RT_TRY(
          driver,
          kernel_allow(binding->function, AOTC_RT_DYNAMIC_SHARED_BYTES, l->dynamic_shared_bytes),
          "the device may not have that much shared memory: %s", describe(l, text, sizeof(text)))) {
    return false;
  }
  atomic_store(&binding->dynamic_shared_limit, l->dynamic_shared_bytes);
  return true;
}

static bool needs_consent(const aotc_rt_launch *l) {
  return l->cluster[0] * l->cluster[1] * l->cluster[2] > MAX_PORTABLE_CLUSTER_BLOCKS;
}

static bool allow_clusters_locked(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                                  aotc_rt_binding *binding) {
  char text[LAUNCH_TEXT_BYTES];
  if (!AOTC_RT_TRY(driver, kernel_allow(binding->function, AOTC_RT_LARGE_CLUSTERS, 1),
                   "clusters of more than 8 blocks: %s", describe(l, text, sizeof(text)))) {
    return false;
  }
  atomic_store(&binding->allows_large_clusters, true);
  return true;
}

// Sets the function attributes that the launch needs; they stay set.
static bool allow(const aotc_rt_driver *driver, const aotc_rt_launch *l, aotc_rt_binding *binding) {
  bool is_allowed = true;
  if (l->dynamic_shared_bytes >
      atomic_load_explicit(&binding->dynamic_shared_limit, memory_order_acquire)) {
    aotc_rt_lock();
    is_allowed = allow_shared_locked(driver, l, binding);
    aotc_rt_unlock();
  }
  if (is_allowed && needs_consent(l) &&
      !atomic_load_explicit(&binding->allows_large_clusters, memory_order_acquire)) {
    aotc_rt_lock();
    is_allowed = allow_clusters_locked(driver, l, binding);
    aotc_rt_unlock();
  }
  return is_allowed;
}

// With AOTC_CHECK=1: waits for the launch, unless it is only captured, and attributes a failure to
// it.
static bool check_launched(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                           aotc_rt_stream stream) {
  bool is_capturing = false;
  aotc_rt_result result = driver->stream_is_capturing(stream, &is_capturing);
  if (is_capturing) {
    return true;
  }
  if (result.code == 0) {
    result = driver->stream_synchronize(stream);
  }
  if (result.code == 0) {
    return true;
  }
  char text[LAUNCH_TEXT_BYTES];
  return aotc_rt_check_kernel(driver, result, "waiting for this launch alone (AOTC_CHECK): %s",
                              describe(l, text, sizeof(text)));
}

bool aotc_rt_launch_now(const aotc_rt_driver *driver, const aotc_rt_launch *l,
                        const aotc_rt_binding *binding, aotc_rt_stream stream) {
  const char *why_no_clusters = aotc_rt_state_of_process.facts.why_no_clusters;
  if (why_no_clusters != NULL && aotc_rt_has_clusters(l)) {
    return refuse(l, AOTC_UNSUPPORTED, why_no_clusters);
  }
  char text[LAUNCH_TEXT_BYTES];
  return AOTC_RT_TRY(driver, launch(binding, l, stream), "%s", describe(l, text, sizeof(text)));
}

static void launch_on_gpu(aotc_rt_scope *scope, const aotc_rt_launch *l, void *stream) {
  aotc_rt_binding *binding = aotc_rt_make_current(scope)
                                 ? aotc_rt_kernel_bind(scope->driver, l->kernel, scope->context)
                                 : NULL;
  if (binding == NULL || !allow(scope->driver, l, binding)) {
    return;
  }
  aotc_rt_launch_label *label = &scope->thread->last_launch;
  memcpy(label->kernel, l->kernel->label, sizeof(label->kernel));
  for (int i = 0; i < 3; ++i) {
    label->grid[i] = (uint32_t)l->grid[i];
    label->block[i] = (uint32_t)l->block[i];
  }
  ++scope->thread->launches_of_entry;
  bool has_pages = aotc_rt_has_paged_weights(scope->context);
  if (has_pages) {
    aotc_rt_submit(scope->thread);
  } else if (aotc_rt_recording_add(scope->thread, l, binding,
                                   aotc_rt_stream_of(scope->thread, stream))) {
    return;
  }
  aotc_rt_stream order = aotc_rt_stream_for_work(scope->thread, stream);
  bool is_launched = has_pages ? aotc_rt_weight_pages_launch(scope, l, binding, order)
                               : aotc_rt_launch_now(scope->driver, l, binding, order);
  if (is_launched && aotc_rt_state_of_process.checks_launches) {
    check_launched(scope->driver, l, order);
  }
}

// -------------------------------------------------------------------------------------------------
// CPU

// A kernel may be compiled for one block size.
static bool check_cpu_block(const aotc_rt_launch *l, const aotc_cpu_kernel *form) {
  for (int i = 0; i < 3; ++i) {
    if (form->block_dim[i] != 0 && form->block_dim[i] != l->block[i]) {
      char why[LAUNCH_TEXT_BYTES] = "";
      aotc_rt_append(why, sizeof(why), "the kernel was made for blocks of %lld x %lld x %lld",
                     (long long)form->block_dim[0], (long long)form->block_dim[1],
                     (long long)form->block_dim[2]);
      return refuse(l, AOTC_INVALID_ARGUMENT, why);
    }
  }
  return true;
}

// A launch run by a CPU stream; followed by the addresses and the values of its parameters.
typedef struct cpu_launch {
  const aotc_cpu_kernel *form;
  int64_t grid[3], block[3];
  int32_t dynamic_shared_bytes;
  void *parameters[];
} cpu_launch;

// The alignment of values: that of the largest vector.
#define VALUE_ALIGNMENT 128

static void run_form(const aotc_cpu_kernel *form, void *const *parameters, const int64_t *grid,
                     const int64_t *block, int32_t dynamic_shared_bytes) {
  int64_t begin = aotc_rt_trace_begin();
  aotc_rt_cpu_launch(form, parameters, grid, block, dynamic_shared_bytes,
                     aotc_rt_state_of_process.device.multiprocessors);
  if (begin != 0) {
    aotc_rt_trace_launch(begin, form->name, grid, block);
  }
}

static void run_on_cpu(const void *launch) {
  const cpu_launch *l = launch;
  run_form(l->form, l->parameters, l->grid, l->block, l->dynamic_shared_bytes);
}

// With one thread, or if each launch is waited for, launches run one after the other.
static bool is_sequential(void) {
  const char *threads = getenv("AOTC_CPU_THREADS");
  return aotc_rt_state_of_process.checks_launches ||
         (aotc_rt_state_of_process.device.multiprocessors == 1 && threads != NULL &&
          threads[0] != '\0');
}

// Enqueues the launch on its stream with copies of its parameters' values, if the launching code
// described them; false if it must be run here.
static bool enqueue_on_cpu(const aotc_rt_thread *thread, const aotc_rt_launch *l,
                           const aotc_cpu_kernel *form, size_t parameter_count, void *stream) {
  if (thread->launch_values == NULL || is_sequential()) {
    return false;
  }
  size_t values_at = sizeof(cpu_launch) + parameter_count * sizeof(void *);
  values_at = (values_at + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
  cpu_launch *enqueued = aotc_rt_cpu_work_new(run_on_cpu, values_at + thread->launch_value_bytes);
  if (enqueued == NULL) {
    return false;
  }
  *enqueued = (cpu_launch){
      .form = form,
      .grid = {l->grid[0], l->grid[1], l->grid[2]},
      .block = {l->block[0], l->block[1], l->block[2]},
      .dynamic_shared_bytes = l->dynamic_shared_bytes,
  };
  char *values = (char *)enqueued + values_at;
  memcpy(values, thread->launch_values, thread->launch_value_bytes);
  for (size_t i = 0; i < parameter_count; ++i) {
    enqueued->parameters[i] =
        values + ((char *)l->parameters[i] - (const char *)thread->launch_values);
  }
  return aotc_rt_cpu_stream_enqueue(stream, enqueued);
}

static void launch_on_cpu(const aotc_rt_thread *thread, const aotc_rt_launch *l,
                          size_t parameter_count, void *stream) {
  if (aotc_rt_has_clusters(l)) {
    refuse(l, AOTC_UNSUPPORTED, "the CPU device has no thread block clusters");
    return;
  }
  if (l->is_cooperative && (l->grid[0] != 1 || l->grid[1] != 1 || l->grid[2] != 1)) {
    refuse(l, AOTC_UNSUPPORTED,
           "the CPU device cannot run a cooperative grid: its blocks do not all run at once");
    return;
  }
  if (l->extra != NULL) {
    refuse(l, AOTC_UNSUPPORTED, "the CPU device takes no extra launch options");
    return;
  }
  const aotc_cpu_kernel *form = aotc_rt_kernel_cpu_form(l->kernel);
  aotc_rt_stream order = aotc_rt_stream_of(thread, stream);
  if (form != NULL && check_cpu_block(l, form) &&
      !enqueue_on_cpu(thread, l, form, parameter_count, order) && aotc_rt_cpu_stream_wait(order)) {
    run_form(form, l->parameters, l->grid, l->block, l->dynamic_shared_bytes);
  }
}

// -------------------------------------------------------------------------------------------------

void aotc_concurrent_launch_prepare(const void *values, uint64_t bytes) {
  aotc_rt_this_thread.launch_values = values;
  aotc_rt_this_thread.launch_value_bytes = (size_t)bytes;
}

static void run_in_scope(aotc_rt_scope *scope, const aotc_rt_launch *l, size_t parameter_count,
                         void *stream) {
  if (l->kernel == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no kernel");
  } else if (!check_sizes(l)) {
    // rejected
  } else if (scope->driver != NULL) {
    launch_on_gpu(scope, l, stream);
  } else {
    launch_on_cpu(scope->thread, l, parameter_count, stream);
  }
}

static void run(const char *operation, const aotc_rt_launch *l, size_t parameter_count,
                void *stream) {
  aotc_rt_scope scope;
  if (aotc_rt_begin_unless_failed(&scope, operation)) {
    run_in_scope(&scope, l, parameter_count, stream);
    aotc_rt_end(&scope);
  }
  aotc_rt_this_thread.launch_values = NULL;
}

void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                      intptr_t block_x, intptr_t block_y, intptr_t block_z,
                      int32_t dynamic_shared_bytes, void *stream, void **parameters, void **extra,
                      size_t parameter_count) {
  const aotc_rt_launch l = {
      .kernel = function,
      .grid = {grid_x, grid_y, grid_z},
      .block = {block_x, block_y, block_z},
      .dynamic_shared_bytes = dynamic_shared_bytes,
      .parameters = parameters,
      .extra = extra,
  };
  run("mgpuLaunchKernel", &l, parameter_count, stream);
}

void mgpuLaunchClusterKernel(void *function, intptr_t cluster_x, intptr_t cluster_y,
                             intptr_t cluster_z, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                             intptr_t block_x, intptr_t block_y, intptr_t block_z,
                             int32_t dynamic_shared_bytes, void *stream, void **parameters,
                             void **extra) {
  const aotc_rt_launch l = {
      .kernel = function,
      .grid = {grid_x, grid_y, grid_z},
      .block = {block_x, block_y, block_z},
      .cluster = {cluster_x, cluster_y, cluster_z},
      .dynamic_shared_bytes = dynamic_shared_bytes,
      .parameters = parameters,
      .extra = extra,
  };
  run("mgpuLaunchClusterKernel", &l, 0, stream);
}

void mgpuLaunchKernelCooperative(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                                 intptr_t cluster_x, intptr_t cluster_y, intptr_t cluster_z,
                                 intptr_t block_x, intptr_t block_y, intptr_t block_z,
                                 int32_t dynamic_shared_bytes, void *stream, void **parameters,
                                 void **extra) {
  const aotc_rt_launch l = {
      .kernel = function,
      .grid = {grid_x, grid_y, grid_z},
      .block = {block_x, block_y, block_z},
      .cluster = {cluster_x, cluster_y, cluster_z},
      .is_cooperative = true,
      .dynamic_shared_bytes = dynamic_shared_bytes,
      .parameters = parameters,
      .extra = extra,
  };
  run("mgpuLaunchKernelCooperative", &l, 0, stream);
}
