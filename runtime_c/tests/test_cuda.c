// The runtime on a fake driver that has everything.
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
    AOTC_MODULE_INFO_VERSION, 1, image_90, sizeof(image_90), "kernels", "sm_90", kernels_with_cpu,
};
static const aotc_module_info info_80 = {
    AOTC_MODULE_INFO_VERSION, 1, image_80, sizeof(image_80), "kernels", "sm_80, PTX compute_80",
    kernels_with_cpu,
};
static const aotc_module_info info_80_without_cpu = {
    AOTC_MODULE_INFO_VERSION, 1, image_80, sizeof(image_80), "kernels", "sm_80",
    kernels_without_cpu,
};

static void launch(void *module, const char *name) {
  int value = 3;
  void *parameters[] = {&value};
  void *function = mgpuModuleGetFunction(module, name);
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, stream, parameters, NULL, 1);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

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
  scenario_check_symbols(true, "cuModuleLoadDataEx cuModuleUnload cuGetErrorName cuGetErrorString");
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
  launch(module, "add");
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
  launch(module, "add");
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
  launch(module, "add");
  CHECK_FAILED(
      AOTC_DRIVER_FAILED,
      "cuStreamCreate failed with a CUDA error without a name (987, as the test asked for)");
}

static void unknown_kernel_is_named(void) {
  aotc_module_register(&info_90);
  launch(mgpuModuleLoad(image_90, sizeof(image_90)), "missing");
  CHECK_INT(0, scenario_driver()->launch_count);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "kernel 'missing' of module 'kernels'");
}

static void *fail_elsewhere(void *module) {
  launch(module, "missing");
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "missing");
  launch(module, "missing");
  return NULL;
}

static void failure_is_the_threads_own(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, fail_elsewhere, module));
  CHECK_INT(0, pthread_join(thread, NULL));
  CHECK_NO_FAILURE();
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, scenario_driver()->launch_count);
}

static void shut_down_driver_is_no_failure(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  launch(module, "add");
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
  // But it is one for what does not release.
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
  launch(the_module_at_exit, "add");
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
  launch(module, "add");
  CHECK_NO_FAILURE();
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(AOTC_DEVICE_CPU, device.kind);
  CHECK_TEXT("", device.reason);
  CHECK(!is_driver_open());
}

// -------------------------------------------------------------------------------------------------
// Choosing

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
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, driver->launch_count);
  CHECK_INT(1, driver->primary_references); // the other GPU's was given back
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
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(0, scenario_driver()->launch_count);
  CHECK_INT(0, scenario_driver()->primary_references);
}

static void kernel_without_cpu_form_says_why_no_gpu(void) {
  aotc_module_register(&info_80_without_cpu);
  void *module = mgpuModuleLoad(image_80, sizeof(image_80));
  CHECK_INT(AOTC_OK, aotc_device_resolve(NULL));
  launch(module, "add");
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
  launch(mgpuModuleLoad(image_80, sizeof(image_80)), "add");
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
  // Not ended by a NUL: the runtime ends it.
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

// -------------------------------------------------------------------------------------------------
// Contexts

static void current_context_is_used_and_left(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *context = fake_context_make(1);
  fake_context_push(context);
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, fake_context_depth());
  CHECK_INT(0, driver->primary_references);
  // Without a current context the primary one of that device is used, and is gone from the stack
  // after.
  CHECK(fake_context_pop() == context);
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(0, fake_context_depth());
  CHECK_INT(1, driver->primary_references);
  CHECK_INT(2, driver->launch_count);
  CHECK_TEXT("", driver->violation);
}

static void requested_ordinal_outranks_current_context(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  setenv("AOTC_DEVICE", "cuda:1", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  fake_context_push(fake_context_make(0));
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, fake_context_depth());
  CHECK_INT(1, driver->primary_references);
}

static void default_device_is_the_threads(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  launch(module, "add");
  CHECK_INT(1, driver->primary_references);
  mgpuSetDefaultDevice(1);
  launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(2, driver->primary_references);
  CHECK_INT(2, driver->launch_count);
  mgpuSetDefaultDevice(5);
  launch(module, "add");
  CHECK_FAILED(AOTC_NO_DEVICE, "mgpuStreamCreate: there is no cuda:5; the driver has 2 GPUs");
  mgpuSetDefaultDevice(-1);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuSetDefaultDevice: there is no device -1");
}

