// Weights in a separate file: mapped once, copied to each context, and rejected with a reason.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "aotc_weights.h"
#include "check.h"
#include "fake_driver.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

#define FILE_BYTES 320
#define TABLE 64
#define ROW 64
#define FIRST 256
#define SECOND 288
#define WEIGHTS 2

// A file of two weights with bytes 1, 2, 3, ... in file order. The digests are all 1 and all 2.
typedef struct weights_file {
  char folder[64];
  char path[96];
  unsigned char content[FILE_BYTES];
} weights_file;

static void write_bytes(const char *path, const void *bytes, size_t count) {
  FILE *out = fopen(path, "wb");
  CHECK(out != NULL && fwrite(bytes, 1, count, out) == count);
  CHECK(out != NULL && fclose(out) == 0);
}

static void put(unsigned char *to, uint64_t number) {
  memcpy(to, &number, sizeof(number));
}

static weights_file make_file(void) {
  weights_file file = {.folder = "/tmp/aotc-weights-XXXXXX", .content = "aotc-wts"};
  CHECK(mkdtemp(file.folder) != NULL);
  snprintf(file.path, sizeof(file.path), "%s/model.weights", file.folder);
  file.content[8] = 2;
  file.content[12] = WEIGHTS;
  put(file.content + 16, FILE_BYTES);
  for (int i = 0; i < WEIGHTS; ++i) {
    unsigned char *row = file.content + TABLE + i * ROW;
    memset(row, i + 1, 32);
    put(row + 32, (uint64_t)(FIRST + 32 * i));
    put(row + 40, 32);
  }
  for (int i = FIRST; i < FILE_BYTES; ++i) {
    file.content[i] = (unsigned char)(i - FIRST + 1);
  }
  write_bytes(file.path, file.content, FILE_BYTES);
  setenv("AOTC_WEIGHTS", file.path, 1);
  return file;
}

static void remove_file(const weights_file *file) {
  unlink(file->path);
  CHECK_INT(0, rmdir(file->folder));
}

// The weights of an artifact that uses both.
typedef struct artifact {
  aotc_weights weights;
  aotc_weight first, second;
  aotc_weight *list[WEIGHTS];
} artifact;

static void make_artifact(artifact *made, const char *name) {
  *made = (artifact){.weights = {.file = name, .weights = made->list, .count = WEIGHTS},
                     .list = {&made->first, &made->second}};
  for (int i = 0; i < WEIGHTS; ++i) {
    made->list[i]->weights = &made->weights;
    made->list[i]->constant.bytes = 32;
    memset(made->list[i]->digest, i + 1, sizeof(made->list[i]->digest));
  }
}

static void mapped_once_and_read_in_place(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cpu", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  const unsigned char *data = aotc_weight_get(&made.first);
  CHECK_INT(1, data[0]);
  CHECK(aotc_weight_get(&made.second) == data + (SECOND - FIRST));
  CHECK(aotc_weight_get_on_device(&made.second) == data + (SECOND - FIRST));
  remove_file(&file); // the mapping stays valid
  CHECK_INT(33, *(const unsigned char *)aotc_weight_get(&made.second));
  CHECK_INT(0, driver->allocation_count);
  aotc_weights_release(&made.weights);
  CHECK(made.weights.opened == NULL);
  aotc_weights_release(&made.weights);
  CHECK_NO_FAILURE();
}

