// The fake driver: memory, copies, and pointer attributes.
#include "state.h"

#include <stdlib.h>
#include <string.h>

static CUresult allocate(CUdeviceptr *address, size_t bytes, object_kind kind, bool is_managed) {
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  object *memory = make_object(kind);
  memory->is_managed = is_managed;
  memory->is_graphs = kind == OBJECT_POOLED_MEMORY && the_driver.is_capturing;
  memory->bytes = bytes;
  void *start = NULL;
  if (posix_memalign(&start, 256, bytes) != 0) { // the alignment of the real driver
    memory->kind = OBJECT_NONE;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(start, the_late.is_on ? 0xa5 : 0, bytes);
  memory->start = start;
  COUNT(live_memory, 1);
  COUNT(allocation_count, 1);
  the_driver.last_allocation_bytes = bytes;
  *address = (CUdeviceptr)(uintptr_t)memory->start;
  return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, bool must_be_pooled, bool must_be_synchronized) {
  object *memory = find_memory(address);
  if (memory == NULL || memory->kind == OBJECT_REGISTRATION ||
      address != (CUdeviceptr)(uintptr_t)memory->start ||
      (must_be_pooled && memory->kind != OBJECT_POOLED_MEMORY)) {
    violate("memory freed that is not allocated, or not in this way");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (must_be_synchronized && memory->kind == OBJECT_POOLED_MEMORY && !memory->is_synchronized) {
    violate("stream-ordered memory freed while it may be in use");
  }
  if (the_late.is_on && memory->kind == OBJECT_POOLED_MEMORY) {
    do_later((late_work){.kind = LATE_FREE, .to = address});
  } else {
    do_late_work(); // cuMemFree waits
    forget_memory(memory);
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  ENTER_WITH_CONTEXT("cuMemAlloc_v2");
  return allocate(address, bytes, OBJECT_MEMORY, false);
}

EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuMemAllocManaged");
  return flags == CU_MEM_ATTACH_GLOBAL ? allocate(address, bytes, OBJECT_MEMORY, true)
                                       : CUDA_ERROR_INVALID_VALUE;
}

#ifndef FAKE_OLD_DRIVER
// The version that cuda.h 13 no longer declares.
#undef cuMemPrefetchAsync
EXPORT CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device,
                                           CUstream stream);
EXPORT CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device,
                                           CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemPrefetchAsync");
  if (fake_kind_of((void *)(uintptr_t)address) != FAKE_MANAGED || bytes == 0) {
    violate("memory that is not managed is prefetched");
  }
  if (the_driver.is_capturing) {
    violate("memory is prefetched in a capture");
  }
  (void)device;
  (void)stream;
  return CUDA_SUCCESS;
}
#endif

EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuMemFree_v2");
  return release(address, false, true);
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  ENTER("cuMemPoolCreate");
  if (the_driver.is_capturing && the_capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    violate("a pool made while a stream is captured");
  }
  if (!the_driver.has_memory_pools || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *pool = (CUmemoryPool)make_object(OBJECT_POOL);
  COUNT(live_pools, 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER("cuMemPoolDestroy");
  if (!is_object(pool, OBJECT_POOL)) {
    violate("a pool destroyed that is none");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ((object *)pool)->kind = OBJECT_NONE;
  COUNT(live_pools, -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                              void *value) {
  ENTER("cuMemPoolSetAttribute");
  if (the_driver.is_capturing && the_capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    violate("a pool changed while a stream is captured");
  }
  if (!is_object(pool, OBJECT_POOL) || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  the_driver.kept_bytes = *(const cuuint64_t *)value;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                                CUmemoryPool pool, CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemAllocFromPoolAsync");
  return is_stream(stream) && is_object(pool, OBJECT_POOL)
             ? allocate(address, bytes, OBJECT_POOLED_MEMORY, false)
             : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemFreeAsync");
  return is_stream(stream) ? release(address, true, false) : CUDA_ERROR_INVALID_HANDLE;
}
#endif // FAKE_OLD_DRIVER

EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                      CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemcpyAsync");
  if (!is_stream(stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  COUNT(copy_count, 1);
  the_driver.last_copy_bytes = bytes;
  if (the_late.is_on) {
    do_later((late_work){.kind = LATE_COPY, .to = to, .from = from, .bytes = bytes});
    return CUDA_SUCCESS;
  }
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                                         CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemsetD16Async");
  // clang assumes that the register's upper half is zero, as is common in the ABI: this checks it.
  unsigned int whole = value;
  __asm__("" : "+r"(whole));
  if (whole > 0xffff) {
    violate("16 bits passed with something above them");
  }
  unsigned short *elements = (unsigned short *)(uintptr_t)to;
  for (size_t i = 0; i < count; ++i) {
    elements[i] = value;
  }
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count,
                                         CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemsetD32Async");
  unsigned int *elements = (unsigned int *)(uintptr_t)to;
  for (size_t i = 0; i < count; ++i) {
    elements[i] = value;
  }
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuMemHostRegister_v2");
  uintptr_t start = (uintptr_t)pointer;
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (find_memory(start) != NULL || find_memory(start + bytes - 1) != NULL) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  object *registration = make_object(OBJECT_REGISTRATION);
  registration->start = pointer;
  registration->bytes = bytes;
  ++the_driver.live_registrations;
  the_driver.last_register_flags = flags;
  the_driver.last_register_start = start;
  the_driver.last_register_bytes = bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostUnregister(void *pointer) {
  ENTER_WITH_CONTEXT("cuMemHostUnregister");
  object *registration = find_memory((CUdeviceptr)(uintptr_t)pointer);
  if (registration == NULL || registration->kind != OBJECT_REGISTRATION ||
      registration->start != pointer) {
    violate("memory unregistered that is not registered");
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  registration->kind = OBJECT_NONE;
  --the_driver.live_registrations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                                              CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuPointerGetAttribute");
  const object *memory = find_memory(address);
  if (memory == NULL || memory->is_graphs) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch ((int)attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(CUmemorytype *)value =
        memory->kind == OBJECT_REGISTRATION ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(CUmemoryPool *)value =
        memory->kind == OBJECT_POOLED_MEMORY ? (CUmemoryPool)(uintptr_t)1 : NULL;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static fake_kind kind_of(CUdeviceptr address) {
  const object *memory = find_memory(address);
  if (memory == NULL) {
    return FAKE_UNKNOWN;
  }
  if (memory->kind == OBJECT_REGISTRATION) {
    return FAKE_REGISTERED;
  }
  return memory->is_managed ? FAKE_MANAGED : FAKE_DEVICE;
}

EXPORT fake_kind fake_kind_of(const void *pointer) {
  return kind_of((CUdeviceptr)(uintptr_t)pointer);
}

// For unknown memory the attributes are zeros, which is not a failure.
EXPORT CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                               void **values, CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuPointerGetAttributes");
  const object *memory = find_memory(address);
  fake_kind kind = kind_of(address);
  for (unsigned int i = 0; i < count; ++i) {
    switch ((int)attributes[i]) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(CUmemorytype *)values[i] = kind == FAKE_UNKNOWN      ? (CUmemorytype)0
                                   : kind == FAKE_REGISTERED ? CU_MEMORYTYPE_HOST
                                                             : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned int *)values[i] = kind == FAKE_MANAGED;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)values[i] = memory != NULL && memory->context != NULL ? memory->context->ordinal : 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}