static void context_at_the_address_of_another_is_told_apart(void) {
  fake_driver *driver = scenario_driver();
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *first = fake_context_make(0);
  fake_context_push(first);
  launch(module, "add");
  fake_context_pop();
  fake_context_destroy(first);
  void *second = fake_context_make(0);
  CHECK(first == second);
  fake_context_push(second);
  launch(module, "add");
  CHECK_NO_FAILURE();
  int lookups = 0;
  for (int i = 0; i < driver->call_count; ++i) {
    lookups += strcmp(driver->log[i], "cuModuleGetFunction") == 0 ? 1 : 0;
  }
  CHECK_INT(2, lookups);
}

// -------------------------------------------------------------------------------------------------
// Launches

static void launch_path_makes_few_calls(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  launch(module, "add");
  fake_context_push(fake_context_make(0));
  launch(module, "add"); // the first in this context
  int before = driver->call_count;
  launch(module, "add");
  // Asking for the context (and its id, as it is not the runtime's) once for each of create, launch
  // and synchronize; launch and synchronize. Nothing is looked up or made.
  CHECK_INT(8, driver->call_count - before);
  fake_context_pop();
  before = driver->call_count;
  launch(module, "add");
  // Without a current one: asking three times; the launch and the wait make it current and undo
  // that.
  CHECK_INT(9, driver->call_count - before);
  CHECK_INT(2, driver->live_streams);
  CHECK_NO_FAILURE();
}

static void sizes_reach_the_driver(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *function = mgpuModuleGetFunction(module, "add");
  int value = 77;
  void *parameters[] = {&value};
  mgpuLaunchKernel(function, 2147483647, 65535, 65534, 8, 4, 2, 64, NULL, parameters, NULL, 1);
  const fake_launch *l = &driver->last_launch;
  CHECK_TEXT("add", l->kernel);
  CHECK_INT(2147483647, l->grid[0]);
  CHECK_INT(65535, l->grid[1]);
  CHECK_INT(65534, l->grid[2]);
  CHECK_INT(8, l->block[0]);
  CHECK_INT(4, l->block[1]);
  CHECK_INT(2, l->block[2]);
  CHECK_INT(64, l->dynamic_shared_bytes);
  CHECK_INT(77, l->first_parameter);
  CHECK(l->stream == NULL);
  mgpuLaunchClusterKernel(function, 2, 3, 1, 4, 6, 5, 32, 1, 1, 0, NULL, parameters, NULL);
  CHECK_INT(4, l->grid[0]);
  CHECK_INT(6, l->grid[1]);
  CHECK_INT(5, l->grid[2]);
  CHECK_INT(32, l->block[0]);
  CHECK_INT(2, l->cluster[0]);
  CHECK_INT(3, l->cluster[1]);
  CHECK_INT(1, l->cluster[2]);
  CHECK(!l->is_cooperative);
  mgpuLaunchKernelCooperative(function, 6, 2, 3, 2, 1, 3, 16, 1, 1, 0, NULL, parameters, NULL);
  CHECK_INT(6, l->grid[0]);
  CHECK_INT(2, l->grid[1]);
  CHECK_INT(3, l->grid[2]);
  CHECK_INT(16, l->block[0]);
  CHECK_INT(2, l->cluster[0]);
  CHECK_INT(1, l->cluster[1]);
  CHECK_INT(3, l->cluster[2]);
  CHECK(l->is_cooperative);
  CHECK_NO_FAILURE();
}

static void shared_memory_is_allowed_once(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *function = mgpuModuleGetFunction(module, "add");
  int value = 0;
  void *parameters[] = {&value};
  static const int32_t sizes[] = {48 * 1024, 49 * 1024, 64 * 1024, 50 * 1024, 64 * 1024};
  for (int i = 0; i < 5; ++i) {
    mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, sizes[i], NULL, parameters, NULL, 1);
  }
  CHECK_NO_FAILURE();
  CHECK_INT(5, driver->launch_count);
  int sets = 0;
  for (int i = 0; i < driver->call_count; ++i) {
    sets += strcmp(driver->log[i], "cuFuncSetAttribute") == 0 ? 1 : 0;
  }
  CHECK_INT(2, sets); // at 49 KiB and at 64 KiB
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 300 * 1024, NULL, parameters, NULL, 1);
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "307200 bytes of dynamic shared memory");
  CHECK_INT(5, driver->launch_count);
}

