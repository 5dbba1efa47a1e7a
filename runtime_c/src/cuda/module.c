// Modules on CUDA devices: loaded by the driver, which compiles PTX.
#include <stdlib.h>
#include <string.h>

#include "../module.h"
#include "libcuda.h"

#define LOG_BYTES 1024
#define MOST_OPTIONS 3

// The options and the log of the driver's PTX compiler.
typedef struct compiler {
  CUjit_option options[MOST_OPTIONS];
  void *values[MOST_OPTIONS];
  unsigned int count;
  char log[LOG_BYTES];
} compiler;

// Drivers older than CUDA 12 have no libraries. The options must live as long as the library,
// because PTX is compiled when a context first needs it, and the driver may write to them.
struct aotc_rt_library {
  CUlibrary handle;
  compiler jit;
};

static void set_options(compiler *jit, int32_t optimization_level) {
  unsigned int count = 0;
  jit->log[0] = '\0';
  jit->options[count] = CU_JIT_ERROR_LOG_BUFFER;
  jit->values[count++] = jit->log;
  jit->options[count] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  jit->values[count++] = (void *)(uintptr_t)(sizeof(jit->log) - 1);
  if (optimization_level >= 0) {
    jit->options[count] = CU_JIT_OPTIMIZATION_LEVEL;
    jit->values[count++] = (void *)(uintptr_t)optimization_level;
  }
  jit->count = count;
}

// Checks a loading call; a failure's message has the image's target and the compiler's log.
static bool check_load(aotc_rt_result result, const aotc_rt_module *module, compiler *jit) {
  if (result.code == 0) {
    return true;
  }
  // The log may lack a final NUL, and ends with a line break.
  jit->log[sizeof(jit->log) - 1] = '\0';
  size_t length = strlen(jit->log);
  while (length > 0 && jit->log[length - 1] == '\n') {
    jit->log[--length] = '\0';
  }
  int version = aotc_rt_libcuda.version;
  return aotc_rt_check(
      &aotc_rt_cuda, result, "loading module '%s', built for %s; the driver is for CUDA %d.%d%s%s",
      aotc_rt_module_name(module), aotc_rt_module_built_for(module), version / 1000,
      version % 1000 / 10, length > 0 ? "; its compiler says: " : "", jit->log);
}

static bool has_libraries(void) {
  return aotc_rt_libcuda.library_load_data != NULL && aotc_rt_libcuda.library_get_module != NULL &&
         aotc_rt_libcuda.library_unload != NULL;
}

static const void *code_of(const aotc_rt_module *module) {
  return module->text != NULL ? module->text : module->image;
}

static struct aotc_rt_library *make_library(const aotc_rt_module *module) {
  struct aotc_rt_library *library = calloc(1, sizeof(*library));
  if (library == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to load module '%s'",
                 aotc_rt_module_name(module));
    return NULL;
  }
  // The image lives as long as the module, so the driver need not copy it.
  CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void *value = (void *)(uintptr_t)1;
  compiler *jit = &library->jit;
  set_options(jit, module->optimization_level);
  if (!check_load(CUDA_CALL(library_load_data, (&library->handle, code_of(module), jit->options,
                                                jit->values, jit->count, &option, &value, 1)),
                  module, jit)) {
    free(library);
    return NULL;
  }
  return library;
}

// A library belongs to the process: the driver loads it into a context when it is first used there.
static bool load_library(aotc_rt_module *module, CUmodule *out_handle) {
  if (module->library == NULL) {
    module->library = make_library(module);
  }
  return module->library != NULL &&
         check_load(CUDA_CALL(library_get_module, (out_handle, module->library->handle)), module,
                    &module->library->jit);
}

static bool load_module(const aotc_rt_module *module, CUmodule *out_handle) {
  compiler jit;
  set_options(&jit, module->optimization_level);
  return check_load(CUDA_CALL(module_load_data_ex,
                              (out_handle, code_of(module), jit.count, jit.options, jit.values)),
                    module, &jit);
}

bool aotc_rt_cuda_module_load(aotc_rt_module *module, aotc_rt_module_handle *out_handle) {
  CUmodule handle = NULL;
  bool is_loaded = has_libraries() ? load_library(module, &handle) : load_module(module, &handle);
  *out_handle = (aotc_rt_module_handle)handle;
  return is_loaded;
}

aotc_rt_result aotc_rt_cuda_module_unload(const aotc_rt_module *module,
                                          aotc_rt_module_handle handle) {
  return module->library != NULL ? CUDA_CALL(library_unload, (module->library->handle))
                                 : CUDA_CALL(module_unload, ((CUmodule)handle));
}
