// The fake driver: initialization, devices and contexts.
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static object the_primaries[FAKE_MAX_DEVICES];
static int the_primary_counts[FAKE_MAX_DEVICES];

// -------------------------------------------------------------------------------------------------
// Foreign contexts

EXPORT int fake_context_depth(void) {
  return the_depth;
}

EXPORT void *fake_context_make(int ordinal) {
  object *context = make_object(OBJECT_CONTEXT);
  context->ordinal = ordinal;
  return context;
}

EXPORT void fake_context_push(void *context) {
  the_stack[the_depth++] = context;
}

EXPORT void *fake_context_pop(void) {
  return the_stack[--the_depth];
}

EXPORT void fake_context_destroy(void *context) {
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    if (the_objects[i].kind == OBJECT_STREAM && the_objects[i].context == context) {
      the_objects[i].kind = OBJECT_NONE;
      --the_driver.live_streams;
    }
  }
  ((object *)context)->kind = OBJECT_NONE;
}

// -------------------------------------------------------------------------------------------------
// The driver and its devices

EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  ENTER("cuInit");
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion");
  *version = the_driver.version;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name) {
  ENTER("cuGetErrorName");
  switch ((int)error) {
  case CUDA_ERROR_INVALID_VALUE:
    *name = "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_OUT_OF_MEMORY:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
    *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
    return CUDA_SUCCESS;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return CUDA_SUCCESS;
  case CUDA_ERROR_UNKNOWN:
    *name = "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
  default:
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
  }
}

EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char **meaning) {
  ENTER("cuGetErrorString");
  (void)error;
  *meaning = "as the test asked for";
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount");
  *count = the_driver.device_count;
  return CUDA_SUCCESS;
}

// Handles differ from the ordinals, so that mixing them up is detected.
#define HANDLE_OF_ORDINAL(ordinal) ((ordinal) + 100)
#define ORDINAL_OF_HANDLE(handle) ((handle) - 100)

static bool is_device(CUdevice device) {
  return ORDINAL_OF_HANDLE(device) >= 0 && ORDINAL_OF_HANDLE(device) < the_driver.device_count;
}

EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= the_driver.device_count) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = HANDLE_OF_ORDINAL(ordinal);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetName(char *name, int bytes, CUdevice device) {
  ENTER("cuDeviceGetName");
  if (!is_device(device)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  snprintf(name, (size_t)bytes, "Fake %d", ORDINAL_OF_HANDLE(device));
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                             CUdevice device) {
  ENTER("cuDeviceGetAttribute");
  if (!is_device(device)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  int capability = the_driver.capability[ORDINAL_OF_HANDLE(device)];
  switch ((int)attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = capability / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = capability % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = the_driver.has_memory_pools ? 1 : 0;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

EXPORT CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER("cuDeviceTotalMem_v2");
  *bytes = (size_t)1 << 37;
  return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// -------------------------------------------------------------------------------------------------
// Contexts

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags,
                                                   int *active) {
  ENTER("cuDevicePrimaryCtxGetState");
  *flags = 0;
  *active = the_primary_counts[ORDINAL_OF_HANDLE(device)] > 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain");
  int ordinal = ORDINAL_OF_HANDLE(device);
  object *primary = &the_primaries[ordinal];
  if (the_primary_counts[ordinal]++ == 0) {
    *primary = (object){.kind = OBJECT_CONTEXT, .ordinal = ordinal, .id = the_next_id++};
  }
  ++the_driver.primary_references;
  *context = (CUcontext)primary;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER("cuDevicePrimaryCtxRelease_v2");
  int ordinal = ORDINAL_OF_HANDLE(device);
  if (the_primary_counts[ordinal] == 0) {
    violate("a primary context released that was not retained");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  --the_driver.primary_references;
  --the_primary_counts[ordinal];
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  ENTER("cuCtxGetCurrent");
  *context = the_depth > 0 ? (CUcontext)the_stack[the_depth - 1] : NULL;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
  ENTER_WITH_CONTEXT("cuCtxGetDevice");
  *device = HANDLE_OF_ORDINAL(the_stack[the_depth - 1]->ordinal);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  ENTER("cuCtxPushCurrent_v2");
  if (context == NULL || ((object *)context)->kind != OBJECT_CONTEXT || the_depth == STACK_DEPTH) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  the_stack[the_depth++] = (object *)context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context) {
  // A failing pop still pops; otherwise all later tests would run with the wrong context.
  CUcontext popped = the_depth > 0 ? (CUcontext)the_stack[--the_depth] : NULL;
  ENTER("cuCtxPopCurrent_v2");
  if (popped == NULL) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = popped;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxSynchronize(void) {
  // A context with failed work rejects all further work.
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    object *o = &the_objects[i];
    o->is_synchronized =
        o->is_synchronized || (the_depth > 0 && o->context == the_stack[the_depth - 1]);
  }
  ENTER_WITH_CONTEXT("cuCtxSynchronize");
  do_late_work();
  return (CUresult)the_driver.asynchronous_result;
}

_Thread_local CUstreamCaptureMode the_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

EXPORT CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER("cuThreadExchangeStreamCaptureMode");
  CUstreamCaptureMode before = the_capture_mode;
  the_capture_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}
