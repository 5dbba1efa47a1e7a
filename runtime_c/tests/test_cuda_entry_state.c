// The state of entries, on a fake driver: memory, initial values, files, failures.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_state.h"
#include "check.h"
#include "entries.h"
#include "fake_driver.h"
#include "scenario.h"

#define ROWS 3
#define COLUMNS 5000 // more than one fill pattern

static const int64_t cache_shape[] = {2, ROWS, COLUMNS}, sum_shape[] = {4}, none_shape[] = {0};
static const float cache_element = 1.5F, sum_elements[] = {1, 2, 3, 4};
static const int64_t no_count = 0;
#define CACHE_BYTES (2 * ROWS * COLUMNS * sizeof(float))

static const aotc_state_field fields[] = {
    {.value = {.name = "cache",
               .type = "memref<2x3x5000xf32>",
               .dtype = AOTC_DTYPE_F32,
               .rank = 3,
               .shape = cache_shape,
               .bytes = CACHE_BYTES,
               .memory = AOTC_MEMORY_DEVICE,
               .aliases = -1},
     .initial = &cache_element,
     .initial_bytes = sizeof(cache_element)},
    {.value = {.name = "sum",
               .type = "memref<4xf32>",
               .dtype = AOTC_DTYPE_F32,
               .rank = 1,
               .shape = sum_shape,
               .bytes = sizeof(sum_elements),
               .memory = AOTC_MEMORY_MANAGED,
               .aliases = -1},
     .initial = sum_elements,
     .initial_bytes = sizeof(sum_elements)},
    {.value = {.name = "count",
               .type = "memref<i64>",
               .dtype = AOTC_DTYPE_I64,
               .rank = 0,
               .bytes = sizeof(int64_t),
               .memory = AOTC_MEMORY_DEVICE,
               .aliases = -1},
     .initial = &no_count,
     .initial_bytes = sizeof(no_count)},
    {.value = {.name = "none",
               .type = "memref<0xf32>",
               .dtype = AOTC_DTYPE_F32,
               .rank = 1,
               .shape = none_shape,
               .memory = AOTC_MEMORY_DEVICE,
               .aliases = -1},
     .initial = &cache_element,
     .initial_bytes = sizeof(cache_element)},
};
static const aotc_state_type type = {4, fields};
static const aotc_state_type other_type = {2, fields};

static aotc_state *make(void) {
  aotc_state *state = NULL;
  CHECK_INT(AOTC_OK, aotc_state_create(&type, &state));
  CHECK(state != NULL);
  return state;
}

static float *cache_of(const aotc_state *state) {
  static float cache[2 * ROWS * COLUMNS];
  CHECK_INT(AOTC_OK, aotc_state_read(state, "cache", cache, sizeof(cache)));
  return cache;
}

// Whether the elements of each of the cache's 2 * ROWS rows equal `row`'s element.
static bool has_rows(const aotc_state *state, const float *row) {
  const float *cache = cache_of(state);
  for (int i = 0; i < 2 * ROWS * COLUMNS; ++i) {
    if (cache[i] != row[i / COLUMNS]) {
      return false;
    }
  }
  return true;
}

static void fill_cache(aotc_state *state, float value) {
  static float cache[2 * ROWS * COLUMNS];
  for (int i = 0; i < 2 * ROWS * COLUMNS; ++i) {
    cache[i] = value;
  }
  CHECK_INT(AOTC_OK, aotc_state_write(state, "cache", cache, sizeof(cache)));
}

