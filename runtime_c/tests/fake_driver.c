// A fake libcuda.so.1: every symbol that the runtime calls, on host memory, failing on demand.
//
// It keeps the real driver's rules that the runtime relies on: calls need a current context, memory
// is freed once and in its own way, streams and events must exist, a kernel must be in the image.
// With -DFAKE_OLD_DRIVER it has only what a driver for CUDA 11.4 has.
#include "fake_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

// cuda.h calls its newest versions by the plain names; here each symbol is what it says.
#undef cuEventElapsedTime

#define EXPORT __attribute__((visibility("default")))
#define STACK_DEPTH 16
#define MAX_OBJECTS 1024

typedef enum object_kind {
  OBJECT_NONE = 0,
  OBJECT_CONTEXT,
  OBJECT_STREAM,
  OBJECT_EVENT,
  OBJECT_LIBRARY,
  OBJECT_MODULE,
  OBJECT_FUNCTION,
  OBJECT_MEMORY,        // cuMemAlloc, cuMemAllocManaged
  OBJECT_POOLED_MEMORY, // cuMemAllocAsync
  OBJECT_REGISTRATION,
} object_kind;

typedef struct object {
  object_kind kind;
  int ordinal; // contexts: the device
  bool is_managed;
  unsigned long long id;
  char *start; // memory
  size_t bytes;
  const char *image; // libraries, modules
  const struct object *context;
  const struct object *owner; // functions: the module
  bool is_synchronized;       // pooled memory: the context was synchronized since
  int max_dynamic_shared;
  char name[64]; // functions
} object;

static fake_driver the_driver = {
    .version = 13000,
    .device_count = 1,
    .capability = {90, 90, 90, 90},
    .has_memory_pools = true,
    .jit_optimization_level = -1,
};
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static object the_objects[MAX_OBJECTS];
static object the_primaries[FAKE_MAX_DEVICES];
static int the_primary_counts[FAKE_MAX_DEVICES];
static unsigned long long the_next_id = 1;
static _Thread_local object *the_stack[STACK_DEPTH];
static _Thread_local int the_depth;

EXPORT fake_driver *fake_driver_get(void) {
  return &the_driver;
}

// Of things that several threads do at once.
#define COUNT(member, by) __atomic_add_fetch(&the_driver.member, (by), __ATOMIC_RELAXED)

static void violate(const char *what) {
  if (the_driver.violation[0] == '\0') {
    snprintf(the_driver.violation, sizeof(the_driver.violation), "%s", what);
  }
}

// Logs a call; the result to give instead of doing it.
static CUresult enter(const char *symbol) {
  fake_driver *d = &the_driver;
  pthread_mutex_lock(&the_lock);
  if (d->call_count < FAKE_MAX_LOG) {
    d->log[d->call_count] = symbol;
  }
  ++d->call_count;
  CUresult result = d->is_shut_down ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
  bool is_counted = d->fail_symbol == NULL || strcmp(d->fail_symbol, symbol) == 0;
  bool fails_again = is_counted && d->fail_at == 0 && d->fail_count > 0;
  bool fails_now = d->fail_at > 0 && is_counted && --d->fail_at == 0;
  if (fails_now || fails_again) {
    d->fail_count -= d->fail_count > 0 ? 1 : 0;
    d->failed_symbol = symbol;
    d->failed_index = d->call_count - 1;
    result = (CUresult)d->fail_result;
  }
  pthread_mutex_unlock(&the_lock);
  return result;
}

#define ENTER(symbol)                                                                              \
  do {                                                                                             \
    CUresult entered = enter(symbol);                                                              \
    if (entered != CUDA_SUCCESS) {                                                                 \
      return entered;                                                                              \
    }                                                                                              \
  } while (0)

#define ENTER_WITH_CONTEXT(symbol)                                                                 \
  do {                                                                                             \
    ENTER(symbol);                                                                                 \
    if (the_depth == 0 || the_stack[the_depth - 1] == NULL) {                                      \
      violate(symbol " without a context");                                                        \
      return CUDA_ERROR_INVALID_CONTEXT;                                                           \
    }                                                                                              \
  } while (0)