static void kernel_names_may_be_built_in_a_buffer(void) {
  static char image[] =
      FAKE_IMAGE("90", "first,second,k0,k1,k2,k3,k4,k5,k6,k7,k8,k9,k10,k11,k12,k13,"
                       "k14,k15,k16,k17,k18,k19");
  fake_driver *driver = scenario_driver();
  void *module = mgpuModuleLoad(image, sizeof(image));
  char name[16];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      snprintf(name, sizeof(name), "k%d", i);
      launch(module, name);
      CHECK_TEXT(name, driver->last_launch.kernel);
    }
  }
  // Names at addresses of their own go through the table, which grows.
  static char names[20][16];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      snprintf(names[i], sizeof(names[i]), "k%d", i);
      launch(module, names[i]);
      CHECK_TEXT(names[i], driver->last_launch.kernel);
    }
  }
  CHECK_NO_FAILURE();
  CHECK(mgpuModuleGetFunction(module, names[3]) == mgpuModuleGetFunction(module, names[3]));
}

#define THREADS 8

static void *launch_often(void *module) {
  for (int i = 0; i < 500; ++i) {
    launch(module, "add");
  }
  CHECK_NO_FAILURE();
  return NULL;
}

static void threads_launch_at_once(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, launch_often, module));
  }
  for (int i = 0; i < THREADS; ++i) {
    CHECK_INT(0, pthread_join(threads[i], NULL));
  }
  CHECK_INT(THREADS * 500, driver->launch_count);
  CHECK(driver->live_streams <= THREADS);
  CHECK_INT(1, driver->live_modules);
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------
// Streams

static void streams_come_from_a_pool(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *first = mgpuStreamCreate();
  void *second = mgpuStreamCreate();
  CHECK(first != NULL && second != NULL && first != second);
  mgpuStreamDestroy(first);
  CHECK(mgpuStreamCreate() == first);
  void *more[100];
  for (int i = 0; i < 100; ++i) {
    more[i] = mgpuStreamCreate();
    for (int j = 0; j < i; ++j) {
      CHECK(more[i] != NULL && more[i] != more[j]);
    }
  }
  CHECK_INT(102, driver->live_streams);
  for (int i = 0; i < 100; ++i) {
    mgpuStreamDestroy(more[i]);
  }
  mgpuStreamDestroy(mgpuStreamCreate());
  CHECK_INT(102, driver->live_streams);
  CHECK_NO_FAILURE();
}

static int synchronizations(const fake_driver *driver) {
  int count = 0;
  for (int i = 0; i < driver->call_count; ++i) {
    count += strstr(driver->log[i], "Synchronize") != NULL ? 1 : 0;
  }
  return count;
}

static void adopted_stream_is_the_callers(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *theirs = NULL;
  CHECK_INT(AOTC_OK, aotc_stream_open(&theirs));
  int streams = driver->live_streams;

  CHECK_INT(AOTC_OK, aotc_stream_adopt(theirs, false));
  launch(module, "add");
  CHECK(driver->last_launch.stream == theirs);
  int value = 0;
  void *parameters[] = {&value};
  driver->last_launch.stream = NULL;
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "add"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters,
                   NULL, 1);
  CHECK(driver->last_launch.stream == theirs);
  void *memory = mgpuMemAlloc(16, NULL, 0);
  mgpuMemset32(memory, 1, 4, NULL);
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, NULL);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  mgpuMemFree(memory, NULL);
  CHECK_INT(0, synchronizations(driver));
  CHECK_INT(streams, driver->live_streams);
  CHECK(mgpuStreamCreate() == theirs);
  mgpuStreamDestroy(theirs);

  CHECK_INT(AOTC_OK, aotc_stream_adopt(theirs, true));
  mgpuStreamSynchronize(theirs);
  CHECK_INT(1, synchronizations(driver));

  CHECK_INT(AOTC_OK, aotc_stream_adopt(NULL, false));
  launch(module, "add");
  CHECK(driver->last_launch.stream == CU_STREAM_LEGACY);

  aotc_stream_release();
  launch(module, "add");
  // Destroying it while it was adopted did not put it into the pool.
  CHECK(driver->last_launch.stream != theirs && driver->last_launch.stream != CU_STREAM_LEGACY);
  CHECK_INT(AOTC_OK, aotc_stream_close(theirs));
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_stream_close(module));
  aotc_error_clear();
  CHECK_TEXT("", driver->violation);
}

