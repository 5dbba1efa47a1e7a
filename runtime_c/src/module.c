// Modules and kernels: remembered when a program starts, loaded when a device needs them.
//
// aotc_module_register must stay in this file, with mgpuModuleLoad: generated objects refer to it
// weakly, and a weak reference alone does not pull an object out of an archive.
#include <stdlib.h>
#include <string.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

#define JIT_LOG_BYTES 1024
#define MAX_JIT_OPTIONS 3
#define FIRST_TABLE_SLOTS 16

typedef struct aotc_rt_registered_info {
  struct aotc_rt_registered_info *next;
  const aotc_module_info *info;
} registered_info;

// A module on one context.
typedef struct loaded_module {
  struct loaded_module *next;
  const aotc_rt_context *context;
  CUmodule handle;
} loaded_module;

// Kernels by the address of their name. Slots are filled under the lock and read without it. A full
// table is replaced by a larger one, but kept for those who still read it.
typedef struct name_table {
  struct name_table *smaller;
  size_t slot_count; // a power of 2
  size_t used;
  struct {
    _Atomic(const char *) name;
    _Atomic(aotc_rt_kernel *) kernel;
  } slots[];
} name_table;

struct aotc_rt_module {
  aotc_rt_module *next;
  const void *image;
  size_t bytes;
  int32_t optimization_level;             // of the driver's compiler, or -1: its default
  _Atomic(const aotc_module_info *) info; // NULL until it is registered
  _Atomic(name_table *) names;
  // Under the lock from here on.
  char *text; // the image with a NUL at its end, if it is PTX text
  aotc_rt_kernel *kernels;
  loaded_module *loaded;
  CUlibrary library; // NULL until it is loaded, and with drivers older than CUDA 12
  // The driver may write here as long as the library lives: it compiles PTX when a context needs
  // it.
  CUjit_option jit_options[MAX_JIT_OPTIONS];
  void *jit_values[MAX_JIT_OPTIONS];
  unsigned int jit_option_count;
  char jit_log[JIT_LOG_BYTES];
};

// -------------------------------------------------------------------------------------------------
// Remembering

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

static name_table *make_table(size_t slot_count, name_table *smaller) {
  name_table *table = calloc(1, sizeof(*table) + slot_count * sizeof(table->slots[0]));
  if (table != NULL) {
    table->slot_count = slot_count;
    table->smaller = smaller;
  }
  return table;
}

static void free_tables(name_table *table) {
  while (table != NULL) {
    name_table *smaller = table->smaller;
    free(table);
    table = smaller;
  }
}

// Cubins and fatbins begin with a magic number; PTX begins with a comment or a directive.
static bool is_text(const void *image, size_t bytes) {
  const char *text = image;
  return bytes > 0 && strchr("/. \t\r\n", text[0]) != NULL && text[0] != '\0';
}

