// The CUDA driver: its symbols, how they are found, and how the result of a call is checked.
#ifndef AOTC_RT_DRIVER_H
#define AOTC_RT_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "aotc_runtime.h"

// Every symbol of libcuda.so.1 that the runtime calls: need, member, symbol, and a declaration of
// cuda.h that has its type. The symbol is spelled out because cuda.h #defines the plain names to
// whichever version is its newest: "cuEventElapsedTime" is the one that every driver has.
//
// All that is REQUIRED is in drivers for CUDA 11.4; what came later is OPTIONAL, NULL when missing.
#define AOTC_RT_DRIVER_SYMBOLS(X)                                                                  \
  X(REQUIRED, init, "cuInit", cuInit)                                                              \
  X(REQUIRED, driver_get_version, "cuDriverGetVersion", cuDriverGetVersion)                        \
  X(REQUIRED, get_error_name, "cuGetErrorName", cuGetErrorName)                                    \
  X(REQUIRED, get_error_string, "cuGetErrorString", cuGetErrorString)                              \
  X(REQUIRED, device_get, "cuDeviceGet", cuDeviceGet)                                              \
  X(REQUIRED, device_get_count, "cuDeviceGetCount", cuDeviceGetCount)                              \
  X(REQUIRED, device_get_name, "cuDeviceGetName", cuDeviceGetName)                                 \
  X(REQUIRED, device_get_attribute, "cuDeviceGetAttribute", cuDeviceGetAttribute)                  \
  X(REQUIRED, device_total_mem, "cuDeviceTotalMem_v2", cuDeviceTotalMem_v2)                        \
  X(REQUIRED, primary_ctx_get_state, "cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState)     \
  X(REQUIRED, primary_ctx_retain, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain)            \
  X(REQUIRED, primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease_v2)   \
  X(REQUIRED, ctx_get_current, "cuCtxGetCurrent", cuCtxGetCurrent)                                 \
  X(REQUIRED, ctx_get_device, "cuCtxGetDevice", cuCtxGetDevice)                                    \
  X(OPTIONAL, ctx_get_id, "cuCtxGetId", cuCtxGetId)                                                \
  X(REQUIRED, ctx_push_current, "cuCtxPushCurrent_v2", cuCtxPushCurrent_v2)                        \
  X(REQUIRED, ctx_pop_current, "cuCtxPopCurrent_v2", cuCtxPopCurrent_v2)                           \
  X(REQUIRED, ctx_synchronize, "cuCtxSynchronize", cuCtxSynchronize)                               \
  X(REQUIRED, thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode",                   \
    cuThreadExchangeStreamCaptureMode)                                                             \
  X(OPTIONAL, library_load_data, "cuLibraryLoadData", cuLibraryLoadData)                           \
  X(OPTIONAL, library_get_module, "cuLibraryGetModule", cuLibraryGetModule)                        \
  X(OPTIONAL, library_unload, "cuLibraryUnload", cuLibraryUnload)                                  \
  X(REQUIRED, module_load_data_ex, "cuModuleLoadDataEx", cuModuleLoadDataEx)                       \
  X(REQUIRED, module_unload, "cuModuleUnload", cuModuleUnload)                                     \
  X(REQUIRED, module_get_function, "cuModuleGetFunction", cuModuleGetFunction)                     \
  X(REQUIRED, func_get_attribute, "cuFuncGetAttribute", cuFuncGetAttribute)                        \
  X(REQUIRED, func_set_attribute, "cuFuncSetAttribute", cuFuncSetAttribute)                        \
  X(REQUIRED, launch_kernel, "cuLaunchKernel", cuLaunchKernel)                                     \
  X(OPTIONAL, launch_kernel_ex, "cuLaunchKernelEx", cuLaunchKernelEx)                              \
  X(REQUIRED, launch_cooperative_kernel, "cuLaunchCooperativeKernel", cuLaunchCooperativeKernel)   \
  X(REQUIRED, stream_get_ctx, "cuStreamGetCtx", cuStreamGetCtx)                                    \
  X(REQUIRED, stream_is_capturing, "cuStreamIsCapturing", cuStreamIsCapturing)                     \
  X(REQUIRED, stream_destroy, "cuStreamDestroy_v2", cuStreamDestroy_v2)                            \
  X(REQUIRED, stream_create, "cuStreamCreate", cuStreamCreate)                                     \
  X(REQUIRED, stream_synchronize, "cuStreamSynchronize", cuStreamSynchronize)                      \
  X(REQUIRED, stream_wait_event, "cuStreamWaitEvent", cuStreamWaitEvent)                           \
  X(REQUIRED, event_create, "cuEventCreate", cuEventCreate)                                        \
  X(REQUIRED, event_destroy, "cuEventDestroy_v2", cuEventDestroy_v2)                               \
  X(REQUIRED, event_record, "cuEventRecord", cuEventRecord)                                        \
  X(REQUIRED, event_synchronize, "cuEventSynchronize", cuEventSynchronize)                         \
  X(REQUIRED, event_elapsed_time, "cuEventElapsedTime", aotc_rt_event_elapsed_time)                \
  X(REQUIRED, mem_alloc, "cuMemAlloc_v2", cuMemAlloc_v2)                                           \
  X(REQUIRED, mem_alloc_managed, "cuMemAllocManaged", cuMemAllocManaged)                           \
  X(OPTIONAL, mem_prefetch_async, "cuMemPrefetchAsync", aotc_rt_mem_prefetch_async)                \
  X(REQUIRED, mem_free, "cuMemFree_v2", cuMemFree_v2)                                              \
  X(OPTIONAL, mem_pool_create, "cuMemPoolCreate", cuMemPoolCreate)                                 \
  X(OPTIONAL, mem_pool_destroy, "cuMemPoolDestroy", cuMemPoolDestroy)                              \
  X(OPTIONAL, mem_pool_set_attribute, "cuMemPoolSetAttribute", cuMemPoolSetAttribute)              \
  X(OPTIONAL, mem_alloc_from_pool_async, "cuMemAllocFromPoolAsync", cuMemAllocFromPoolAsync)       \
  X(OPTIONAL, mem_free_async, "cuMemFreeAsync", cuMemFreeAsync)                                    \
  X(REQUIRED, memcpy_async, "cuMemcpyAsync", cuMemcpyAsync)                                        \
  X(REQUIRED, memset_d16_async, "cuMemsetD16Async", cuMemsetD16Async)                              \
  X(REQUIRED, memset_d32_async, "cuMemsetD32Async", cuMemsetD32Async)                              \
  X(REQUIRED, mem_host_register, "cuMemHostRegister_v2", cuMemHostRegister_v2)                     \
  X(REQUIRED, mem_host_unregister, "cuMemHostUnregister", cuMemHostUnregister)                     \
  X(REQUIRED, pointer_get_attribute, "cuPointerGetAttribute", cuPointerGetAttribute)               \
  X(REQUIRED, pointer_get_attributes, "cuPointerGetAttributes", cuPointerGetAttributes)            \
  X(OPTIONAL, tensor_map_encode_tiled, "cuTensorMapEncodeTiled", cuTensorMapEncodeTiled)

