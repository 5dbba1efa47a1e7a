// Version 3 of NVTX, implemented without its headers.
//
// A profiler names its library in NVTX_INJECTION64_PATH, or is already loaded. Its function
// InitializeInjectionNvtx2 gets a callback, by which it asks for tables of function pointers, where
// it stores its functions. (NVTX is header-only: each binary that uses it has such tables. The
// layouts, numbers and the search order are those of nvtx3/nvtxDetail/nvtxTypes.h and nvtxInit.h,
// github.com/NVIDIA/NVTX.)
#include "nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Atomic(aotc_rt_nvtx_phase) aotc_rt_nvtx_phase_of_process;

// -------------------------------------------------------------------------------------------------
// The tables for the profiler

#define VERSION 3

typedef void (*function_pointer)(void);
typedef int (*get_module_function_table)(int module, function_pointer ***out_table,
                                         unsigned int *out_size);
typedef const void *(*get_export_table)(uint32_t table);
typedef int (*initialize_injection)(get_export_table tables);

// The numbers of NVTX's modules.
enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULE_COUNT };
// The numbers of the functions of CORE that are called here.
enum { CORE_RANGE_PUSH_A = 9, CORE_RANGE_POP = 11 };
// The number of functions of the largest module, including the unused number 0.
#define MOST_FUNCTIONS 16

// The number of functions of each module, including number 0.
static const unsigned int function_counts[MODULE_COUNT] = {
    [CORE] = 16, [CUDA] = 9, [OPENCL] = 15, [CUDART] = 7, [CORE2] = 16, [SYNC] = 7,
};
// The profiler's functions, including ones that are not called here, because a profiler may require
// all of them.
static function_pointer functions[MODULE_COUNT][MOST_FUNCTIONS];
// Pointers to these.
static function_pointer *tables[MODULE_COUNT][MOST_FUNCTIONS + 1];

static int give_function_table(int module, function_pointer ***out_table, unsigned int *out_size) {
  if (module < CORE || module >= MODULE_COUNT) {
    return 0;
  }
  // Number 0 and the end stay NULL.
  for (unsigned int i = 1; i < function_counts[module]; ++i) {
    tables[module][i] = &functions[module][i];
  }
  if (out_size != NULL) {
    *out_size = function_counts[module];
  }
  if (out_table != NULL) {
    *out_table = tables[module];
  }
  return 1;
}

static void take_version(uint32_t version) {
  (void)version;
}

static const void *give_export_table(uint32_t table) {
  static const struct {
    size_t bytes;
    get_module_function_table give;
  } callbacks = {sizeof(callbacks), give_function_table};
  static const struct {
    size_t bytes;
    uint32_t version, reserved;
    void (*take)(uint32_t version);
  } version_info = {sizeof(version_info), VERSION, 0, take_version};
  switch (table) {
  case 1:
    return &callbacks;
  case 3:
    return &version_info;
  default:
    return NULL;
  }
}

// -------------------------------------------------------------------------------------------------
// The profiler

static initialize_injection find_in(void *library) {
  void *address = dlsym(library, "InitializeInjectionNvtx2");
  initialize_injection found = NULL;
  memcpy(&found, &address, sizeof(found)); // C has no conversion for this
  return found;
}

// The library is never closed, because its functions are called until the end.
static bool find_profiler(void) {
  initialize_injection initialize = find_in(RTLD_DEFAULT);
  const char *path = getenv("NVTX_INJECTION64_PATH");
  if (initialize == NULL && path != NULL && path[0] != '\0') {
    void *library = dlopen(path, RTLD_LAZY);
    initialize = library != NULL ? find_in(library) : NULL;
  }
  return initialize != NULL && initialize(give_export_table) != 0 &&
         functions[CORE][CORE_RANGE_PUSH_A] != NULL && functions[CORE][CORE_RANGE_POP] != NULL;
}

static void start(void) {
  const char *wish = getenv("AOTC_NVTX");
  bool is_on = wish != NULL && strcmp(wish, "1") == 0 && find_profiler();
  atomic_store_explicit(&aotc_rt_nvtx_phase_of_process, is_on ? AOTC_RT_NVTX_ON : AOTC_RT_NVTX_OFF,
                        memory_order_release);
}

bool aotc_rt_nvtx_begin_range(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, start);
  bool is_on =
      atomic_load_explicit(&aotc_rt_nvtx_phase_of_process, memory_order_acquire) == AOTC_RT_NVTX_ON;
  if (is_on) {
    (void)((int (*)(const char *))functions[CORE][CORE_RANGE_PUSH_A])(name);
  }
  return is_on;
}

void aotc_rt_nvtx_end(void) {
  (void)((int (*)(void))functions[CORE][CORE_RANGE_POP])();
}