static aotc_rt_module *make_module(const void *image, size_t bytes, int32_t optimization_level,
                                   bool is_ptx) {
  aotc_rt_module *module = calloc(1, sizeof(*module));
  name_table *names = make_table(FIRST_TABLE_SLOTS, NULL);
  char *text = is_ptx ? malloc(bytes + 1) : NULL;
  if (module == NULL || names == NULL || (is_ptx && text == NULL)) {
    free(module);
    free(names);
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
// Loading

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

// Loads the module on the context, which is current, unless it is there already.
static bool load_locked(const aotc_rt_driver *driver, aotc_rt_module *module,
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
    CUmodule handle = NULL;
    if (!load_locked(driver, m, context, &handle)) {
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

static void free_bindings(aotc_rt_kernel *kernel) {
  aotc_rt_binding *binding = atomic_load(&kernel->bindings);
  atomic_store(&kernel->bindings, NULL);
  while (binding != NULL) {
    aotc_rt_binding *next = binding->next;
    free(binding);
    binding = next;
  }
}

void aotc_rt_modules_unload_locked(aotc_rt_state *state) {
  aotc_rt_constants_unload_locked(state);
  for (aotc_rt_module *m = state->modules; m != NULL; m = m->next) {
    if (!state->is_driver_lost) {
      unload_everywhere(&state->driver, m);
    }
    forget_loaded(m);
    for (aotc_rt_kernel *kernel = m->kernels; kernel != NULL; kernel = kernel->next) {
      free_bindings(kernel);
    }
  }
}

// Forgets what was registered of an image that no module has any more.
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
  while (module->kernels != NULL) {
    aotc_rt_kernel *kernel = module->kernels;
    module->kernels = kernel->next;
    free_bindings(kernel);
    free(kernel);
  }
  free_tables(atomic_load(&module->names));
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
    if (!state->is_driver_lost) {
      unload_everywhere(&state->driver, module);
    }
    forget_loaded(module);
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

// -------------------------------------------------------------------------------------------------
// Kernels

// Names are constants of the program, so their addresses tell them apart; the text is compared too,
// as somebody may build names in a buffer.
static size_t first_slot(const name_table *table, const char *name) {
  uintptr_t address = (uintptr_t)name;
  return (size_t)((address >> 4) ^ (address >> 12) ^ address) & (table->slot_count - 1);
}

static aotc_rt_kernel *look_up(const name_table *table, const char *name) {
  size_t slot = first_slot(table, name);
  for (size_t i = 0; i < table->slot_count; ++i, slot = (slot + 1) & (table->slot_count - 1)) {
    const char *key = atomic_load_explicit(&table->slots[slot].name, memory_order_acquire);
    if (key == name) {
      // Written before the name was.
      return atomic_load_explicit(&table->slots[slot].kernel, memory_order_relaxed);
    }
    if (key == NULL) {
      return NULL;
    }
  }
  return NULL;
}

static void insert(name_table *table, const char *name, aotc_rt_kernel *kernel) {
  size_t slot = first_slot(table, name);
  while (atomic_load_explicit(&table->slots[slot].name, memory_order_relaxed) != NULL) {
    slot = (slot + 1) & (table->slot_count - 1);
  }
  atomic_store_explicit(&table->slots[slot].kernel, kernel, memory_order_relaxed);
  atomic_store_explicit(&table->slots[slot].name, name, memory_order_release);
  ++table->used;
}

// Makes the next look-up of `name` fast. Without memory for that it stays slow.
static void remember_name_locked(aotc_rt_module *module, const char *name, aotc_rt_kernel *kernel) {
  name_table *table = atomic_load_explicit(&module->names, memory_order_relaxed);
  if (look_up(table, name) != NULL) {
    return; // the address of a buffer that held another name before
  }
  if (table->used * 2 >= table->slot_count) {
    name_table *larger = make_table(table->slot_count * 2, table);
    if (larger == NULL) {
      return;
    }
    for (size_t i = 0; i < table->slot_count; ++i) {
      const char *key = atomic_load_explicit(&table->slots[i].name, memory_order_relaxed);
      if (key != NULL) {
        insert(larger, key, atomic_load_explicit(&table->slots[i].kernel, memory_order_relaxed));
      }
    }
    atomic_store_explicit(&module->names, larger, memory_order_release);
    table = larger;
  }
  insert(table, name, kernel);
}

static aotc_rt_kernel *find_kernel_locked(aotc_rt_module *module, const char *name) {
  aotc_rt_kernel *kernel = module->kernels;
  while (kernel != NULL && strcmp(kernel->name, name) != 0) {
    kernel = kernel->next;
  }
  if (kernel == NULL) {
    size_t bytes = strlen(name) + 1;
    kernel = calloc(1, sizeof(*kernel) + bytes);
    if (kernel == NULL) {
      aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for kernel '%s'", name);
      return NULL;
    }
    kernel->module = module;
    memcpy(kernel->name, name, bytes);
    memcpy(kernel->label, name, bytes < sizeof(kernel->label) ? bytes : sizeof(kernel->label) - 1);
    kernel->next = module->kernels;
    module->kernels = kernel;
  }
  remember_name_locked(module, name, kernel);
  return kernel;
}

void *mgpuModuleGetFunction(void *handle, const char *name) {
  aotc_rt_thread *thread = &aotc_rt_this_thread;
  if (thread->error.status != AOTC_OK) {
    return NULL;
  }
  aotc_rt_module *module = handle;
  if (module == NULL || name == NULL) {
    thread->operation = "mgpuModuleGetFunction";
    aotc_rt_fail(AOTC_INVALID_ARGUMENT, "there is no %s", module == NULL ? "module" : "name");
    thread->operation = NULL;
    return NULL;
  }
  aotc_rt_kernel *kernel =
      look_up(atomic_load_explicit(&module->names, memory_order_acquire), name);
  if (kernel != NULL && strcmp(kernel->name, name) == 0) {
    return kernel;
  }
  thread->operation = "mgpuModuleGetFunction";
  aotc_rt_lock();
  kernel = find_kernel_locked(module, name);
  aotc_rt_unlock();
  thread->operation = NULL;
  return kernel;
}

static aotc_rt_binding *bind_locked(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                    aotc_rt_context *context) {
  CUmodule module = NULL;
  CUfunction function = NULL;
  int limit = 0;
  if (!load_locked(driver, kernel->module, context, &module) ||
      !AOTC_RT_TRY(driver, module_get_function, (&function, module, kernel->name),
                   "kernel '%s' of module '%s'", kernel->name,
                   aotc_rt_module_name(kernel->module)) ||
      !AOTC_RT_TRY(driver, func_get_attribute,
                   (&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function),
                   "kernel '%s'", kernel->name)) {
    return NULL;
  }
  aotc_rt_binding *binding = calloc(1, sizeof(*binding));
  if (binding == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for kernel '%s'", kernel->name);
    return NULL;
  }
  binding->context = context;
  binding->function = function;
  atomic_init(&binding->dynamic_shared_limit, limit);
  binding->next = atomic_load_explicit(&kernel->bindings, memory_order_relaxed);
  atomic_store_explicit(&kernel->bindings, binding, memory_order_release);
  return binding;
}

static aotc_rt_binding *find_binding(aotc_rt_kernel *kernel, const aotc_rt_context *context) {
  aotc_rt_binding *binding = atomic_load_explicit(&kernel->bindings, memory_order_acquire);
  while (binding != NULL && binding->context != context) {
    binding = binding->next;
  }
  return binding;
}

aotc_rt_binding *aotc_rt_kernel_bind(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                     aotc_rt_context *context) {
  aotc_rt_binding *binding = find_binding(kernel, context);
  if (binding == NULL) {
    aotc_rt_lock();
    binding = find_binding(kernel, context);
    if (binding == NULL) {
      binding = bind_locked(driver, kernel, context);
    }
    aotc_rt_unlock();
  }
  return binding;
}

const aotc_cpu_kernel *aotc_rt_kernel_cpu_form(aotc_rt_kernel *kernel) {
  const aotc_cpu_kernel *cpu = atomic_load_explicit(&kernel->cpu, memory_order_acquire);
  if (cpu != NULL) {
    return cpu;
  }
  const aotc_module_info *info = atomic_load_explicit(&kernel->module->info, memory_order_acquire);
  for (uint32_t i = 0; info != NULL && i < info->kernel_count; ++i) {
    if (strcmp(info->kernels[i].name, kernel->name) == 0) {
      cpu = &info->kernels[i];
    }
  }
  if (cpu != NULL && (cpu->run != NULL || cpu->step != NULL)) {
    atomic_store_explicit(&kernel->cpu, cpu, memory_order_release);
    return cpu;
  }

  const char *why_not = "the module does not list it";
  if (info == NULL) {
    why_not = "the module was not registered";
  } else if (cpu != NULL) {
    why_not = cpu->why_not != NULL ? cpu->why_not : "no reason is given";
  }
  const char *why_cpu = aotc_rt_state_of_process.device.reason;
  aotc_rt_fail(AOTC_NO_CPU_KERNEL, "kernel '%s' of module '%s' cannot run on the CPU: %s; %s%s",
               kernel->name, aotc_rt_module_name(kernel->module), why_not,
               why_cpu[0] != '\0' ? "no GPU is used: " : "the CPU was requested", why_cpu);
  return NULL;
}