static object *make_object(object_kind kind) {
  pthread_mutex_lock(&the_lock);
  object *made = NULL;
  for (int i = 0; i < MAX_OBJECTS && made == NULL; ++i) {
    if (the_objects[i].kind == OBJECT_NONE) {
      made = &the_objects[i];
      *made = (object){.kind = kind, .id = the_next_id++};
      made->context = the_depth > 0 ? the_stack[the_depth - 1] : NULL;
    }
  }
  pthread_mutex_unlock(&the_lock);
  if (made == NULL) {
    fprintf(stderr, "fake driver: too many objects\n");
    abort();
  }
  return made;
}

static bool is_object(const void *handle, object_kind kind) {
  const object *o = handle;
  return o >= the_objects && o < the_objects + MAX_OBJECTS && o->kind == kind;
}

static bool is_stream(CUstream stream) {
  return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
         is_object(stream, OBJECT_STREAM);
}

static object *find_memory(CUdeviceptr address) {
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    object *o = &the_objects[i];
    if ((o->kind == OBJECT_MEMORY || o->kind == OBJECT_POOLED_MEMORY ||
         o->kind == OBJECT_REGISTRATION) &&
        address >= (CUdeviceptr)(uintptr_t)o->start &&
        address - (CUdeviceptr)(uintptr_t)o->start < o->bytes) {
      return o;
    }
  }
  return NULL;
}

// -------------------------------------------------------------------------------------------------
// Work that is done late

typedef struct late_work {
  CUdeviceptr to, from; // of a copy; of a free, `to`
  size_t bytes;
  int launch;
  enum { LATE_COPY, LATE_LAUNCH, LATE_FREE } kind;
} late_work;

static struct {
  bool is_on;
  int (*launched)(const char *kernel, void **parameters);
  void (*run)(int launch);
  late_work work[MAX_OBJECTS];
  int count;
} the_late;

EXPORT void fake_work_late(int (*launched)(const char *kernel, void **parameters),
                           void (*run)(int launch)) {
  the_late.is_on = true;
  the_late.launched = launched;
  the_late.run = run;
}

EXPORT const char *fake_call(int index) {
  bool is_there = index < the_driver.call_count && index < FAKE_MAX_LOG;
  return is_there ? the_driver.log[index] : NULL;
}

static void forget_memory(object *memory) {
  free(memory->start);
  memory->kind = OBJECT_NONE;
  COUNT(live_memory, -1);
}

static void do_later(late_work work) {
  if (the_late.count == MAX_OBJECTS) {
    fprintf(stderr, "fake driver: too much work that nobody waits for\n");
    abort();
  }
  the_late.work[the_late.count++] = work;
}

static void do_late_work(void) {
  for (int i = 0; i < the_late.count; ++i) {
    const late_work *w = &the_late.work[i];
    if (w->kind == LATE_COPY) {
      memmove((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
    } else if (w->kind == LATE_LAUNCH) {
      the_late.run(w->launch);
    } else {
      forget_memory(find_memory(w->to));
    }
  }
  the_late.count = 0;
}

// -------------------------------------------------------------------------------------------------
// The program's own contexts

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

// Handles are not the ordinals, so that nobody mistakes one for the other.
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
  // A failing pop still pops: else every test after it would run with the wrong context.
  CUcontext popped = the_depth > 0 ? (CUcontext)the_stack[--the_depth] : NULL;
  ENTER("cuCtxPopCurrent_v2");
  if (popped == NULL) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = popped;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxSynchronize(void) {
  // A context whose work failed runs nothing any more.
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    object *o = &the_objects[i];
    o->is_synchronized =
        o->is_synchronized || (the_depth > 0 && o->context == the_stack[the_depth - 1]);
  }
  ENTER_WITH_CONTEXT("cuCtxSynchronize");
  do_late_work();
  return (CUresult)the_driver.asynchronous_result;
}

EXPORT CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER("cuThreadExchangeStreamCaptureMode");
  static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CUstreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

// -------------------------------------------------------------------------------------------------
// Modules and kernels

// Whether the image says `key=...,value,...`.
static bool image_lists(const char *image, const char *key, const char *value) {
  const char *list = strstr(image, key);
  const char *end = list != NULL ? strchr(list, ' ') : NULL;
  char word[80];
  snprintf(word, sizeof(word), "%s,", value);
  for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; ++at) {
    if ((end == NULL || at < end) && (at[-1] == '=' || at[-1] == ',')) {
      return true;
    }
  }
  return false;
}

