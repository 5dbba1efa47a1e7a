// Memory of the host, of a device, and of both: allocated, freed, and told apart.
#include <stdlib.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

#define HOST_ALIGNMENT 64
// A page of host-shared memory, as GPUs have them.
#define SHARED_PAGE_BYTES 65536

void *aotc_rt_host_allocate(uint64_t bytes) {
  void *pointer = NULL;
  if (posix_memalign(&pointer, HOST_ALIGNMENT, aotc_rt_at_least_one(bytes)) != 0) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)bytes);
    return NULL;
  }
  return pointer;
}

static bool has_stream_ordered_memory(const aotc_rt_scope *scope) {
  return scope->context->memory_pool != NULL;
}

static void *allocate_device(aotc_rt_scope *scope, uint64_t bytes) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc, (&address, aotc_rt_at_least_one(bytes)),
                     "%llu bytes", (unsigned long long)bytes)
             ? aotc_rt_pointer_to(address)
             : NULL;
}

static void *allocate_managed(aotc_rt_scope *scope, uint64_t bytes) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc_managed,
                     (&address, aotc_rt_at_least_one(bytes), CU_MEM_ATTACH_GLOBAL), "%llu bytes",
                     (unsigned long long)bytes)
             ? aotc_rt_pointer_to(address)
             : NULL;
}

// Whether work that is enqueued there is only recorded, for a graph.
static bool is_capturing(const aotc_rt_driver *driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver->stream_is_capturing(stream, &status);
  return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
         (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

// Kernels would stop at each page of new host-shared memory that they are the first to touch, which
// takes far longer than to write it. (What the host writes first comes back to it, page by page.)
// It is a hint: not every device can, and nothing depends on it. A capture would be lost by it.
static void bring_to_device(aotc_rt_scope *scope, void *pointer, uint64_t bytes, CUstream stream) {
  if (pointer != NULL && bytes >= SHARED_PAGE_BYTES && scope->driver->mem_prefetch_async != NULL &&
      !is_capturing(scope->driver, stream)) {
    scope->driver->mem_prefetch_async(aotc_rt_address_of(pointer), bytes, scope->context->device,
                                      stream);
  }
}

static void *allocate_in_stream(aotc_rt_scope *scope, uint64_t bytes, CUstream stream) {
  CUdeviceptr address = 0;
  return AOTC_RT_TRY(scope->driver, mem_alloc_from_pool_async,
                     (&address, aotc_rt_at_least_one(bytes), scope->context->memory_pool, stream),
                     "%llu bytes", (unsigned long long)bytes)
             ? aotc_rt_pointer_to(address)
             : NULL;
}

void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t is_host_shared) {
  aotc_rt_scope scope;
  if (!aotc_rt_begin_unless_failed(&scope, "mgpuMemAlloc")) {
    return is_host_shared != 0 ? aotc_rt_stand_in_allocate(bytes) : NULL;
  }
  void *pointer = NULL;
  CUstream order = aotc_rt_stream_of(scope.thread, stream);
  if (scope.driver == NULL) {
    pointer = aotc_rt_host_allocate(bytes);
  } else if (!aotc_rt_make_current(&scope)) {
    pointer = NULL;
  } else if (is_host_shared != 0) {
    pointer = allocate_managed(&scope, bytes);
    bring_to_device(&scope, pointer, bytes, order);
  } else if (order != NULL && has_stream_ordered_memory(&scope)) {
    pointer = allocate_in_stream(&scope, bytes, order);
  } else {
    pointer = allocate_device(&scope, bytes);
  }
  if (!aotc_rt_end(&scope)) {
    pointer = NULL;
  }
  return pointer == NULL && is_host_shared != 0 ? aotc_rt_stand_in_allocate(bytes) : pointer;
}

// Whether the driver frees this memory in stream order; false when it does not say.
static bool ask_stream_ordered(aotc_rt_scope *scope, CUdeviceptr address, CUstream stream,
                               bool *out_is_stream_ordered) {
  CUmemoryPool pool = NULL;
  *out_is_stream_ordered = false;
  if (!has_stream_ordered_memory(scope)) {
    return true;
  }
  CUresult result =
      scope->driver->pointer_get_attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address);
  // What was allocated while a stream is captured will be a graph's, and is nothing yet.
  if (result == CUDA_ERROR_INVALID_VALUE && stream != NULL && is_capturing(scope->driver, stream)) {
    *out_is_stream_ordered = true;
    return true;
  }
  *out_is_stream_ordered = pool != NULL;
  return (scope->is_release ? aotc_rt_check_release : aotc_rt_check)(
      scope->driver, result, AOTC_RT_CALL_pointer_get_attribute, "memory to free");
}

// Frees memory of any kind; `stream` is NULL when the order is the device's.
static bool release(aotc_rt_scope *scope, void *pointer, CUstream stream) {
  if (scope->driver == NULL) {
    free(pointer);
    return true;
  }
  if (!aotc_rt_make_current(scope)) {
    return false;
  }
  CUdeviceptr address = aotc_rt_address_of(pointer);
  bool is_stream_ordered = false;
  bool is_known = ask_stream_ordered(scope, address, stream, &is_stream_ordered);
  if (is_stream_ordered && stream != NULL) {
    return AOTC_RT_TRY_IN(scope, mem_free_async, (address, stream), "memory of a stream");
  }
  bool is_idle = true;
  if (is_stream_ordered || !is_known) {
    // cuMemFree waits for the device's work, except for memory of this kind. A failure here is that
    // of a kernel, which does not run any more.
    is_idle = AOTC_RT_TRY_IN(scope, ctx_synchronize, (), "before memory is freed");
  }
  return AOTC_RT_TRY_IN(scope, mem_free, (address), "memory of the device") && is_known && is_idle;
}