static void foreign_stream_never_enters_the_pool(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  mgpuModuleLoad(image_90, sizeof(image_90));
  static int theirs;
  CHECK_INT(AOTC_OK, aotc_stream_adopt(&theirs, false));
  void *stream = mgpuStreamCreate();
  CHECK(stream == &theirs);
  aotc_stream_release();
  mgpuStreamDestroy(stream);
  CHECK(mgpuStreamCreate() != stream);
  CHECK_NO_FAILURE();
}

static void failed_function_leaves_nothing_running(void) {
  fake_driver *driver = scenario_driver();
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *stream = mgpuStreamCreate();
  mgpuModuleGetFunction(module, NULL); // fails
  CHECK(aotc_status_get() != AOTC_OK);
  int before = synchronizations(driver);
  mgpuStreamSynchronize(stream); // does nothing
  CHECK_INT(before, synchronizations(driver));
  mgpuStreamDestroy(stream); // waits
  CHECK_INT(before + 1, synchronizations(driver));
  static int theirs;
  mgpuStreamDestroy(&theirs); // is not the runtime's to wait for
  CHECK_INT(before + 1, synchronizations(driver));
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------
// Memory

static bool was_called(const fake_driver *driver, int since, const char *symbol) {
  for (int i = since; i < driver->call_count; ++i) {
    if (strcmp(driver->log[i], symbol) == 0) {
      return true;
    }
  }
  return false;
}

static void memory_kinds_use_their_calls(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *stream = mgpuStreamCreate();
  int since = driver->call_count;
  void *plain = mgpuMemAlloc(100, NULL, 0);
  CHECK(was_called(driver, since, "cuMemAlloc_v2"));
  CHECK_INT(100, driver->last_allocation_bytes);
  since = driver->call_count;
  void *ordered = mgpuMemAlloc(200, stream, 0);
  CHECK(was_called(driver, since, "cuMemAllocAsync"));
  CHECK_INT(200, driver->last_allocation_bytes);
  since = driver->call_count;
  void *shared = mgpuMemAlloc(0, stream, 1);
  CHECK(was_called(driver, since, "cuMemAllocManaged"));
  CHECK_INT(1, driver->last_allocation_bytes);

  since = driver->call_count;
  mgpuMemFree(plain, stream); // not of a stream: freed when the device is done
  CHECK(was_called(driver, since, "cuMemFree_v2"));
  CHECK(!was_called(driver, since, "cuMemFreeAsync"));
  since = driver->call_count;
  mgpuMemFree(ordered, stream);
  CHECK(was_called(driver, since, "cuMemFreeAsync"));
  mgpuMemFree(shared, NULL);
  ordered = mgpuMemAlloc(200, stream, 0);
  mgpuMemFree(ordered, NULL); // the fake driver checks that its context was waited for
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// Host code goes on with host-shared memory that it did not get.
static void failed_host_shared_memory_is_the_hosts(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  driver->fail_symbol = "cuMemAllocManaged";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
  char *failing = mgpuMemAlloc(100, NULL, 1);
  CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_status_get());
  char *later = mgpuMemAlloc(0, NULL, 1);
  CHECK(failing != NULL && later != NULL && failing != later);
  for (int i = 0; failing != NULL && i < 100; ++i) {
    CHECK_INT(0, failing[i]);
    failing[i] = 1;
  }
  CHECK(mgpuMemAlloc(100, NULL, 0) == NULL); // the device's is not for host code
  mgpuMemFree(failing, NULL);
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "mgpuMemAlloc: cuMemAllocManaged failed with");
  mgpuMemFree(later, NULL); // known for what it is after the failure is cleared, too
  CHECK_NO_FAILURE();
  CHECK(!was_called(driver, 0, "cuMemFree_v2"));
  CHECK_TEXT("", driver->violation);
}

static void device_without_memory_pools(void) {
  fake_driver *driver = scenario_driver();
  driver->has_memory_pools = false;
  setenv("AOTC_DEVICE", "cuda", 1);
  void *stream = mgpuStreamCreate();
  mgpuMemFree(mgpuMemAlloc(16, stream, 0), stream);
  CHECK(was_called(driver, 0, "cuMemAlloc_v2"));
  CHECK(was_called(driver, 0, "cuMemFree_v2"));
  CHECK_NO_FAILURE();
}

