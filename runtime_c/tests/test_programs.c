// The runner utilities: their output is compared with that of LLVM 22's libraries.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "mlir_runner_utils.h"

// A memref descriptor, with room for rank 4.
typedef struct memref {
  void *allocated, *aligned;
  int64_t offset;
  int64_t sizes_and_strides[8];
} memref;

#define UNRANKED(rank, ...) (&(mlir_unranked_memref){rank, __VA_ARGS__})

// -------------------------------------------------------------------------------------------------
// Printing

static char the_text[1 << 16];
static int the_saved_file;

static void begin_capture(FILE *stream) {
  FILE *file = tmpfile();
  fflush(stream);
  the_saved_file = dup(fileno(stream));
  dup2(fileno(file), fileno(stream));
  fclose(file);
}

// The output since begin_capture, with the addresses of memrefs replaced by @.
static const char *end_capture(FILE *stream) {
  fflush(stream);
  lseek(fileno(stream), 0, SEEK_SET);
  ssize_t count = read(fileno(stream), the_text, sizeof(the_text) - 1);
  the_text[count > 0 ? count : 0] = '\0';
  dup2(the_saved_file, fileno(stream));
  close(the_saved_file);
  char *out = the_text;
  for (const char *in = the_text; *in != '\0';) {
    if (strncmp(in, "0x", 2) == 0) {
      *out++ = '@';
      in += 2 + strspn(in + 2, "0123456789abcdef");
    } else {
      *out++ = *in++;
    }
  }
  *out = '\0';
  return the_text;
}

#define CHECK_PRINTS(expected, ...)                                                                \
  do {                                                                                             \
    begin_capture(stdout);                                                                         \
    __VA_ARGS__;                                                                                   \
    CHECK_TEXT(expected, end_capture(stdout));                                                     \
  } while (0)

#define CHECK_TELLS(expected, ...)                                                                 \
  do {                                                                                             \
    begin_capture(stderr);                                                                         \
    __VA_ARGS__;                                                                                   \
    CHECK_TEXT(expected, end_capture(stderr));                                                     \
  } while (0)

// Prints a memref<4xT> of the values; returns the output without its first line.
static const char *print_four(void (*print)(const mlir_unranked_memref *), void *values) {
  static const char head[] =
      "Unranked Memref base@ = @ rank = 1 offset = 0 sizes = [4] strides = [1] data = \n";
  memref m = {values, values, 0, {4, 1}};
  begin_capture(stdout);
  print(UNRANKED(1, &m));
  const char *text = end_capture(stdout);
  CHECK(strncmp(text, head, strlen(head)) == 0);
  return text + strlen(head);
}

static void values_and_punctuation(void) {
  CHECK_PRINTS("-5, 18446744073709551611( 0.1 )1e+100\n50%d", {
    printI64(-5);
    printComma();
    printU64((uint64_t)-5);
    printOpen();
    printF32(0.1f);
    printClose();
    printF64(1e100);
    printNewline();
    printString("50%");
    printCString("d");
  });
  // The bits above the lower 16 are ignored.
  CHECK_PRINTS("0 0.333252 0 0.333984", {
    printF16(0xabcd0000);
    printString(" ");
    printF16(0xffff3555);
    printString(" ");
    printBF16(0xabcd0000);
    printString(" ");
    printBF16(0xffff3eab);
  });
  CHECK_PRINTS("0.333252 0.333984 -nan 6.10352e-05 5.96046e-08 -inf 65504 3.38953e+38", {
    printF16(0x3555);
    printString(" ");
    printBF16(0x3eab);
    printString(" ");
    printF16(0xfe00);
    printString(" ");
    printF16(0x0400);
    printString(" ");
    printF16(0x0001);
    printString(" ");
    printF16(0xfc00);
    printString(" ");
    printF16(0x7bff);
    printString(" ");
    printBF16(0x7f7f);
  });
}

