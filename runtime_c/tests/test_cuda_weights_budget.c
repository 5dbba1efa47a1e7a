// Weights that exceed their budget: copied in parts, with a driver whose streams work late.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "fake_driver.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

// The page size of the fake driver.
#define PAGE 4096
#define WEIGHTS 12
#define BYTES 6000 // per weight, which overlaps 2 or 3 pages
#define FIRST 4096
#define FILE_BYTES (FIRST + WEIGHTS * BYTES)

static char the_path[64];
static aotc_weights the_weights;
static aotc_weight the_list[WEIGHTS];
static aotc_weight *the_pointers[WEIGHTS];
// Another program's weights, in a separate file.
static char other_path[64];
static aotc_weights the_other;
static aotc_weight the_others[WEIGHTS];
static aotc_weight *other_pointers[WEIGHTS];

// Every byte of weight i is i + 1.
static void make_file(char *path, aotc_weights *weights, aotc_weight *list,
                      aotc_weight **pointers) {
  static unsigned char content[FILE_BYTES] = "aotc-wts";
  content[8] = 2;
  content[12] = WEIGHTS;
  uint64_t size = FILE_BYTES;
  memcpy(content + 16, &size, sizeof(size));
  *weights = (aotc_weights){.file = "model.weights", .weights = pointers, .count = WEIGHTS};
  for (int i = 0; i < WEIGHTS; ++i) {
    uint64_t numbers[] = {(uint64_t)(FIRST + i * BYTES), BYTES};
    unsigned char *row = content + 64 + (ptrdiff_t)i * 64;
    memset(row, i + 1, 32);
    memcpy(row + 32, numbers, sizeof(numbers));
    memset(content + numbers[0], i + 1, BYTES);
    pointers[i] = &list[i];
    list[i] = (aotc_weight){.weights = weights, .constant = {.bytes = BYTES}};
    memset(list[i].digest, i + 1, sizeof(list[i].digest));
  }
  strcpy(path, "/tmp/aotc-budget-XXXXXX");
  int file = mkstemp(path);
  CHECK(file >= 0 && write(file, content, FILE_BYTES) == FILE_BYTES);
  CHECK_INT(0, close(file));
  setenv("AOTC_WEIGHTS", path, 1);
}

static void make_weights(void) {
  make_file(the_path, &the_weights, the_list, the_pointers);
}

static void remove_weights(void) {
  aotc_weights_release(&the_weights);
  CHECK_INT(0, unlink(the_path));
}

// -------------------------------------------------------------------------------------------------
// Kernels: each gets a weight, or a descriptor of one, and reads all of it when it runs

#define MOST 256
static uintptr_t the_parameters[MOST];
static bool is_descriptor; // what their parameters are
static int the_count;
static int the_read[MOST], the_read_count; // the weights

static int launched(const char *kernel, void **parameters) {
  (void)kernel;
  memcpy(&the_parameters[the_count], parameters[0], sizeof(the_parameters[0]));
  return the_count++;
}

static void run(int index) {
  const unsigned char *weight = (const unsigned char *)the_parameters[index];
  if (is_descriptor) {
    uintptr_t address = 0;
    memcpy(&address, weight, sizeof(address)); // as the fake driver encodes it
    weight = (const unsigned char *)address;
  }
  int value = weight[0];
  for (int i = 0; i < BYTES; ++i) {
    CHECK_INT(value, weight[i]);
  }
  the_read[the_read_count++] = value;
}

static char own_image[] = FAKE_IMAGE("90", "add");
// A kernel that supports early starts.
static const char *const with_pdl[] = {"add"};
static const aotc_module_info own_info = {
    .version = AOTC_MODULE_INFO_VERSION,
    .image = own_image,
    .image_bytes = sizeof(own_image),
    .name = "own",
    .built_for = "sm_90",
    .pdl_kernel_count = 1,
    .pdl_kernels = with_pdl,
};
static void *the_module;
static bool all_fit;

