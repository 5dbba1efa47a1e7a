// Launches and streams on a fake driver that has everything.
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

// -------------------------------------------------------------------------------------------------
// Launches

static void launch_path_makes_few_calls(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  void *module = mgpuModuleLoad(image_90, sizeof(image_90));
  scenario_launch(module, "add");
  fake_context_push(fake_context_make(0));
  scenario_launch(module, "add"); // the first in this context
  int before = driver->call_count;
  scenario_launch(module, "add");
  // Asking for the context (and its id, as it is not the runtime's) once for each of create, launch
  // and synchronize; launch and synchronize. Nothing is looked up or made.
  CHECK_INT(8, driver->call_count - before);
  fake_context_pop();
  before = driver->call_count;
  scenario_launch(module, "add");
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

// The module's other kernel does not wait itself.
static void kernels_that_wait_are_launched_with_pdl(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  static char image[] = FAKE_IMAGE("90", "add,scale");
  static const char *const with_pdl[] = {"scale"};
  static const aotc_module_info info = {
      .version = AOTC_MODULE_INFO_VERSION,
      .image = image,
      .image_bytes = sizeof(image),
      .name = "kernels",
      .built_for = "sm_90",
      .pdl_kernel_count = 1,
      .pdl_kernels = with_pdl,
  };
  aotc_module_register(&info);
  void *module = mgpuModuleLoad(image, sizeof(image));
  void *scale = mgpuModuleGetFunction(module, "scale");
  int value = 77;
  void *parameters[] = {&value};
  mgpuLaunchKernel(scale, 2, 3, 4, 8, 1, 1, 64, NULL, parameters, NULL, 1);
  const fake_launch *l = &driver->last_launch;
  CHECK(l->uses_pdl);
  CHECK_INT(2, l->grid[0]);
  CHECK_INT(3, l->grid[1]);
  CHECK_INT(4, l->grid[2]);
  CHECK_INT(8, l->block[0]);
  CHECK_INT(0, l->cluster[0]);
  CHECK_INT(64, l->dynamic_shared_bytes);
  CHECK_INT(77, l->first_parameter);
  mgpuLaunchClusterKernel(scale, 2, 1, 1, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
  CHECK(l->uses_pdl);
  CHECK_INT(2, l->cluster[0]);
  // All blocks of a cooperative grid must be resident, so it cannot overlap with another kernel.
  mgpuLaunchKernelCooperative(scale, 4, 1, 1, 0, 0, 0, 32, 1, 1, 0, NULL, parameters, NULL);
  CHECK(l->is_cooperative && !l->uses_pdl);
  mgpuLaunchKernel(mgpuModuleGetFunction(module, "add"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters,
                   NULL, 1);
  CHECK(!l->uses_pdl);
  CHECK_NO_FAILURE();
}

// A kernel that supports early starts, but is launched without them.
static void check_is_launched_without_pdl(const char *built_for) {
  setenv("AOTC_DEVICE", "cuda", 1);
  static char image[] = FAKE_IMAGE("90", "scale");
  static const char *const with_pdl[] = {"scale"};
  static aotc_module_info info = {
      .version = AOTC_MODULE_INFO_VERSION,
      .image = image,
      .image_bytes = sizeof(image),
      .name = "kernels",
      .pdl_kernel_count = 1,
      .pdl_kernels = with_pdl,
  };
  info.built_for = built_for;
  aotc_module_register(&info);
  scenario_launch(mgpuModuleLoad(image, sizeof(image)), "scale");
  CHECK_INT(1, scenario_driver()->launch_count);
  CHECK(!scenario_driver()->last_launch.uses_pdl);
  CHECK_NO_FAILURE();
}

static void graphs_of_older_drivers_have_no_pdl(void) {
  scenario_driver()->version = 12020;
  check_is_launched_without_pdl("sm_90");
}

// The driver's code from PTX for older GPUs contains no wait instruction.
static void code_made_of_older_ptx_is_launched_without_pdl(void) {
  scenario_driver()->ptx_version = 80;
  check_is_launched_without_pdl("PTX compute_80");
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
      scenario_launch(module, name);
      CHECK_TEXT(name, driver->last_launch.kernel);
    }
  }
  // Names at distinct addresses are added to the table, which grows.
  static char names[20][16];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      snprintf(names[i], sizeof(names[i]), "k%d", i);
      scenario_launch(module, names[i]);
      CHECK_TEXT(names[i], driver->last_launch.kernel);
    }
  }
  CHECK_NO_FAILURE();
  CHECK(mgpuModuleGetFunction(module, names[3]) == mgpuModuleGetFunction(module, names[3]));
}

#define THREADS 8

static void *launch_often(void *module) {
  for (int i = 0; i < 500; ++i) {
    scenario_launch(module, "add");
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
  scenario_launch(module, "add");
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
  scenario_launch(module, "add");
  CHECK(driver->last_launch.stream == CU_STREAM_LEGACY);

  aotc_stream_release();
  scenario_launch(module, "add");
  // Destroying it while it was adopted did not return it to the pool.
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
  mgpuStreamDestroy(&theirs); // is not the runtime's, so it does not wait
  CHECK_INT(before + 1, synchronizations(driver));
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(launch_path_makes_few_calls),
      CHECK_TEST(sizes_reach_the_driver),
      CHECK_TEST(shared_memory_is_allowed_once),
      CHECK_TEST(kernels_that_wait_are_launched_with_pdl),
      CHECK_TEST(graphs_of_older_drivers_have_no_pdl),
      CHECK_TEST(code_made_of_older_ptx_is_launched_without_pdl),
      CHECK_TEST(kernel_names_may_be_built_in_a_buffer),
      CHECK_TEST(threads_launch_at_once),
      CHECK_TEST(streams_come_from_a_pool),
      CHECK_TEST(adopted_stream_is_the_callers),
      CHECK_TEST(foreign_stream_never_enters_the_pool),
      CHECK_TEST(failed_function_leaves_nothing_running),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
