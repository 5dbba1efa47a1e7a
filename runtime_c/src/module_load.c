// Modules on devices: loaded when a context needs them, and unloaded.
#include <stdlib.h>
#include <string.h>

#include "module.h"

// A module on one context.
typedef struct aotc_rt_loaded_module {
  struct aotc_rt_loaded_module *next;
  const aotc_rt_context *context;
  CUmodule handle;
} loaded_module;

static void set_jit_options(aotc_rt_module *module) {
  unsigned int count = 0;
  module->jit_log[0] = '\0';
  module->jit_options[count] = CU_JIT_ERROR_LOG_BUFFER;
  module->jit_values[count++] = module->jit_log;
  module->jit_options[count] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  module->jit_values[count++] = (void *)(uintptr_t)(sizeof(module->jit_log) - 1);
  if (module->optimization_level >= 0) {
    module->jit_options[count] = CU_JIT_OPTIMIZATION_LEVEL;
    module->jit_values[count++] = (void *)(uintptr_t)module->optimization_level;
  }
  module->jit_option_count = count;
}

// Checks a call that loads: what the image was built for, and what the driver's compiler said.
static bool check_load(const aotc_rt_driver *driver, CUresult result, aotc_rt_call call,
                       aotc_rt_module *module) {
  if (result == CUDA_SUCCESS) {
    return true;
  }
  // The log may lack its NUL, and ends with a line break.
  module->jit_log[sizeof(module->jit_log) - 1] = '\0';
  size_t length = strlen(module->jit_log);
  while (length > 0 && module->jit_log[length - 1] == '\n') {
    module->jit_log[--length] = '\0';
  }
  return aotc_rt_check(
      driver, result, call, "loading module '%s', built for %s; the driver is for CUDA %d.%d%s%s",
      aotc_rt_module_name(module), aotc_rt_module_built_for(module), driver->version / 1000,
      driver->version % 1000 / 10, length > 0 ? "; its compiler says: " : "", module->jit_log);
}

// A library is of the process: the driver puts it into a context when that context asks for it.
static bool load_library(const aotc_rt_driver *driver, aotc_rt_module *module, const void *code,
                         CUmodule *out_handle) {
  if (module->library == NULL) {
    // The image stays where it is as long as the module: the driver needs no copy.
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)(uintptr_t)1;
    CUlibrary library = NULL;
    set_jit_options(module);
    if (!check_load(driver,
                    driver->library_load_data(&library, code, module->jit_options,
                                              module->jit_values, module->jit_option_count, &option,
                                              &value, 1),
                    AOTC_RT_CALL_library_load_data, module)) {
      return false;
    }
    module->library = library;
  }
  return check_load(driver, driver->library_get_module(out_handle, module->library),
                    AOTC_RT_CALL_library_get_module, module);
}

static bool has_libraries(const aotc_rt_driver *driver) {
  return driver->library_load_data != NULL && driver->library_get_module != NULL &&
         driver->library_unload != NULL;
}

static bool load_here(const aotc_rt_driver *driver, aotc_rt_module *module, CUmodule *out_handle) {
  const void *code = module->text != NULL ? module->text : module->image;
  if (has_libraries(driver)) {
    return load_library(driver, module, code, out_handle);
  }
  set_jit_options(module);
  return check_load(driver,
                    driver->module_load_data_ex(out_handle, code, module->jit_option_count,
                                                module->jit_options, module->jit_values),
                    AOTC_RT_CALL_module_load_data_ex, module);
}

