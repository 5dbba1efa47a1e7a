// The runtime on a machine without a usable driver: libcuda.so.1 is not a library here.
#include <stdlib.h>
#include <string.h>

#include "aotc_runtime.h"
#include "check.h"
#include "mlir_cuda_runtime.h"

static char image[] = "an image that nobody looks at";

static void one_block(void *const *parameters, const aotc_cpu_block *block) {
  (void)block;
  ++**(int *const *)parameters[0];
}

static const aotc_cpu_kernel kernels[] = {
    {.name = "count", .run = one_block},
    {.name = "hard", .why_not = "it uses nvgpu.warpgroup.mma"},
};
static const aotc_module_info info = {
    AOTC_MODULE_INFO_VERSION, 2, image, sizeof(image), "kernels", "sm_90a", kernels, 0, 0, NULL,
};

static void launch(void *module, const char *name) {
  static int count;
  int *address = &count;
  void *parameters[] = {&address};
  void *function = mgpuModuleGetFunction(module, name);
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL, 1);
}

static void auto_takes_the_cpu_and_says_why(void) {
  aotc_module_register(&info);
  void *module = mgpuModuleLoad(image, sizeof(image));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_CONTAINS(device.reason, "no NVIDIA driver: ");
  CHECK_CONTAINS(device.reason, "libcuda.so.1");
  CHECK(aotc_device_is_resolved());
  launch(module, "count");
  CHECK_NO_FAILURE();
}

static void kernel_without_cpu_form_is_named(void) {
  aotc_module_register(&info);
  void *module = mgpuModuleLoad(image, sizeof(image));
  launch(module, "hard");
  CHECK_CONTAINS(
      aotc_error_message(),
      "mgpuLaunchKernel: kernel 'hard' of module 'kernels' cannot run on the CPU: it uses "
      "nvgpu.warpgroup.mma; no GPU is used: no NVIDIA driver: ");
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "");
}

static void unregistered_program_has_no_device(void) {
  launch(mgpuModuleLoad(image, sizeof(image)), "count");
  CHECK(!aotc_device_is_resolved());
  CHECK_CONTAINS(aotc_error_message(), "no GPU can be used: no NVIDIA driver: ");
  CHECK_FAILED(AOTC_NO_DEVICE, "the program registered no CPU kernels");
}

static void requested_cuda_is_no_device(void) {
  static const char *const specs[] = {"cuda", "cuda:0"};
  for (int i = 0; i < 2; ++i) {
    setenv("AOTC_DEVICE", specs[i], 1);
    aotc_module_register(&info);
    launch(mgpuModuleLoad(image, sizeof(image)), "count");
    CHECK_CONTAINS(aotc_error_message(), specs[i]);
    CHECK_FAILED(AOTC_NO_DEVICE, "cannot be used: no NVIDIA driver: ");
  }
}

static void list_has_only_the_cpu(void) {
  aotc_device devices[2];
  int32_t count = 0;
  CHECK_INT(AOTC_OK, aotc_device_list(devices, 2, &count));
  CHECK_INT(1, count);
  CHECK_TEXT("cpu", devices[0].name);
  CHECK_CONTAINS(devices[0].reason, "no NVIDIA driver: ");
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(auto_takes_the_cpu_and_says_why),
      CHECK_TEST(kernel_without_cpu_form_is_named),
      CHECK_TEST(unregistered_program_has_no_device),
      CHECK_TEST(requested_cuda_is_no_device),
      CHECK_TEST(list_has_only_the_cpu),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
