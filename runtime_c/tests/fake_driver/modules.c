// The fake driver: modules, kernels and their launches, tensor maps.
#include "state.h"

#include <stdio.h>
#include <string.h>

// Whether the image says `key=...,value,...`.
static bool image_lists(const char *image, const char *key, const char *value) {
  const char *list = strstr(image, key);
  const char *end = list != NULL ? strchr(list, ' ') : NULL;
  char word[80];
  snprintf(word, sizeof(word), "%s,", value);
  for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; ++at) {
    if ((end == NULL || at < end) && (at[-1] == '=' || at[-1] == ',')) {
      return true;
    }
  }
  return false;
}

// Whether the image can be loaded in the current context, as a driver result.
static CUresult fit(const char *image, unsigned int count, const CUjit_option *options,
                    void **values) {
  char *log = NULL;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      log = values[i];
    } else if (options[i] == CU_JIT_OPTIMIZATION_LEVEL) {
      the_driver.jit_optimization_level = (int)(uintptr_t)values[i];
    }
  }
  if (strncmp(image, ".version", 8) == 0) {
    if (strstr(image, "bad") == NULL) {
      return CUDA_SUCCESS;
    }
    if (log != NULL) {
      strcpy(log, "ptxas: line 2: bad\n");
    }
    return CUDA_ERROR_INVALID_PTX;
  }
  if (strncmp(image,
              "\x7f"
              "FAKE",
              5) != 0) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  char chip[16];
  snprintf(chip, sizeof(chip), "%d", the_driver.capability[the_stack[the_depth - 1]->ordinal]);
  return image_lists(image, "chips=", chip) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// Functions are destroyed with their module.
static void forget_functions(const void *module) {
  for (int i = 0; i < MAX_OBJECTS; ++i) {
    if (the_objects[i].kind == OBJECT_FUNCTION && the_objects[i].owner == module) {
      the_objects[i].kind = OBJECT_NONE;
    }
  }
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER("cuCtxGetId");
  *id = ((object *)context)->id;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code,
                                          CUjit_option *jit_options, void **jit_values,
                                          unsigned int jit_count, CUlibraryOption *options,
                                          void **values, unsigned int count) {
  ENTER_WITH_CONTEXT("cuLibraryLoadData");
  (void)values;
  if (count != 1 || options[0] != CU_LIBRARY_BINARY_IS_PRESERVED) {
    violate("a library loaded without saying that its image stays");
  }
  // Checked lazily, as in the real driver: a mismatch is detected in the context that uses the
  // image.
  CUresult result = fit(code, jit_count, jit_options, jit_values);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU) {
    return result;
  }
  object *made = make_object(OBJECT_LIBRARY);
  made->image = code;
  ++the_driver.live_modules;
  *library = (CUlibrary)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  ENTER_WITH_CONTEXT("cuLibraryGetModule");
  if (!is_object(library, OBJECT_LIBRARY)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult result = fit(((object *)library)->image, 0, NULL, NULL);
  if (result == CUDA_SUCCESS) {
    *module = (CUmodule)library;
  }
  return result;
}

EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  ENTER("cuLibraryUnload");
  if (!is_object(library, OBJECT_LIBRARY)) {
    violate("a library unloaded that is not loaded");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  forget_functions(library);
  ((object *)library)->kind = OBJECT_NONE;
  --the_driver.live_modules;
  return CUDA_SUCCESS;
}

// Records the arguments common to all kinds of tensor maps. Whether the map is aligned as required.
static bool note_tensor_map(CUtensorMap *map, CUtensorMapDataType data_type, cuuint32_t rank,
                            void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                            const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                            CUtensorMapFloatOOBfill oob_fill) {
  if ((uintptr_t)map % 64 != 0) {
    violate("a tensor map that is not aligned to 64 bytes");
    return false;
  }
  fake_driver *d = &the_driver;
  ++d->tensor_map_count;
  d->tensor_map_rank = rank;
  d->tensor_map_address = address;
  d->tensor_map_data_type = (int)data_type;
  d->tensor_map_interleave = (int)interleave;
  d->tensor_map_swizzle = (int)swizzle;
  d->tensor_map_l2_promotion = (int)l2_promotion;
  d->tensor_map_oob_fill = (int)oob_fill;
  memset(map, 0, sizeof(*map));
  map->opaque[0] = (uintptr_t)address;
  for (unsigned int i = 0; i < rank; ++i) {
    d->tensor_map_sizes[i] = sizes[i];
    d->tensor_map_strides[i] = i + 1 < rank ? strides[i] : 0;
    d->tensor_map_element_strides[i] = element_strides[i];
  }
  return true;
}

