// The CUDA driver, for programs that use a library beside it: libcuda.so.1 by dlopen.
#ifndef LIBRARY_DRIVER_H
#define LIBRARY_DRIVER_H

#include <stdbool.h>

#include <cuda.h>

// cuda.h calls its newest versions by the plain names. These are what every driver has.
typedef CUresult CUDAAPI context_create_v2(CUcontext *, unsigned int, CUdevice);
typedef CUresult CUDAAPI context_create_v4(CUcontext *, void *, unsigned int, CUdevice);
typedef CUresult CUDAAPI graph_instantiate_with_flags(CUgraphExec *, CUgraph, unsigned long long);

// Member, symbol, a declaration that has its type. All must be there, but for the two that make
// contexts: one of them is enough.
#define DRIVER_SYMBOLS(X)                                                                          \
  X(init, "cuInit", cuInit)                                                                        \
  X(error_name, "cuGetErrorName", cuGetErrorName)                                                  \
  X(device_count, "cuDeviceGetCount", cuDeviceGetCount)                                            \
  X(device_get, "cuDeviceGet", cuDeviceGet)                                                        \
  X(primary_retain, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain)                          \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease_v2)                 \
  X(context_destroy, "cuCtxDestroy_v2", cuCtxDestroy_v2)                                           \
  X(context_current, "cuCtxGetCurrent", cuCtxGetCurrent)                                           \
  X(context_use, "cuCtxSetCurrent", cuCtxSetCurrent)                                               \
  X(context_push, "cuCtxPushCurrent_v2", cuCtxPushCurrent_v2)                                      \
  X(context_pop, "cuCtxPopCurrent_v2", cuCtxPopCurrent_v2)                                         \
  X(context_wait, "cuCtxSynchronize", cuCtxSynchronize)                                            \
  X(memory_info, "cuMemGetInfo_v2", cuMemGetInfo_v2)                                               \
  X(allocate, "cuMemAlloc_v2", cuMemAlloc_v2)                                                      \
  X(allocate_managed, "cuMemAllocManaged", cuMemAllocManaged)                                      \
  X(free, "cuMemFree_v2", cuMemFree_v2)                                                            \
  X(allocate_pinned, "cuMemHostAlloc", cuMemHostAlloc)                                             \
  X(free_pinned, "cuMemFreeHost", cuMemFreeHost)                                                   \
  X(register_host, "cuMemHostRegister_v2", cuMemHostRegister_v2)                                   \
  X(unregister_host, "cuMemHostUnregister", cuMemHostUnregister)                                   \
  X(copy, "cuMemcpy", cuMemcpy)                                                                    \
  X(copy_async, "cuMemcpyAsync", cuMemcpyAsync)                                                    \
  X(set_async, "cuMemsetD32Async", cuMemsetD32Async)                                               \
  X(stream_create, "cuStreamCreate", cuStreamCreate)                                               \
  X(stream_destroy, "cuStreamDestroy_v2", cuStreamDestroy_v2)                                      \
  X(stream_wait, "cuStreamSynchronize", cuStreamSynchronize)                                       \
  X(capture_begin, "cuStreamBeginCapture_v2", cuStreamBeginCapture)                                \
  X(capture_end, "cuStreamEndCapture", cuStreamEndCapture)                                         \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", graph_instantiate_with_flags)                \
  X(graph_launch, "cuGraphLaunch", cuGraphLaunch)                                                  \
  X(graph_exec_destroy, "cuGraphExecDestroy", cuGraphExecDestroy)                                  \
  X(graph_destroy, "cuGraphDestroy", cuGraphDestroy)

typedef struct driver {
#define DRIVER_DECLARE(member, symbol, type) __typeof__(type) *member;
  DRIVER_SYMBOLS(DRIVER_DECLARE)
#undef DRIVER_DECLARE
  context_create_v2 *make_context_v2; // NULL: it has only the other
  context_create_v4 *make_context_v4;
} driver;

// Filled by driver_open.
extern driver cu;

// Opens the driver and starts it. Where there is none, or no GPU, the program says so and ends with
// exit code 77: skipped.
void driver_open(void);

// The same, but does not start the driver: a fork may follow.
void driver_find(void);

// Ends the program, saying what failed, unless the driver's call succeeded: MUST(cu.free(pointer)).
#define MUST(call) driver_must((call), #call, __FILE__, __LINE__)
void driver_must(CUresult result, const char *call, const char *file, int line);

// "CUDA_ERROR_ILLEGAL_ADDRESS"; never NULL.
const char *driver_error_name(CUresult result);

// The number of GPUs.
int driver_device_count(void);

// The primary context of the first GPU, retained and current on this thread.
CUcontext driver_use_primary(void);

// Another context of a GPU, current on this thread.
CUcontext driver_make_context(int ordinal);

// The thread's current context; NULL if there is none.
CUcontext driver_current(void);

// A stream that does not wait for the default stream, in the current context.
CUstream driver_make_stream(void);

// Free memory of the current context's device, in bytes, when all that was enqueued is done.
size_t driver_free_bytes(void);

#endif // LIBRARY_DRIVER_H