static void elements_of_each_type(void) {
  CHECK_TEXT("[<,  A,  z,  ~]\n",
             print_four(_mlir_ciface_printMemrefI8, (int8_t[]){60, 65, 122, 126}));
  CHECK_TEXT("[-32768,  0,  1,  32767]\n",
             print_four(_mlir_ciface_printMemrefI16, (int16_t[]){INT16_MIN, 0, 1, INT16_MAX}));
  CHECK_TEXT("[-2147483648,  0,  1,  2147483647]\n",
             print_four(_mlir_ciface_printMemrefI32, (int32_t[]){INT32_MIN, 0, 1, INT32_MAX}));
  CHECK_TEXT("[-9223372036854775808,  0,  1,  9223372036854775807]\n",
             print_four(_mlir_ciface_printMemrefI64, (int64_t[]){INT64_MIN, 0, 1, INT64_MAX}));
  CHECK_TEXT("[18446744073709551615,  0,  1,  2]\n",
             print_four(_mlir_ciface_printMemrefInd, (uint64_t[]){UINT64_MAX, 0, 1, 2}));
  CHECK_TEXT("[1,  0.333252,  inf,  -0]\n",
             print_four(_mlir_ciface_printMemrefF16, (uint16_t[]){0x3c00, 0x3555, 0x7c00, 0x8000}));
  CHECK_TEXT(
      "[1,  0.333984,  -inf,  nan]\n",
      print_four(_mlir_ciface_printMemrefBF16, (uint16_t[]){0x3f80, 0x3eab, 0xff80, 0x7fc0}));
  CHECK_TEXT(
      "[0.333333,  1e+06,  123457,  1.23457e+06]\n",
      print_four(_mlir_ciface_printMemrefF32, (float[]){1.0f / 3, 1e6f, 123456.7f, 1234567.0f}));
  CHECK_TEXT("[inf,  -inf,  nan,  1.4013e-45]\n",
             print_four(_mlir_ciface_printMemrefF32, (float[]){INFINITY, -INFINITY, NAN, 1e-45f}));
  CHECK_TEXT("[0.0001,  1e-05,  -0,  1.7e+308]\n",
             print_four(_mlir_ciface_printMemrefF64, (double[]){0.0001, 1e-5, -0.0, 1.7e308}));
  CHECK_TEXT("[(1,1.5),  (-0,nan),  (inf,0.333333),  (0,0)]\n",
             print_four(_mlir_ciface_printMemrefC32,
                        (float[]){1, 1.5f, -0.0f, NAN, INFINITY, 1.0f / 3, 0, 0}));
  CHECK_TEXT("[(1,1.5),  (1e+100,-1),  (0,0),  (0.5,2)]\n",
             print_four(_mlir_ciface_printMemrefC64, (double[]){1, 1.5, 1e100, -1, 0, 0, 0.5, 2}));
}

static float the_numbers[64]; // 0, 0.5, 1, ...

static void number_them(void) {
  for (int i = 0; i < 64; ++i) {
    the_numbers[i] = 0.5f * (float)i;
  }
}

static void ranks_and_strides(void) {
  number_them();
  void *data = the_numbers;
  CHECK_PRINTS("Unranked Memref base@ = @ rank = 0 offset = 3 sizes = [] strides = [] data = \n"
               "[1.5]\n",
               printMemrefF32(0, &(memref){data, data, 3, {0}}));
  CHECK_PRINTS("Unranked Memref base@ = @ rank = 1 offset = 1 sizes = [4] strides = [2] data = \n"
               "[0.5,  1.5,  2.5,  3.5]\n",
               printMemrefF32(1, &(memref){data, data, 1, {4, 2}}));
  CHECK_PRINTS(
      "Unranked Memref base@ = @ rank = 2 offset = 0 sizes = [2, 3] strides = [3, 1] data = \n"
      "[[0,   0.5,   1], \n [1.5,   2,   2.5]]\n",
      printMemrefF32(2, &(memref){data, data, 0, {2, 3, 3, 1}}));
  CHECK_PRINTS(
      "Unranked Memref base@ = @ rank = 2 offset = 5 sizes = [3, 2] strides = [1, -3] data = \n"
      "[[2.5,   1], \n [3,   1.5], \n [3.5,   2]]\n",
      printMemrefF32(2, &(memref){data, data, 5, {3, 2, 1, -3}}));
  CHECK_PRINTS("Unranked Memref base@ = @ rank = 3 offset = 0 sizes = [2, 1, 3] strides = [3, 3, "
               "1] data = \n"
               "[[[0,    0.5,    1]], \n [[1.5,    2,    2.5]]]\n",
               printMemrefF32(3, &(memref){data, data, 0, {2, 1, 3, 3, 3, 1}}));
  CHECK_PRINTS("Unranked Memref base@ = @ rank = 4 offset = 0 sizes = [2, 2, 2, 2] strides = [8, "
               "4, 2, 1] data = \n"
               "[[[[0,     0.5], \n   [1,     1.5]], \n  [[2,     2.5], \n   [3,     3.5]]], \n"
               " [[[4,     4.5], \n   [5,     5.5]], \n  [[6,     6.5], \n   [7,     7.5]]]]\n",
               printMemrefF32(4, &(memref){data, data, 0, {2, 2, 2, 2, 8, 4, 2, 1}}));
}