// The type of the "cuEventElapsedTime" that every driver has; cuda.h 13 declares its successor
// only.
typedef CUresult CUDAAPI aotc_rt_event_elapsed_time(float *, CUevent, CUevent);
// Likewise.
typedef CUresult CUDAAPI aotc_rt_mem_prefetch_async(CUdeviceptr, size_t, CUdevice, CUstream);

// One name per symbol, for messages.
typedef enum aotc_rt_call {
#define AOTC_RT_ENUMERATE(need, member, symbol, type) AOTC_RT_CALL_##member,
  AOTC_RT_DRIVER_SYMBOLS(AOTC_RT_ENUMERATE)
#undef AOTC_RT_ENUMERATE
} aotc_rt_call;

typedef struct aotc_rt_driver {
#define AOTC_RT_DECLARE(need, member, symbol, type) __typeof__(type) *member;
  AOTC_RT_DRIVER_SYMBOLS(AOTC_RT_DECLARE)
#undef AOTC_RT_DECLARE
  int version; // 12040 for CUDA 12.4
  int device_count;
} aotc_rt_driver;

// Opens libcuda.so.1, finds the symbols, initializes the driver and counts the devices (there is at
// least one on success). Fills *out_driver; on failure records why.
bool aotc_rt_driver_load(aotc_rt_driver *out_driver);

// Whether `result` is success; if not, records the failure of `call` with what the format says of
// it.
__attribute__((format(printf, 4, 5))) bool aotc_rt_check(const aotc_rt_driver *driver,
                                                         CUresult result, aotc_rt_call call,
                                                         const char *format, ...);

// The same for the wait behind one launch: whatever goes wrong is that kernel's failure.
__attribute__((format(printf, 4, 5))) bool aotc_rt_check_kernel(const aotc_rt_driver *driver,
                                                                CUresult result, aotc_rt_call call,
                                                                const char *format, ...);

// Makes a driver call and checks it: AOTC_RT_TRY(driver, mem_alloc, (&address, bytes), "%d bytes",
// 4).
#define AOTC_RT_TRY(driver, call, arguments, ...)                                                  \
  aotc_rt_check((driver), (driver)->call arguments, AOTC_RT_CALL_##call, __VA_ARGS__)

// The same for calls that release something: a driver that has shut down already (this is the end
// of the process) or a context that is gone has released it, and is no failure.
__attribute__((format(printf, 4, 5))) bool aotc_rt_check_release(const aotc_rt_driver *driver,
                                                                 CUresult result, aotc_rt_call call,
                                                                 const char *format, ...);

// The driver's addresses and the pointers of C.
static inline CUdeviceptr aotc_rt_address_of(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}
static inline void *aotc_rt_pointer_to(CUdeviceptr address) {
  return (void *)(uintptr_t)address;
}

#endif // AOTC_RT_DRIVER_H