static fake_driver *start_at_once(const char *budget) {
  fake_driver *driver = scenario_driver();
  driver->has_parameters = true;
  driver->parameter_bytes = sizeof(void *);
  setenv("AOTC_WEIGHTS_BUDGET", budget, 1);
  entries_load("cuda");
  aotc_module_register(&own_info);
  the_module = mgpuModuleLoad(own_image, sizeof(own_image));
  make_weights();
  return driver;
}

static fake_driver *start(const char *budget) {
  fake_driver *driver = start_at_once(budget);
  fake_work_late(launched, run);
  return driver;
}

// Under a budget it must not overlap with the previous kernel, as it may read the weight at once.
static void launch(const void *pointer, void *stream) {
  void *parameters[] = {&pointer};
  mgpuLaunchKernel(mgpuModuleGetFunction(the_module, "add"), 1, 1, 1, 32, 1, 1, 0, stream,
                   parameters, NULL, 1);
  CHECK_INT(all_fit, scenario_driver()->last_launch.uses_pdl);
}

static const int *the_order;
static int the_order_count;

static void call_in_order(void **values) {
  (void)values;
  void *stream = mgpuStreamCreate();
  for (int i = 0; i < the_order_count; ++i) {
    launch(aotc_weight_get_on_device(&the_list[the_order[i]]), stream);
  }
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static const aotc_entry entry_in_order = {.name = "model", .call = call_in_order};

static void call(const int *order, int count) {
  the_order = order;
  the_order_count = count;
  the_read_count = the_count = 0;
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry_in_order, NULL));
  CHECK_INT(count, the_read_count);
  for (int i = 0; i < count; ++i) {
    CHECK_INT(order[i] + 1, the_read[i]);
  }
}

static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void brought_as_kernels_read_them(void) {
  fake_driver *driver = start("40960"); // 10 pages of the 19
  const void *address = aotc_weight_get_on_device(&the_list[3]);
  CHECK_INT(0, driver->live_pages);
  call(all, WEIGHTS);
  int copies = driver->copy_count;
  call(all, WEIGHTS);
  // Some pages stay.
  CHECK(driver->copy_count - copies > 4 && driver->copy_count - copies < 16);
  const int backwards[] = {11, 10, 9, 3, 3, 0, 1, 5, 5, 5, 11, 0};
  call(backwards, 12);
  CHECK(aotc_weight_get_on_device(&the_list[3]) == address);
  CHECK_INT(10, driver->live_pages);
  CHECK_INT(40960, driver->page_bytes);

  unsigned char copied[BYTES] = "";
  mgpuMemcpy(copied, (void *)(uintptr_t)aotc_weight_get_on_device(&the_list[7]), BYTES, NULL);
  CHECK_INT(8, copied[BYTES - 1]);
  CHECK_NO_FAILURE();
  remove_weights();
  CHECK_INT(0, driver->live_reservations);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_pages);
  CHECK_INT(0, driver->live_events);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

static void again_after_everything_was_given_back(void) {
  fake_driver *driver = start("16K");
  call(all, WEIGHTS);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_pages);
  CHECK_INT(0, driver->live_reservations);
  call(all, WEIGHTS);
  CHECK_INT(16384 * 2, driver->page_bytes);
  CHECK_INT(AOTC_OK, aotc_unload());
  remove_weights();
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

// More kernels than events, on two streams.
static void many_kernels_at_once(void) {
  fake_driver *driver = start("16384");
  void *streams[] = {mgpuStreamCreate(), mgpuStreamCreate()};
  for (int i = 0; i < 200; ++i) {
    launch(aotc_weight_get_on_device(&the_list[i * 5 % WEIGHTS]), streams[i % 2]);
  }
  mgpuStreamSynchronize(streams[0]);
  mgpuStreamSynchronize(streams[1]);
  CHECK_INT(200, the_read_count);
  for (int i = 0; i < 200; ++i) {
    CHECK_INT(i * 5 % WEIGHTS + 1, the_read[i]);
  }
  CHECK_NO_FAILURE();
  CHECK_TEXT("", driver->violation);
  remove_weights();
}

