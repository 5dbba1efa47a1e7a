// What an expert writes for aotc's harness, where aotc generates it: the table of one entry.
#include <stddef.h>

#include "harness.h"

void _mlir_ciface_matmul(void *a, void *b, void *c);

static void call(void **values) {
  _mlir_ciface_matmul(values[0], values[1], values[2]);
}

static const int64_t shape[] = {1024, 1024};

#define MATRIX(letter, written)                                                                    \
  {.name = letter,                                                                                 \
   .type = "memref<1024x1024xf32>",                                                                \
   .dtype = AOTC_DTYPE_F32,                                                                        \
   .rank = 2,                                                                                      \
   .shape = shape,                                                                                 \
   .bytes = sizeof(float) * 1024 * 1024,                                                           \
   .is_read = true,                                                                                \
   .is_written = (written),                                                                        \
   .memory = AOTC_MEMORY_DEVICE,                                                                   \
   .aliases = -1}

static const aotc_value arguments[] = {MATRIX("A", false), MATRIX("B", false), MATRIX("C", true)};

static const aotc_entry entries[] = {
    {.name = "matmul", .argument_count = 3, .arguments = arguments, .call = call},
};

const harness_program aotc_harness_program = {
    .name = "matmul",
    .version = "by hand",
    .entry_count = 1,
    .entries = entries,
};
