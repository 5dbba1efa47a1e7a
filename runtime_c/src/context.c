// The CUDA contexts that were used, and what is known of their devices.
#include <stdlib.h>

#include "state.h"

static bool get_attribute(const aotc_rt_driver *driver, CUdevice device,
                          CUdevice_attribute attribute, int32_t *out_value) {
  int value = 0;
  if (!AOTC_RT_TRY(driver, device_get_attribute, (&value, attribute, device), "attribute %d",
                   (int)attribute)) {
    return false;
  }
  *out_value = value;
  return true;
}

bool aotc_rt_describe_gpu(const aotc_rt_driver *driver, int32_t ordinal, CUdevice *out_device,
                          aotc_device *out_description) {
  aotc_device description = {.kind = AOTC_DEVICE_CUDA, .ordinal = ordinal};
  CUdevice device = 0;
  size_t bytes = 0;
  if (!AOTC_RT_TRY(driver, device_get, (&device, ordinal), "cuda:%d", (int)ordinal) ||
      !AOTC_RT_TRY(driver, device_get_name,
                   (description.name, (int)sizeof(description.name), device), "cuda:%d",
                   (int)ordinal) ||
      !AOTC_RT_TRY(driver, device_total_mem, (&bytes, device), "cuda:%d", (int)ordinal) ||
      !get_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                     &description.capability_major) ||
      !get_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                     &description.capability_minor) ||
      !get_attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                     &description.multiprocessors)) {
    return false;
  }
  description.memory_bytes = bytes;
  *out_device = device;
  *out_description = description;
  return true;
}

int32_t aotc_rt_capability(const aotc_device *description) {
  return 10 * description->capability_major + description->capability_minor;
}

int32_t aotc_compute_capability(void) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "aotc_compute_capability")) {
    return 0;
  }
  int32_t capability = scope.context != NULL ? aotc_rt_capability(&scope.context->description) : 0;
  aotc_rt_end(&scope);
  return capability;
}

// What streams allocate from. The device's own pool gives its memory back to the system whenever
// somebody waits, and asking for it anew takes longer than small kernels: this one keeps it.
static bool make_memory_pool(const aotc_rt_driver *driver, aotc_rt_context *context) {
  int32_t has_pools = 0;
  if (!get_attribute(driver, context->device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                     &has_pools)) {
    return false;
  }
  if (has_pools == 0 || driver->mem_pool_create == NULL || driver->mem_pool_destroy == NULL ||
      driver->mem_pool_set_attribute == NULL || driver->mem_alloc_from_pool_async == NULL ||
      driver->mem_free_async == NULL) {
    return true;
  }
  const CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device},
  };
  cuuint64_t kept_bytes = UINT64_MAX;
  CUmemoryPool pool = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (!aotc_rt_capture_relax(driver, &mode)) {
    return false;
  }
  bool is_made = AOTC_RT_TRY(driver, mem_pool_create, (&pool, &properties), "cuda:%d",
                             (int)context->description.ordinal) &&
                 AOTC_RT_TRY(driver, mem_pool_set_attribute,
                             (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept_bytes), "cuda:%d",
                             (int)context->description.ordinal);
  if (!aotc_rt_capture_restore(driver, mode) || !is_made) {
    if (pool != NULL) {
      driver->mem_pool_destroy(pool);
    }
    return false;
  }
  context->memory_pool = pool;
  return true;
}

void aotc_rt_context_destroy_pool(const aotc_rt_driver *driver, aotc_rt_context *context) {
  CUmemoryPool pool = context->memory_pool;
  context->memory_pool = NULL;
  if (pool != NULL) {
    aotc_rt_check_release(driver, driver->mem_pool_destroy(pool), AOTC_RT_CALL_mem_pool_destroy,
                          "cuda:%d", (int)context->description.ordinal);
  }
}

// Adds a context to those that can be found.
static aotc_rt_context *add_context(const aotc_rt_driver *driver, CUcontext handle, int32_t ordinal,
                                    bool is_primary) {
  aotc_rt_context *context = calloc(1, sizeof(*context));
  if (context == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a context");
    return NULL;
  }
  context->handle = handle;
  context->is_primary = is_primary;
  context->has_id = driver->ctx_get_id != NULL;
  if (!aotc_rt_describe_gpu(driver, ordinal, &context->device, &context->description) ||
      (context->has_id &&
       !AOTC_RT_TRY(driver, ctx_get_id, (handle, &context->id), "of the context in use")) ||
      !make_memory_pool(driver, context)) {
    free(context);
    return NULL;
  }

  context->next = atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_relaxed);
  atomic_store_explicit(&aotc_rt_state_of_process.contexts, context, memory_order_release);
  return context;
}