bool aotc_rt_module_load_locked(const aotc_rt_driver *driver, aotc_rt_module *module,
                                const aotc_rt_context *context, CUmodule *out_handle) {
  for (loaded_module *loaded = module->loaded; loaded != NULL; loaded = loaded->next) {
    if (loaded->context == context) {
      *out_handle = loaded->handle;
      return true;
    }
  }
  loaded_module *loaded = malloc(sizeof(*loaded));
  if (loaded == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to load module '%s'",
                 aotc_rt_module_name(module));
    return false;
  }
  CUmodule handle = NULL;
  CUstreamCaptureMode mode;
  bool is_relaxed = aotc_rt_capture_relax(driver, &mode);
  bool is_loaded = is_relaxed && load_here(driver, module, &handle);
  bool is_restored = !is_relaxed || aotc_rt_capture_restore(driver, mode);
  if (!is_loaded) {
    free(loaded);
    return false;
  }
  *loaded = (loaded_module){.next = module->loaded, .context = context, .handle = handle};
  module->loaded = loaded;
  *out_handle = handle;
  return is_restored;
}

bool aotc_rt_modules_load_all_locked(const aotc_rt_driver *driver, aotc_rt_context *context) {
  for (aotc_rt_module *m = aotc_rt_state_of_process.modules; m != NULL; m = m->next) {
    const aotc_module_info *info = atomic_load_explicit(&m->info, memory_order_acquire);
    int32_t only = info != NULL ? info->only_capability : 0;
    CUmodule handle = NULL;
    if (only != 0 && only != aotc_rt_capability(&context->description)) {
      continue;
    }
    if (!aotc_rt_module_load_locked(driver, m, context, &handle)) {
      return false;
    }
  }
  return true;
}

// Unloads from the context, which is current if the driver has no libraries.
static void unload_here(const aotc_rt_driver *driver, aotc_rt_module *module,
                        const aotc_rt_context *context) {
  for (loaded_module **link = &module->loaded; *link != NULL; link = &(*link)->next) {
    loaded_module *loaded = *link;
    if (loaded->context == context) {
      if (module->library == NULL) {
        aotc_rt_check_release(driver, driver->module_unload(loaded->handle),
                              AOTC_RT_CALL_module_unload, "module '%s'",
                              aotc_rt_module_name(module));
      }
      *link = loaded->next;
      free(loaded);
      return;
    }
  }
}

void aotc_rt_modules_drop_locked(const aotc_rt_driver *driver, const aotc_rt_context *context) {
  for (aotc_rt_module *m = aotc_rt_state_of_process.modules; m != NULL; m = m->next) {
    unload_here(driver, m, context);
  }
}

// Forgets where the module is loaded, without a driver to ask.
static void forget_loaded(aotc_rt_module *module) {
  module->library = NULL;
  while (module->loaded != NULL) {
    loaded_module *loaded = module->loaded;
    module->loaded = loaded->next;
    free(loaded);
  }
}

static void unload_everywhere(const aotc_rt_driver *driver, aotc_rt_module *module) {
  if (module->library != NULL) {
    aotc_rt_check_release(driver, driver->library_unload(module->library),
                          AOTC_RT_CALL_library_unload, "module '%s'", aotc_rt_module_name(module));
  }
  while (module->loaded != NULL) {
    const aotc_rt_context *context = module->loaded->context;
    bool must_unload =
        module->library == NULL && !atomic_load_explicit(&context->is_gone, memory_order_relaxed);
    bool is_pushed =
        must_unload && aotc_rt_check_release(driver, driver->ctx_push_current(context->handle),
                                             AOTC_RT_CALL_ctx_push_current, "to unload");
    if (is_pushed) {
      unload_here(driver, module, context);
      CUcontext popped = NULL;
      aotc_rt_check_release(driver, driver->ctx_pop_current(&popped), AOTC_RT_CALL_ctx_pop_current,
                            "after unloading");
    } else {
      loaded_module *loaded = module->loaded;
      module->loaded = loaded->next;
      free(loaded);
    }
  }
}

void aotc_rt_module_unload_locked(const aotc_rt_driver *driver, aotc_rt_module *module) {
  if (driver != NULL) {
    unload_everywhere(driver, module);
  }
  forget_loaded(module);
}