static void a_copy_for_each_context(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  setenv("AOTC_DEVICE", "cuda", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  aotc_weight *weight = &made.second;
  const void *copy = aotc_weight_get_on_device(weight);
  CHECK(copy != aotc_weight_get(weight));
  CHECK(memcmp(copy, file.content + SECOND, 32) == 0);
  CHECK(aotc_weight_get_on_device(weight) == copy);
  CHECK_INT(1, driver->copy_count);
  fake_context_push(fake_context_make(1));
  CHECK(aotc_weight_get_on_device(weight) != copy);
  CHECK_INT(2, driver->copy_count);
  fake_context_pop();
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_memory);
  CHECK(memcmp(aotc_weight_get_on_device(weight), file.content + SECOND, 32) == 0);
  aotc_weights_release(&made.weights);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

// Returns zeros, without copying them, and the reason; the next call looks for the file again.
static void check_refused(aotc_weight *weight, const char *reason) {
  const unsigned char *stand_in = aotc_weight_get(weight);
  CHECK_INT(0, stand_in[0]);
  CHECK_INT(0, stand_in[31]);
  CHECK(aotc_weight_get_on_device(weight) == stand_in);
  CHECK_FAILED(AOTC_NO_WEIGHTS, reason);
}

static void what_is_no_such_file_is_refused(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  aotc_weight *weight = &made.first;
  const struct {
    int place, bytes;
    const char *reason;
  } cases[] = {
      {0, FILE_BYTES, "is no file of weights that aotc made; AOTC_WEIGHTS names another file"},
      {8, FILE_BYTES, "are of format 3, expected 2"},
      {TABLE, FILE_BYTES,
       "are another build's: they lack 1 of 2, one of 32 bytes whose SHA-256 begins with 01010101"},
      {TABLE + ROW + 33, FILE_BYTES,
       "they lack 1 of 2, one of 32 bytes whose SHA-256 begins with 02"},
      {TABLE + 40, FILE_BYTES, "they lack 1 of 2"},
      {14, FILE_BYTES, "is no file of weights that aotc made"},
      {-1, FILE_BYTES - 1, "have 319 bytes, expected 320: a part is lost"},
      {-1, 20, "have 20 bytes, expected 64: a part is lost"},
      {-1, 0, "is no file of weights"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    unsigned char content[FILE_BYTES];
    memcpy(content, file.content, FILE_BYTES);
    if (cases[i].place >= 0) {
      content[cases[i].place] += 1;
    }
    write_bytes(file.path, content, (size_t)cases[i].bytes);
    check_refused(weight, cases[i].reason);
  }
  CHECK_INT(0, unlink(file.path));
  check_refused(weight, "cannot be opened: No such file or directory");
  CHECK_INT(0, mkfifo(file.path, 0600));
  check_refused(weight, "are no file");
  CHECK_INT(0, unlink(file.path));
  CHECK_INT(0, driver->allocation_count);
  write_bytes(file.path, file.content, FILE_BYTES);
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(weight));
  CHECK_NO_FAILURE();
  aotc_weights_release(&made.weights);
  remove_file(&file);
}

static void nothing_is_opened_after_a_failure(void) {
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  aotc_weight *weight = &made.first;
  aotc_assertion_failed("another");
  CHECK_INT(0, *(const unsigned char *)aotc_weight_get(weight));
  CHECK(made.weights.opened == NULL);
  CHECK_TEXT("assertion failed: another", aotc_error_message());
  aotc_error_clear();
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(weight));
  aotc_weights_release(&made.weights);
  remove_file(&file);
}

// The file is in the folder named by AOTC_WEIGHTS, or in the program's.
static void found_by_its_name(void) {
  weights_file file = make_file();
  setenv("AOTC_WEIGHTS", file.folder, 1);
  artifact made;
  make_artifact(&made, "far/away/model.weights");
  aotc_weight *weight = &made.first;
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(weight));
  aotc_weights_release(&made.weights);

  setenv("AOTC_WEIGHTS", "", 1);
  char program[512];
  ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  CHECK(length > 0);
  program[length] = '\0';
  char beside[600];
  snprintf(beside, sizeof(beside), "%.*s/far/away/model.weights",
           (int)(strrchr(program, '/') - program), program);
  CHECK_INT(0, chdir("/"));
  check_refused(weight, beside);
  aotc_weights_release(&made.weights);
  remove_file(&file);
}

// A weight of 4 x 2 f32, named `name` in the table.
static const int64_t the_shape[] = {4, 2};

static aotc_named_weight named(aotc_weight *weight, const char *name) {
  return (aotc_named_weight){.value = {.name = name,
                                       .type = "memref<4x2xf32>",
                                       .dtype = AOTC_DTYPE_F32,
                                       .rank = 2,
                                       .shape = the_shape,
                                       .bytes = 32},
                             .weight = weight};
}

static bool is_all(const void *memory, int byte) {
  unsigned char expected[32];
  memset(expected, byte, sizeof(expected));
  return memcmp(memory, expected, sizeof(expected)) == 0;
}

