// A program of one entry: C += A @ B, as the forum's matmul has it.
#include "harness.h"

typedef struct matrix {
  float *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} matrix;

static void call_matmul(void **values) {
  const matrix *a = values[0], *b = values[1], *c = values[2];
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t k = 0; k < 3; ++k) {
        // Two statements, which are not fused: the same result on every processor.
        float product = a->aligned[i * 3 + k] * b->aligned[k * 5 + j];
        c->aligned[i * 5 + j] += product;
      }
    }
  }
}

static const aotc_value arguments[] = {
    {.name = "A",
     .type = "memref<4x3xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 2,
     .shape = (const int64_t[]){4, 3},
     .is_read = true,
     .memory = AOTC_MEMORY_DEVICE,
     .aliases = -1},
    {.name = "B",
     .type = "memref<3x5xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 2,
     .shape = (const int64_t[]){3, 5},
     .is_read = true,
     .memory = AOTC_MEMORY_DEVICE,
     .aliases = -1},
    {.name = "C",
     .type = "memref<4x5xf32>",
     .dtype = AOTC_DTYPE_F32,
     .rank = 2,
     .shape = (const int64_t[]){4, 5},
     .is_read = true,
     .is_written = true,
     .memory = AOTC_MEMORY_DEVICE,
     .aliases = -1},
};

static const aotc_entry entries[] = {
    {.name = "matmul", .argument_count = 3, .arguments = arguments, .call = call_matmul},
};

static const harness_kernel kernels[] = {
    {.name = "matmul_kernel", .built_for = "sm_80, sm_90a, PTX compute_80", .has_cpu_form = true},
    {.name = "matmul_wgmma", .built_for = "sm_90a", .why_no_cpu_form = "it uses wgmma"},
};

const harness_program aotc_harness_program = {
    .name = "matmul",
    .version = "0.1.0",
    .entry_count = 1,
    .entries = entries,
    .kernel_count = 2,
    .kernels = kernels,
};
