// A module of the program: what was remembered of it, and where it is loaded.
#ifndef AOTC_RT_MODULE_H
#define AOTC_RT_MODULE_H

#include "name_table.h"
#include "state.h"

struct aotc_rt_module {
  aotc_rt_module *next;
  const void *image;
  size_t bytes;
  int32_t optimization_level;             // of the driver's compiler, or -1: its default
  _Atomic(const aotc_module_info *) info; // NULL until it is registered
  _Atomic(aotc_rt_name_table *) names;
  // Under the lock from here on.
  char *text; // the image with a NUL at its end, if it is PTX text
  aotc_rt_kernel *kernels;
  struct aotc_rt_loaded_module *loaded; // where it is loaded
  struct aotc_rt_library *library;      // the driver's, where modules are the process's; else NULL
};

// -------------------------------------------------------------------------------------------------
// Loading (module_load.c)

// Loads the module on the context, which is current, unless it is there already. False, with the
// failure recorded.
bool aotc_rt_module_load_locked(const aotc_rt_driver *driver, aotc_rt_module *module,
                                const aotc_rt_context *context, aotc_rt_module_handle *out_handle);

// Unloads the module from everywhere. Without a driver it is only forgotten where that was.
void aotc_rt_module_unload_locked(const aotc_rt_driver *driver, aotc_rt_module *module);

// -------------------------------------------------------------------------------------------------
// Kernels (kernel.c)

// Frees what the module's kernels know of contexts.
void aotc_rt_kernels_unload(aotc_rt_module *module);
// Frees the kernels.
void aotc_rt_kernels_free(aotc_rt_module *module);

#endif // AOTC_RT_MODULE_H