static void what_fits_is_copied_as_ever(void) {
  fake_driver *driver = start("1M");
  all_fit = true;
  call(all, WEIGHTS);
  CHECK_INT(0, driver->live_reservations);
  CHECK_INT(WEIGHTS, driver->copy_count);
  int since = driver->call_count;
  call(all, WEIGHTS);
  call(all, WEIGHTS);
  CHECK(entries_count_calls(driver, since, "cuGraphLaunch") > 0);
  CHECK_INT(WEIGHTS, driver->copy_count);
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

static void too_little_names_the_least_that_works(void) {
  fake_driver *driver = start("4096");
  the_order = all;
  the_order_count = WEIGHTS;
  CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_entry_call(&entry_in_order, NULL));
  // Some weights overlap 2 pages, some 3.
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "model: one kernel reads more weights than their budget of 4096 "
                                   "bytes has room for: the least that works is 12288");
  CHECK_INT(0, driver->launch_count);
  call_in_order(NULL); // as in programs
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "the least that works is 12288");
  call_in_order(NULL);
  CHECK(aotc_is_stopped()); // as queried by tasks
  CHECK_FAILED(AOTC_OUT_OF_MEMORY, "the least that works is 12288");
  call_in_order(NULL);
  aotc_error_clear();
  CHECK(!aotc_is_stopped());
  CHECK_NO_FAILURE();
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_weights_budget_set(12288));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "before the first of them is used");
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(AOTC_OK, aotc_weights_budget_set(12288));
  call(all, WEIGHTS);
  CHECK_INT(12288, driver->page_bytes);
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

static void read_through_descriptors(void) {
  fake_driver *driver = start("16384");
  is_descriptor = true;
  void *stream = mgpuStreamCreate();
  void *descriptors[WEIGHTS];
  int64_t box[] = {16};
  for (int i = 0; i < WEIGHTS; ++i) {
    vector memref = vector_at(aotc_weight_get_on_device(&the_list[i]));
    memref.size = BYTES / 4;
    descriptors[i] = mgpuTensorMapEncodeTiledMemref(1, &memref, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0,
                                                    0, 0, 0, box);
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < WEIGHTS; ++i) {
      launch(descriptors[i], stream);
    }
  }
  mgpuStreamSynchronize(stream);
  CHECK_INT(2 * WEIGHTS, the_read_count);
  for (int i = 0; i < 2 * WEIGHTS; ++i) {
    CHECK_INT(i % WEIGHTS + 1, the_read[i]);
  }
  CHECK_NO_FAILURE();
  uint64_t map[16];
  const uint64_t size = BYTES / 4, stride = 4;
  const uint32_t part = 16, step = 1;
  mgpuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1,
                           aotc_weight_get_on_device(&the_list[0]), &size, &stride, &part, &step, 0,
                           0, 0, 0);
  CHECK_FAILED(AOTC_UNSUPPORTED, "a TMA descriptor in host memory, of a weight under a budget");
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