static void memrefs_without_elements(void) {
  CHECK_PRINTS("Unranked Memref base@ = 0 rank = 1 offset = 0 sizes = [0] strides = [1] data = \n"
               "[]\n",
               printMemrefF32(1, &(memref){NULL, NULL, 0, {0, 1}}));
  CHECK_PRINTS("Unranked Memref base@ = 0 rank = 2 offset = 0 sizes = [2, 0] strides = [0, 1] "
               "data = \n[[], \n []]\n",
               printMemrefF32(2, &(memref){NULL, NULL, 0, {2, 0, 0, 1}}));
}

static void known_ranks_and_shapes(void) {
  number_them();
  void *data = the_numbers;
  CHECK_PRINTS("Memref base@ = @ rank = 0 offset = 1 sizes = [] strides = [] data = \n[0.5]\n",
               _mlir_ciface_printMemref0dF32(&(memref){data, data, 1, {0}}));
  CHECK_PRINTS("Memref base@ = @ rank = 2 offset = 0 sizes = [1, 2] strides = [2, 1] data = \n"
               "[[0,   0.5]]\n",
               _mlir_ciface_printMemref2dF32(&(memref){data, data, 0, {1, 2, 2, 1}}));
  CHECK_PRINTS("Memref base@ = @ rank = 1 offset = 0 sizes = [2] strides = [1] data = \n"
               "[(0,0.5),  (1,1.5)]\n",
               _mlir_ciface_printMemref1dC32(&(memref){data, data, 0, {2, 1}}));
  CHECK_PRINTS("Memref base@ = @ rank = 2 offset = 0 sizes = [1, 2] strides = [2, 1] data = \n"
               "[[((0, 0.5, 1, 1.5),   (2, 2.5, 3, 3.5),   (4, 4.5, 5, 5.5),  (6, 6.5, 7, 7.5)),"
               "   ((8, 8.5, 9, 9.5),   (10, 10.5, 11, 11.5),   (12, 12.5, 13, 13.5),"
               "  (14, 14.5, 15, 15.5))]]\n",
               _mlir_ciface_printMemrefVector4x4xf32(&(memref){data, data, 0, {1, 2, 2, 1}}));
  CHECK_PRINTS("Unranked Memref base@ = @ rank = 1 offset = 2 sizes = [5] strides = [7]\n",
               _mlir_ciface_printMemrefShapeC64(UNRANKED(1, &(memref){data, data, 2, {5, 7}})));
}

static void what_failed_is_not_printed(void) {
  aotc_error_adopt(AOTC_LAUNCH_FAILED, "as it was told");
  aotc_error_adopt(AOTC_OUT_OF_MEMORY, "what comes second");
  CHECK(aotc_is_stopped());
  CHECK_PRINTS("", {
    printI64(1);
    printNewline();
    printMemrefF32(0, &(memref){the_numbers, the_numbers, 0, {0}});
    _mlir_ciface_printMemrefShapeF32(UNRANKED(0, &(memref){the_numbers, the_numbers, 0, {0}}));
  });
  float from = 1;
  float to = 2;
  memrefCopy(4, UNRANKED(0, &(memref){&from, &from, 0, {0}}),
             UNRANKED(0, &(memref){&to, &to, 0, {0}}));
  CHECK(to == 2);
  CHECK_INT(-1, verifyMemRefF32(0, &(memref){&to, &to, 0, {0}}, &(memref){&to, &to, 0, {0}}));
  CHECK_FAILED(AOTC_LAUNCH_FAILED, "as it was told");
  CHECK(!aotc_is_stopped());
}