bool aotc_rt_context_is_alive(const aotc_rt_driver *driver, aotc_rt_context *context) {
  if (atomic_load_explicit(&context->is_gone, memory_order_relaxed)) {
    return false;
  }
  if (context->is_primary || !context->has_id) {
    return true;
  }
  // Somebody else's context: it may have been destroyed, and another made at its address.
  unsigned long long id = 0;
  if (driver->ctx_get_id(context->handle, &id) == CUDA_SUCCESS && id == context->id) {
    return true;
  }
  atomic_store_explicit(&context->is_gone, true, memory_order_relaxed);
  return false;
}

aotc_rt_context *aotc_rt_context_find(const aotc_rt_driver *driver, CUcontext handle) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  for (; context != NULL; context = context->next) {
    if (context->handle == handle && aotc_rt_context_is_alive(driver, context)) {
      return context;
    }
  }
  return NULL;
}

aotc_rt_context *aotc_rt_context_find_primary(int32_t ordinal) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  while (context != NULL && !(context->is_primary && context->description.ordinal == ordinal &&
                              !atomic_load_explicit(&context->is_gone, memory_order_relaxed))) {
    context = context->next;
  }
  return context;
}

aotc_rt_context *aotc_rt_context_find_any(void) {
  aotc_rt_context *context =
      atomic_load_explicit(&aotc_rt_state_of_process.contexts, memory_order_acquire);
  while (context != NULL && atomic_load_explicit(&context->is_gone, memory_order_relaxed)) {
    context = context->next;
  }
  return context;
}

// The number of the device of the current context.
static bool get_current_ordinal(const aotc_rt_driver *driver, CUdevice *out_device,
                                int32_t *out_ordinal) {
  CUdevice device = 0;
  if (!AOTC_RT_TRY(driver, ctx_get_device, (&device), "of the thread's current context")) {
    return false;
  }
  for (int32_t ordinal = 0; ordinal < driver->device_count; ++ordinal) {
    CUdevice candidate = 0;
    if (!AOTC_RT_TRY(driver, device_get, (&candidate, ordinal), "cuda:%d", (int)ordinal)) {
      return false;
    }
    if (candidate == device) {
      *out_device = device;
      *out_ordinal = ordinal;
      return true;
    }
  }
  aotc_rt_fail(AOTC_NO_DEVICE, "the thread's current context is on a device that has no number");
  return false;
}

// Whether `current` is its device's primary context; if so, it is retained.
static bool retain_if_primary(const aotc_rt_driver *driver, CUcontext current, CUdevice device,
                              bool *out_is_primary) {
  unsigned int flags = 0;
  int is_active = 0;
  *out_is_primary = false;
  if (!AOTC_RT_TRY(driver, primary_ctx_get_state, (device, &flags, &is_active), "device %d",
                   (int)device)) {
    return false;
  }
  if (is_active == 0) {
    return true; // retaining would start it
  }
  CUcontext primary = NULL;
  if (!AOTC_RT_TRY(driver, primary_ctx_retain, (&primary, device), "device %d", (int)device)) {
    return false;
  }
  *out_is_primary = primary == current;
  return *out_is_primary ||
         AOTC_RT_TRY(driver, primary_ctx_release, (device), "device %d", (int)device);
}

aotc_rt_context *aotc_rt_context_of_locked(const aotc_rt_driver *driver, CUcontext current) {
  aotc_rt_context *context = aotc_rt_context_find(driver, current);
  if (context != NULL) {
    return context; // another thread was first
  }
  CUdevice device = 0;
  int32_t ordinal = 0;
  bool is_primary = false;
  if (!get_current_ordinal(driver, &device, &ordinal) ||
      !retain_if_primary(driver, current, device, &is_primary)) {
    return NULL;
  }
  context = add_context(driver, current, ordinal, is_primary);
  if (context == NULL && is_primary) {
    AOTC_RT_TRY(driver, primary_ctx_release, (device), "cuda:%d", (int)ordinal);
  }
  return context;
}

aotc_rt_context *aotc_rt_context_primary_locked(const aotc_rt_driver *driver, int32_t ordinal) {
  aotc_rt_context *context = aotc_rt_context_find_primary(ordinal);
  if (context != NULL) {
    return context;
  }
  CUdevice device = 0;
  CUcontext handle = NULL;
  if (!AOTC_RT_TRY(driver, device_get, (&device, ordinal), "cuda:%d", (int)ordinal) ||
      !AOTC_RT_TRY(driver, primary_ctx_retain, (&handle, device), "cuda:%d", (int)ordinal)) {
    return NULL;
  }
  context = add_context(driver, handle, ordinal, true);
  if (context == NULL) {
    AOTC_RT_TRY(driver, primary_ctx_release, (device), "cuda:%d", (int)ordinal);
  }
  return context;
}

void aotc_rt_context_drop_locked(const aotc_rt_driver *driver, aotc_rt_context *context) {
  atomic_store_explicit(&context->is_gone, true, memory_order_relaxed);
  aotc_rt_context_destroy_pool(driver, context);
  if (context->is_primary) {
    AOTC_RT_TRY(driver, primary_ctx_release, (context->device), "cuda:%d",
                (int)context->description.ordinal);
  }
}