static void not_in_a_captured_stream(void) {
  fake_driver *driver = start("16384");
  void *weight = aotc_weight_get_on_device(&the_list[0]);
  driver->is_capturing = true;
  launch(weight, mgpuStreamCreate());
  driver->is_capturing = false;
  CHECK_FAILED(AOTC_UNSUPPORTED, "come in parts, which a captured stream cannot wait for");
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

static void launch_without_weights(const void *data, void *stream) {
  void *parameters[] = {&data};
  mgpuLaunchKernel(mgpuModuleGetFunction(the_module, "add"), 1, 1, 1, 32, 1, 1, 0, stream,
                   parameters, NULL, 1);
}

static void what_reads_no_weights_can_be_captured(void) {
  static unsigned char data[BYTES], copied[BYTES];
  fake_driver *driver = start("16384");
  void *stream = mgpuStreamCreate();
  for (int i = 0; i < 100; ++i) { // more than there are events, with resident weights
    launch(aotc_weight_get_on_device(&the_list[0]), stream);
  }
  driver->is_capturing = true;
  launch_without_weights(data, stream);
  mgpuMemcpy(copied, data, BYTES, stream);
  driver->is_capturing = false;
  mgpuStreamSynchronize(stream);
  CHECK_INT(101, the_read_count);
  CHECK_NO_FAILURE();
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

// A launch on one stream must wait for pages copied for a launch on another.
static void another_stream_waits_for_the_copies(void) {
  fake_driver *driver = start("40960");
  void *streams[] = {mgpuStreamCreate(), mgpuStreamCreate()};
  const void *weight = aotc_weight_get_on_device(&the_list[0]);
  launch(weight, streams[0]);
  int since = driver->call_count, copies = driver->copy_count;
  launch(weight, streams[1]);
  CHECK_INT(copies, driver->copy_count);
  CHECK_INT(1, entries_count_calls(driver, since, "cuStreamWaitEvent"));
  for (int i = 0; i < 70; ++i) { // until the first ones are known to have ended
    launch(weight, streams[0]);
  }
  since = driver->call_count;
  launch(weight, streams[1]);
  CHECK_INT(0, entries_count_calls(driver, since, "cuStreamWaitEvent"));
  mgpuStreamSynchronize(streams[0]);
  CHECK_NO_FAILURE();
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

static void parameters_have_to_be_known(void) {
  fake_driver *driver = start("16384");
  driver->has_parameters = false;
  launch(aotc_weight_get_on_device(&the_list[0]), mgpuStreamCreate());
  CHECK_FAILED(AOTC_UNSUPPORTED, "the driver does not tell the parameters of kernel 'add'");
  CHECK_INT(0, driver->launch_count);
  remove_weights();
}

static unsigned char the_copy[BYTES];

static void copy_a_weight(int32_t status, const char *message, void *data) {
  (void)status;
  (void)message;
  aotc_error_hook_set(NULL, NULL);
  scenario_driver()->is_capturing = false;
  aotc_error_clear();
  CHECK_INT(AOTC_OK, aotc_memory_copy(the_copy, data, BYTES));
}

static void failures_are_told_without_the_lock(void) {
  fake_driver *driver = start("16384");
  void *weight = aotc_weight_get_on_device(&the_list[1]);
  void *stream = mgpuStreamCreate();
  aotc_error_hook_set(copy_a_weight, weight);
  driver->is_capturing = true;
  launch(weight, stream);
  CHECK_INT(2, the_copy[BYTES - 1]);
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------
// Concurrent calls of another program

static atomic_bool is_over;

static void *launch_again_and_again(void *stream) {
  for (int i = 0; !atomic_load(&is_over); ++i) {
    launch(aotc_weight_get_on_device(&the_list[i % WEIGHTS]), stream);
  }
  CHECK_NO_FAILURE();
  return NULL;
}

static void a_file_is_closed_beside_calls(void) {
  fake_driver *driver = start_at_once("24576");
  aotc_weight_get_on_device(&the_list[0]);
  make_file(other_path, &the_other, the_others, other_pointers); // AOTC_WEIGHTS now names this file
  void *stream = mgpuStreamCreate();
  pthread_t thread;
  CHECK_INT(0, pthread_create(&thread, NULL, launch_again_and_again, mgpuStreamCreate()));
  for (int i = 0; i < 3000; ++i) {
    launch(aotc_weight_get_on_device(&the_others[i % WEIGHTS]), stream);
    aotc_weights_release(&the_other);
  }
  atomic_store(&is_over, true);
  CHECK_INT(0, pthread_join(thread, NULL));
  CHECK_NO_FAILURE();
  CHECK_INT(1, driver->live_reservations);
  CHECK_INT(0, unlink(other_path));
  remove_weights();
  CHECK_INT(0, driver->live_reservations);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_pages);
  CHECK_TEXT("", driver->violation);
}

// -------------------------------------------------------------------------------------------------
// Driver failures

typedef struct attempt {
  int call;
  int *call_count;
} attempt;

static void run_attempt(void *of) {
  const attempt *a = of;
  fake_driver *driver = start("16384");
  the_order = all;
  the_order_count = WEIGHTS;
  int since = driver->call_count;
  driver->fail_at = a->call;
  driver->fail_result = CUDA_ERROR_UNKNOWN;
  aotc_status status = aotc_entry_call(&entry_in_order, NULL);
  if (a->call == 0) {
    *a->call_count = driver->call_count - since;
  } else {
    check_note(driver->failed_symbol);
    CHECK(status != AOTC_OK || strcmp(driver->failed_symbol, "cuStreamDestroy_v2") == 0);
  }
  aotc_error_clear();
  void *stream = mgpuStreamCreate();
  mgpuStreamSynchronize(stream); // runs the remaining work
  mgpuStreamDestroy(stream);
  CHECK_NO_FAILURE();
  call(all, WEIGHTS);
  remove_weights();
  CHECK_INT(0, driver->live_reservations);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_pages);
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(0, driver->live_events);
  CHECK_TEXT("", driver->violation);
}

static void every_call_fails(void) {
  int *call_count =
      mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(call_count != MAP_FAILED);
  attempt a = {.call_count = call_count};
  CHECK(check_in_child(run_attempt, &a));
  CHECK(*call_count > 100);
  for (a.call = 1; a.call <= *call_count; ++a.call) {
    CHECK(check_in_child(run_attempt, &a));
  }
  munmap(call_count, sizeof(int));
}

static void a_budget_is_the_gpus(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  make_weights();
  CHECK(aotc_weight_get_packed(&the_list[0], 4) != NULL);
  CHECK_INT(AOTC_OK, aotc_weights_budget_set(4096));
  CHECK_NO_FAILURE();
  remove_weights();
}

static void budgets_that_are_none(void) {
  const char *const texts[] = {"much", "-1", "0", "12X", "6GB", "G", "99999999999T"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    setenv("AOTC_WEIGHTS_BUDGET", texts[i], 1);
    CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_device_resolve(&(aotc_device){.name = ""}));
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, "expected bytes, such as 6442450944, 6144M or 6G");
  }
}