// -------------------------------------------------------------------------------------------------
// Comparing, copying and sorting

static void differences_are_counted_and_told(void) {
  float actual[32];
  float expected[32];
  for (int i = 0; i < 32; ++i) {
    actual[i] = expected[i] = (float)i;
  }
  memref a = {actual, actual, 0, {4, 8, 8, 1}};
  memref e = {expected, expected, 0, {4, 8, 8, 1}};
  CHECK_INT(0, verifyMemRefF32(2, &a, &e));
  expected[3] = 3.00001f;
  expected[4] = 4.000001f; // close enough
  actual[5] = expected[5] = NAN;
  actual[6] = expected[6] = INFINITY;
  CHECK_TELLS("3 != 3.00001 offset = 3\nnan != nan offset = 5\ninf != inf offset = 6\n",
              CHECK_INT(3, verifyMemRefF32(2, &a, &e)));
  for (int i = 0; i < 32; ++i) {
    expected[i] = (float)(-1 - i);
  }
  begin_capture(stderr);
  int64_t errors = verifyMemRefF32(2, &a, &e);
  const char *told = end_capture(stderr);
  CHECK_INT(32, errors);
  CHECK_CONTAINS(told, "9 != -10 offset = 9\n");
  CHECK(strstr(told, "offset = 10\n") == NULL);
  e.sizes_and_strides[0] = 3;
  CHECK_TELLS("base@ = @ rank = 2 offset = 0 sizes = [4, 8] strides = [8, 1]"
              "base@ = @ rank = 2 offset = 0 sizes = [3, 8] strides = [8, 1]",
              CHECK_INT(-1, verifyMemRefF32(2, &a, &e)));
}

static void f16_is_compared_by_its_bits(void) {
  uint16_t actual[] = {0x3c00, 0x7e00, 0x0000, 0x3c00};
  uint16_t expected[] = {0x3c00, 0x7e00, 0x8000, 0x3c01};
  memref a = {actual, actual, 0, {4, 1}};
  memref e = {expected, expected, 0, {4, 1}};
  CHECK_TELLS("0 != -0 offset = 2\n1 != 1.00098 offset = 3\n",
              CHECK_INT(2, _mlir_ciface_verifyMemRefF16(UNRANKED(1, &a), UNRANKED(1, &e))));
}

static void copies_go_by_strides(void) {
  int32_t from[6] = {1, 2, 3, 4, 5, 6};
  int32_t to[6] = {0};
  memref rows = {from, from, 0, {2, 3, 3, 1}};
  memref columns = {to, to, 0, {2, 3, 1, 2}};
  memrefCopy(4, UNRANKED(2, &rows), UNRANKED(2, &columns));
  CHECK(memcmp(to, (int32_t[]){1, 4, 2, 5, 3, 6}, sizeof(to)) == 0);
  memref same = {to, to, 0, {2, 3, 3, 1}};
  memrefCopy(4, UNRANKED(2, &rows), UNRANKED(2, &same));
  CHECK(memcmp(to, from, sizeof(to)) == 0);
  memref point = {from, from, 5, {0}};
  memref other = {to, to, 1, {0}};
  memrefCopy(4, UNRANKED(0, &point), UNRANKED(0, &other));
  CHECK_INT(6, to[1]);
  memref nothing = {NULL, NULL, 0, {0, 1}};
  memrefCopy(4, UNRANKED(1, &nothing), UNRANKED(1, &nothing));
}

