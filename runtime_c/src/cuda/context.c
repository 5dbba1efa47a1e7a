// CUDA's devices and contexts.
#include <stdlib.h>

#include "libcuda.h"

static bool get_attribute(CUdevice device, CUdevice_attribute attribute, int32_t *out_value) {
  int value = 0;
  if (!CUDA_TRY(device_get_attribute, (&value, attribute, device), "attribute %d",
                (int)attribute)) {
    return false;
  }
  *out_value = value;
  return true;
}

static bool describe(int32_t ordinal, CUdevice *out_device, aotc_device *out_description) {
  aotc_device description = {.kind = AOTC_DEVICE_CUDA, .ordinal = ordinal};
  CUdevice device = 0;
  size_t bytes = 0;
  if (!CUDA_TRY(device_get, (&device, ordinal), "cuda:%d", (int)ordinal) ||
      !CUDA_TRY(device_get_name, (description.name, (int)sizeof(description.name), device),
                "cuda:%d", (int)ordinal) ||
      !CUDA_TRY(device_total_mem, (&bytes, device), "cuda:%d", (int)ordinal) ||
      !get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                     &description.capability_major) ||
      !get_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                     &description.capability_minor) ||
      !get_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                     &description.multiprocessors)) {
    return false;
  }
  description.memory_bytes = bytes;
  *out_device = device;
  *out_description = description;
  return true;
}

bool aotc_rt_cuda_describe_device(int32_t ordinal, aotc_device *out_description) {
  CUdevice device = 0;
  return describe(ordinal, &device, out_description);
}

// A default stream belongs to the current context.
aotc_rt_result aotc_rt_cuda_context_of(aotc_rt_stream stream, aotc_rt_context_handle *out_context) {
  CUcontext context = NULL;
  aotc_rt_result result = {.code = 0};
  if (stream == NULL) {
    result = CUDA_CALL(ctx_get_current, (&context));
  } else if (stream != AOTC_RT_STREAM_DEFAULT && stream != AOTC_RT_STREAM_OF_THREAD) {
    result = CUDA_CALL(stream_get_ctx, ((CUstream)stream, &context));
  }
  *out_context = (aotc_rt_context_handle)context;
  return result;
}

// -------------------------------------------------------------------------------------------------
// The memory pool

// The pool that streams allocate from. The device's default pool returns its memory to the system
// whenever somebody waits, and allocating it again takes longer than small kernels: this one keeps
// it.
static bool make_memory_pool(aotc_rt_cuda_context *context) {
  const aotc_rt_libcuda_symbols *cuda = &aotc_rt_libcuda;
  int ordinal = (int)context->common.description.ordinal;
  int32_t has_pools = 0;
  if (!get_attribute(context->device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &has_pools)) {
    return false;
  }
  if (has_pools == 0 || cuda->mem_pool_create == NULL || cuda->mem_pool_destroy == NULL ||
      cuda->mem_pool_set_attribute == NULL || cuda->mem_alloc_from_pool_async == NULL ||
      cuda->mem_free_async == NULL) {
    return true;
  }
  const CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device},
  };
  cuuint64_t kept_bytes = UINT64_MAX;
  CUmemoryPool pool = NULL;
  aotc_rt_capture_mode mode;
  if (!aotc_rt_capture_relax(&aotc_rt_cuda, &mode)) {
    return false;
  }
  bool is_made =
      CUDA_TRY(mem_pool_create, (&pool, &properties), "cuda:%d", ordinal) &&
      CUDA_TRY(mem_pool_set_attribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept_bytes),
               "cuda:%d", ordinal);
  if (!aotc_rt_capture_restore(&aotc_rt_cuda, mode) || !is_made) {
    if (pool != NULL) {
      cuda->mem_pool_destroy(pool);
    }
    return false;
  }
  context->memory_pool = pool;
  return true;
}

// -------------------------------------------------------------------------------------------------
// Opening and closing

