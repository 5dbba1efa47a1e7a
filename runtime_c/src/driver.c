// Finds the CUDA driver and says what its results mean.
#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "state.h"

static const char *const call_names[] = {
#define AOTC_RT_NAME(need, member, symbol, type) symbol,
    AOTC_RT_DRIVER_SYMBOLS(AOTC_RT_NAME)
#undef AOTC_RT_NAME
};

enum { IS_REQUIRED = 1, IS_OPTIONAL = 0 };

static void *open_library(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *reason = dlerror();
    aotc_rt_fail(AOTC_NO_DEVICE, "no NVIDIA driver: %s",
                 reason != NULL ? reason : "libcuda.so.1 cannot be opened");
  }
  return library;
}

// Stores a symbol's address; dlsym gives function pointers as void *, which C cannot convert.
static bool find_symbol(void *library, const char *symbol, int need, void *out_function) {
  void *address = dlsym(library, symbol);
  if (address == NULL && need == IS_REQUIRED) {
    aotc_rt_fail(AOTC_NO_DEVICE,
                 "the NVIDIA driver is too old: its libcuda.so.1 has no %s; a driver for CUDA 11.4 "
                 "or newer is needed",
                 symbol);
    return false;
  }
  memcpy(out_function, &address, sizeof(address));
  return true;
}

bool aotc_rt_driver_load(aotc_rt_driver *out_driver) {
  // Never closed: code of the driver's own threads and exit handlers stays in use.
  void *library = open_library();
  if (library == NULL) {
    return false;
  }

  memset(out_driver, 0, sizeof(*out_driver));
#define AOTC_RT_FIND(need, member, symbol, type)                                                   \
  if (!find_symbol(library, symbol, IS_##need, &out_driver->member)) {                             \
    return false;                                                                                  \
  }
  AOTC_RT_DRIVER_SYMBOLS(AOTC_RT_FIND)
#undef AOTC_RT_FIND

  if (!AOTC_RT_TRY(out_driver, init, (0), "the NVIDIA driver does not start") ||
      !AOTC_RT_TRY(out_driver, driver_get_version, (&out_driver->version), "its CUDA version") ||
      !AOTC_RT_TRY(out_driver, device_get_count, (&out_driver->device_count), "counting GPUs")) {
    return false;
  }
  if (out_driver->device_count < 1) {
    aotc_rt_fail(AOTC_NO_DEVICE, "no GPU: the NVIDIA driver (for CUDA %d.%d) has no devices",
                 out_driver->version / 1000, out_driver->version % 1000 / 10);
    return false;
  }
  return true;
}

// Whether the result says that work enqueued earlier went wrong, whatever the call.
static bool is_kernel_failure(CUresult result) {
  switch ((int)result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

static bool is_load(aotc_rt_call call) {
  return call == AOTC_RT_CALL_library_load_data || call == AOTC_RT_CALL_library_get_module ||
         call == AOTC_RT_CALL_module_load_data_ex;
}

static bool is_launch(aotc_rt_call call) {
  return call == AOTC_RT_CALL_module_get_function || call == AOTC_RT_CALL_func_get_attribute ||
         call == AOTC_RT_CALL_func_set_attribute || call == AOTC_RT_CALL_launch_kernel ||
         call == AOTC_RT_CALL_launch_kernel_ex || call == AOTC_RT_CALL_launch_cooperative_kernel;
}

static aotc_status status_of(CUresult result, aotc_rt_call call) {
  if (is_kernel_failure(result)) {
    return AOTC_LAUNCH_FAILED;
  }
  switch ((int)result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return AOTC_OUT_OF_MEMORY;
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
  case CUDA_ERROR_DEVICE_NOT_LICENSED:
  case CUDA_ERROR_SYSTEM_NOT_READY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return AOTC_NO_DEVICE;
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    return is_load(call) ? AOTC_NO_IMAGE : AOTC_DRIVER_FAILED;
  case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
  case CUDA_ERROR_NOT_SUPPORTED:
    return is_launch(call) ? AOTC_LAUNCH_FAILED : AOTC_UNSUPPORTED;
  default:
    return is_launch(call) ? AOTC_LAUNCH_FAILED : AOTC_DRIVER_FAILED;
  }
}

// Says which kernel may have failed, when work that was enqueued earlier did.
static void append_last_launch(char *text, size_t bytes) {
  const aotc_rt_launch_label *launch = &aotc_rt_this_thread.last_launch;
  aotc_rt_append(text, bytes, "; a kernel launched earlier failed while running");
  if (launch->kernel[0] != '\0') {
    aotc_rt_append(text, bytes,
                   "; this thread's last launch was kernel '%s', grid %u x %u x %u, block "
                   "%u x %u x %u",
                   launch->kernel, launch->grid[0], launch->grid[1], launch->grid[2],
                   launch->block[0], launch->block[1], launch->block[2]);
  }
}

static void report(const aotc_rt_driver *driver, CUresult result, aotc_rt_call call,
                   bool is_of_one_kernel, const char *format, va_list values) {
  const char *name = NULL;
  const char *meaning = NULL;
  // A driver older than the error has no name for it, and leaves NULL.
  if (driver->get_error_name(result, &name) != CUDA_SUCCESS || name == NULL) {
    name = "a CUDA error without a name";
  }
  if (driver->get_error_string(result, &meaning) != CUDA_SUCCESS || meaning == NULL) {
    meaning = "no description";
  }

  char detail[AOTC_RT_MESSAGE_BYTES / 2];
  if (vsnprintf(detail, sizeof(detail), format, values) < 0) {
    detail[0] = '\0';
  }
  aotc_status status = status_of(result, call);
  if (is_of_one_kernel) {
    status = status == AOTC_DRIVER_FAILED ? AOTC_LAUNCH_FAILED : status;
  } else if (is_kernel_failure(result)) {
    append_last_launch(detail, sizeof(detail));
  }

  // "cuMemAlloc_v2" is "cuMemAlloc" to people.
  const char *symbol = call_names[call];
  const char *version = strstr(symbol, "_v");
  int symbol_length = (int)(version != NULL ? (size_t)(version - symbol) : strlen(symbol));
  aotc_rt_fail(status, "%.*s failed with %s (%d, %s): %s", symbol_length, symbol, name, (int)result,
               meaning, detail);
}

bool aotc_rt_check(const aotc_rt_driver *driver, CUresult result, aotc_rt_call call,
                   const char *format, ...) {
  if (result == CUDA_SUCCESS) {
    return true;
  }
  va_list values;
  va_start(values, format);
  report(driver, result, call, false, format, values);
  va_end(values);
  return false;
}

bool aotc_rt_check_kernel(const aotc_rt_driver *driver, CUresult result, aotc_rt_call call,
                          const char *format, ...) {
  if (result == CUDA_SUCCESS) {
    return true;
  }
  va_list values;
  va_start(values, format);
  report(driver, result, call, true, format, values);
  va_end(values);
  return false;
}

bool aotc_rt_check_release(const aotc_rt_driver *driver, CUresult result, aotc_rt_call call,
                           const char *format, ...) {
  if (result == CUDA_SUCCESS) {
    return true;
  }
  if (result != CUDA_ERROR_DEINITIALIZED && result != CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    va_list values;
    va_start(values, format);
    report(driver, result, call, false, format, values);
    va_end(values);
  }
  return false;
}
