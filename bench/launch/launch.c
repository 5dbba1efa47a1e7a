// What a call costs: the driver by itself, a library of aotc, and the calls that upstream's runtime
// makes. Links the library `kernels`; loads the same kernel's cubin for the rest (argv[1]).
//
//   launch CUBIN            medians of a call in nanoseconds, and their ratios, as JSON lines; and
//                           of a process's first call with host memory, in fresh processes
//   launch --library CUBIN  such a first call: prints its nanoseconds
//   launch --driver CUBIN   the same work by the driver alone
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.h"

enum { ROUNDS = 400, CALLS = 50, PROCESSES = 21, ELEMENTS = 1024 * 1024 };
static const size_t BYTES = ELEMENTS * sizeof(float);

#define DRIVER(X)                                                                                  \
  X(cuInit)                                                                                        \
  X(cuDeviceGet)                                                                                   \
  X(cuDevicePrimaryCtxRetain)                                                                      \
  X(cuCtxSetCurrent)                                                                               \
  X(cuCtxPushCurrent_v2)                                                                           \
  X(cuCtxPopCurrent_v2)                                                                            \
  X(cuModuleLoadData)                                                                              \
  X(cuModuleGetFunction)                                                                           \
  X(cuMemAlloc_v2)                                                                                 \
  X(cuMemcpyHtoDAsync_v2)                                                                          \
  X(cuMemcpyDtoHAsync_v2)                                                                          \
  X(cuStreamCreate)                                                                                \
  X(cuStreamDestroy_v2)                                                                            \
  X(cuStreamSynchronize)                                                                           \
  X(cuLaunchKernel)

#define DECLARE(name) static __typeof__(name) *p_##name;
DRIVER(DECLARE)
#undef DECLARE

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "launch: %s: %d %s\n", what, status, kernels_last_error());
    exit(1);
  }
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "launch: %s\n", dlerror());
    exit(3);
  }
#define FIND(name) *(void **)&p_##name = dlsym(library, #name);
  DRIVER(FIND)
#undef FIND
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    fprintf(stderr, "launch: cannot read %s\n", path);
    exit(2);
  }
  long bytes = ftell(file);
  rewind(file);
  char *data = malloc((size_t)bytes);
  if (data == NULL || fread(data, 1, (size_t)bytes, file) != (size_t)bytes) {
    fprintf(stderr, "launch: cannot read %s\n", path);
    exit(2);
  }
  fclose(file);
  return data;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static CUcontext context;
static CUmodule module;
static CUfunction function;
static CUstream stream;
static CUdeviceptr buffers[3];

