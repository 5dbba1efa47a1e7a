// Memory of CUDA devices: allocating, freeing, classifying, copying and filling.
#include "libcuda.h"

// The page size of managed memory on GPUs.
#define SHARED_PAGE_BYTES 65536

static const aotc_rt_cuda_context *cuda_of(const aotc_rt_context *context) {
  return (const aotc_rt_cuda_context *)context;
}

static bool is_capturing(aotc_rt_stream stream) {
  bool is_captured = false;
  return aotc_rt_cuda_stream_is_capturing(stream, &is_captured).code == 0 && is_captured;
}

// Prefetches managed memory. Otherwise kernels fault on each new page that they touch first, which
// takes far longer than writing it. (Pages that the host writes first migrate back one by one.)
// This is a hint: not every device supports it, and nothing depends on it. It would invalidate a
// capture.
static void bring_to_device(const aotc_rt_context *context, CUdeviceptr address, size_t bytes,
                            aotc_rt_stream stream) {
  if (bytes >= SHARED_PAGE_BYTES && aotc_rt_libcuda.mem_prefetch_async != NULL &&
      !is_capturing(stream)) {
    aotc_rt_libcuda.mem_prefetch_async(address, bytes, cuda_of(context)->device, (CUstream)stream);
  }
}

aotc_rt_result aotc_rt_cuda_memory_allocate(const aotc_rt_context *context, aotc_memory_kind kind,
                                            size_t bytes, aotc_rt_stream stream,
                                            void **out_pointer) {
  CUdeviceptr address = 0;
  aotc_rt_result result;
  if (kind == AOTC_MEMORY_MANAGED) {
    result = CUDA_CALL(mem_alloc_managed, (&address, bytes, CU_MEM_ATTACH_GLOBAL));
    if (result.code == 0 && stream != NULL) {
      bring_to_device(context, address, bytes, stream);
    }
  } else if (stream != NULL && cuda_of(context)->memory_pool != NULL) {
    result = CUDA_CALL(mem_alloc_from_pool_async,
                       (&address, bytes, cuda_of(context)->memory_pool, (CUstream)stream));
  } else {
    result = CUDA_CALL(mem_alloc, (&address, bytes));
  }
  *out_pointer = result.code == 0 ? aotc_rt_cuda_pointer(address) : NULL;
  return result;
}

aotc_rt_result aotc_rt_cuda_memory_free(void *pointer, aotc_rt_stream stream) {
  CUdeviceptr address = aotc_rt_cuda_address(pointer);
  return stream != NULL ? CUDA_CALL(mem_free_async, (address, (CUstream)stream))
                        : CUDA_CALL(mem_free, (address));
}

aotc_rt_result aotc_rt_cuda_memory_is_ordered(const aotc_rt_context *context, const void *pointer,
                                              aotc_rt_stream stream, bool *out_is_ordered) {
  CUmemoryPool pool = NULL;
  *out_is_ordered = false;
  if (cuda_of(context)->memory_pool == NULL) {
    return (aotc_rt_result){.code = 0};
  }
  CUresult code = aotc_rt_libcuda.pointer_get_attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                                        aotc_rt_cuda_address(pointer));
  // Memory allocated during a capture belongs to the graph and does not exist yet.
  if (code == CUDA_ERROR_INVALID_VALUE && stream != NULL && is_capturing(stream)) {
    *out_is_ordered = true;
    return (aotc_rt_result){.code = 0};
  }
  *out_is_ordered = pool != NULL;
  return aotc_rt_cuda_result(code, AOTC_RT_CUDA_CALL_pointer_get_attribute);
}

aotc_rt_result aotc_rt_cuda_memory_locate(const void *pointer, aotc_rt_place *out_place) {
  CUmemorytype type = 0;
  unsigned int is_managed = 0;
  int ordinal = -1;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
  };
  void *values[] = {&type, &is_managed, &ordinal};
  // For unknown memory this query returns zeros; a query of a single attribute would return
  // «invalid value».
  CUresult code =
      aotc_rt_libcuda.pointer_get_attributes(3, attributes, values, aotc_rt_cuda_address(pointer));
  *out_place = (aotc_rt_place){
      .is_known = type != 0,
      .is_device = type == CU_MEMORYTYPE_DEVICE,
      .is_managed = is_managed != 0,
      .ordinal = ordinal,
  };
  return aotc_rt_cuda_result(code == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : code,
                             AOTC_RT_CUDA_CALL_pointer_get_attributes);
}

aotc_rt_result aotc_rt_cuda_memory_copy(void *to, const void *from, size_t bytes,
                                        aotc_rt_stream stream) {
  return CUDA_CALL(memcpy_async,
                   (aotc_rt_cuda_address(to), aotc_rt_cuda_address(from), bytes, (CUstream)stream));
}

aotc_rt_result aotc_rt_cuda_memory_fill(void *to, uint32_t value, size_t element_bytes,
                                        size_t count, aotc_rt_stream stream) {
  CUdeviceptr address = aotc_rt_cuda_address(to);
  return element_bytes == 2
             ? CUDA_CALL(memset_d16_async, (address, (uint16_t)value, count, (CUstream)stream))
             : CUDA_CALL(memset_d32_async, (address, value, count, (CUstream)stream));
}

aotc_rt_result aotc_rt_cuda_memory_register(void *pointer, size_t bytes) {
  return CUDA_CALL(mem_host_register,
                   (pointer, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

aotc_rt_result aotc_rt_cuda_memory_unregister(void *pointer) {
  return CUDA_CALL(mem_host_unregister, (pointer));
}