static aotc_status set_all(const aotc_weight_table *table, const char *name, int byte) {
  unsigned char data[32];
  memset(data, byte, sizeof(data));
  return aotc_weight_set(table, name, "f32", 2, the_shape, data);
}

static void replaced_in_place(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  setenv("AOTC_DEVICE", "cuda", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  const aotc_named_weight rows[] = {named(&made.first, "a"), named(&made.second, "b")};
  const aotc_weight_table table = {2, rows};

  void *copy = aotc_weight_get_on_device(&made.first);
  CHECK_INT(AOTC_OK, set_all(&table, "a", 7));
  CHECK(aotc_weight_get_on_device(&made.first) == copy);
  CHECK(is_all(copy, 7));
  CHECK(is_all(aotc_weight_get(&made.first), 7)); // for host code
  CHECK_INT(AOTC_OK, set_all(&table, "a", 8));
  CHECK(is_all(copy, 8));
  CHECK(is_all(aotc_weight_get(&made.first), 8));
  CHECK(memcmp(aotc_weight_get_on_device(&made.second), file.content + SECOND, 32) == 0);

  // Another device gets it from the first one, or from the host.
  fake_context_push(fake_context_make(1));
  void *other = aotc_weight_get_on_device(&made.first);
  CHECK(other != copy);
  CHECK(is_all(other, 8));
  fake_context_pop();
  unsigned char now[32];
  CHECK_INT(AOTC_OK, aotc_weight_read(&table, "a", now, sizeof(now)));
  CHECK(is_all(now, 8));
  CHECK_INT(AOTC_OK, aotc_weight_restore(&table, "b"));
  CHECK_INT(AOTC_OK, aotc_weight_restore(&table, "a"));
  CHECK(aotc_weight_get_on_device(&made.first) == copy);
  CHECK(memcmp(copy, file.content + FIRST, 32) == 0);
  CHECK(memcmp(aotc_weight_get(&made.first), file.content + FIRST, 32) == 0);

  // A weight that has not been used yet is not read from the file.
  aotc_constant_release(&made.second.constant);
  int64_t copies = driver->copy_count;
  CHECK_INT(AOTC_OK, set_all(&table, "b", 9));
  CHECK_INT(copies + 1, driver->copy_count);
  CHECK(is_all(aotc_weight_get_on_device(&made.second), 9));
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_memory);
  CHECK(memcmp(aotc_weight_get_on_device(&made.second), file.content + SECOND, 32) == 0);
  aotc_weights_release(&made.weights);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

// Two artifacts with one runtime: one mapping, and one copy on a device, until one of them replaces
// its weight.
static void shared_by_artifacts(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  weights_file file = make_file();
  artifact prefill, decode;
  make_artifact(&prefill, "model.weights");
  make_artifact(&decode, "other/path/of/it");
  const aotc_named_weight row = named(&prefill.first, "a");
  const aotc_weight_table table = {1, &row};
  const void *data = aotc_weight_get(&prefill.first);
  CHECK(aotc_weight_get(&decode.first) == data);
  void *copy = aotc_weight_get_on_device(&decode.first);
  CHECK(aotc_weight_get_on_device(&prefill.first) == copy);
  CHECK_INT(1, driver->copy_count);

  CHECK_INT(AOTC_OK, set_all(&table, "a", 5));
  CHECK(is_all(aotc_weight_get_on_device(&prefill.first), 5));
  CHECK(aotc_weight_get_on_device(&decode.first) == copy);
  CHECK(memcmp(copy, file.content + FIRST, 32) == 0);
  aotc_weights_release(&prefill.weights);
  CHECK(aotc_weight_get_on_device(&decode.first) == copy);
  CHECK(aotc_weight_get(&decode.first) == data);
  CHECK_INT(1, aotc_weight_get_on_device(&prefill.first) == copy); // opened again
  aotc_weights_release(&decode.weights);
  CHECK(aotc_weight_get_on_device(&prefill.first) == copy);
  aotc_weights_release(&prefill.weights);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

// Equal weights may be used as matrices of different shapes.
static void packed_by_rows(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  weights_file file = make_file();
  artifact one, other;
  make_artifact(&one, "model.weights");
  make_artifact(&other, "model.weights");
  const unsigned char *rows = aotc_weight_get_packed(&one.first, 4);
  const unsigned char *row = aotc_weight_get_packed(&other.first, 1);
  CHECK(aotc_weight_get_packed(&one.first, 1) == row);
  CHECK_INT(9, rows[AOTC_VECTOR_BYTES]);
  CHECK(memcmp(row, file.content + FIRST, 32) == 0);
  aotc_weights_release(&one.weights);
  aotc_weights_release(&other.weights);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

static void packed_anew_on_the_cpu(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  aotc_weight *weight = &made.first;
  const aotc_named_weight row = named(weight, "a");
  const aotc_weight_table table = {1, &row};
  const unsigned char *packed = aotc_weight_get_packed(weight, 4);
  CHECK(memcmp(packed, file.content + FIRST, 8) == 0);
  CHECK_INT(AOTC_OK, set_all(&table, "a", 3));
  packed = aotc_weight_get_packed(weight, 4);
  CHECK_INT(3, packed[0]);
  CHECK_INT(3, packed[3 * AOTC_VECTOR_BYTES + 7]);
  CHECK(is_all(aotc_weight_get_on_device(weight), 3));
  CHECK_INT(AOTC_OK, aotc_weight_restore(&table, "a"));
  CHECK(memcmp(aotc_weight_get_packed(weight, 4), file.content + FIRST, 8) == 0);
  CHECK_INT(AOTC_OK, set_all(&table, "a", 4));
  aotc_weights_release(&made.weights);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

static void what_does_not_fit_is_refused(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  weights_file file = make_file();
  artifact made;
  make_artifact(&made, "model.weights");
  aotc_weight *weight = &made.first;
  const aotc_named_weight row = named(weight, "a");
  const aotc_weight_table table = {1, &row};
  unsigned char data[32] = {0};
  const int64_t flat[] = {8}, turned[] = {2, 4};
  const struct {
    const char *name, *dtype, *reason;
    int32_t rank;
    const int64_t *shape;
    const void *data;
  } cases[] = {
      {"c", "f32", "no weight 'c' can be replaced here: those of --replaceable are 'a'", 2,
       the_shape, data},
      {NULL, "f32", "no weight '(NULL)'", 2, the_shape, data},
      {"a", "f16", "weight 'a' takes elements of f32 of shape [4x2], not of f16 of [4x2]", 2,
       the_shape, data},
      {"a", "f32", "of shape [4x2], not of f32 of [8]", 1, flat, data},
      {"a", "f32", "of shape [4x2], not of f32 of [2x4]", 2, turned, data},
      {"a", "f32", "weight 'a' (memref<4x2xf32>): the pointer is NULL", 2, the_shape, NULL},
      {"a", NULL, "its type is NULL", 2, the_shape, data},
      {"a", "f32", "its shape is NULL", 2, NULL, data},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_weight_set(&table, cases[i].name, cases[i].dtype,
                                                     cases[i].rank, cases[i].shape, cases[i].data));
    CHECK_FAILED(AOTC_INVALID_ARGUMENT, cases[i].reason);
  }
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_weight_read(&table, "a", data, 31));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "weight 'a' (memref<4x2xf32>) has 32 bytes, not 31");
  CHECK_INT(AOTC_INVALID_ARGUMENT, aotc_weight_restore(&table, "c"));
  CHECK_FAILED(AOTC_INVALID_ARGUMENT, "no weight 'c'");
  CHECK(memcmp(aotc_weight_get(weight), file.content + FIRST, 32) == 0);
  aotc_weights_release(&made.weights);
  remove_file(&file);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(mapped_once_and_read_in_place),
      CHECK_TEST(a_copy_for_each_context),
      CHECK_TEST(what_is_no_such_file_is_refused),
      CHECK_TEST(nothing_is_opened_after_a_failure),
      CHECK_TEST(found_by_its_name),
      CHECK_TEST(replaced_in_place),
      CHECK_TEST(shared_by_artifacts),
      CHECK_TEST(packed_by_rows),
      CHECK_TEST(packed_anew_on_the_cpu),
      CHECK_TEST(what_does_not_fit_is_refused),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
