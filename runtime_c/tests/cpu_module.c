// A module of kernels written in C, for tests of the CPU device.
#include "cpu_module.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "mlir_cuda_runtime.h"

static char image[] = "an image that nobody looks at";
static aotc_module_info info = {
    .version = AOTC_MODULE_INFO_VERSION,
    .image = image,
    .image_bytes = sizeof(image),
    .name = "kernels",
    .built_for = "sm_90",
};

void cpu_module_register(const aotc_cpu_kernel *kernels, uint32_t count) {
  info.kernel_count = count;
  info.kernels = kernels;
  aotc_module_register(&info);
}

void *cpu_module_load_image(void) {
  return mgpuModuleLoad(image, sizeof(image));
}

void *cpu_module_load(const aotc_cpu_kernel *kernels, uint32_t count, const char *threads) {
  setenv("AOTC_DEVICE", "cpu", 1);
  setenv("AOTC_CPU_THREADS", threads, 1);
  cpu_module_register(kernels, count);
  return cpu_module_load_image();
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

void cpu_module_note_block(void *const *parameters, const aotc_cpu_block *block) {
  atomic_int *seen = *(atomic_int *const *)parameters[0];
  int64_t index =
      block->block_id[0] +
      block->grid_dim[0] * (block->block_id[1] + block->grid_dim[1] * block->block_id[2]);
  atomic_fetch_add(&seen[index], (int)(block->block_dim[0] * 10000 + block->block_dim[1] * 100 +
                                       block->block_dim[2]));
}

void cpu_module_check_coverage(void *module, int x, int y, int z) {
  int count = x * y * z;
  atomic_int *seen = calloc((size_t)count, sizeof(*seen));
  cpu_module_launch(module, "note_block", (cpu_sizes){x, y, z}, (cpu_sizes){3, 2, 1}, 0, seen);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += seen[i] == 30201 ? 0 : 1;
  }
  CHECK_INT(0, wrong);
  free(seen);
}

static pthread_mutex_t the_runners_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_t the_runners[64];
int the_runner_count;

void cpu_module_note_runner(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
  pthread_t self = pthread_self();
  bool is_known = false;
  pthread_mutex_lock(&the_runners_lock);
  for (int i = 0; i < the_runner_count; ++i) {
    is_known = is_known || pthread_equal(the_runners[i], self);
  }
  if (!is_known && the_runner_count < 64) {
    the_runners[the_runner_count++] = self;
  }
  pthread_mutex_unlock(&the_runners_lock);
  nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}
