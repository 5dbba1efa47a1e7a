// A module of the program: its registration, and where it is loaded.
#ifndef AOTC_RT_MODULE_H
#define AOTC_RT_MODULE_H

#include "name_table.h"
#include "state.h"

struct aotc_rt_module {
  aotc_rt_module *next;
  const void *image;
  size_t bytes;
  int32_t optimization_level;             // for the driver's compiler, or -1 for its default
  _Atomic(const aotc_module_info *) info; // NULL until it is registered
  _Atomic(aotc_rt_name_table *) names;
  // The following members are protected by the lock.
  char *text; // a NUL-terminated copy of the image, if it is PTX
  aotc_rt_kernel *kernels;
  struct aotc_rt_loaded_module *loaded; // the contexts it is loaded in
  struct aotc_rt_library *library;      // for drivers with per-process modules, else NULL
};

// -------------------------------------------------------------------------------------------------
// Loading (module_load.c)

// Loads the module into the current context, unless it is loaded already. False, with the failure
// recorded.
bool aotc_rt_module_load_locked(const aotc_rt_driver *driver, aotc_rt_module *module,
                                const aotc_rt_context *context, aotc_rt_module_handle *out_handle);

// Unloads the module from all contexts. Without a driver only forgets where it was loaded.
void aotc_rt_module_unload_locked(const aotc_rt_driver *driver, aotc_rt_module *module);

// -------------------------------------------------------------------------------------------------
// Kernels (kernel.c)

// Frees the bindings of the module's kernels.
void aotc_rt_kernels_unload(aotc_rt_module *module);
// Frees the kernels.
void aotc_rt_kernels_free(aotc_rt_module *module);

#endif // AOTC_RT_MODULE_H
