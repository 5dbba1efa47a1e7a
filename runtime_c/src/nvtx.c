// NVTX, version 3, as a program without its headers speaks it.
//
// A profiler names a library of its own in NVTX_INJECTION64_PATH, or has loaded one already. Its
// function InitializeInjectionNvtx2 is given one of ours, by which it asks for tables of function
// pointers, and stores its functions there. (NVTX is header only: each binary that uses it has such
// tables. The layouts, numbers and the order of the search are those of
// nvtx3/nvtxDetail/nvtxTypes.h and nvtxInit.h, github.com/NVIDIA/NVTX.)
#include "nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Atomic(aotc_rt_nvtx_phase) aotc_rt_nvtx_phase_of_process;

// -------------------------------------------------------------------------------------------------
// What the profiler sees

#define VERSION 3

typedef void (*function_pointer)(void);
typedef int (*get_module_function_table)(int module, function_pointer ***out_table,
                                         unsigned int *out_size);
typedef const void *(*get_export_table)(uint32_t table);
typedef int (*initialize_injection)(get_export_table tables);

// The modules, by their numbers.
enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULE_COUNT };
// The functions of CORE that are called here, by theirs.
enum { CORE_RANGE_PUSH_A = 9, CORE_RANGE_POP = 11 };
// The functions of the largest module, with number 0, which is none.
#define MOST_FUNCTIONS 16

// Each module's number of functions, with number 0.
static const unsigned int function_counts[MODULE_COUNT] = {
    [CORE] = 16, [CUDA] = 9, [OPENCL] = 15, [CUDART] = 7, [CORE2] = 16, [SYNC] = 7,
};
// Where the profiler stores its functions; those that are not called here, too: it may insist on
// all.
static function_pointer functions[MODULE_COUNT][MOST_FUNCTIONS];
// The addresses of these.
static function_pointer *tables[MODULE_COUNT][MOST_FUNCTIONS + 1];

static int give_function_table(int module, function_pointer ***out_table, unsigned int *out_size) {
  if (module < CORE || module >= MODULE_COUNT) {
    return 0;
  }
  // NULL stays for number 0 and at the end.
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
  memcpy(&found, &address, sizeof(found)); // C has no conversion for it
  return found;
}

// Its library stays: its functions are called to the end.
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