static void fills_and_copies_count_elements(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  mgpuModuleLoad(image_90, sizeof(image_90));
  uint16_t halves[4] = {0};
  uint32_t words[4] = {0};
  mgpuMemset16(halves, 0xabcd, 3, NULL);
  CHECK_INT(0xabcd, halves[2]);
  CHECK_INT(0, halves[3]);
  mgpuMemset32(words, 0x12345678, 3, NULL);
  CHECK_INT(0x12345678, words[2]);
  CHECK_INT(0, words[3]);
  mgpuMemcpy(words, halves, 2, NULL);
  CHECK_INT(0x1234abcd, words[0]);
  mgpuMemset16(NULL, 1, 0, NULL);
  mgpuMemset32(NULL, 1, 0, NULL);
  mgpuMemcpy(NULL, NULL, 0, NULL);
  CHECK_NO_FAILURE();
  mgpuMemcpy(NULL, words, 4, NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemcpy: 4 bytes to NULL");
  mgpuMemset32(NULL, 1, 4, NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemset32");
}

// Lowered IR passes the 16 bits in a register whose upper half holds anything. The call with
// another type is what the test is about.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
static void fill_ignores_the_upper_half_of_its_register(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  uint16_t halves[2] = {0};
  void (*raw)(void *, uint32_t, size_t, void *) = NULL;
  void (*typed)(void *, uint16_t, size_t, void *) = mgpuMemset16;
  memcpy(&raw, &typed, sizeof(raw));
  raw(halves, 0xffff1234u, 1, NULL);
  CHECK_INT(0x1234, halves[0]);
  CHECK_INT(0, halves[1]);
  CHECK_NO_FAILURE();
  CHECK_TEXT("", scenario_driver()->violation);
}

typedef struct memref2 {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} memref2;

// What a memref over `buffer` registers, as the first byte's index and a count; -1 for nothing.
static void check_registered(int64_t first, int64_t bytes, char *buffer, memref2 memref,
                             int64_t element_bytes) {
  fake_driver *driver = scenario_driver();
  driver->last_register_bytes = 0;
  mgpuMemHostRegisterMemRef(2, &memref, element_bytes);
  CHECK_INT(bytes, driver->last_register_bytes);
  CHECK_INT(bytes > 0 ? 1 : 0, driver->live_registrations);
  if (bytes > 0) {
    CHECK_INT(first, (int64_t)(driver->last_register_start - (uintptr_t)buffer));
  }
  mgpuMemHostUnregisterMemRef(2, &memref, element_bytes);
  CHECK_INT(0, driver->live_registrations);
  CHECK_NO_FAILURE();
  CHECK_TEXT("", driver->violation);
}

static void strided_memrefs_register_what_they_reach(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[4096];
  // dense, 4 x 8 floats
  check_registered(0, 128, b, (memref2){b, b, 0, {4, 8}, {8, 1}}, 4);
  // an offset
  check_registered(64, 128, b, (memref2){b, b, 16, {4, 8}, {8, 1}}, 4);
  // rows with gaps: 3 rows of stride 100, the last one 8 long
  check_registered(0, 4 * 208, b, (memref2){b, b, 0, {3, 8}, {100, 1}}, 4);
  // transposed
  check_registered(0, 128, b, (memref2){b, b, 0, {8, 4}, {1, 8}}, 4);
  // a row backwards: from element 7 down to 0
  check_registered(0, 32, b, (memref2){b, b, 7, {1, 8}, {8, -1}}, 4);
  // rows backwards, columns forwards: 4 rows from element 24
  check_registered(0, 128, b, (memref2){b, b, 24, {4, 8}, {-8, 1}}, 4);
  // one row for all
  check_registered(0, 32, b, (memref2){b, b, 0, {1000, 8}, {0, 1}}, 4);
  // one element, whatever the strides
  check_registered(8, 8, b, (memref2){b, b, 1, {1, 1}, {INT64_MAX, INT64_MIN}}, 8);
  // none
  check_registered(0, 0, b, (memref2){b, b, 0, {0, 8}, {8, 1}}, 4);
  check_registered(0, 0, b, (memref2){b, b, 0, {4, 0}, {8, 1}}, 4);
  // an empty one may have no memory at all
  check_registered(0, 0, b, (memref2){NULL, NULL, 0, {0, 0}, {1, 1}}, 4);
}

static void rank_0_registers_one_element(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static double value;
  struct {
    void *allocated, *aligned;
    int64_t offset;
  } memref = {&value, &value, 0};
  mgpuMemHostRegisterMemRef(0, &memref, 8);
  CHECK_INT(8, scenario_driver()->last_register_bytes);
  CHECK_INT(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP,
            scenario_driver()->last_register_flags);
  mgpuMemHostUnregisterMemRef(0, &memref, 8);
  CHECK_INT(0, scenario_driver()->live_registrations);
}

static void senseless_memrefs_are_refused(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[64];
  memref2 negative = {b, b, 0, {-1, 8}, {8, 1}};
  mgpuMemHostRegisterMemRef(2, &negative, 4);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuMemHostRegisterMemRef: the memref's sizes and strides");
  memref2 huge = {b, b, 0, {INT64_MAX, 8}, {INT64_MAX, 1}};
  mgpuMemHostRegisterMemRef(2, &huge, 4);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "make no sense");
  mgpuMemHostRegister(b, UINT64_MAX);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "do not fit into the address space");
  mgpuMemHostRegister(NULL, 8);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "8 bytes at NULL");
}

