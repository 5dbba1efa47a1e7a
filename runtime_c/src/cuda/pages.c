// Virtual addresses of a CUDA device, and mapping memory to them.
#include "libcuda.h"

static CUmemAllocationProp properties_of(const aotc_rt_context *context) {
  const aotc_rt_cuda_context *cuda = (const aotc_rt_cuda_context *)context;
  return (CUmemAllocationProp){
      .type = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
  };
}

aotc_rt_result aotc_rt_cuda_pages_granularity(const aotc_rt_context *context, size_t *out_bytes) {
  const CUmemAllocationProp properties = properties_of(context);
  return CUDA_CALL(mem_get_granularity,
                   (out_bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
}

aotc_rt_result aotc_rt_cuda_pages_reserve(size_t bytes, void **out_pointer) {
  CUdeviceptr address = 0;
  aotc_rt_result result = CUDA_CALL(mem_address_reserve, (&address, bytes, 0, 0, 0));
  *out_pointer = result.code == 0 ? aotc_rt_cuda_pointer(address) : NULL;
  return result;
}

aotc_rt_result aotc_rt_cuda_pages_unreserve(void *pointer, size_t bytes) {
  return CUDA_CALL(mem_address_free, (aotc_rt_cuda_address(pointer), bytes));
}

aotc_rt_result aotc_rt_cuda_page_make(const aotc_rt_context *context, size_t bytes,
                                      uint64_t *out_page) {
  const CUmemAllocationProp properties = properties_of(context);
  CUmemGenericAllocationHandle handle = 0;
  aotc_rt_result result = CUDA_CALL(mem_create, (&handle, bytes, &properties, 0));
  *out_page = handle;
  return result;
}

aotc_rt_result aotc_rt_cuda_page_free(uint64_t page) {
  return CUDA_CALL(mem_release, (page));
}

aotc_rt_result aotc_rt_cuda_page_map(const aotc_rt_context *context, void *pointer, size_t bytes,
                                     uint64_t page) {
  CUdeviceptr address = aotc_rt_cuda_address(pointer);
  aotc_rt_result result = CUDA_CALL(mem_map, (address, bytes, 0, page, 0));
  if (result.code != 0) {
    return result;
  }
  const CUmemAccessDesc access = {
      .location = properties_of(context).location,
      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
  };
  result = CUDA_CALL(mem_set_access, (address, bytes, &access, 1));
  if (result.code != 0) {
    aotc_rt_libcuda.mem_unmap(address, bytes);
  }
  return result;
}

aotc_rt_result aotc_rt_cuda_page_unmap(void *pointer, size_t bytes) {
  return CUDA_CALL(mem_unmap, (aotc_rt_cuda_address(pointer), bytes));
}
