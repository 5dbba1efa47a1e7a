// Modules: registered when a program starts, unregistered when it ends.
//
// aotc_module_register must stay in this file, with mgpuModuleLoad: generated objects refer to it
// weakly, and a weak reference alone does not extract a member of an archive.
#include "module.h"
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "mlir_cuda_runtime.h"

typedef struct aotc_rt_registered_info {
  struct aotc_rt_registered_info *next;
  const aotc_module_info *info;
} registered_info;

static const aotc_module_info *find_info_locked(const void *image) {
  for (registered_info *i = aotc_rt_state_of_process.infos; i != NULL; i = i->next) {
    if (i->info->image == image) {
      return i->info;
    }
  }
  return NULL;
}

void aotc_module_register(const aotc_module_info *info) {
  aotc_rt_this_thread.operation = "aotc_module_register";
  registered_info *registered = NULL;
  if (info == NULL || info->version != AOTC_MODULE_INFO_VERSION) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT,
                 "the module's description has version %u, this runtime knows version %d",
                 info != NULL ? (unsigned)info->version : 0, AOTC_MODULE_INFO_VERSION);
  } else if ((registered = malloc(sizeof(*registered))) == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember a module");
  } else {
    registered->info = info;
    aotc_rt_lock();
    registered->next = aotc_rt_state_of_process.infos;
    aotc_rt_state_of_process.infos = registered;
    for (aotc_rt_module *m = aotc_rt_state_of_process.modules; m != NULL; m = m->next) {
      if (m->image == info->image) {
        atomic_store_explicit(&m->info, info, memory_order_release);
      }
    }
    aotc_rt_unlock();
  }
  aotc_rt_this_thread.operation = NULL;
}

// Cubins and fatbins start with a magic number; PTX starts with a comment or a directive.
static bool is_text(const void *image, size_t bytes) {
  const char *text = image;
  return bytes > 0 && strchr("/. \t\r\n", text[0]) != NULL && text[0] != '\0';
}

static aotc_rt_module *make_module(const void *image, size_t bytes, int32_t optimization_level,
                                   bool is_ptx) {
  aotc_rt_module *module = calloc(1, sizeof(*module));
  aotc_rt_name_table *names = aotc_rt_name_table_make();
  char *text = is_ptx ? malloc(bytes + 1) : NULL;
  if (module == NULL || names == NULL || (is_ptx && text == NULL)) {
    free(module);
    aotc_rt_name_table_free(names);
    free(text);
    return NULL;
  }
  if (is_ptx) {
    memcpy(text, image, bytes);
    text[bytes] = '\0';
  }
  module->image = image;
  module->bytes = bytes;
  module->optimization_level = optimization_level;
  module->text = text;
  atomic_init(&module->names, names);
  return module;
}

static aotc_rt_module *remember(const char *operation, const void *image, size_t bytes,
                                int32_t optimization_level, bool is_ptx) {
  aotc_rt_this_thread.operation = operation;
  aotc_rt_module *module = NULL;
  if (image == NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no image");
  } else {
    module = make_module(image, bytes, optimization_level, is_ptx);
    if (module == NULL) {
      aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory to remember an image of %zu bytes", bytes);
    }
  }
  if (module != NULL) {
    aotc_rt_lock();
    atomic_store_explicit(&module->info, find_info_locked(image), memory_order_release);
    module->next = aotc_rt_state_of_process.modules;
    aotc_rt_state_of_process.modules = module;
    aotc_rt_unlock();
  }
  aotc_rt_this_thread.operation = NULL;
  return module;
}

void *mgpuModuleLoad(void *image, size_t bytes) {
  return remember("mgpuModuleLoad", image, bytes, -1, image != NULL && is_text(image, bytes));
}

void *mgpuModuleLoadJIT(void *image, int32_t optimization_level, size_t bytes) {
  int32_t level = optimization_level < 0 || optimization_level > 4 ? -1 : optimization_level;
  return remember("mgpuModuleLoadJIT", image, bytes, level, image != NULL);
}

const char *aotc_rt_module_name(const aotc_rt_module *module) {
  const aotc_module_info *info = atomic_load_explicit(&module->info, memory_order_acquire);
  return info != NULL && info->name != NULL ? info->name : "(not registered)";
}

const char *aotc_rt_module_built_for(const aotc_rt_module *module) {
  const aotc_module_info *info = atomic_load_explicit(&module->info, memory_order_acquire);
  return info != NULL && info->built_for != NULL ? info->built_for
                                                 : "unknown chips (it was not registered)";
}

// -------------------------------------------------------------------------------------------------
// Unloading

void aotc_rt_modules_unload_locked(aotc_rt_state *state) {
  aotc_rt_constants_unload_locked(state);
  for (aotc_rt_module *m = state->modules; m != NULL; m = m->next) {
    aotc_rt_module_unload_locked(aotc_rt_driver_to_release(state), m);
    aotc_rt_kernels_unload(m);
  }
}

// Removes the information registered for an image that no module uses any more.
static void forget_infos_locked(aotc_rt_state *state, const void *image) {
  for (aotc_rt_module *m = state->modules; m != NULL; m = m->next) {
    if (m->image == image) {
      return;
    }
  }
  registered_info **link = &state->infos;
  while (*link != NULL) {
    registered_info *registered = *link;
    if (registered->info->image == image) {
      *link = registered->next;
      free(registered);
    } else {
      link = &registered->next;
    }
  }
}

static void free_module(aotc_rt_module *module) {
  aotc_rt_kernels_free(module);
  aotc_rt_name_table_free(atomic_load(&module->names));
  free(module->text);
  free(module);
}

void mgpuModuleUnload(void *handle) {
  aotc_rt_state *state = &aotc_rt_state_of_process;
  aotc_rt_this_thread.operation = "mgpuModuleUnload";
  aotc_rt_lock();
  aotc_rt_module **link = &state->modules;
  while (*link != NULL && *link != handle) {
    link = &(*link)->next;
  }
  aotc_rt_module *module = *link;
  if (module != NULL) {
    *link = module->next;
    aotc_rt_graphs_forget_kernels(aotc_rt_driver_to_release(state));
    aotc_rt_module_unload_locked(aotc_rt_driver_to_release(state), module);
    forget_infos_locked(state, module->image);
  }
  aotc_rt_unlock();
  if (module != NULL) {
    free_module(module);
  } else if (handle != NULL) {
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "the module is unknown, or unloaded already");
  }
  aotc_rt_this_thread.operation = NULL;
}
