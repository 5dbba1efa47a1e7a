// Modules on devices: loaded when a context needs them, and unloaded.
#include <stdlib.h>
#include <string.h>

#include "module.h"

// A module loaded in one context.
typedef struct aotc_rt_loaded_module {
  struct aotc_rt_loaded_module *next;
  const aotc_rt_context *context;
  aotc_rt_module_handle handle;
} loaded_module;

bool aotc_rt_module_load_locked(const aotc_rt_driver *driver, aotc_rt_module *module,
                                const aotc_rt_context *context, aotc_rt_module_handle *out_handle) {
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
  aotc_rt_module_handle handle = NULL;
  aotc_rt_capture_mode mode;
  bool is_relaxed = aotc_rt_capture_relax(driver, &mode);
  bool is_loaded = is_relaxed && driver->module_load(module, &handle);
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
    aotc_rt_module_handle handle = NULL;
    if (only != 0 && only != aotc_rt_capability(&context->description)) {
      continue;
    }
    if (!aotc_rt_module_load_locked(driver, m, context, &handle)) {
      return false;
    }
  }
  return true;
}

// Unloads from the context, which is current unless modules are per process.
static void unload_here(const aotc_rt_driver *driver, aotc_rt_module *module,
                        const aotc_rt_context *context) {
  for (loaded_module **link = &module->loaded; *link != NULL; link = &(*link)->next) {
    loaded_module *loaded = *link;
    if (loaded->context == context) {
      if (module->library == NULL) {
        AOTC_RT_TRY_RELEASE(driver, module_unload(module, loaded->handle), "module '%s'",
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

// Forgets where the module is loaded, when there is no driver to unload it with.
static void forget_loaded(aotc_rt_module *module) {
  free(module->library);
  module->library = NULL;
  while (module->loaded != NULL) {
    loaded_module *loaded = module->loaded;
    module->loaded = loaded->next;
    free(loaded);
  }
}

static void unload_everywhere(const aotc_rt_driver *driver, aotc_rt_module *module) {
  if (module->library != NULL) {
    AOTC_RT_TRY_RELEASE(driver, module_unload(module, NULL), "module '%s'",
                        aotc_rt_module_name(module));
  }
  while (module->loaded != NULL) {
    const aotc_rt_context *context = module->loaded->context;
    bool must_unload =
        module->library == NULL && !atomic_load_explicit(&context->is_gone, memory_order_relaxed);
    bool is_pushed =
        must_unload && AOTC_RT_TRY_RELEASE(driver, context_push(context->handle), "to unload");
    if (is_pushed) {
      unload_here(driver, module, context);
      AOTC_RT_TRY_RELEASE(driver, context_pop(), "after unloading");
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
