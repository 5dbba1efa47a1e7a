// The functions that MLIR's GPU lowering calls: the mgpu* ABI of LLVM 24 (2026-09), cuSPARSE aside.
//
// Programs made by mlir-translate and clang, and those made by aotc, declare these functions
// themselves. This header documents the ABI, and a test compares it with the `declare @mgpu...` of
// lowered IR.
//
// The rules at the top of aotc_runtime.h hold here: nothing starts CUDA before the first call that
// needs a device, no call exits or prints, a failure is recorded for its thread, and after it the
// calls do nothing until aotc_error_clear. Pointers that are returned are then NULL; only
// host-shared memory is then zeroed host memory, so that host code can run to its end.
//
// Handles (modules, functions, streams, events) are opaque. A stream is a CUstream if the device is
// CUDA, so that a caller's stream can be used. A NULL stream is the thread's adopted stream if
// there is one, else CUDA's default stream; copies and fills on the latter are waited for.
//
// A call uses the thread's current context if there is one (and it is on the requested device, if
// one was requested by number), else the primary context of the chosen device, for the duration of
// the call.
//
// What the driver holds for the process (primary contexts, pooled streams, tensor maps) is kept
// until the process ends. mgpuModuleUnload unloads images.
#ifndef MLIR_CUDA_RUNTIME_H
#define MLIR_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// -------------------------------------------------------------------------------------------------
// Modules and kernels

// Remembers an image (cubin, fatbin, or PTX text) and returns a handle. The image must stay where
// it is until mgpuModuleUnload. It is loaded on a device by the first use of that device. NULL only
// when memory runs out.
AOTC_API void *mgpuModuleLoad(void *image, size_t bytes);

// The same for PTX text, which the driver compiles at `optimization_level` (0 to 4) when it loads
// it. The text need not end with a NUL.
AOTC_API void *mgpuModuleLoadJIT(void *image, int32_t optimization_level, size_t bytes);

// Unloads the image from every device, and removes it and its registration. Handles of its kernels
// become invalid. It may be called at the end of the process, after the driver has shut down. NULL
// is allowed.
AOTC_API void mgpuModuleUnload(void *module);

// A kernel's handle, valid until mgpuModuleUnload. It is called for every launch, and costs a table
// lookup. A name that the image does not have is reported by the launch.
AOTC_API void *mgpuModuleGetFunction(void *module, const char *name);

// Launches. `parameters` are the addresses of the kernel's arguments; they are read before the call
// returns. `dynamic_shared_bytes` above 48 KiB are allowed up to what the device has. On the CPU
// device the call returns when the kernel is done. Sizes that CUDA refuses (a grid or block size
// below 1, more than 1024 threads, ...) are AOTC_LAUNCH_FAILED on every device.
AOTC_API void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                               intptr_t block_x, intptr_t block_y, intptr_t block_z,
                               int32_t dynamic_shared_bytes, void *stream, void **parameters,
                               void **extra, size_t parameter_count);

// Launches thread block clusters (sm_90 and newer). Grid sizes count blocks. On the CPU device only
// clusters of 1 x 1 x 1 run.
AOTC_API void mgpuLaunchClusterKernel(void *function, intptr_t cluster_x, intptr_t cluster_y,
                                      intptr_t cluster_z, intptr_t grid_x, intptr_t grid_y,
                                      intptr_t grid_z, intptr_t block_x, intptr_t block_y,
                                      intptr_t block_z, int32_t dynamic_shared_bytes, void *stream,
                                      void **parameters, void **extra);

// Launches a grid whose blocks all run at the same time, so that it can synchronize as a whole.
// Cluster sizes of 0 mean no clusters. On the CPU device only grids of one block run.
AOTC_API void mgpuLaunchKernelCooperative(void *function, intptr_t grid_x, intptr_t grid_y,
                                          intptr_t grid_z, intptr_t cluster_x, intptr_t cluster_y,
                                          intptr_t cluster_z, intptr_t block_x, intptr_t block_y,
                                          intptr_t block_z, int32_t dynamic_shared_bytes,
                                          void *stream, void **parameters, void **extra);

