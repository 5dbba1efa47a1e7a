// Kernels on CUDA devices: looking them up in a module, setting their attributes, launching them.
#include <string.h>

#include "libcuda.h"

#define FIRST_PTX_WITH_PDL 90

// Code that the driver compiled from PTX for older GPUs has no wait instruction.
static bool find_wait(const aotc_rt_kernel *kernel, CUfunction function, aotc_rt_binding *binding) {
  int ptx = 0;
  if (!CUDA_TRY(func_get_attribute, (&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), "kernel '%s'",
                kernel->name)) {
    return false;
  }
  binding->uses_pdl = ptx >= FIRST_PTX_WITH_PDL;
  return true;
}

bool aotc_rt_cuda_kernel_find(const aotc_rt_kernel *kernel, aotc_rt_module_handle handle,
                              aotc_rt_binding *binding) {
  CUfunction function = NULL;
  int limit = 0;
  if (!CUDA_TRY(module_get_function, (&function, (CUmodule)handle, kernel->name),
                "kernel '%s' of module '%s'", kernel->name, aotc_rt_module_name(kernel->module)) ||
      !CUDA_TRY(func_get_attribute,
                (&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function), "kernel '%s'",
                kernel->name)) {
    return false;
  }
  binding->function = (aotc_rt_function)function;
  atomic_init(&binding->dynamic_shared_limit, limit);
  return !binding->uses_pdl || find_wait(kernel, function, binding);
}

aotc_rt_result aotc_rt_cuda_kernel_allow(aotc_rt_function function, aotc_rt_allowance what,
                                         int value) {
  static const CUfunction_attribute attributes[] = {
      [AOTC_RT_DYNAMIC_SHARED_BYTES] = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      [AOTC_RT_LARGE_CLUSTERS] = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
  };
  return CUDA_CALL(func_set_attribute, ((CUfunction)function, attributes[what], value));
}

// All blocks of a cooperative grid must be resident, so it cannot overlap with another kernel.
static bool may_begin_early(const aotc_rt_binding *binding, const aotc_rt_launch *l) {
  return binding->uses_pdl && !l->is_cooperative && !l->begins_alone;
}

static aotc_rt_result launch_extended(const aotc_rt_binding *binding, const aotc_rt_launch *l,
                                      aotc_rt_stream stream) {
  CUlaunchAttribute attributes[3];
  memset(attributes, 0, sizeof(attributes));
  unsigned int count = 0;
  if (aotc_rt_has_clusters(l)) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = (unsigned int)l->cluster[0];
    attributes[count].value.clusterDim.y = (unsigned int)l->cluster[1];
    attributes[count].value.clusterDim.z = (unsigned int)l->cluster[2];
    ++count;
  }
  if (l->is_cooperative) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count].value.cooperative = 1;
    ++count;
  }
  if (may_begin_early(binding, l)) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count].value.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  CUlaunchConfig config;
  memset(&config, 0, sizeof(config));
  config.gridDimX = (unsigned int)l->grid[0];
  config.gridDimY = (unsigned int)l->grid[1];
  config.gridDimZ = (unsigned int)l->grid[2];
  config.blockDimX = (unsigned int)l->block[0];
  config.blockDimY = (unsigned int)l->block[1];
  config.blockDimZ = (unsigned int)l->block[2];
  config.sharedMemBytes = (unsigned int)l->dynamic_shared_bytes;
  config.hStream = (CUstream)stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return CUDA_CALL(launch_kernel_ex,
                   (&config, (CUfunction)binding->function, l->parameters, l->extra));
}

// Launches with the oldest driver call that supports the launch's options.
aotc_rt_result aotc_rt_cuda_launch(const aotc_rt_binding *binding, const aotc_rt_launch *l,
                                   aotc_rt_stream stream) {
  if (aotc_rt_has_clusters(l) || may_begin_early(binding, l)) {
    return launch_extended(binding, l, stream);
  }
  CUfunction function = (CUfunction)binding->function;
  if (l->is_cooperative) {
    return CUDA_CALL(launch_cooperative_kernel,
                     (function, (unsigned int)l->grid[0], (unsigned int)l->grid[1],
                      (unsigned int)l->grid[2], (unsigned int)l->block[0],
                      (unsigned int)l->block[1], (unsigned int)l->block[2],
                      (unsigned int)l->dynamic_shared_bytes, (CUstream)stream, l->parameters));
  }
  return CUDA_CALL(launch_kernel,
                   (function, (unsigned int)l->grid[0], (unsigned int)l->grid[1],
                    (unsigned int)l->grid[2], (unsigned int)l->block[0], (unsigned int)l->block[1],
                    (unsigned int)l->block[2], (unsigned int)l->dynamic_shared_bytes,
                    (CUstream)stream, l->parameters, l->extra));
}
