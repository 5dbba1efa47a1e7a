// Failures, initialization, and device selection, on a fake driver that has everything.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static char image_90[] = FAKE_IMAGE("90", "add");
static char image_80[] = FAKE_IMAGE("80", "add");
static char image_bad[] = "not an image";

static void no_block(void *const *parameters, const aotc_cpu_block *block) {
  (void)parameters;
  (void)block;
}

static const aotc_cpu_kernel kernels_with_cpu[] = {{.name = "add", .run = no_block}};
static const aotc_cpu_kernel kernels_without_cpu[] = {
    {.name = "add", .why_not = "it uses gpu.barrier"}};

static const aotc_module_info info_90 = {
    AOTC_MODULE_INFO_VERSION,
    1,
    image_90,
    sizeof(image_90),
    "kernels",
    "sm_90",
    kernels_with_cpu,
    0,
    0,
    NULL,
};
static const aotc_module_info info_80 = {
    AOTC_MODULE_INFO_VERSION,
    1,
    image_80,
    sizeof(image_80),
    "kernels",
    "sm_80, PTX compute_80",
    kernels_with_cpu,
    0,
    0,
    NULL,
};
static const aotc_module_info info_80_without_cpu = {
    AOTC_MODULE_INFO_VERSION,
    1,
    image_80,
    sizeof(image_80),
    "kernels",
    "sm_80",
    kernels_without_cpu,
    0,
    0,
    NULL,
};

static const aotc_module_info info_for_90_alone = {
    AOTC_MODULE_INFO_VERSION,
    1,
    image_90,
    sizeof(image_90),
    "kernels for one",
    "sm_90",
    kernels_without_cpu,
    90,
    0,
    NULL,
};

static bool is_driver_open(void) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library != NULL) {
    dlclose(library);
  }
  return library != NULL;
}

// -------------------------------------------------------------------------------------------------
// Failures

static void every_symbol_is_called(void) {
  // The last three: test_cuda_entry_life.c, test_cuda_memory.c
  scenario_check_symbols(
      true, "cuModuleLoadDataEx cuModuleUnload cuGetErrorName cuGetErrorString "
            "cuStreamGetCtx cuStreamIsCapturing cuMemPoolDestroy "
            "cuStreamDestroy_v2 cuMemPrefetchAsync" SCENARIO_GRAPH_CALLS SCENARIO_PAGE_CALLS);
}

static void every_call_fails_unknown(void) {
  scenario_fail_every_call(true, CUDA_ERROR_UNKNOWN);
}

static void every_call_fails_out_of_memory(void) {
  scenario_fail_every_call(true, CUDA_ERROR_OUT_OF_MEMORY);
}

static void every_call_fails_asynchronously(void) {
  scenario_fail_every_call(true, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void launch_failure_says_everything(void) {
  fake_driver *driver = scenario_driver();
  aotc_module_register(&info_90);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  driver->fail_symbol = "cuLaunchKernel";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_INVALID_VALUE;
  scenario_launch(module, "add");
  CHECK_TEXT(
      "mgpuLaunchKernel: cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE (1, as the test "
      "asked for): kernel 'add' of module 'kernels', built for sm_90, grid 4 x 1 x 1, block "
      "128 x 1 x 1, 0 bytes of dynamic shared memory; device cuda:0 (Fake 0, sm_90)",
      aotc_error_message());
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "");
}

static void failing_kernel_is_told_at_synchronize(void) {
  fake_driver *driver = scenario_driver();
  aotc_module_register(&info_90);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  driver->asynchronous_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  scenario_launch(module, "add");
  CHECK_TEXT("mgpuStreamSynchronize: cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS "
             "(700, as the test asked for): waiting for a stream's work; a kernel launched earlier "
             "failed while running; this thread's last launch was kernel 'add', grid 4 x 1 x 1, "
             "block 128 x 1 x 1; device cuda:0 (Fake 0, sm_90)",
             aotc_error_message());
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "");
}

