// Current, primary and destroyed contexts, on a fake driver that has everything.
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static char image_90[] = FAKE_IMAGE("90", "add");

static void current_context_is_used_and_left(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *context = fake_context_make(1);
  fake_context_push(context);
  aotc_device device;
  CHECK_INT(AOTC_OK, aotc_device_resolve(&device));
  CHECK_INT(1, device.ordinal);
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, fake_context_depth());
  CHECK_INT(0, driver->primary_references);
  // Without a current context the primary one of that device is used, and popped afterwards.
  CHECK(fake_context_pop() == context);
  scenario_launch(module, "add");
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
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(1, fake_context_depth());
  CHECK_INT(1, driver->primary_references);
}

static void default_device_is_the_threads(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  scenario_launch(module, "add");
  CHECK_INT(1, driver->primary_references);
  mgpuSetDefaultDevice(1);
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  CHECK_INT(2, driver->primary_references);
  CHECK_INT(2, driver->launch_count);
  mgpuSetDefaultDevice(5);
  scenario_launch(module, "add");
  CHECK_FAILED(AOTC_NO_DEVICE, "mgpuStreamCreate: there is no cuda:5; the driver has 2 GPUs");
  mgpuSetDefaultDevice(-1);
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "mgpuSetDefaultDevice: there is no device -1");
}

static void context_at_the_address_of_another_is_told_apart(void) {
  fake_driver *driver = scenario_driver();
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  void *first = fake_context_make(0);
  fake_context_push(first);
  scenario_launch(module, "add");
  fake_context_pop();
  fake_context_destroy(first);
  void *second = fake_context_make(0);
  CHECK(first == second);
  fake_context_push(second);
  scenario_launch(module, "add");
  CHECK_NO_FAILURE();
  int lookups = 0;
  for (int i = 0; i < driver->call_count; ++i) {
    lookups += strcmp(driver->log[i], "cuModuleGetFunction") == 0 ? 1 : 0;
  }
  CHECK_INT(2, lookups);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(current_context_is_used_and_left),
      CHECK_TEST(requested_ordinal_outranks_current_context),
      CHECK_TEST(default_device_is_the_threads),
      CHECK_TEST(context_at_the_address_of_another_is_told_apart),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