void mgpuMemFree(void *pointer, void *stream) {
  aotc_rt_scope scope;
  if (pointer != NULL && !aotc_rt_stand_in_release(pointer) &&
      aotc_rt_begin_release(&scope, "mgpuMemFree")) {
    release(&scope, pointer, aotc_rt_stream_of(scope.thread, stream));
    aotc_rt_end(&scope);
  }
}

aotc_status aotc_memory_allocate(aotc_memory_kind kind, uint64_t bytes, void **out_pointer) {
  if (out_pointer == NULL) {
    return aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                        "aotc_memory_allocate: there is no place for the pointer");
  }
  *out_pointer = NULL;
  aotc_rt_scope scope;
  if (!aotc_rt_begin(&scope, "aotc_memory_allocate")) {
    return aotc_rt_this_thread.latest;
  }
  if (kind == AOTC_MEMORY_HOST || scope.driver == NULL) {
    *out_pointer = aotc_rt_host_allocate(bytes);
  } else if (!aotc_rt_make_current(&scope)) {
    *out_pointer = NULL;
  } else if (kind == AOTC_MEMORY_MANAGED) {
    *out_pointer = allocate_managed(&scope, bytes);
  } else {
    *out_pointer = allocate_device(&scope, bytes);
  }
  if (!aotc_rt_end(&scope)) {
    *out_pointer = NULL;
  }
  return *out_pointer != NULL ? AOTC_OK : scope.thread->latest;
}

aotc_status aotc_memory_free(aotc_memory_kind kind, void *pointer) {
  if (pointer == NULL) {
    return AOTC_OK;
  }
  if (kind == AOTC_MEMORY_HOST) {
    free(pointer);
    return AOTC_OK;
  }
  if (aotc_rt_stand_in_release(pointer)) {
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // what a shut down driver says is not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_memory_free")) {
    return scope.thread->latest;
  }
  bool is_freed = release(&scope, pointer, NULL);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}

bool aotc_rt_pointer_locate(aotc_rt_scope *scope, const void *pointer, aotc_rt_place *out_place) {
  CUmemorytype type = 0;
  unsigned int is_managed = 0;
  int ordinal = -1;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
  };
  void *values[] = {&type, &is_managed, &ordinal};
  // Of memory that the driver does not know it says zeros, not that the value is invalid, as it
  // does when it is asked for one attribute.
  CUresult result =
      scope->driver->pointer_get_attributes(3, attributes, values, aotc_rt_address_of(pointer));
  *out_place = (aotc_rt_place){
      .is_known = type != 0,
      .is_device = type == CU_MEMORYTYPE_DEVICE,
      .is_managed = is_managed != 0,
      .ordinal = ordinal,
  };
  return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE ||
         (scope->is_release ? aotc_rt_check_release : aotc_rt_check)(
             scope->driver, result, AOTC_RT_CALL_pointer_get_attributes, "memory at %p", pointer);
}

// The context that memory is of, if it is known: thanks to the caller, another may be current.
static void follow_memory(aotc_rt_scope *scope, const aotc_rt_place *place) {
  if (place->ordinal >= 0 && place->ordinal != scope->context->description.ordinal) {
    aotc_rt_context *context = aotc_rt_context_find_primary(place->ordinal);
    if (context != NULL && AOTC_RT_TRY_IN(scope, ctx_push_current, (context->handle),
                                          "making cuda:%d current", place->ordinal)) {
      scope->context = context;
    }
  }
}

static bool release_wherever_it_is(aotc_rt_scope *scope, void *allocated) {
  aotc_rt_place place;
  if (scope->driver == NULL) {
    free(allocated);
    return true;
  }
  if (!aotc_rt_make_current(scope) || !aotc_rt_pointer_locate(scope, allocated, &place)) {
    return false;
  }
  if (!place.is_device && !place.is_managed) {
    free(allocated);
    return true;
  }
  const aotc_rt_context *before = scope->context;
  follow_memory(scope, &place);
  bool is_freed = release(scope, allocated, NULL);
  CUcontext popped = NULL;
  return (scope->context == before ||
          AOTC_RT_TRY_IN(scope, ctx_pop_current, (&popped), "after memory is freed")) &&
         is_freed;
}

aotc_status aotc_rt_memory_free_anywhere(void *allocated) {
  aotc_rt_phase phase = atomic_load_explicit(&aotc_rt_state_of_process.phase, memory_order_acquire);
  if (allocated == NULL || aotc_rt_stand_in_release(allocated)) {
    return AOTC_OK;
  }
  if (phase == AOTC_RT_UNRESOLVED) {
    free(allocated); // by an entry that needed no device
    return AOTC_OK;
  }
  aotc_rt_scope scope;
  scope.thread = &aotc_rt_this_thread;
  scope.thread->latest = AOTC_OK; // what a shut down driver says is not recorded
  if (!aotc_rt_begin_release(&scope, "aotc_entry_free")) {
    return scope.thread->latest;
  }
  bool is_freed = release_wherever_it_is(&scope, allocated);
  is_freed = aotc_rt_end(&scope) && is_freed;
  return is_freed ? AOTC_OK : scope.thread->latest;
}