static void error_without_a_name_is_told_by_number(void) {
  fake_driver *driver = scenario_driver();
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  driver->fail_symbol = "cuStreamCreate";
  driver->fail_at = 1;
  driver->fail_result = 987;
  scenario_launch(module, "add");
  CHECK_FAILED(
      AOTC_DRIVER_FAILED,
      "cuStreamCreate failed with a CUDA error without a name (987, as the test asked for)");
}

static void unknown_kernel_is_named(void) {
  aotc_module_register(&info_90);
  scenario_launch(mgpuModuleLoad(image_90, sizeof(image_90)), "missing");
  CHECK_INT(0, scenario_driver()->launch_count);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "kernel 'missing' of module 'kernels'");
}

static void *fail_elsewhere(void *module) {
  scenario_launch(module, "missing");
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "missing");
  scenario_launch(module, "missing");
  return NULL;
}

static void failure_is_the_threads_own(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, fail_elsewhere, module));
  CHECK_INT(0, pthread_join(thread, NULL));
  CHECK_NO_FAILURE();
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, scenario_driver()->launch_count);
}

static void shut_down_driver_is_no_failure(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  scenario_launch(module, "add");
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  void *memory = mgpuMemAlloc(16, NULL, 0);
  void *ordered = mgpuMemAlloc(16, stream, 0);
  static char buffer[64];
  mgpuMemHostRegister(buffer, sizeof(buffer));
  aotc_timer *timer = NULL;
  CHECK_INT(AOTC_OK, aotc_timer_open(&timer));
  CHECK_NO_FAILURE();
  driver->is_shut_down = true;
  mgpuMemHostUnregister(buffer);
  mgpuMemFree(memory, NULL);
  mgpuMemFree(ordered, stream);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
  aotc_timer_close(timer);
  mgpuModuleUnload(module);
  CHECK_NO_FAILURE();
  // It is a failure in calls that do not release.
  CHECK(mgpuStreamCreate() == NULL);
  CHECK_FAILED(AOTC_DRIVER_FAILED, "cuCtxGetCurrent failed with");
}

static void *the_module_at_exit;

static void unload_at_exit(void) {
  scenario_driver()->is_shut_down = true;
  mgpuModuleUnload(the_module_at_exit);
  if (aotc_status_get() != AOTC_OK) {
    _Exit(1);
  }
}

static void module_is_unloaded_at_exit(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  the_module_at_exit = mgpuModuleLoad(image_90, sizeof(image_90));
  scenario_launch(the_module_at_exit, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(0, atexit(unload_at_exit));
}

// -------------------------------------------------------------------------------------------------
// Starting

static void driver_is_opened_by_first_use(void) {
  aotc_module_register(&info_90);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *function = mgpuModuleGetFunction(module, "add");
  CHECK(function != NULL);
  CHECK_INT(AOTC_OK, aotc_device_request("cuda"));
  mgpuSetDefaultDevice(0);
  CHECK_INT(AOTC_OK, aotc_stream_adopt((void *)64, true));
  aotc_stream_release();
  mgpuMemFree(NULL, NULL);
  mgpuStreamDestroy(NULL);
  CHECK(!is_driver_open());
  CHECK(!aotc_device_is_resolved());
  mgpuStreamDestroy(mgpuStreamCreate());
  CHECK(is_driver_open());
  CHECK(aotc_device_is_resolved());
  CHECK_NO_FAILURE();
}

static void module_without_a_launch_opens_nothing(void) {
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  mgpuModuleUnload(module);
  CHECK(!is_driver_open());
  CHECK_NO_FAILURE();
}

static void no_image_means_cpu_and_no_driver(void) {
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_TEXT("the program holds no GPU code", device.reason);
  CHECK(!is_driver_open());
}

static void requested_cpu_opens_no_driver(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  aotc_module_register(&info_90);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_TEXT("", device.reason);
  CHECK(!is_driver_open());
}

// -------------------------------------------------------------------------------------------------
// Selection

static void auto_takes_a_gpu_that_the_image_fits(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 3;
  driver->capability[0] = 75;
  driver->capability[1] = 90;
  aotc_module_register(&info_90);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CUDA, device.kind);
  CHECK_INT(1, device.ordinal);
  CHECK_TEXT("Fake 1", device.name);
  CHECK_INT(9, device.capability_major);
  CHECK_INT(0, device.capability_minor);
  CHECK_INT(132, device.multiprocessors);
  CHECK_INT(1LL << 37, device.memory_bytes);
  CHECK_TEXT("", device.reason);
  CHECK_NO_FAILURE();
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, driver->launch_count);
  CHECK_INT(1, driver->primary_references); // the other GPU's was released
}

