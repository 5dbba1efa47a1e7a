// The fake driver: virtual addresses of the device, and mapping memory to them.
#include "state.h"

#ifndef FAKE_OLD_DRIVER
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY 4096

// A page is an in-memory file; access to unmapped addresses faults.
static void *forbid(void *place, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place != NULL ? MAP_FIXED : 0);
  return mmap(place, bytes, PROT_NONE, flags, -1, 0);
}

EXPORT CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *bytes,
                                                      const CUmemAllocationProp *properties,
                                                      CUmemAllocationGranularity_flags flags) {
  ENTER("cuMemGetAllocationGranularity");
  (void)properties;
  (void)flags;
  *bytes = GRANULARITY;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                            CUdeviceptr wanted, unsigned long long flags) {
  ENTER("cuMemAddressReserve");
  if (bytes % GRANULARITY != 0 || alignment != 0 || wanted != 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void *place = forbid(NULL, bytes);
  if (place == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  COUNT(live_reservations, 1);
  *address = (CUdeviceptr)(uintptr_t)place;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  ENTER("cuMemAddressFree");
  COUNT(live_reservations, -1);
  return munmap((void *)(uintptr_t)address, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                                    const CUmemAllocationProp *properties,
                                    unsigned long long flags) {
  ENTER("cuMemCreate");
  int file = memfd_create("page", MFD_CLOEXEC);
  if (bytes % GRANULARITY != 0 || flags != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  COUNT(live_pages, 1);
  COUNT(page_bytes, bytes);
  *handle = (CUmemGenericAllocationHandle)file;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER("cuMemRelease");
  COUNT(live_pages, -1);
  return close((int)handle) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  ENTER("cuMemMap");
  void *place = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                     (int)handle, (off_t)offset);
  return place != MAP_FAILED && flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes,
                                       const CUmemAccessDesc *access, size_t count) {
  ENTER("cuMemSetAccess");
  return count == 1 && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
                 mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
  ENTER("cuMemUnmap");
  return forbid((void *)(uintptr_t)address, bytes) != MAP_FAILED ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_VALUE;
}
#endif // FAKE_OLD_DRIVER
