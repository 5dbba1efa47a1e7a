// Constants of generated code on a fake driver: copied once for each context, and freed.
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "fake_driver.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

static const int data[] = {1, 2, 3, 4};

static void one_copy_for_each_context(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  setenv("AOTC_DEVICE", "cuda", 1);
  aotc_constant constant = {.data = data, .bytes = sizeof(data)};
  const int *copy = aotc_constant_get(&constant);
  CHECK(copy != data);
  CHECK(memcmp(copy, data, sizeof(data)) == 0);
  CHECK_INT(1, driver->allocation_count);
  CHECK_INT(1, driver->copy_count);
  CHECK(aotc_constant_get(&constant) == copy);
  CHECK_INT(1, driver->allocation_count);
  CHECK_INT(1, driver->copy_count);

  fake_context_push(fake_context_make(1));
  const int *other = aotc_constant_get(&constant);
  CHECK(other != data && other != copy);
  CHECK(aotc_constant_get(&constant) == other);
  CHECK_INT(2, driver->allocation_count);
  fake_context_pop();
  CHECK(aotc_constant_get(&constant) == copy);

  aotc_constant_release(&constant);
  CHECK_INT(0, driver->live_memory);
  aotc_constant_release(&constant); // there is nothing left to release
  CHECK_INT(0, fake_context_depth());
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// Through buffers, and from several threads.
static void large_ones_are_copied_whole(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  const size_t sizes[] = {((size_t)1 << 20) - 1, 1 << 20, ((size_t)16 << 20) + 3, (size_t)50000001};
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
    unsigned char *large = malloc(sizes[k]);
    for (size_t i = 0; i < sizes[k]; ++i) {
      large[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    aotc_constant constant = {.data = large, .bytes = sizes[k]};
    const void *copy = aotc_constant_get(&constant);
    CHECK(copy != large && memcmp(copy, large, sizes[k]) == 0);
    aotc_constant_release(&constant);
    free(large);
  }
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_registrations);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// The driver's pages have 2 MiB; kernels rely on addresses that are multiples of 256 bytes.
static void several_share_an_allocation(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  enum { COUNT = 64, BYTES = (1 << 20) + 4 };
  static unsigned char numbers[COUNT + BYTES];
  for (size_t i = 0; i < sizeof(numbers); ++i) {
    numbers[i] = (unsigned char)(i * 2654435761u >> 13);
  }
  aotc_constant constants[COUNT];
  const char *copies[COUNT];
  uint64_t allocated = 0;
  for (int k = 0; k < COUNT; ++k) {
    constants[k] = (aotc_constant){.data = numbers + k, .bytes = BYTES};
    int before = driver->allocation_count;
    copies[k] = aotc_constant_get(&constants[k]);
    CHECK_INT(0, (int)((uintptr_t)copies[k] % 256));
    allocated += driver->allocation_count > before ? driver->last_allocation_bytes : 0;
  }
  CHECK(driver->allocation_count < COUNT / 2);
  CHECK(allocated < (uint64_t)COUNT * BYTES * 3 / 2);
  for (int k = 0; k < COUNT; ++k) { // each is unchanged
    CHECK(memcmp(copies[k], numbers + k, BYTES) == 0);
  }
  // Releasing and recreating one leaves the others at their addresses.
  aotc_constant_release(&constants[1]);
  CHECK(memcmp(aotc_constant_get(&constants[1]), numbers + 1, BYTES) == 0);
  CHECK(aotc_constant_get(&constants[0]) == copies[0]);
  CHECK(memcmp(copies[0], numbers, BYTES) == 0 && memcmp(copies[2], numbers + 2, BYTES) == 0);
  for (int k = 0; k < COUNT; ++k) {
    aotc_constant_release(&constants[k]);
  }
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// A small one does not keep the memory of a large one alive when its program is unloaded.
static void large_ones_are_freed_alone(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  enum { BYTES = (16 << 20) + 4 };
  static unsigned char numbers[BYTES];
  aotc_constant large = {.data = numbers, .bytes = BYTES};
  aotc_constant small = {.data = data, .bytes = sizeof(data)};
  CHECK(aotc_constant_get(&large) != numbers);
  CHECK(aotc_constant_get(&small) != data);
  CHECK_INT(2, driver->live_memory);
  aotc_constant_release(&large);
  CHECK_INT(1, driver->live_memory);
  aotc_constant_release(&small);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// There is enough memory for the constant, but not for others in the same allocation.
static void the_last_memory_is_enough(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  enum { BYTES = 2 << 20 };
  static unsigned char numbers[BYTES];
  aotc_constant first = {.data = numbers, .bytes = BYTES};
  aotc_constant second = first;
  CHECK(aotc_constant_get(&first) != numbers);
  driver->fail_symbol = "cuMemAlloc_v2";
  driver->fail_at = 1;
  driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(aotc_constant_get(&second) != numbers);
  CHECK_INT(0, driver->fail_at); // it failed once
  CHECK_INT(BYTES, (int)driver->last_allocation_bytes);
  aotc_constant_release(&first);
  aotc_constant_release(&second);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

static void unload_frees_copies(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  aotc_constant a = {.data = data, .bytes = sizeof(data)};
  aotc_constant b = {.data = data + 1, .bytes = sizeof(data[0])};
  CHECK(aotc_constant_get(&a) != data);
  CHECK(aotc_constant_get(&b) != data + 1);
  CHECK_INT(1, driver->live_memory); // of both
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_memory);
  const int *again = aotc_constant_get(&b);
  CHECK_INT(2, *again);
  CHECK_INT(1, driver->live_memory);
  aotc_constant_release(&a);
  aotc_constant_release(&b);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

// The calling code continues with the data; the failure prevents its kernels from being launched.
static void failures_leave_the_data_and_no_memory(void) {
  static const char *const symbols[] = {"cuMemAlloc_v2", "cuMemcpyAsync", "cuStreamSynchronize",
                                        "cuThreadExchangeStreamCaptureMode"};
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  aotc_constant constant = {.data = data, .bytes = sizeof(data)};
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    driver->fail_symbol = symbols[i];
    driver->fail_at = 1;
    driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(aotc_constant_get(&constant) == data);
    CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_status_get());
    CHECK(aotc_constant_get(&constant) == data); // nothing is attempted on a failed thread
    CHECK_INT(0, driver->live_memory);
    aotc_error_clear();
  }
  CHECK(aotc_constant_get(&constant) != data);
  aotc_constant_release(&constant);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
}

static void gone_contexts_are_left_alone(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  aotc_constant constant = {.data = data, .bytes = sizeof(data)};
  void *context = fake_context_make(0);
  fake_context_push(context);
  CHECK(aotc_constant_get(&constant) != data);
  fake_context_pop();
  fake_context_destroy(context);
  aotc_constant_release(&constant);
  CHECK_TEXT("", driver->violation);
}

static void the_cpu_reads_the_data(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cpu", 1);
  aotc_constant constant = {.data = data, .bytes = sizeof(data)};
  CHECK(aotc_constant_get(&constant) == data);
  aotc_constant_release(&constant);
  CHECK_INT(0, driver->allocation_count);
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(one_copy_for_each_context),
      CHECK_TEST(large_ones_are_copied_whole),
      CHECK_TEST(several_share_an_allocation),
      CHECK_TEST(large_ones_are_freed_alone),
      CHECK_TEST(the_last_memory_is_enough),
      CHECK_TEST(unload_frees_copies),
      CHECK_TEST(failures_leave_the_data_and_no_memory),
      CHECK_TEST(gone_contexts_are_left_alone),
      CHECK_TEST(the_cpu_reads_the_data),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