static void reachable_memory_is_left_alone(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *managed = mgpuMemAlloc(64, NULL, 1);
  mgpuMemHostRegister(managed, 64);
  mgpuMemHostUnregister(managed);
  CHECK_INT(0, driver->live_registrations);
  CHECK(!was_called(driver, 0, "cuMemHostRegister_v2"));
  CHECK(!was_called(driver, 0, "cuMemHostUnregister"));
  CHECK_NO_FAILURE();
}

static void registrations_nest(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static char b[256];
  mgpuMemHostRegister(b, 256);
  mgpuMemHostRegister(b, 256);
  mgpuMemHostRegister(b + 64, 64); // part of it
  CHECK_INT(1, driver->live_registrations);
  mgpuMemHostUnregister(b);
  mgpuMemHostUnregister(b);
  CHECK_INT(1, driver->live_registrations); // the part is in use
  mgpuMemHostUnregister(b + 64);
  CHECK_INT(0, driver->live_registrations);
  mgpuMemHostRegister(b, 0);
  CHECK_NO_FAILURE();
  mgpuMemHostUnregister(b);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "is not registered");
}

// -------------------------------------------------------------------------------------------------
// Tensor maps

static void memref_becomes_a_tensor_map(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static uint16_t elements[4096];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[3], strides[3];
  } memref = {elements, elements, 32, {5, 16, 24}, {1024, 32, 1}};
  int64_t box[] = {1, 8, 12};
  CUtensorMap *map =
      mgpuTensorMapEncodeTiledMemref(3, &memref, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 0, 2, 3, 1, box);
  CHECK_NO_FAILURE();
  CHECK(map != NULL && map->opaque[0] == (uintptr_t)&elements[32]); // the fake's device memory
  CHECK(driver->tensor_map_address == &elements[32]);
  CHECK_INT(3, driver->tensor_map_rank);
  CHECK_INT(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, driver->tensor_map_data_type);
  CHECK_INT(0, driver->tensor_map_interleave);
  CHECK_INT(2, driver->tensor_map_swizzle);
  CHECK_INT(3, driver->tensor_map_l2_promotion);
  CHECK_INT(1, driver->tensor_map_oob_fill);
  static const int sizes[] = {24, 16, 5};
  static const int strides[] = {64, 2048, 0};
  static const int boxes[] = {12, 8, 1};
  for (int i = 0; i < 3; ++i) {
    CHECK_INT(sizes[i], driver->tensor_map_sizes[i]);
    CHECK_INT(strides[i], driver->tensor_map_strides[i]);
    CHECK_INT(boxes[i], driver->tensor_map_box_sizes[i]);
    CHECK_INT(1, driver->tensor_map_element_strides[i]);
  }
}

