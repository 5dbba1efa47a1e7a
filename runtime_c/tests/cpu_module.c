// A module of kernels written in C, for tests of the CPU device.
#include "cpu_module.h"

#include <stdlib.h>

#include "mlir_cuda_runtime.h"

static char image[] = "an image that nobody looks at";
static aotc_module_info info = {
    .version = AOTC_MODULE_INFO_VERSION,
    .image = image,
    .image_bytes = sizeof(image),
    .name = "kernels",
    .built_for = "sm_90",
};

void *cpu_module_load(const aotc_cpu_kernel *kernels, uint32_t count, const char *threads) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CPU_THREADS", threads, 1);
  info.kernel_count = count;
  info.kernels = kernels;
  aotc_module_register(&info);
  return mgpuModuleLoad(image, sizeof(image));
}

void cpu_module_launch(void *module, const char *name, cpu_sizes grid, cpu_sizes block,
                       int32_t dynamic_shared_bytes, void *argument) {
  void *parameters[] = {&argument};
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(mgpuModuleGetFunction(module, name), grid.x, grid.y, grid.z, block.x, block.y,
                   block.z, dynamic_shared_bytes, stream, parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}