EXPORT CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType data_type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box_sizes,
    const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
  ENTER("cuTensorMapEncodeTiled");
  if (!note_tensor_map(map, data_type, rank, address, sizes, strides, element_strides, interleave,
                       swizzle, l2_promotion, oob_fill)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned int i = 0; i < rank; ++i) {
    the_driver.tensor_map_box_sizes[i] = box_sizes[i];
    map->opaque[1 + i] = sizes[i] * 1000 + box_sizes[i];
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuTensorMapEncodeIm2col(
    CUtensorMap *map, CUtensorMapDataType data_type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower_corner,
    const int *upper_corner, cuuint32_t channels, cuuint32_t pixels,
    const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
  ENTER("cuTensorMapEncodeIm2col");
  if (!note_tensor_map(map, data_type, rank, address, sizes, strides, element_strides, interleave,
                       swizzle, l2_promotion, oob_fill)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  the_driver.tensor_map_box_sizes[0] = channels;
  the_driver.tensor_map_box_sizes[1] = pixels;
  for (unsigned int i = 0; i + 2 < rank; ++i) {
    the_driver.tensor_map_lower_corner[i] = lower_corner[i];
    the_driver.tensor_map_upper_corner[i] = upper_corner[i];
  }
  map->opaque[1] = pixels * 1000 + channels;
  return CUDA_SUCCESS;
}
#endif // FAKE_OLD_DRIVER

EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                           CUjit_option *options, void **values) {
  ENTER_WITH_CONTEXT("cuModuleLoadDataEx");
  CUresult result = fit(image, count, options, values);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  object *made = make_object(OBJECT_MODULE);
  made->image = image;
  ++the_driver.live_modules;
  *module = (CUmodule)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  ENTER_WITH_CONTEXT("cuModuleUnload");
  if (!is_object(module, OBJECT_MODULE) ||
      ((object *)module)->context != the_stack[the_depth - 1]) {
    violate("a module unloaded that is not loaded in the context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  forget_functions(module);
  ((object *)module)->kind = OBJECT_NONE;
  --the_driver.live_modules;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module,
                                            const char *name) {
  ENTER_WITH_CONTEXT("cuModuleGetFunction");
  if (!is_object(module, OBJECT_MODULE) && !is_object(module, OBJECT_LIBRARY)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!image_lists(((object *)module)->image, "kernels=", name)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  object *made = make_object(OBJECT_FUNCTION);
  made->max_dynamic_shared = 48 * 1024;
  made->owner = (const object *)module;
  snprintf(made->name, sizeof(made->name), "%s", name);
  *function = (CUfunction)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                           CUfunction function) {
  ENTER_WITH_CONTEXT("cuFuncGetAttribute");
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = ((object *)function)->max_dynamic_shared;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = the_driver.ptx_version;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// Maximum shared memory of a block that opts in. Unlisted GPUs have the least.
static int most_dynamic_shared(int capability) {
  switch (capability) {
  case 75:
    return 64 * 1024;
  case 80:
  case 87:
    return 163 * 1024;
  case 90:
  case 100:
  case 103:
    return 227 * 1024;
  default:
    return 99 * 1024;
  }
}

EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                           int value) {
  ENTER_WITH_CONTEXT("cuFuncSetAttribute");
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    object *f = (object *)function;
    if (value > most_dynamic_shared(the_driver.capability[f->context->ordinal])) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    f->max_dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const unsigned int grid[3], const unsigned int block[3],
                       unsigned int shared_bytes, CUstream stream, void **parameters,
                       const fake_launch *how) {
  object *f = (object *)function;
  if (!is_object(f, OBJECT_FUNCTION) || f->context != the_stack[the_depth - 1]) {
    violate("a launch of a function of another context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!is_stream(stream)) {
    violate("a launch on a stream that is none");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if ((int)shared_bytes > f->max_dynamic_shared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake_launch made = *how;
  made.dynamic_shared_bytes = shared_bytes;
  made.stream = stream;
  uint64_t parameter = parameter_of(parameters);
  made.first_parameter = (int)parameter;
  memcpy(made.kernel, f->name, sizeof(made.kernel));
  memcpy(made.grid, grid, sizeof(made.grid));
  memcpy(made.block, block, sizeof(made.block));
  if (!record_node(stream, &(fake_node){made, parameter})) {
    do_launch(&made, parameters);
  }
  return CUDA_SUCCESS;
}

uint64_t parameter_of(void *const *parameters) {
  uint64_t parameter = 0;
  if (parameters != NULL) {
    size_t bytes = the_driver.parameter_bytes;
    memcpy(&parameter, parameters[0], bytes < sizeof(parameter) ? bytes : sizeof(parameter));
  }
  return parameter;
}

void do_launch(const fake_launch *made, void **parameters) {
  pthread_mutex_lock(&the_lock);
  ++the_driver.launch_count;
  the_driver.last_launch = *made;
  pthread_mutex_unlock(&the_lock);
  if (the_late.is_on) {
    do_later(
        (late_work){.kind = LATE_LAUNCH, .launch = the_late.launched(made->kernel, parameters)});
  }
}

EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes,
                                       CUstream stream, void **parameters, void **extra) {
  ENTER_WITH_CONTEXT("cuLaunchKernel");
  (void)extra;
  return launch(function, (unsigned int[3]){grid_x, grid_y, grid_z},
                (unsigned int[3]){block_x, block_y, block_z}, shared_bytes, stream, parameters,
                &(fake_launch){.stream = stream});
}

EXPORT CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                                  unsigned int grid_y, unsigned int grid_z,
                                                  unsigned int block_x, unsigned int block_y,
                                                  unsigned int block_z, unsigned int shared_bytes,
                                                  CUstream stream, void **parameters) {
  ENTER_WITH_CONTEXT("cuLaunchCooperativeKernel");
  return launch(function, (unsigned int[3]){grid_x, grid_y, grid_z},
                (unsigned int[3]){block_x, block_y, block_z}, shared_bytes, stream, parameters,
                &(fake_launch){.is_cooperative = true});
}

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                         void **parameters, void **extra) {
  ENTER_WITH_CONTEXT("cuLaunchKernelEx");
  (void)extra;
  fake_launch how = {.stream = config->hStream};
  for (unsigned int i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute *attribute = &config->attrs[i];
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      how.cluster[0] = attribute->value.clusterDim.x;
      how.cluster[1] = attribute->value.clusterDim.y;
      how.cluster[2] = attribute->value.clusterDim.z;
    } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      how.is_cooperative = attribute->value.cooperative != 0;
    } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      how.uses_pdl = attribute->value.programmaticStreamSerializationAllowed != 0;
    }
  }
  return launch(function, (unsigned int[3]){config->gridDimX, config->gridDimY, config->gridDimZ},
                (unsigned int[3]){config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes, config->hStream, parameters, &how);
}
#endif // FAKE_OLD_DRIVER