static void use(const char *device) {
  setenv("AOTC_DEVICE", device, 1);
  aotc_state *state = make();
  static const float begun[] = {1.5F, 1.5F, 1.5F, 1.5F, 1.5F, 1.5F};
  static const float full[] = {7, 7, 7, 7, 7, 7}, cut[] = {7, 1.5F, 1.5F, 7, 1.5F, 1.5F};
  CHECK(has_rows(state, begun));
  float sum[4] = {0};
  int64_t count = -1;
  CHECK_INT(AOTC_OK, aotc_state_read(state, "sum", sum, sizeof(sum)));
  CHECK_INT(0, memcmp(sum, sum_elements, sizeof(sum)));
  CHECK_INT(AOTC_OK, aotc_state_read(state, "count", &count, sizeof(count)));
  CHECK_INT(0, count);
  CHECK_INT(AOTC_OK, aotc_state_read(state, "none", NULL, 0));
  fill_cache(state, 7);
  aotc_state *copy = make();
  CHECK_INT(AOTC_OK, aotc_state_copy(copy, state));
  CHECK_INT(AOTC_OK, aotc_state_copy(copy, copy));
  CHECK_INT(AOTC_OK, aotc_state_truncate(state, "cache", 1, 1));
  CHECK(has_rows(state, cut));
  CHECK(has_rows(copy, full));
  CHECK_INT(AOTC_OK, aotc_state_truncate(copy, "cache", 1, ROWS));
  CHECK(has_rows(copy, full));
  CHECK_INT(AOTC_OK, aotc_state_truncate(copy, "none", 0, 0));
  sum[2] = 9;
  CHECK_INT(AOTC_OK, aotc_state_write(copy, "sum", sum, sizeof(sum)));
  CHECK_INT(AOTC_OK, aotc_state_truncate(copy, "sum", 0, 3));
  CHECK_INT(AOTC_OK, aotc_state_read(copy, "sum", sum, sizeof(sum)));
  CHECK(sum[2] == 9 && sum[3] == 4);
  CHECK_INT(AOTC_OK, aotc_state_reset(copy));
  CHECK(has_rows(copy, begun));
  CHECK_INT(AOTC_OK, aotc_state_read(copy, "sum", sum, sizeof(sum)));
  CHECK(sum[2] == 3);
  CHECK_INT(AOTC_OK, aotc_state_free(copy));
  CHECK_INT(AOTC_OK, aotc_state_free(state));
  CHECK_INT(AOTC_OK, aotc_state_free(NULL));
  CHECK_NO_FAILURE();
}

static void a_gpu_has_them(void) {
  fake_driver *driver = scenario_driver();
  use("cuda");
  CHECK_INT(0, driver->live_memory);
  aotc_state *state = make();
  const vector *memref = aotc_state_memref(state, 0);
  CHECK_INT(FAKE_DEVICE, fake_kind_of(memref->aligned));
  memref = aotc_state_memref(state, aotc_state_find(&type, "sum"));
  CHECK_INT(FAKE_MANAGED, fake_kind_of(memref->aligned));
  CHECK_INT(AOTC_OK, aotc_state_free(state));
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(0, fake_context_depth());
  CHECK_TEXT("", driver->violation);
}

static void the_cpu_has_them(void) {
  fake_driver *driver = scenario_driver();
  use("cpu");
  CHECK_INT(0, driver->allocation_count);
}

static void an_entry_uses_one_in_place(void) {
  fake_driver *driver = scenario_driver();
  static const int64_t shape[] = {4};
  const aotc_state_field field = {.value = {.name = "c",
                                            .type = "memref<4xf32>",
                                            .dtype = AOTC_DTYPE_F32,
                                            .rank = 1,
                                            .shape = shape,
                                            .bytes = sizeof(sum_elements),
                                            .memory = AOTC_MEMORY_DEVICE,
                                            .aliases = -1},
                                  .initial = sum_elements,
                                  .initial_bytes = sizeof(sum_elements)};
  const aotc_state_type of_add = {1, &field};
  entries_load("cuda");
  aotc_state *state = NULL;
  CHECK_INT(AOTC_OK, aotc_state_create(&of_add, &state));
  float *a = entries_make(AOTC_MEMORY_DEVICE, 1), *b = entries_make(AOTC_MEMORY_DEVICE, 2);
  vector at_a = vector_at(a), at_b = vector_at(b);
  void *values[] = {&at_a, &at_b, aotc_state_memref(state, 0)};
  int copies = driver->copy_count;
  CHECK_INT(AOTC_OK, aotc_entry_call(&entry_add, values));
  CHECK_INT(copies, driver->copy_count);
  float c[4];
  CHECK_INT(AOTC_OK, aotc_state_read(state, "c", c, sizeof(c)));
  entries_check_sum(c, 3, 4);
  // A call without one is rejected with the argument's name.
  aotc_value arguments[3];
  memcpy(arguments, entry_add.arguments, sizeof(arguments));
  arguments[2].state = "c";
  aotc_entry entry = entry_add;
  entry.arguments = arguments;
  values[2] = aotc_state_memref(NULL, 0);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_entry_call(&entry, values));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "argument 'C' (memref<4xf32>): there is no state");
  CHECK_INT(AOTC_OK, aotc_state_free(state));
  aotc_memory_free(AOTC_MEMORY_DEVICE, a);
  aotc_memory_free(AOTC_MEMORY_DEVICE, b);
  CHECK_TEXT("", driver->violation);
}