// Whether the image can be loaded on the current context, as the driver would say it.
static CUresult fit(const char *image, unsigned int count, const CUjit_option *options,
                    void **values) {
  char *log = NULL;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      log = values[i];
    } else if (options[i] == CU_JIT_OPTIMIZATION_LEVEL) {
      the_driver.jit_optimization_level = (int)(uintptr_t)values[i];
    }
  }
  if (strncmp(image, ".version", 8) == 0) {
    if (strstr(image, "bad") == NULL) {
      return CUDA_SUCCESS;
    }
    if (log != NULL) {
      strcpy(log, "ptxas: line 2: bad\n");
    }
    return CUDA_ERROR_INVALID_PTX;
  }
  if (strncmp(image,
              "\x7f"
              "FAKE",
              5) != 0) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  char chip[16];
  snprintf(chip, sizeof(chip), "%d", the_driver.capability[the_stack[the_depth - 1]->ordinal]);
  return image_lists(image, "chips=", chip) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// Functions go with their module.
static void forget_functions(const void *module) {
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    if (the_objects[i].kind == OBJECT_FUNCTION && the_objects[i].owner == module) {
      the_objects[i].kind = OBJECT_NONE;
    }
  }
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER("cuCtxGetId");
  *id = ((object *)context)->id;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code,
                                          CUjit_option *jit_options, void **jit_values,
                                          unsigned int jit_count, CUlibraryOption *options,
                                          void **values, unsigned int count) {
  ENTER_WITH_CONTEXT("cuLibraryLoadData");
  (void)values;
  if (count != 1 || options[0] != CU_LIBRARY_BINARY_IS_PRESERVED) {
    violate("a library loaded without saying that its image stays");
  }
  // Lazily, as the driver does: an unfit image is noticed by the context that wants it.
  CUresult result = fit(code, jit_count, jit_options, jit_values);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU) {
    return result;
  }
  object *made = make_object(OBJECT_LIBRARY);
  made->image = code;
  ++the_driver.live_modules;
  *library = (CUlibrary)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  ENTER_WITH_CONTEXT("cuLibraryGetModule");
  if (!is_object(library, OBJECT_LIBRARY)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult result = fit(((object *)library)->image, 0, NULL, NULL);
  if (result == CUDA_SUCCESS) {
    *module = (CUmodule)library;
  }
  return result;
}

EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  ENTER("cuLibraryUnload");
  if (!is_object(library, OBJECT_LIBRARY)) {
    violate("a library unloaded that is not loaded");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  forget_functions(library);
  ((object *)library)->kind = OBJECT_NONE;
  --the_driver.live_modules;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType data_type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box_sizes,
    const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
  ENTER("cuTensorMapEncodeTiled");
  if ((uintptr_t)map % 64 != 0) {
    violate("a tensor map that is not aligned to 64 bytes");
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake_driver *d = &the_driver;
  ++d->tensor_map_count;
  d->tensor_map_rank = rank;
  d->tensor_map_address = address;
  d->tensor_map_data_type = (int)data_type;
  d->tensor_map_interleave = (int)interleave;
  d->tensor_map_swizzle = (int)swizzle;
  d->tensor_map_l2_promotion = (int)l2_promotion;
  d->tensor_map_oob_fill = (int)oob_fill;
  memset(map, 0, sizeof(*map));
  map->opaque[0] = (uintptr_t)address;
  for (unsigned int i = 0; i < rank; ++i) {
    d->tensor_map_sizes[i] = sizes[i];
    d->tensor_map_strides[i] = i + 1 < rank ? strides[i] : 0;
    d->tensor_map_box_sizes[i] = box_sizes[i];
    d->tensor_map_element_strides[i] = element_strides[i];
    map->opaque[1 + i] = sizes[i] * 1000 + box_sizes[i];
  }
  return CUDA_SUCCESS;
}
#endif // FAKE_OLD_DRIVER

EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                           CUjit_option *options, void **values) {
  ENTER_WITH_CONTEXT("cuModuleLoadDataEx");
  CUresult result = fit(image, count, options, values);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  object *made = make_object(OBJECT_MODULE);
  made->image = image;
  ++the_driver.live_modules;
  *module = (CUmodule)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  ENTER_WITH_CONTEXT("cuModuleUnload");
  if (!is_object(module, OBJECT_MODULE) ||
      ((object *)module)->context != the_stack[the_depth - 1]) {
    violate("a module unloaded that is not loaded in the context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  forget_functions(module);
  ((object *)module)->kind = OBJECT_NONE;
  --the_driver.live_modules;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module,
                                            const char *name) {
  ENTER_WITH_CONTEXT("cuModuleGetFunction");
  if (!is_object(module, OBJECT_MODULE) && !is_object(module, OBJECT_LIBRARY)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!image_lists(((object *)module)->image, "kernels=", name)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  object *made = make_object(OBJECT_FUNCTION);
  made->max_dynamic_shared = 48 * 1024;
  made->owner = (const object *)module;
  snprintf(made->name, sizeof(made->name), "%s", name);
  *function = (CUfunction)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                           CUfunction function) {
  ENTER_WITH_CONTEXT("cuFuncGetAttribute");
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = ((object *)function)->max_dynamic_shared;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                           int value) {
  ENTER_WITH_CONTEXT("cuFuncSetAttribute");
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value > 227 * 1024) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ((object *)function)->max_dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const unsigned int grid[3], const unsigned int block[3],
                       unsigned int shared_bytes, CUstream stream, void **parameters) {
  object *f = (object *)function;
  if (!is_object(f, OBJECT_FUNCTION) || f->context != the_stack[the_depth - 1]) {
    violate("a launch of a function of another context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!is_stream(stream)) {
    violate("a launch on a stream that is none");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if ((int)shared_bytes > f->max_dynamic_shared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_lock(&the_lock);
  fake_launch *l = &the_driver.last_launch;
  ++the_driver.launch_count;
  *l = (fake_launch){.dynamic_shared_bytes = shared_bytes, .stream = stream};
  memcpy(l->kernel, f->name, sizeof(l->kernel));
  memcpy(l->grid, grid, sizeof(l->grid));
  memcpy(l->block, block, sizeof(l->block));
  l->first_parameter = parameters != NULL ? *(int *)parameters[0] : 0;
  pthread_mutex_unlock(&the_lock);
  if (the_late.is_on) {
    do_later((late_work){.kind = LATE_LAUNCH, .launch = the_late.launched(f->name, parameters)});
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes,
                                       CUstream stream, void **parameters, void **extra) {
  ENTER_WITH_CONTEXT("cuLaunchKernel");
  (void)extra;
  return launch(function, (unsigned int[3]){grid_x, grid_y, grid_z},
                (unsigned int[3]){block_x, block_y, block_z}, shared_bytes, stream, parameters);
}

EXPORT CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                                  unsigned int grid_y, unsigned int grid_z,
                                                  unsigned int block_x, unsigned int block_y,
                                                  unsigned int block_z, unsigned int shared_bytes,
                                                  CUstream stream, void **parameters) {
  ENTER_WITH_CONTEXT("cuLaunchCooperativeKernel");
  CUresult result =
      launch(function, (unsigned int[3]){grid_x, grid_y, grid_z},
             (unsigned int[3]){block_x, block_y, block_z}, shared_bytes, stream, parameters);
  the_driver.last_launch.is_cooperative = result == CUDA_SUCCESS;
  return result;
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                         void **parameters, void **extra) {
  ENTER_WITH_CONTEXT("cuLaunchKernelEx");
  (void)extra;
  CUresult result =
      launch(function, (unsigned int[3]){config->gridDimX, config->gridDimY, config->gridDimZ},
             (unsigned int[3]){config->blockDimX, config->blockDimY, config->blockDimZ},
             config->sharedMemBytes, config->hStream, parameters);
  for (unsigned int i = 0; result == CUDA_SUCCESS && i < config->numAttrs; ++i) {
    const CUlaunchAttribute *attribute = &config->attrs[i];
    fake_launch *l = &the_driver.last_launch;
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      l->cluster[0] = attribute->value.clusterDim.x;
      l->cluster[1] = attribute->value.clusterDim.y;
      l->cluster[2] = attribute->value.clusterDim.z;
    } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      l->is_cooperative = attribute->value.cooperative != 0;
    }
  }
  return result;
}
#endif // FAKE_OLD_DRIVER

// -------------------------------------------------------------------------------------------------
// Streams and events

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuStreamCreate");
  if (flags != CU_STREAM_NON_BLOCKING) {
    violate("a stream that waits for the default stream");
  }
  *stream = (CUstream)make_object(OBJECT_STREAM);
  ++the_driver.live_streams;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  ENTER_WITH_CONTEXT("cuStreamDestroy_v2");
  if (!is_object(stream, OBJECT_STREAM) ||
      ((object *)stream)->context != the_stack[the_depth - 1]) {
    violate("a stream destroyed that is none, or of another context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ((object *)stream)->kind = OBJECT_NONE;
  --the_driver.live_streams;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *context) {
  ENTER("cuStreamGetCtx");
  if (!is_object(stream, OBJECT_STREAM)) {
    violate("the context of a stream that has none of its own");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  *context = (CUcontext)(uintptr_t)((object *)stream)->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  ENTER_WITH_CONTEXT("cuStreamIsCapturing");
  *status =
      the_driver.is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  ENTER_WITH_CONTEXT("cuStreamSynchronize");
  if (the_driver.is_capturing) {
    violate("a wait for a stream that is capturing");
  }
  do_late_work();
  return is_stream(stream) ? (CUresult)the_driver.asynchronous_result : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuStreamWaitEvent");
  return is_stream(stream) && is_object(event, OBJECT_EVENT) && flags == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuEventCreate");
  (void)flags;
  *event = (CUevent)make_object(OBJECT_EVENT);
  ++the_driver.live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  ENTER_WITH_CONTEXT("cuEventDestroy_v2");
  if (!is_object(event, OBJECT_EVENT)) {
    violate("an event destroyed that is none");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ((object *)event)->kind = OBJECT_NONE;
  --the_driver.live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  ENTER_WITH_CONTEXT("cuEventRecord");
  return is_stream(stream) && is_object(event, OBJECT_EVENT) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  ENTER_WITH_CONTEXT("cuEventSynchronize");
  return is_object(event, OBJECT_EVENT) ? (CUresult)the_driver.asynchronous_result
                                        : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
EXPORT CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER_WITH_CONTEXT("cuEventElapsedTime");
  *milliseconds = 2.5F;
  return is_object(start, OBJECT_EVENT) && is_object(end, OBJECT_EVENT) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_HANDLE;
}

// -------------------------------------------------------------------------------------------------
// Memory

static CUresult allocate(CUdeviceptr *address, size_t bytes, object_kind kind, bool is_managed) {
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  object *memory = make_object(kind);
  memory->is_managed = is_managed;
  memory->bytes = bytes;
  void *start = NULL;
  if (posix_memalign(&start, 256, bytes) != 0) { // as the driver aligns it
    memory->kind = OBJECT_NONE;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(start, the_late.is_on ? 0xa5 : 0, bytes);
  memory->start = start;
  COUNT(live_memory, 1);
  COUNT(allocation_count, 1);
  the_driver.last_allocation_bytes = bytes;
  *address = (CUdeviceptr)(uintptr_t)memory->start;
  return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, bool must_be_pooled, bool must_be_synchronized) {
  object *memory = find_memory(address);
  if (memory == NULL || memory->kind == OBJECT_REGISTRATION ||
      address != (CUdeviceptr)(uintptr_t)memory->start ||
      (must_be_pooled && memory->kind != OBJECT_POOLED_MEMORY)) {
    violate("memory freed that is not allocated, or not in this way");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (must_be_synchronized && memory->kind == OBJECT_POOLED_MEMORY && !memory->is_synchronized) {
    violate("stream-ordered memory freed while it may be in use");
  }
  if (the_late.is_on && memory->kind == OBJECT_POOLED_MEMORY) {
    do_later((late_work){.kind = LATE_FREE, .to = address});
  } else {
    do_late_work(); // cuMemFree waits
    forget_memory(memory);
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  ENTER_WITH_CONTEXT("cuMemAlloc_v2");
  return allocate(address, bytes, OBJECT_MEMORY, false);
}

EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuMemAllocManaged");
  return flags == CU_MEM_ATTACH_GLOBAL ? allocate(address, bytes, OBJECT_MEMORY, true)
                                       : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuMemFree_v2");
  return release(address, false, true);
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemAllocAsync");
  return is_stream(stream) && the_driver.has_memory_pools
             ? allocate(address, bytes, OBJECT_POOLED_MEMORY, false)
             : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemFreeAsync");
  return is_stream(stream) ? release(address, true, false) : CUDA_ERROR_INVALID_HANDLE;
}
#endif // FAKE_OLD_DRIVER

EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                      CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemcpyAsync");
  if (!is_stream(stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  COUNT(copy_count, 1);
  the_driver.last_copy_bytes = bytes;
  if (the_late.is_on) {
    do_later((late_work){.kind = LATE_COPY, .to = to, .from = from, .bytes = bytes});
    return CUDA_SUCCESS;
  }
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                                         CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemsetD16Async");
  // clang takes the register's upper half for zeros, as the ABI's users agreed: see whether it is.
  unsigned int whole = value;
  __asm__("" : "+r"(whole));
  if (whole > 0xffff) {
    violate("16 bits passed with something above them");
  }
  unsigned short *elements = (unsigned short *)(uintptr_t)to;
  for (size_t i = 0; i < count; ++i) {
    elements[i] = value;
  }
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count,
                                         CUstream stream) {
  ENTER_WITH_CONTEXT("cuMemsetD32Async");
  unsigned int *elements = (unsigned int *)(uintptr_t)to;
  for (size_t i = 0; i < count; ++i) {
    elements[i] = value;
  }
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  ENTER_WITH_CONTEXT("cuMemHostRegister_v2");
  uintptr_t start = (uintptr_t)pointer;
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (find_memory(start) != NULL || find_memory(start + bytes - 1) != NULL) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  object *registration = make_object(OBJECT_REGISTRATION);
  registration->start = pointer;
  registration->bytes = bytes;
  ++the_driver.live_registrations;
  the_driver.last_register_flags = flags;
  the_driver.last_register_start = start;
  the_driver.last_register_bytes = bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostUnregister(void *pointer) {
  ENTER_WITH_CONTEXT("cuMemHostUnregister");
  object *registration = find_memory((CUdeviceptr)(uintptr_t)pointer);
  if (registration == NULL || registration->kind != OBJECT_REGISTRATION ||
      registration->start != pointer) {
    violate("memory unregistered that is not registered");
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  registration->kind = OBJECT_NONE;
  --the_driver.live_registrations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                                              CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuPointerGetAttribute");
  const object *memory = find_memory(address);
  if (memory == NULL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch ((int)attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(CUmemorytype *)value =
        memory->kind == OBJECT_REGISTRATION ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(CUmemoryPool *)value =
        memory->kind == OBJECT_POOLED_MEMORY ? (CUmemoryPool)(uintptr_t)1 : NULL;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static fake_kind kind_of(CUdeviceptr address) {
  const object *memory = find_memory(address);
  if (memory == NULL) {
    return FAKE_UNKNOWN;
  }
  if (memory->kind == OBJECT_REGISTRATION) {
    return FAKE_REGISTERED;
  }
  return memory->is_managed ? FAKE_MANAGED : FAKE_DEVICE;
}

EXPORT fake_kind fake_kind_of(const void *pointer) {
  return kind_of((CUdeviceptr)(uintptr_t)pointer);
}

// Memory that it does not know has zeros, which is no failure.
EXPORT CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                               void **values, CUdeviceptr address) {
  ENTER_WITH_CONTEXT("cuPointerGetAttributes");
  const object *memory = find_memory(address);
  fake_kind kind = kind_of(address);
  for (unsigned int i = 0; i < count; ++i) {
    switch ((int)attributes[i]) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(CUmemorytype *)values[i] = kind == FAKE_UNKNOWN      ? (CUmemorytype)0
                                   : kind == FAKE_REGISTERED ? CU_MEMORYTYPE_HOST
                                                             : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned int *)values[i] = kind == FAKE_MANAGED;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)values[i] = memory != NULL && memory->context != NULL ? memory->context->ordinal : 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}
