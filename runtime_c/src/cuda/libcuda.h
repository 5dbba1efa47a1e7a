// The CUDA driver: its symbols, the meaning of its results, and its state for each context.
#ifndef AOTC_RT_LIBCUDA_H
#define AOTC_RT_LIBCUDA_H

#include <cuda.h>

#include "../state.h"

// Every symbol of libcuda.so.1 that the runtime calls: need, member, symbol, and a declaration of
// cuda.h with its type. The symbol is spelled out because cuda.h #defines the plain names to their
// newest versions: "cuEventElapsedTime" is the version that every driver has.
//
// REQUIRED symbols are in every driver since CUDA 11.4; OPTIONAL ones are newer, and NULL if
// missing.
#define AOTC_RT_CUDA_SYMBOLS(X)                                                                    \
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
  X(REQUIRED, event_elapsed_time, "cuEventElapsedTime", aotc_rt_cuda_event_elapsed_time)           \
  X(REQUIRED, mem_alloc, "cuMemAlloc_v2", cuMemAlloc_v2)                                           \
  X(REQUIRED, mem_alloc_managed, "cuMemAllocManaged", cuMemAllocManaged)                           \
  X(OPTIONAL, mem_prefetch_async, "cuMemPrefetchAsync", aotc_rt_cuda_mem_prefetch_async)           \
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
  X(OPTIONAL, mem_get_granularity, "cuMemGetAllocationGranularity", cuMemGetAllocationGranularity) \
  X(OPTIONAL, mem_address_reserve, "cuMemAddressReserve", cuMemAddressReserve)                     \
  X(OPTIONAL, mem_address_free, "cuMemAddressFree", cuMemAddressFree)                              \
  X(OPTIONAL, mem_create, "cuMemCreate", cuMemCreate)                                              \
  X(OPTIONAL, mem_release, "cuMemRelease", cuMemRelease)                                           \
  X(OPTIONAL, mem_map, "cuMemMap", cuMemMap)                                                       \
  X(OPTIONAL, mem_set_access, "cuMemSetAccess", cuMemSetAccess)                                    \
  X(OPTIONAL, mem_unmap, "cuMemUnmap", cuMemUnmap)                                                 \
  X(OPTIONAL, func_get_param_info, "cuFuncGetParamInfo", cuFuncGetParamInfo)                       \
  X(OPTIONAL, stream_begin_capture, "cuStreamBeginCapture_v2", cuStreamBeginCapture_v2)            \
  X(OPTIONAL, stream_get_capture_info, "cuStreamGetCaptureInfo_v3", cuStreamGetCaptureInfo_v3)     \
  X(OPTIONAL, stream_end_capture, "cuStreamEndCapture", cuStreamEndCapture)                        \
  X(OPTIONAL, graph_instantiate, "cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags)       \
  X(OPTIONAL, graph_exec_kernel_node_set_params, "cuGraphExecKernelNodeSetParams_v2",              \
    cuGraphExecKernelNodeSetParams_v2)                                                             \
  X(OPTIONAL, graph_launch, "cuGraphLaunch", cuGraphLaunch)                                        \
  X(OPTIONAL, graph_exec_destroy, "cuGraphExecDestroy", cuGraphExecDestroy)                        \
  X(OPTIONAL, graph_destroy, "cuGraphDestroy", cuGraphDestroy)                                     \
  X(OPTIONAL, tensor_map_encode_tiled, "cuTensorMapEncodeTiled", cuTensorMapEncodeTiled)           \
  X(OPTIONAL, tensor_map_encode_im2col, "cuTensorMapEncodeIm2col", cuTensorMapEncodeIm2col)

// The type of the "cuEventElapsedTime" that every driver has; cuda.h 13 only declares its
// successor.
typedef CUresult CUDAAPI aotc_rt_cuda_event_elapsed_time(float *, CUevent, CUevent);
// Likewise.
typedef CUresult CUDAAPI aotc_rt_cuda_mem_prefetch_async(CUdeviceptr, size_t, CUdevice, CUstream);

// One number per symbol, for messages.
typedef enum aotc_rt_cuda_call {
#define AOTC_RT_ENUMERATE(need, member, symbol, type) AOTC_RT_CUDA_CALL_##member,
  AOTC_RT_CUDA_SYMBOLS(AOTC_RT_ENUMERATE)
#undef AOTC_RT_ENUMERATE
} aotc_rt_cuda_call;

typedef struct aotc_rt_libcuda_symbols {
#define AOTC_RT_DECLARE(need, member, symbol, type) __typeof__(type) *member;
  AOTC_RT_CUDA_SYMBOLS(AOTC_RT_DECLARE)
#undef AOTC_RT_DECLARE
  int version; // 12040 for CUDA 12.4
  int device_count;
} aotc_rt_libcuda_symbols;

// Written once, before the device is selected.
extern aotc_rt_libcuda_symbols aotc_rt_libcuda;

// The meaning of an error code.
aotc_rt_result aotc_rt_cuda_failure(CUresult code, aotc_rt_cuda_call call);

static inline aotc_rt_result aotc_rt_cuda_result(CUresult code, aotc_rt_cuda_call call) {
  return code == CUDA_SUCCESS ? (aotc_rt_result){.code = 0} : aotc_rt_cuda_failure(code, call);
}

// Calls the CUDA driver: CUDA_CALL(mem_free, (address)).
#define CUDA_CALL(member, arguments)                                                               \
  aotc_rt_cuda_result(aotc_rt_libcuda.member arguments, AOTC_RT_CUDA_CALL_##member)
// The same, and returns on failure: CUDA_TRY(mem_free, (address), "%d bytes", 4).
#define CUDA_TRY(member, arguments, ...)                                                           \
  aotc_rt_check(&aotc_rt_cuda, CUDA_CALL(member, arguments), __VA_ARGS__)
#define CUDA_TRY_RELEASE(member, arguments, ...)                                                   \
  aotc_rt_check_release(&aotc_rt_cuda, CUDA_CALL(member, arguments), __VA_ARGS__)

// Conversion between the driver's addresses and C pointers.
static inline CUdeviceptr aotc_rt_cuda_address(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}
static inline void *aotc_rt_cuda_pointer(CUdeviceptr address) {
  return (void *)(uintptr_t)address;
}

// -------------------------------------------------------------------------------------------------
// Contexts

#define AOTC_RT_CUDA_MAX_RANK 5

// The parameters a tensor map is encoded from, without padding, because they are compared as bytes.
// Sizes and strides are in CUDA's order, innermost dimension first. In im2col mode, the sizes of
// the box are the channels per pixel and the number of pixels, and the corners bound the first
// pixels of the windows, in the dimensions between channels and images.
typedef struct aotc_rt_cuda_encoding {
  int64_t data_type, interleave, swizzle, l2_promotion, oob_fill, rank, is_im2col;
  void *address;
  uint64_t sizes[AOTC_RT_CUDA_MAX_RANK], strides[AOTC_RT_CUDA_MAX_RANK];
  uint32_t box_sizes[AOTC_RT_CUDA_MAX_RANK], element_strides[AOTC_RT_CUDA_MAX_RANK];
  int32_t lower_corner[AOTC_RT_CUDA_MAX_RANK - 2], upper_corner[AOTC_RT_CUDA_MAX_RANK - 2];
} aotc_rt_cuda_encoding;

typedef struct aotc_rt_cuda_tensor_map {
  struct aotc_rt_cuda_tensor_map *next;
  CUtensorMap map;
  aotc_rt_cuda_encoding encoding;
  CUdeviceptr address;
} aotc_rt_cuda_tensor_map;

#define AOTC_RT_CUDA_TENSOR_MAP_BUCKETS 256

// Device memory that tensor maps are allocated from.
typedef struct aotc_rt_cuda_slab {
  struct aotc_rt_cuda_slab *next;
  CUdeviceptr address;
  size_t bytes_left;
} aotc_rt_cuda_slab;

typedef struct aotc_rt_cuda_context {
  aotc_rt_context common;
  CUdevice device;
  bool is_retained; // must be released
  bool has_id;      // distinguishes it from a later context at the same address
  unsigned long long id;
  CUmemoryPool memory_pool; // NULL if the device or the driver does not support pools
  // Under the lock: tensor maps with equal parameters share an address in a slab.
  aotc_rt_cuda_tensor_map *tensor_maps[AOTC_RT_CUDA_TENSOR_MAP_BUCKETS];
  aotc_rt_cuda_slab *slabs; // only the first has room
} aotc_rt_cuda_context;

// -------------------------------------------------------------------------------------------------
// The functions of the driver's table; driver.h documents them

bool aotc_rt_cuda_describe_device(int32_t ordinal, aotc_device *out_description);
aotc_rt_result aotc_rt_cuda_context_of(aotc_rt_stream stream, aotc_rt_context_handle *out_context);
aotc_rt_context *aotc_rt_cuda_context_open(aotc_rt_context_handle handle, int32_t ordinal);
aotc_rt_result aotc_rt_cuda_context_close(aotc_rt_context *context);
bool aotc_rt_cuda_context_exists(const aotc_rt_context *context);
void aotc_rt_cuda_context_empty(aotc_rt_context *context, bool is_current);

bool aotc_rt_cuda_module_load(aotc_rt_module *module, aotc_rt_module_handle *out_handle);
aotc_rt_result aotc_rt_cuda_module_unload(const aotc_rt_module *module,
                                          aotc_rt_module_handle handle);
bool aotc_rt_cuda_kernel_find(const aotc_rt_kernel *kernel, aotc_rt_module_handle handle,
                              aotc_rt_binding *binding);
aotc_rt_result aotc_rt_cuda_kernel_allow(aotc_rt_function function, aotc_rt_allowance what,
                                         int value);
aotc_rt_result aotc_rt_cuda_launch(const aotc_rt_binding *binding, const aotc_rt_launch *launch,
                                   aotc_rt_stream stream);

aotc_rt_result aotc_rt_cuda_kernel_parameter(aotc_rt_function function, uint32_t index,
                                             size_t *out_bytes, bool *out_is_there);
aotc_rt_result aotc_rt_cuda_graph_begin(aotc_rt_stream stream, int count, void **out_nodes);
aotc_rt_result aotc_rt_cuda_graph_note(aotc_rt_stream stream, void *nodes, int index);
aotc_rt_result aotc_rt_cuda_graph_end(aotc_rt_stream stream, void *nodes, bool is_whole,
                                      aotc_rt_graph *out_graph);
aotc_rt_result aotc_rt_cuda_graph_update(aotc_rt_graph graph, int index,
                                         const aotc_rt_binding *binding, const aotc_rt_launch *l);
aotc_rt_result aotc_rt_cuda_graph_launch(aotc_rt_graph graph, aotc_rt_stream stream);
aotc_rt_result aotc_rt_cuda_graph_destroy(aotc_rt_graph graph);

aotc_rt_result aotc_rt_cuda_stream_is_capturing(aotc_rt_stream stream, bool *out_is_capturing);

aotc_rt_result aotc_rt_cuda_memory_allocate(const aotc_rt_context *context, aotc_memory_kind kind,
                                            size_t bytes, aotc_rt_stream stream,
                                            void **out_pointer);
aotc_rt_result aotc_rt_cuda_memory_free(void *pointer, aotc_rt_stream stream);
aotc_rt_result aotc_rt_cuda_memory_is_ordered(const aotc_rt_context *context, const void *pointer,
                                              aotc_rt_stream stream, bool *out_is_ordered);
aotc_rt_result aotc_rt_cuda_memory_locate(const void *pointer, aotc_rt_place *out_place);
aotc_rt_result aotc_rt_cuda_memory_copy(void *to, const void *from, size_t bytes,
                                        aotc_rt_stream stream);
aotc_rt_result aotc_rt_cuda_memory_fill(void *to, uint32_t value, size_t element_bytes,
                                        size_t count, aotc_rt_stream stream);
aotc_rt_result aotc_rt_cuda_pages_granularity(const aotc_rt_context *context, size_t *out_bytes);
aotc_rt_result aotc_rt_cuda_pages_reserve(size_t bytes, void **out_pointer);
aotc_rt_result aotc_rt_cuda_pages_unreserve(void *pointer, size_t bytes);
aotc_rt_result aotc_rt_cuda_page_make(const aotc_rt_context *context, size_t bytes,
                                      uint64_t *out_page);
aotc_rt_result aotc_rt_cuda_page_free(uint64_t page);
aotc_rt_result aotc_rt_cuda_page_map(const aotc_rt_context *context, void *pointer, size_t bytes,
                                     uint64_t page);
aotc_rt_result aotc_rt_cuda_page_unmap(void *pointer, size_t bytes);
aotc_rt_result aotc_rt_cuda_memory_register(void *pointer, size_t bytes);
aotc_rt_result aotc_rt_cuda_memory_unregister(void *pointer);

#endif // AOTC_RT_LIBCUDA_H