static void image_for_other_gpus_alone_is_not_asked(void) {
  scenario_driver()->capability[0] = 80;
  aotc_module_register(&info_for_90_alone);
  mgpuModuleLoad(image_90, sizeof(image_90));
  aotc_module_register(&info_80);
  void *module = mgpuModuleLoad(image_80, sizeof(image_80));
  CHECK_INT(80, aotc_compute_capability());
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, scenario_driver()->launch_count);
  CHECK_INT(1, scenario_driver()->live_modules);
}

static void image_for_this_gpu_alone_must_load(void) {
  scenario_driver()->capability[0] = 90;
  aotc_module_register(&info_for_90_alone);
  mgpuModuleLoad(image_90, sizeof(image_90));
  CHECK_INT(90, aotc_compute_capability());
  CHECK_INT(1, scenario_driver()->live_modules);
  CHECK_NO_FAILURE();
}

static void cpu_has_no_compute_capability(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  aotc_module_register(&info_90);
  mgpuModuleLoad(image_90, sizeof(image_90));
  CHECK_INT(0, aotc_compute_capability());
  CHECK_NO_FAILURE();
}

static void auto_takes_the_cpu_when_no_image_fits(void) {
  aotc_module_register(&info_80);
  void *module = mgpuModuleLoad(image_80, sizeof(image_80));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_CONTAINS(device.reason, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  CHECK_CONTAINS(device.reason, "module 'kernels', built for sm_80, PTX compute_80");
  CHECK_CONTAINS(device.reason, "cuda:0 (Fake 0, sm_90)");
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(0, scenario_driver()->launch_count);
  CHECK_INT(0, scenario_driver()->primary_references);
}

static void kernel_without_cpu_form_says_why_no_gpu(void) {
  aotc_module_register(&info_80_without_cpu);
  void *module = mgpuModuleLoad(image_80, sizeof(image_80));
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  scenario_launch(module, "add");
  CHECK_CONTAINS(aotc_error_message(), "mgpuLaunchKernel: kernel 'add' of module 'kernels' cannot "
                                       "run on the CPU: it uses gpu.barrier; no GPU is used: ");
  CHECK_FAILED(AOTC_NO_CPU_KERNEL, "CUDA_ERROR_NO_BINARY_FOR_GPU");
}

static void unregistered_image_that_does_not_fit(void) {
  mgpuModuleLoad(image_80, sizeof(image_80));
  CHECK_INT(AOTC_NO_IMAGE, aotc_device_resolve(NULL));
  CHECK_CONTAINS(aotc_error_message(), "built for unknown chips (it was not registered)");
  CHECK_FAILED(AOTC_NO_IMAGE, "and the CPU cannot be used: the program registered no CPU kernels");
}

static void requested_cuda_without_fitting_image(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  scenario_driver()->device_count = 2;
  aotc_module_register(&info_80);
  scenario_launch(mgpuModuleLoad(image_80, sizeof(image_80)), "add");
  CHECK_CONTAINS(aotc_error_message(), "mgpuStreamCreate: device 'cuda' cannot be used: ");
  CHECK_CONTAINS(aotc_error_message(), "nor can any other of the 2 GPUs be used");
  CHECK_FAILED(AOTC_NO_IMAGE, "built for sm_80, PTX compute_80");
  CHECK_INT(0, scenario_driver()->launch_count);
}

static void damaged_image_is_no_image(void) {
  setenv("AOTC_DEVICE", "cuda:0", 1);
  mgpuModuleLoad(image_bad, sizeof(image_bad));
  CHECK_INT(AOTC_NO_IMAGE, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_NO_IMAGE, "cuLibraryLoadData failed with");
}

static void ptx_is_compiled_at_its_level(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  // Not NUL-terminated: the runtime adds the NUL.
  static char ptx[16] = {'.', 'v', 'e', 'r', 's',  'i', 'o', 'n',
                         ' ', '8', '.', '0', '\n', 'x', 'y', 'z'};
  mgpuModuleLoadJIT(ptx, 3, sizeof(ptx));
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  CHECK_INT(3, scenario_driver()->jit_optimization_level);
  CHECK_NO_FAILURE();
}

static void ptx_compiler_is_quoted(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char ptx[] = ".version 8.0\nbad";
  mgpuModuleLoad(ptx, sizeof(ptx) - 1);
  CHECK_INT(AOTC_NO_IMAGE, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_NO_IMAGE,
               "the driver is for CUDA 13.0; its compiler says: ptxas: line 2: bad; device cuda:0");
}

static void missing_ordinal_is_named(void) {
  setenv("AOTC_DEVICE", "cuda:7", 1);
  CHECK_INT(AOTC_NO_DEVICE, aotc_device_resolve(NULL));
  CHECK_TEXT("aotc_device_resolve: device 'cuda:7' cannot be used: there is no cuda:7; the driver "
             "has 1 GPU, from cuda:0",
             aotc_error_message());
}

static void driver_without_devices(void) {
  scenario_driver()->device_count = 0;
  setenv("AOTC_DEVICE", "cuda", 1);
  CHECK_INT(AOTC_NO_DEVICE, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_NO_DEVICE, "no GPU: the NVIDIA driver (for CUDA 13.0) has no devices");
}

static void failed_start_is_tried_again(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->fail_symbol = "cuInit";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_NO_DEVICE;
  CHECK_INT(AOTC_NO_DEVICE, aotc_device_resolve(NULL));
  CHECK_FAILED(AOTC_NO_DEVICE, "cuInit failed with");
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
}

static void ranks_take_their_own(void) {
  scenario_driver()->device_count = 2;
  setenv("AOTC_DEVICE", "cuda", 1);
  setenv("MPI_LOCALRANKID", "3", 1);
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
}

static void ordinal_outranks_rank(void) {
  scenario_driver()->device_count = 2;
  setenv("AOTC_DEVICE", "cuda:0", 1);
  setenv("MPI_LOCALRANKID", "1", 1);
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(0, device.ordinal);
}

static void request_outranks_environment(void) {
  setenv("AOTC_DEVICE", "cuda:1", 1);
  scenario_driver()->device_count = 2;
  CHECK_INT(AOTC_OK, aotc_device_request("cuda:0"));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(0, device.ordinal);
}

static void request_can_be_taken_back(void) {
  setenv("AOTC_DEVICE", "cuda:1", 1);
  scenario_driver()->device_count = 2;
  CHECK_INT(AOTC_OK, aotc_device_request("cuda:0"));
  CHECK_INT(AOTC_OK, aotc_device_request(NULL));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
}

static void late_request_is_refused_unless_satisfied(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  CHECK_INT(AOTC_OK, aotc_device_request("cuda:0"));
  CHECK_INT(AOTC_OK, aotc_device_request("auto"));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_request("cpu"));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "'cpu' comes too late: the program uses cuda:0 (Fake 0)");
}

