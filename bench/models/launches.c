// Notes how long each launch of a kernel takes. It is preloaded into a process that runs a library
// whose runtime is shared (--runtime shared), and stands between the library and the runtime.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST_KERNELS 8192
#define MOST_NOTES (1 << 20)

// What bench/models/profile.py reads: a launch, the sizes of its grid, and its time.
typedef struct note {
  const char *kernel;
  int64_t grid[3];
  int64_t nanoseconds;
} note;

typedef void *(*find_function)(void *, const char *);
typedef void (*launch_function)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                                int32_t, void *, void **, void **, size_t);

EXPORT note launches_notes[MOST_NOTES];
EXPORT int64_t launches_count = 0;

static struct {
  void *handle;
  const char *name;
} kernels[MOST_KERNELS];
static int kernel_count = 0;

// A function of the runtime, which is there when a library calls it. `out_function` is the address
// of a pointer to it: ISO C has no conversion from what dlsym returns.
static void find(const char *name, void *out_function) {
  void *runtime = dlopen("libmlir_cuda_runtime.so", RTLD_NOW | RTLD_NOLOAD);
  *(void **)out_function = runtime == NULL ? NULL : dlsym(runtime, name);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static const char *name_of(void *handle) {
  for (int i = 0; i < kernel_count; ++i) {
    if (kernels[i].handle == handle) {
      return kernels[i].name;
    }
  }
  return NULL;
}

EXPORT void *mgpuModuleGetFunction(void *module, const char *name) {
  static find_function next = NULL;
  if (next == NULL) {
    find("mgpuModuleGetFunction", &next);
  }
  void *handle = next(module, name);
  if (kernel_count < MOST_KERNELS && name_of(handle) == NULL) {
    kernels[kernel_count].handle = handle;
    kernels[kernel_count++].name = name;
  }
  return handle;
}

EXPORT void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                             intptr_t block_x, intptr_t block_y, intptr_t block_z,
                             int32_t dynamic_shared_bytes, void *stream, void **parameters,
                             void **extra, size_t parameter_count) {
  static launch_function next = NULL;
  if (next == NULL) {
    find("mgpuLaunchKernel", &next);
  }
  int64_t start = now();
  next(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_shared_bytes, stream,
       parameters, extra, parameter_count);
  int64_t end = now();
  if (launches_count < MOST_NOTES) {
    launches_notes[launches_count++] = (note){
        .kernel = name_of(function),
        .grid = {grid_x, grid_y, grid_z},
        .nanoseconds = end - start,
    };
  }
}