static void what_the_driver_refuses_is_told(void) {
  fake_driver *driver = start("16384");
  driver->fail_symbol = "cuMemAddressReserve";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_NOT_SUPPORTED;
  aotc_weight_get_on_device(&the_list[0]);
  CHECK_FAILED(AOTC_UNSUPPORTED, "cuMemAddressReserve failed");
  call(all, WEIGHTS);
  remove_weights();
  CHECK_TEXT("", driver->violation);
}

int main(int argc, char **argv) {
  const check_test tests[] = {
      CHECK_TEST(brought_as_kernels_read_them),
      CHECK_TEST(again_after_everything_was_given_back),
      CHECK_TEST(many_kernels_at_once),
      CHECK_TEST(what_fits_is_copied_as_ever),
      CHECK_TEST(too_little_names_the_least_that_works),
      CHECK_TEST(read_through_descriptors),
      CHECK_TEST(not_in_a_captured_stream),
      CHECK_TEST(budgets_that_are_none),
      CHECK_TEST(what_the_driver_refuses_is_told),
      CHECK_TEST(what_reads_no_weights_can_be_captured),
      CHECK_TEST(another_stream_waits_for_the_copies),
      CHECK_TEST(parameters_have_to_be_known),
      CHECK_TEST(failures_are_told_without_the_lock),
      CHECK_TEST(a_file_is_closed_beside_calls),
      CHECK_TEST(every_call_fails),
      CHECK_TEST(a_budget_is_the_gpus),
  };
  return check_main(argc, argv, tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
