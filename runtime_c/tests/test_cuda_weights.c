// Weights in a file of their own: mapped once, copied to each context, and refused with a reason.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "fake_driver.h"
#include "mlir_cuda_runtime.h"
#include "scenario.h"

#define FILE_BYTES 192
#define FIRST 128
#define SECOND 160

// A file of two weights: 1, 2, 3, ... from the first one on.
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

static weights_file make_file(void) {
  weights_file file = {.folder = "/tmp/aotc-weights-XXXXXX", .content = "aotc-wts"};
  CHECK(mkdtemp(file.folder) != NULL);
  snprintf(file.path, sizeof(file.path), "%s/model.weights", file.folder);
  file.content[8] = 1;
  file.content[12] = 2;
  file.content[16] = FILE_BYTES;
  for (int i = 24; i < 56; ++i) {
    file.content[i] = (unsigned char)i;
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

static aotc_weights table_for(const char *name) {
  aotc_weights weights = {.file = name, .bytes = FILE_BYTES};
  for (int i = 0; i < 32; ++i) {
    weights.digest[i] = (uint8_t)(24 + i);
  }
  return weights;
}

static aotc_weight weight_at(aotc_weights *weights, uint64_t offset) {
  return (aotc_weight){.weights = weights, .offset = offset, .constant = {.bytes = 32}};
}

static void mapped_once_and_read_in_place(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cpu", 1);
  weights_file file = make_file();
  aotc_weights weights = table_for("model.weights");
  aotc_weight first = weight_at(&weights, FIRST), second = weight_at(&weights, SECOND);
  const unsigned char *data = aotc_weight_get(&first);
  CHECK_INT(1, data[0]);
  CHECK(aotc_weight_get(&second) == data + (SECOND - FIRST));
  CHECK(aotc_weight_get_on_device(&second) == data + (SECOND - FIRST));
  remove_file(&file); // what is mapped stays
  CHECK_INT(33, *(const unsigned char *)aotc_weight_get(&second));
  CHECK_INT(0, driver->allocation_count);
  aotc_weights_release(&weights);
  CHECK(weights.data == NULL);
  aotc_weights_release(&weights);
  CHECK_NO_FAILURE();
}

static void a_copy_for_each_context(void) {
  fake_driver *driver = scenario_driver();
  driver->device_count = 2;
  setenv("AOTC_DEVICE", "cuda", 1);
  weights_file file = make_file();
  aotc_weights weights = table_for("model.weights");
  aotc_weight weight = weight_at(&weights, SECOND);
  const void *copy = aotc_weight_get_on_device(&weight);
  CHECK(copy != aotc_weight_get(&weight));
  CHECK(memcmp(copy, file.content + SECOND, 32) == 0);
  CHECK(aotc_weight_get_on_device(&weight) == copy);
  CHECK_INT(1, driver->copy_count);
  fake_context_push(fake_context_make(1));
  CHECK(aotc_weight_get_on_device(&weight) != copy);
  CHECK_INT(2, driver->copy_count);
  fake_context_pop();
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_memory);
  CHECK(memcmp(aotc_weight_get_on_device(&weight), file.content + SECOND, 32) == 0);
  aotc_constant_release(&weight.constant);
  aotc_weights_release(&weights);
  CHECK_INT(0, driver->live_memory);
  CHECK_TEXT("", driver->violation);
  remove_file(&file);
  CHECK_NO_FAILURE();
}

// Zeros, no copy of them, and the reason; the next call finds what is there by then.
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
  aotc_weights weights = table_for("model.weights");
  aotc_weight weight = weight_at(&weights, FIRST);
  const struct {
    int place, bytes;
    const char *reason;
  } cases[] = {
      {0, FILE_BYTES, "is no file of weights that aotc made; AOTC_WEIGHTS names another file"},
      {8, FILE_BYTES, "are of format 2, expected 1"},
      {24, FILE_BYTES, "are another build's: their digest begins with 19191a1b, expected 18191a1b"},
      {-1, FILE_BYTES - 1, "have 191 bytes, expected 192: a part is lost"},
      {-1, 20, "have 20 bytes, expected 192: a part is lost"},
      {-1, 0, "is no file of weights"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    unsigned char content[FILE_BYTES];
    memcpy(content, file.content, FILE_BYTES);
    if (cases[i].place >= 0) {
      content[cases[i].place] += 1;
    }
    write_bytes(file.path, content, (size_t)cases[i].bytes);
    check_refused(&weight, cases[i].reason);
  }
  CHECK_INT(0, unlink(file.path));
  check_refused(&weight, "cannot be opened: No such file or directory");
  CHECK_INT(0, mkfifo(file.path, 0600));
  check_refused(&weight, "are no file");
  CHECK_INT(0, unlink(file.path));
  CHECK_INT(0, driver->allocation_count);
  write_bytes(file.path, file.content, FILE_BYTES);
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(&weight));
  CHECK_NO_FAILURE();
  aotc_weights_release(&weights);
  remove_file(&file);
}

static void nothing_is_opened_after_a_failure(void) {
  weights_file file = make_file();
  aotc_weights weights = table_for("model.weights");
  aotc_weight weight = weight_at(&weights, FIRST);
  aotc_assertion_failed("another");
  CHECK_INT(0, *(const unsigned char *)aotc_weight_get(&weight));
  CHECK(weights.data == NULL);
  CHECK_TEXT("assertion failed: another", aotc_error_message());
  aotc_error_clear();
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(&weight));
  aotc_weights_release(&weights);
  remove_file(&file);
}

// The folder that AOTC_WEIGHTS names, else the one of the program.
static void found_by_its_name(void) {
  weights_file file = make_file();
  setenv("AOTC_WEIGHTS", file.folder, 1);
  aotc_weights weights = table_for("far/away/model.weights");
  aotc_weight weight = weight_at(&weights, FIRST);
  CHECK_INT(1, *(const unsigned char *)aotc_weight_get(&weight));
  aotc_weights_release(&weights);

  setenv("AOTC_WEIGHTS", "", 1);
  char program[512];
  ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  CHECK(length > 0);
  program[length] = '\0';
  char beside[600];
  snprintf(beside, sizeof(beside), "%.*s/far/away/model.weights",
           (int)(strrchr(program, '/') - program), program);
  CHECK_INT(0, chdir("/"));
  check_refused(&weight, beside);
  aotc_weights_release(&weights);
  remove_file(&file);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(mapped_once_and_read_in_place),
      CHECK_TEST(a_copy_for_each_context),
      CHECK_TEST(what_is_no_such_file_is_refused),
      CHECK_TEST(nothing_is_opened_after_a_failure),
      CHECK_TEST(found_by_its_name),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