// -------------------------------------------------------------------------------------------------
// Streams and events

// A stream from the runtime's pool, or, on a GPU, this thread's adopted stream.
AOTC_API void *mgpuStreamCreate(void);

// Returns the stream to the pool at once; its work continues. (After a failure on this thread it
// first waits for that work, so that a failed function leaves nothing running.) Does nothing for
// streams that are not the pool's.
AOTC_API void mgpuStreamDestroy(void *stream);

// Waits for the stream's work; reports kernels that failed while running. Does nothing for an
// adopted stream unless its adoption allows it.
AOTC_API void mgpuStreamSynchronize(void *stream);

// Makes the stream's later work wait for the event.
AOTC_API void mgpuStreamWaitEvent(void *stream, void *event);

AOTC_API void *mgpuEventCreate(void);
AOTC_API void mgpuEventDestroy(void *event);
// Does nothing while a stream is adopted that must not be synchronized.
AOTC_API void mgpuEventSynchronize(void *event);
AOTC_API void mgpuEventRecord(void *event, void *stream);

// -------------------------------------------------------------------------------------------------
// Memory

// Allocates device memory, in stream order if there is a stream and the device supports it, or
// managed memory if `is_host_shared` is not 0. 0 bytes give a valid pointer. If host-shared memory
// cannot be allocated, the result is zeroed host memory, which no GPU can access.
AOTC_API void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t is_host_shared);

// Frees the memory: stream-ordered memory after the stream's work so far, any other memory (or any
// memory, if there is no stream) after the device's work so far. NULL is allowed.
AOTC_API void mgpuMemFree(void *pointer, void *stream);

// Copies between any mix of host, managed and device pointers, in stream order.
AOTC_API void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream);

// Fill `count` elements of 32 or 16 bits, in stream order.
AOTC_API void mgpuMemset32(void *to, uint32_t value, size_t count, void *stream);
AOTC_API void mgpuMemset16(void *to, uint16_t value, size_t count, void *stream);

// Makes host memory accessible to the GPU. Nothing is done for memory that it can access already
// (device, managed or registered memory), and for 0 bytes. Registrations of a range nest: it is
// unregistered when mgpuMemHostUnregister was called as often, with the same pointer.
AOTC_API void mgpuMemHostRegister(void *pointer, uint64_t bytes);
AOTC_API void mgpuMemHostUnregister(void *pointer);

// The same for all bytes of a memref, from its lowest to its highest element, for any offset and
// strides (also negative and zero ones). Nothing is done for a memref without elements.
// `descriptor` is the address of a ranked memref descriptor.
AOTC_API void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor, int64_t element_bytes);
AOTC_API void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor, int64_t element_bytes);

// Sets this thread's CUDA device. A device that was requested by number (AOTC_DEVICE=cuda:N) takes
// precedence, and the CPU device ignores it.
AOTC_API void mgpuSetDefaultDevice(int32_t ordinal);

// -------------------------------------------------------------------------------------------------
// TMA descriptors (tensor maps), for sm_90 and newer; AOTC_UNSUPPORTED on the CPU device

// Fills the CUtensorMap at `out_tensor_map`, on the host. The values are those of cuda.h. Sizes and
// strides are in CUDA's order: innermost dimension first, strides in bytes without the innermost
// one.
AOTC_API void mgpuTensorMapEncodeTiled(void *out_tensor_map, int32_t data_type, uint32_t rank,
                                       void *address, const uint64_t *sizes,
                                       const uint64_t *strides, const uint32_t *box_sizes,
                                       const uint32_t *element_strides, int32_t interleave,
                                       int32_t swizzle, int32_t l2_promotion, int32_t oob_fill);

// Makes a tensor map of a memref of rank 1 to 5, with box sizes in the memref's order, outermost
// first. Returns its address in device memory, where it stays: equal tensor maps share an address.
AOTC_API void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor, int64_t data_type,
                                              int64_t interleave, int64_t swizzle,
                                              int64_t l2_promotion, int64_t oob_fill,
                                              int64_t *box_sizes);

#ifdef __cplusplus
}
#endif

#endif // MLIR_CUDA_RUNTIME_H