static void copies_of_uncountable_bytes_are_refused(void) {
  int32_t from[2] = {1, 2};
  int32_t to[2] = {3, 4};
  memref source = {from, from, 0, {INT64_MAX / 2, 1}};
  memref target = {to, to, 0, {INT64_MAX / 2, 1}};
  memrefCopy(4, UNRANKED(1, &source), UNRANKED(1, &target));
  CHECK_INT(AOTC_OUT_OF_MEMORY, aotc_status_get());
  CHECK_INT(3, to[0]);
  aotc_error_clear();
}

static void sorts(void) {
  double values[] = {9, 3, -1, 2.5, -INFINITY, 0};
  _mlir_ciface_stdSortF64(5, &(memref){values, values, 1, {5, 1}});
  CHECK(memcmp(values, (double[]){9, -INFINITY, -1, 0, 2.5, 3}, sizeof(values)) == 0);
  int64_t integers[] = {5, INT64_MIN, INT64_MAX, -1};
  _mlir_ciface_stdSortI64(4, &(memref){integers, integers, 0, {4, 1}});
  CHECK(memcmp(integers, (int64_t[]){INT64_MIN, -1, 5, INT64_MAX}, sizeof(integers)) == 0);
}

// -------------------------------------------------------------------------------------------------
// Time and random numbers

static void clocks_go_on(void) {
  CHECK(rtclock() > 1.7e9);
  int64_t before = _mlir_ciface_nanoTime();
  usleep(2000);
  CHECK(_mlir_ciface_nanoTime() - before >= 2000000);
  CHECK_TELLS("1.500000 GFLOPS\n", printFlops(1.5e9));
}

static void random_numbers_are_upstreams(void) {
  void *generator = rtsrand(42);
  static const uint64_t below_100[] = {37, 79, 95, 18, 73, 77};
  for (int i = 0; i < 6; ++i) {
    CHECK_INT(below_100[i], rtrand(generator, 99));
  }
  CHECK_INT(0, rtrand(generator, 0));
  CHECK_INT(747994404454, rtrand(generator, 0x123456789ab));
  CHECK_INT(1914837113, rtrand(generator, UINT32_MAX));
  CHECK_INT(2877591057541362902, rtrand(generator, UINT64_MAX));
  uint64_t order[9];
  _mlir_ciface_shuffle(&(memref){order, order, 0, {9, 1}}, generator);
  CHECK(memcmp(order, (uint64_t[]){2, 6, 7, 0, 4, 5, 8, 1, 3}, sizeof(order)) == 0);
  // Enough elements that each needs its own random number.
  uint64_t *many = malloc(70000 * sizeof(*many));
  _mlir_ciface_shuffle(&(memref){many, many, 0, {70000, 1}}, generator);
  uint64_t hash = 0;
  for (int i = 0; i < 70000; ++i) {
    hash = hash * 31 + many[i];
  }
  free(many);
  CHECK_INT(7651609025029057244, hash);
  _mlir_ciface_shuffle(&(memref){order, order, 0, {8, 1}}, generator);
  CHECK(memcmp(order, (uint64_t[]){0, 7, 1, 6, 5, 3, 2, 4}, 8 * sizeof(*order)) == 0);
  for (int i = 0; i < 2000; ++i) {
    rtrand(generator, 1000000007);
  }
  CHECK_INT(144739096, rtrand(generator, 1000000007));
  rtdrand(generator);
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(values_and_punctuation),
      CHECK_TEST(elements_of_each_type),
      CHECK_TEST(ranks_and_strides),
      CHECK_TEST(memrefs_without_elements),
      CHECK_TEST(known_ranks_and_shapes),
      CHECK_TEST(what_failed_is_not_printed),
      CHECK_TEST(differences_are_counted_and_told),
      CHECK_TEST(f16_is_compared_by_its_bits),
      CHECK_TEST(copies_go_by_strides),
      CHECK_TEST(copies_of_uncountable_bytes_are_refused),
      CHECK_TEST(sorts),
      CHECK_TEST(clocks_go_on),
      CHECK_TEST(random_numbers_are_upstreams),
  };
  return check_main(argc, argv, tests, (int)(sizeof(tests) / sizeof(*tests)));
}
