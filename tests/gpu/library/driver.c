// Finds the driver's symbols, and says which of its calls failed.
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

driver cu;

// dlsym gives function pointers as void *, which C cannot convert.
static bool find(void *library, const char *symbol, void *out_function) {
  void *address = dlsym(library, symbol);
  memcpy(out_function, &address, sizeof(address));
  return address != NULL;
}

void driver_find(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    skip("no NVIDIA driver: %s", dlerror());
  }
#define DRIVER_FIND(member, symbol, type)                                                          \
  if (!find(library, symbol, &cu.member)) {                                                        \
    skip("the NVIDIA driver has no %s", symbol);                                                   \
  }
  DRIVER_SYMBOLS(DRIVER_FIND)
#undef DRIVER_FIND
  bool has_v2 = find(library, "cuCtxCreate_v2", &cu.make_context_v2);
  bool has_v4 = find(library, "cuCtxCreate_v4", &cu.make_context_v4);
  if (!has_v2 && !has_v4) {
    skip("the NVIDIA driver has no cuCtxCreate that is known here");
  }
}

void driver_open(void) {
  driver_find();
  CUresult result = cu.init(0);
  if (result != CUDA_SUCCESS) {
    skip("the NVIDIA driver does not start: %s", driver_error_name(result));
  }
  if (driver_device_count() == 0) {
    skip("no GPU");
  }
}

const char *driver_error_name(CUresult result) {
  const char *name = NULL;
  return cu.error_name(result, &name) == CUDA_SUCCESS && name != NULL ? name : "an unknown error";
}

void driver_must(CUresult result, const char *call, const char *file, int line) {
  if (result != CUDA_SUCCESS) {
    fail("%s:%d: %s: %s", file, line, call, driver_error_name(result));
  }
}

int driver_device_count(void) {
  int count = 0;
  MUST(cu.device_count(&count));
  return count;
}

CUcontext driver_use_primary(void) {
  CUdevice device = 0;
  CUcontext context = NULL;
  MUST(cu.device_get(&device, 0));
  MUST(cu.primary_retain(&context, device));
  MUST(cu.context_use(context));
  return context;
}

CUcontext driver_make_context(int ordinal) {
  CUdevice device = 0;
  CUcontext context = NULL;
  MUST(cu.device_get(&device, ordinal));
  if (cu.make_context_v2 != NULL) {
    MUST(cu.make_context_v2(&context, 0, device));
  } else {
    MUST(cu.make_context_v4(&context, NULL, 0, device));
  }
  return context;
}

CUcontext driver_current(void) {
  CUcontext context = NULL;
  MUST(cu.context_current(&context));
  return context;
}

CUstream driver_make_stream(void) {
  CUstream stream = NULL;
  MUST(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

size_t driver_free_bytes(void) {
  size_t free_bytes = 0;
  size_t total = 0;
  MUST(cu.context_wait());
  MUST(cu.memory_info(&free_bytes, &total));
  return free_bytes;
}