static void what_cannot_be_is_refused(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  aotc_state *state = make(), *other = NULL;
  CHECK_INT(AOTC_OK, aotc_state_create(&other_type, &other));
  float value = 0;
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_create(&type, NULL));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no place for a state");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_reset(NULL));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no state: the pointer is NULL");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_copy(state, NULL));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no state");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_copy(state, other));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "two libraries");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_read(NULL, "sum", &value, sizeof(value)));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no state");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_read(state, "sums", &value, sizeof(value)));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no field 'sums': it has 'cache', 'sum', 'count', 'none'");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_read(state, NULL, &value, sizeof(value)));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no field '(NULL)'");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_write(state, "sum", &value, sizeof(value)));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "field 'sum' (memref<4xf32>) has 16 bytes, not 4");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_read(state, "sum", NULL, sizeof(sum_elements)));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "the pointer is NULL");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_truncate(state, "count", 0, 0));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "field 'count' (memref<i64>) has no dimension 0");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_truncate(state, "sum", 0, -1));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "dimension 0 cannot be cut to -1 of 4 elements");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_truncate(state, "sum", 0, 5));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "cannot be cut to 5 of 4 elements");
  CHECK_INT(AOTC_OK, aotc_state_free(state));
  CHECK_INT(AOTC_OK, aotc_state_free(other));
  CHECK_NO_FAILURE();
}

// Whichever driver call fails while an object is created, nothing is leaked.
static void failures_leave_nothing(void) {
  static const char *const symbols[] = {"cuMemAlloc_v2", "cuMemAllocManaged", "cuMemcpyAsync"};
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    aotc_state *state = (aotc_state *)&state;
    driver->fail_symbol = symbols[i];
    driver->fail_at = 1;
    driver->fail_result = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_state_create(&type, &state));
    CHECK(state == NULL);
    CHECK_INT(0, driver->live_memory);
    CHECK_FAILED(AOTC_OUT_OF_MEMORY, "");
  }
  CHECK_TEXT("", driver->violation);
}

static void write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(data, 1, bytes, file) == bytes);
  if (file != NULL) {
    fclose(file);
  }
}

static void they_are_saved_and_loaded(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  char folder[] = "/tmp/aotc_state_XXXXXX", path[64], bad[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/saved", folder);
  snprintf(bad, sizeof(bad), "%s/bad", folder);
  aotc_state *state = make(), *other = NULL;
  CHECK_INT(AOTC_OK, aotc_state_create(&other_type, &other));
  static const float full[] = {7, 7, 7, 7, 7, 7};
  int64_t count = 12;
  CHECK_INT(AOTC_OK, aotc_state_save(state, path));
  fill_cache(state, 7);
  CHECK_INT(AOTC_OK, aotc_state_write(state, "count", &count, sizeof(count)));
  CHECK_INT(AOTC_OK, aotc_state_save(state, path));
  CHECK_INT(AOTC_OK, aotc_state_reset(state));
  CHECK_INT(AOTC_OK, aotc_state_load(state, path));
  CHECK(has_rows(state, full));
  count = 0;
  CHECK_INT(AOTC_OK, aotc_state_read(state, "count", &count, sizeof(count)));
  CHECK_INT(12, count);

  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(other, path));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "it has 4 fields, expected 2");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, bad));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "No such file");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, folder));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no regular file");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_save(state, folder));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no regular file");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_save(state, "/nowhere/saved"));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "cannot save the state '/nowhere/saved': No such file");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_save(NULL, path));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no state");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, NULL));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "there is no path");

  static char content[CACHE_BYTES + 4096];
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  size_t bytes = file != NULL ? fread(content, 1, sizeof(content), file) : 0;
  fclose(file);
  write_file(bad, content, bytes - 1);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, bad));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "");
  write_file(bad, content, 3);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, bad));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "it ends too early");
  content[24 + 16] = 'k'; // of the first field's name
  write_file(bad, content, bytes);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, bad));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "it has the field 'kache: memref<2x3x5000xf32>'");
  content[0] = 'A';
  write_file(bad, content, bytes);
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_state_load(state, bad));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no state that aotc's libraries save");
  CHECK(has_rows(state, full)); // none of these changed it
  CHECK_INT(AOTC_OK, aotc_state_free(state));
  CHECK_INT(AOTC_OK, aotc_state_free(other));
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  unlink(path);
  unlink(bad);
  CHECK_INT(0, rmdir(folder)); // no temporary file is left
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(a_gpu_has_them),
      CHECK_TEST(the_cpu_has_them),
      CHECK_TEST(an_entry_uses_one_in_place),
      CHECK_TEST(what_cannot_be_is_refused),
      CHECK_TEST(failures_leave_nothing),
      CHECK_TEST(they_are_saved_and_loaded),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
