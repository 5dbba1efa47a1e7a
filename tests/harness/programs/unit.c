// Parts of the harness, driven one at a time.
//   npy FILE...     reads each file whatever it holds: "CRC32 DTYPE SHAPE", or "! why not"
//   interrupt FILE  starts to write a file, says so, and waits to be interrupted
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "npy.h"
#include "statistics.h"

const harness_program aotc_harness_program = {.name = "unit", .version = "0.1.0"};

// The data that a fuzzed header may ask for.
#define MOST_BYTES (1 << 20)

static bool find_dtype(const harness_npy_header *header, aotc_dtype *out_dtype) {
  // Signed integers and bfloat16 take files of unsigned integers, too, which come before them here.
  for (int dtype = AOTC_DTYPE_C128; dtype >= AOTC_DTYPE_BOOL; --dtype) {
    if (dtype != AOTC_DTYPE_BF16 && harness_npy_holds(header, (aotc_dtype)dtype)) {
      *out_dtype = (aotc_dtype)dtype;
      return true;
    }
  }
  *out_dtype = AOTC_DTYPE_BF16;
  return harness_npy_holds(header, AOTC_DTYPE_BF16);
}

static void read_npy(const char *path) {
  char problem[HARNESS_PROBLEM_TEXT], shape[HARNESS_SHAPE_TEXT];
  harness_npy_file file;
  harness_array array = {0};
  aotc_dtype dtype;
  uint64_t count, bytes;
  if (!harness_npy_open(path, &file, problem)) {
    printf("! %s\n", problem);
    return;
  }
  const harness_npy_header *header = &file.header;
  if (!find_dtype(header, &dtype)) {
    printf("! dtype %s\n", header->descr);
  } else if (!harness_shape_size(dtype, header->rank, header->shape, &count, &bytes) ||
             bytes > MOST_BYTES) {
    printf("! too large\n");
  } else if (!harness_array_allocate(&array, path, dtype, header->rank, header->shape)) {
    printf("! memory\n");
  } else if (!harness_npy_read(&file, &array, problem)) {
    printf("! %s\n", problem);
  } else {
    printf("%08x %s %s\n", (unsigned)harness_crc32(array.data, bytes), harness_facts(dtype)->name,
           harness_shape_text(array.rank, array.shape, shape));
  }
  harness_array_free(&array);
  harness_npy_close(&file);
}

static int interrupt(const char *path) {
  harness_output output;
  if (!harness_output_open(&output, path) || fputs("half", output.stream) < 0 ||
      fflush(output.stream) != 0) {
    return 1;
  }
  puts("writing");
  fflush(stdout);
  sleep(60);
  return 1;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "interrupt") == 0) {
    return interrupt(argv[2]);
  }
  for (int i = 2; i < argc; ++i) {
    read_npy(argv[i]);
  }
  return 0;
}