static void list_has_every_gpu_then_the_cpu(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  driver->capability[1] = 120;
  setenv("AOTC_CPU_THREADS", "3", 1);
  aotc_device devices[3];
  int32_t count = 0;
  CHECK_INT(AOTC_OK, aotc_device_list(NULL, 0, &count));
  CHECK_INT(3, count);
  CHECK_INT(AOTC_OK, aotc_device_list(devices, 3, &count));
  CHECK_INT(3, count);
  CHECK_TEXT("Fake 0", devices[0].name);
  CHECK_TEXT("Fake 1", devices[1].name);
  CHECK_INT(1, devices[1].ordinal);
  CHECK_INT(12, devices[1].capability_major);
  CHECK_TEXT("cpu", devices[2].name);
  CHECK_INT(AOTC_DEVICE_CPU, devices[2].kind);
  CHECK_INT(3, devices[2].multiprocessors);
  CHECK(devices[2].memory_bytes > 0);
  CHECK_TEXT("", devices[2].reason);
  CHECK_INT(0, driver->primary_references);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_list(NULL, 1, &count));
}

static void list_survives_a_driver_that_does_not_start(void) {
  fake_driver *driver = scenario_driver();
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_UNKNOWN;
  aotc_device device;
  int32_t count = 0;
  CHECK_INT(AOTC_OK, aotc_device_list(&device, 1, &count));
  CHECK_INT(1, count);
  CHECK_CONTAINS(device.reason, "cuInit failed with CUDA_ERROR_UNKNOWN");
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(every_symbol_is_called),
      CHECK_TEST(every_call_fails_unknown),
      CHECK_TEST(every_call_fails_out_of_memory),
      CHECK_TEST(every_call_fails_asynchronously),
      CHECK_TEST(launch_failure_says_everything),
      CHECK_TEST(failing_kernel_is_told_at_synchronize),
      CHECK_TEST(error_without_a_name_is_told_by_number),
      CHECK_TEST(unknown_kernel_is_named),
      CHECK_TEST(failure_is_the_threads_own),
      CHECK_TEST(shut_down_driver_is_no_failure),
      CHECK_TEST(module_is_unloaded_at_exit),
      CHECK_TEST(driver_is_opened_by_first_use),
      CHECK_TEST(module_without_a_launch_opens_nothing),
      CHECK_TEST(no_image_means_cpu_and_no_driver),
      CHECK_TEST(requested_cpu_opens_no_driver),
      CHECK_TEST(auto_takes_a_gpu_that_the_image_fits),
      CHECK_TEST(image_for_other_gpus_alone_is_not_asked),
      CHECK_TEST(image_for_this_gpu_alone_must_load),
      CHECK_TEST(cpu_has_no_compute_capability),
      CHECK_TEST(auto_takes_the_cpu_when_no_image_fits),
      CHECK_TEST(kernel_without_cpu_form_says_why_no_gpu),
      CHECK_TEST(unregistered_image_that_does_not_fit),
      CHECK_TEST(requested_cuda_without_fitting_image),
      CHECK_TEST(damaged_image_is_no_image),
      CHECK_TEST(ptx_is_compiled_at_its_level),
      CHECK_TEST(ptx_compiler_is_quoted),
      CHECK_TEST(missing_ordinal_is_named),
      CHECK_TEST(driver_without_devices),
      CHECK_TEST(failed_start_is_tried_again),
      CHECK_TEST(ranks_take_their_own),
      CHECK_TEST(ordinal_outranks_rank),
      CHECK_TEST(request_outranks_environment),
      CHECK_TEST(request_can_be_taken_back),
      CHECK_TEST(late_request_is_refused_unless_satisfied),
      CHECK_TEST(list_has_every_gpu_then_the_cpu),
      CHECK_TEST(list_survives_a_driver_that_does_not_start),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