static aotc_rt_context *make_context(CUcontext handle, int32_t ordinal, bool is_primary) {
  aotc_rt_cuda_context *context = calloc(1, sizeof(*context));
  if (context == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a context");
    return NULL;
  }
  context->common.handle = (aotc_rt_context_handle)handle;
  context->common.is_primary = is_primary;
  context->is_retained = is_primary;
  context->has_id = aotc_rt_libcuda.ctx_get_id != NULL;
  if (!describe(ordinal, &context->device, &context->common.description) ||
      (context->has_id && !CUDA_TRY(ctx_get_id, (handle, &context->id), "of the context in use")) ||
      !make_memory_pool(context)) {
    free(context);
    return NULL;
  }
  return &context->common;
}

// The ordinal of the current context's device.
static bool get_current_ordinal(CUdevice *out_device, int32_t *out_ordinal) {
  CUdevice device = 0;
  if (!CUDA_TRY(ctx_get_device, (&device), "of the thread's current context")) {
    return false;
  }
  for (int32_t ordinal = 0; ordinal < aotc_rt_libcuda.device_count; ++ordinal) {
    CUdevice candidate = 0;
    if (!CUDA_TRY(device_get, (&candidate, ordinal), "cuda:%d", (int)ordinal)) {
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

// Whether `current` is its device's primary context; if so, retains it.
static bool retain_if_primary(CUcontext current, CUdevice device, bool *out_is_primary) {
  unsigned int flags = 0;
  int is_active = 0;
  *out_is_primary = false;
  if (!CUDA_TRY(primary_ctx_get_state, (device, &flags, &is_active), "device %d", (int)device)) {
    return false;
  }
  if (is_active == 0) {
    return true; // retaining would create it
  }
  CUcontext primary = NULL;
  if (!CUDA_TRY(primary_ctx_retain, (&primary, device), "device %d", (int)device)) {
    return false;
  }
  *out_is_primary = primary == current;
  return *out_is_primary || CUDA_TRY(primary_ctx_release, (device), "device %d", (int)device);
}

aotc_rt_context *aotc_rt_cuda_context_open(aotc_rt_context_handle handle, int32_t ordinal) {
  CUcontext context = (CUcontext)handle;
  CUdevice device = 0;
  bool is_primary = context == NULL;
  if (is_primary ? !CUDA_TRY(device_get, (&device, ordinal), "cuda:%d", (int)ordinal) ||
                       !CUDA_TRY(primary_ctx_retain, (&context, device), "cuda:%d", (int)ordinal)
                 : !get_current_ordinal(&device, &ordinal) ||
                       !retain_if_primary(context, device, &is_primary)) {
    return NULL;
  }
  aotc_rt_context *made = make_context(context, ordinal, is_primary);
  if (made == NULL && is_primary) {
    CUDA_TRY(primary_ctx_release, (device), "cuda:%d", (int)ordinal);
  }
  return made;
}

aotc_rt_result aotc_rt_cuda_context_close(aotc_rt_context *context) {
  aotc_rt_cuda_context *cuda = (aotc_rt_cuda_context *)context;
  CUmemoryPool pool = cuda->memory_pool;
  bool is_retained = cuda->is_retained;
  cuda->memory_pool = NULL;
  cuda->is_retained = false;
  // Memory in use is released when it is freed.
  if (pool != NULL) {
    CUDA_TRY_RELEASE(mem_pool_destroy, (pool), "cuda:%d", (int)context->description.ordinal);
  }
  return is_retained ? CUDA_CALL(primary_ctx_release, (cuda->device)) : (aotc_rt_result){.code = 0};
}

bool aotc_rt_cuda_context_exists(const aotc_rt_context *context) {
  const aotc_rt_cuda_context *cuda = (const aotc_rt_cuda_context *)context;
  if (!cuda->has_id) {
    return true;
  }
  // A foreign context may have been destroyed and another created at the same address.
  unsigned long long id = 0;
  return aotc_rt_libcuda.ctx_get_id((CUcontext)context->handle, &id) == CUDA_SUCCESS &&
         id == cuda->id;
}
