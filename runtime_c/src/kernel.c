// Kernels: looked up by name, and bound to a context or to their CPU form.
#include <stdlib.h>
#include <string.h>

#include "mlir_cuda_runtime.h"
#include "module.h"

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
  aotc_rt_name_table_add_locked(&module->names, name, kernel);
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
      aotc_rt_name_table_find(atomic_load_explicit(&module->names, memory_order_acquire), name);
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

static bool uses_pdl(const aotc_rt_kernel *kernel) {
  const aotc_module_info *info = atomic_load_explicit(&kernel->module->info, memory_order_acquire);
  if (info == NULL || !aotc_rt_state_of_process.facts.has_pdl) {
    return false;
  }
  for (uint32_t i = 0; i < info->pdl_kernel_count; ++i) {
    if (strcmp(info->pdl_kernels[i], kernel->name) == 0) {
      return true;
    }
  }
  return false;
}

static aotc_rt_binding *bind_locked(const aotc_rt_driver *driver, aotc_rt_kernel *kernel,
                                    aotc_rt_context *context) {
  aotc_rt_module_handle module = NULL;
  if (!aotc_rt_module_load_locked(driver, kernel->module, context, &module)) {
    return NULL;
  }
  aotc_rt_binding *binding = calloc(1, sizeof(*binding));
  if (binding == NULL) {
    aotc_rt_fail(AOTC_OUT_OF_MEMORY, "no host memory for kernel '%s'", kernel->name);
    return NULL;
  }
  binding->uses_pdl = uses_pdl(kernel);
  if (!driver->kernel_find(kernel, module, binding)) {
    free(binding);
    return NULL;
  }
  binding->context = context;
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

static aotc_rt_parameters *ask_for_parameters(const aotc_rt_driver *driver,
                                              aotc_rt_function function) {
  uint32_t capacity = 32;
  aotc_rt_parameters *made = malloc(sizeof(*made) + capacity * sizeof(made->bytes[0]));
  bool is_there = made != NULL;
  size_t slots = 0;
  for (uint32_t i = 0; is_there; ++i) {
    size_t bytes = 0;
    if (driver->kernel_parameter(function, i, &bytes, &is_there).code != 0) {
      free(made);
      return NULL;
    }
    made->count = i;
    if (is_there && i == capacity) {
      capacity *= 2;
      aotc_rt_parameters *larger = realloc(made, sizeof(*made) + capacity * sizeof(made->bytes[0]));
      if (larger == NULL) {
        free(made);
        return NULL;
      }
      made = larger;
    }
    if (is_there) {
      made->bytes[i] = (uint32_t)bytes;
      slots += (bytes + AOTC_RT_SLOT_BYTES - 1) / AOTC_RT_SLOT_BYTES;
    }
    made->recorded_bytes = slots * AOTC_RT_SLOT_BYTES;
  }
  return made;
}

const aotc_rt_parameters *aotc_rt_binding_parameters(const aotc_rt_driver *driver,
                                                     aotc_rt_binding *binding) {
  aotc_rt_parameters *known = atomic_load_explicit(&binding->parameters, memory_order_acquire);
  if (known != NULL) {
    return known;
  }
  aotc_rt_parameters *made = ask_for_parameters(driver, binding->function);
  if (made != NULL &&
      !atomic_compare_exchange_strong(&binding->parameters, &known, made)) { // another thread
    free(made);
    return known;
  }
  return made;
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

static void free_bindings(aotc_rt_kernel *kernel) {
  aotc_rt_binding *binding = atomic_load(&kernel->bindings);
  atomic_store(&kernel->bindings, NULL);
  while (binding != NULL) {
    aotc_rt_binding *next = binding->next;
    free(atomic_load(&binding->parameters));
    free(binding);
    binding = next;
  }
}

void aotc_rt_kernels_unload(aotc_rt_module *module) {
  for (aotc_rt_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
    free_bindings(kernel);
  }
}

void aotc_rt_kernels_free(aotc_rt_module *module) {
  aotc_rt_kernels_unload(module);
  while (module->kernels != NULL) {
    aotc_rt_kernel *kernel = module->kernels;
    module->kernels = kernel->next;
    free(kernel);
  }
}