static void start_driver(const char *cubin) {
  CUdevice device = 0;
  check((int)p_cuInit(0), "cuInit");
  check((int)p_cuDeviceGet(&device, 0), "cuDeviceGet");
  check((int)p_cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check((int)p_cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check((int)p_cuModuleLoadData(&module, cubin), "cuModuleLoadData");
  check((int)p_cuModuleGetFunction(&function, module, "matmul_kernel"), "cuModuleGetFunction");
}

// The kernel takes each memref as two pointers, an offset, sizes and strides.
typedef struct memref {
  CUdeviceptr allocated, aligned;
  int64_t offset, sizes[2], strides[2];
} memref;

static memref operands[3];
static void *parameters[21];
static unsigned int parameter_count;

static void fill_parameters(void) {
  for (int i = 0; i < 3; ++i) {
    operands[i] = (memref){buffers[i], buffers[i], 0, {1024, 1024}, {1024, 1}};
    void *fields[] = {&operands[i].allocated, &operands[i].aligned,  &operands[i].offset,
                      &operands[i].sizes[0],  &operands[i].sizes[1], &operands[i].strides[0],
                      &operands[i].strides[1]};
    for (int j = 0; j < 7; ++j) {
      parameters[parameter_count++] = fields[j];
    }
  }
}

static int launch(CUfunction what, CUstream where) {
  return (int)p_cuLaunchKernel(what, 1, 1, 1, 256, 1, 1, 0, where, parameters, NULL);
}

static int raw_synchronous(void) {
  int status = launch(function, stream);
  return status != 0 ? status : (int)p_cuStreamSynchronize(stream);
}

static int raw_asynchronous(void) {
  return launch(function, stream);
}

// The order of calls is that of upstream's CudaRuntimeWrappers, with what it wraps them in: a
// context pushed and popped in each.
static int upstream(void) {
  CUstream made = NULL;
  CUcontext popped = NULL;
  CUfunction found = NULL;
  int status = 0;
#define WITHIN(call)                                                                               \
  status |= (int)p_cuCtxPushCurrent_v2(context);                                                   \
  status |= (int)(call);                                                                           \
  status |= (int)p_cuCtxPopCurrent_v2(&popped);
  WITHIN(p_cuModuleGetFunction(&found, module, "matmul_kernel"))
  WITHIN(p_cuStreamCreate(&made, CU_STREAM_NON_BLOCKING))
  WITHIN(launch(found, made))
  status |= (int)p_cuStreamSynchronize(made);
  status |= (int)p_cuStreamDestroy_v2(made);
#undef WITHIN
  return status;
}

static const float *in(int i) {
  return (const float *)(uintptr_t)buffers[i];
}

static int library_synchronous(void) {
  return matmul(in(0), in(1), (float *)(uintptr_t)buffers[2]);
}

static int library_asynchronous(void) {
  return matmul_async(in(0), in(1), (float *)(uintptr_t)buffers[2], stream);
}

typedef struct variant {
  const char *name;
  int (*call)(void);
  int against; // the variant to whose times its own are compared; -1: none
  double times[ROUNDS];
} variant;

static variant variants[] = {
    {.name = "driver, launch and synchronize", .call = raw_synchronous, .against = -1},
    {.name = "matmul", .call = library_synchronous, .against = 0},
    {.name = "upstream's calls", .call = upstream, .against = 0},
    {.name = "driver, launch", .call = raw_asynchronous, .against = -1},
    {.name = "matmul_async", .call = library_asynchronous, .against = 3},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *values, int count) {
  double sorted[ROUNDS];
  memcpy(sorted, values, (size_t)count * sizeof(double));
  qsort(sorted, (size_t)count, sizeof(double), compare);
  return sorted[count / 2];
}

static void report(const char *name, const double *times, const char *against, const double *others,
                   int count) {
  double ratios[ROUNDS];
  printf("{\"variant\": \"%s\", \"nanoseconds\": %.0f", name, median(times, count));
  if (others != NULL) {
    for (int i = 0; i < count; ++i) {
      ratios[i] = times[i] / others[i];
    }
    printf(", \"against\": \"%s\", \"ratio\": %.3f", against, median(ratios, count));
  }
  printf("}\n");
}

static void measure(void) {
  for (int round = -10; round < ROUNDS; ++round) {
    for (int v = 0; v < VARIANTS; ++v) {
      double start = now();
      for (int i = 0; i < CALLS; ++i) {
        check(variants[v].call(), variants[v].name);
      }
      double end = now();
      check((int)p_cuStreamSynchronize(stream), "cuStreamSynchronize");
      if (round >= 0) {
        variants[v].times[round] = (end - start) / CALLS;
      }
    }
  }
  for (int v = 0; v < VARIANTS; ++v) {
    const variant *against = variants[v].against < 0 ? NULL : &variants[variants[v].against];
    report(variants[v].name, variants[v].times, against != NULL ? against->name : NULL,
           against != NULL ? against->times : NULL, ROUNDS);
  }
}

// -------------------------------------------------------------------------------------------------
// First calls

static void first_by_driver(const char *cubin, float *data) {
  open_driver();
  start_driver(cubin);
  check((int)p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < 3; ++i) {
    check((int)p_cuMemAlloc_v2(&buffers[i], BYTES), "cuMemAlloc");
    check((int)p_cuMemcpyHtoDAsync_v2(buffers[i], data + i * (size_t)ELEMENTS, BYTES, stream),
          "cuMemcpyHtoDAsync");
  }
  fill_parameters();
  check(launch(function, stream), "cuLaunchKernel");
  check((int)p_cuMemcpyDtoHAsync_v2(data + 2 * (size_t)ELEMENTS, buffers[2], BYTES, stream),
        "cuMemcpyDtoHAsync");
  check((int)p_cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static void first(bool is_library, const char *path) {
  char *cubin = read_file(path);
  float *data = calloc(3, BYTES);
  if (data == NULL) {
    exit(1);
  }
  double start = now();
  if (is_library) {
    check(matmul(data, data + ELEMENTS, data + 2 * (size_t)ELEMENTS), "the first call");
  } else {
    first_by_driver(cubin, data);
  }
  printf("%.0f\n", now() - start);
  free(data);
  free(cubin);
}

// Starts this program anew; the time of its call, and of the whole process.
static void run_first(const char *self, const char *mode, const char *cubin, double *out_call,
                      double *out_process) {
  char command[4096];
  snprintf(command, sizeof(command), "exec '%s' %s '%s'", self, mode, cubin);
  double start = now();
  FILE *pipe = popen(command, "r");
  if (pipe == NULL || fscanf(pipe, "%lf", out_call) != 1 || pclose(pipe) != 0) {
    fprintf(stderr, "launch: %s failed\n", command);
    exit(1);
  }
  *out_process = now() - start;
}

static void measure_first(const char *self, const char *cubin) {
  double calls[2][PROCESSES];
  double processes[2][PROCESSES];
  for (int i = -1; i < PROCESSES; ++i) {
    int at = i < 0 ? 0 : i;
    run_first(self, "--driver", cubin, &calls[0][at], &processes[0][at]);
    run_first(self, "--library", cubin, &calls[1][at], &processes[1][at]);
  }
  report("driver, first call", calls[0], NULL, NULL, PROCESSES);
  report("matmul, first call", calls[1], "driver, first call", calls[0], PROCESSES);
  report("driver, process", processes[0], NULL, NULL, PROCESSES);
  report("matmul, process", processes[1], "driver, process", processes[0], PROCESSES);
}

int main(int argc, char **argv) {
  if (argc == 3 && (strcmp(argv[1], "--library") == 0 || strcmp(argv[1], "--driver") == 0)) {
    first(strcmp(argv[1], "--library") == 0, argv[2]);
    return 0;
  }
  if (argc != 2) {
    fprintf(stderr, "usage: launch [--library|--driver] CUBIN\n");
    return 2;
  }
  open_driver();
  start_driver(read_file(argv[1]));
  check((int)p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < 3; ++i) {
    check((int)p_cuMemAlloc_v2(&buffers[i], BYTES), "cuMemAlloc");
  }
  fill_parameters();
  measure();
  measure_first(argv[0], argv[1]);
  return 0;
}