static void tensor_maps_share_slabs(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {64}, {1}};
  CUtensorMap *maps[600];
  for (int64_t i = 0; i < 600; ++i) {
    int64_t box = i + 1;
    maps[i] = mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0,
                                             0, &box);
  }
  CHECK_INT(2, driver->live_memory); // 512 in a slab
  for (int64_t i = 0; i < 600; ++i) {
    CHECK_INT(64000 + i + 1, maps[i]->opaque[1]);
    CHECK_INT(0, (uintptr_t)maps[i] % 128 - (uintptr_t)maps[i < 512 ? 0 : 512] % 128);
    int64_t box = i + 1;
    CHECK(maps[i] == mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0,
                                                    0, 0, 0, &box));
  }
  CHECK_INT(2, driver->live_memory);
  CHECK_NO_FAILURE();
}

static void senseless_tensor_maps_are_refused(void) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[1], strides[1];
  } memref = {elements, elements, 0, {32}, {2}};
  int64_t box = 8;
  CHECK(mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0,
                                       &box) == NULL);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "innermost stride is 2, it must be 1");
  mgpuTensorMapEncodeTiledMemref(6, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0, &box);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "rank 6; it must be 1 to 5");
  memref.strides[0] = 1;
  mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 0, 0, 0, 0,
                                 &box);
  CHECK_FAILED(AOTC_UNSUPPORTED, "tensor map data type 13");
  box = 0;
  mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, 0, 0, 0, &box);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT,
               "dimension 0 of the memref has size 32, stride 1, box size 0");
}

static void plain_tensor_map_reaches_the_driver(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static float elements[64];
  const uint64_t sizes[] = {8, 8};
  const uint64_t strides[] = {32};
  const uint32_t box[] = {4, 2};
  const uint32_t element_strides[] = {1, 2};
  // Where the driver's alignment is not kept.
  static char space[sizeof(CUtensorMap) + 8];
  mgpuTensorMapEncodeTiled(space + 8, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, elements, sizes, strides,
                           box, element_strides, 0, 1, 2, 1);
  CHECK_NO_FAILURE();
  uint64_t address = 0;
  memcpy(&address, space + 8, sizeof(address));
  CHECK(address == (uintptr_t)elements);
  CHECK_INT(32, driver->tensor_map_strides[0]);
  CHECK_INT(2, driver->tensor_map_element_strides[1]);
  CHECK_INT(1, driver->tensor_map_swizzle);
  CHECK_INT(2, driver->tensor_map_l2_promotion);
  CHECK_INT(1, driver->tensor_map_oob_fill);
  CHECK_TEXT("", driver->violation);
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
      CHECK_TEST(request_outranks_environment),
      CHECK_TEST(request_can_be_taken_back),
      CHECK_TEST(late_request_is_refused_unless_satisfied),
      CHECK_TEST(list_has_every_gpu_then_the_cpu),
      CHECK_TEST(list_survives_a_driver_that_does_not_start),
      CHECK_TEST(current_context_is_used_and_left),
      CHECK_TEST(requested_ordinal_outranks_current_context),
      CHECK_TEST(default_device_is_the_threads),
      CHECK_TEST(context_at_the_address_of_another_is_told_apart),
      CHECK_TEST(launch_path_makes_few_calls),
      CHECK_TEST(sizes_reach_the_driver),
      CHECK_TEST(shared_memory_is_allowed_once),
      CHECK_TEST(kernel_names_may_be_built_in_a_buffer),
      CHECK_TEST(threads_launch_at_once),
      CHECK_TEST(streams_come_from_a_pool),
      CHECK_TEST(adopted_stream_is_the_callers),
      CHECK_TEST(foreign_stream_never_enters_the_pool),
      CHECK_TEST(failed_function_leaves_nothing_running),
      CHECK_TEST(memory_kinds_use_their_calls),
      CHECK_TEST(failed_host_shared_memory_is_the_hosts),
      CHECK_TEST(device_without_memory_pools),
      CHECK_TEST(fills_and_copies_count_elements),
      CHECK_TEST(fill_ignores_the_upper_half_of_its_register),
      CHECK_TEST(strided_memrefs_register_what_they_reach),
      CHECK_TEST(rank_0_registers_one_element),
      CHECK_TEST(senseless_memrefs_are_refused),
      CHECK_TEST(reachable_memory_is_left_alone),
      CHECK_TEST(registrations_nest),
      CHECK_TEST(memref_becomes_a_tensor_map),
      CHECK_TEST(tensor_maps_share_slabs),
      CHECK_TEST(senseless_tensor_maps_are_refused),
      CHECK_TEST(plain_tensor_map_reaches_the_driver),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
