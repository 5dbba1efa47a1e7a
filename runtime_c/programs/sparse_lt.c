// Matrices with 2:4 sparsity, on the CPU device.
#include <stdio.h>
#include <string.h>

#include "sparse_matrix.h"
#include "utility.h"

// Whether the call runs on the CPU device; on a GPU it records a failure.
static bool begin(const char *call) {
  if (aotc_is_stopped()) {
    return false;
  }
  int32_t capability = aotc_compute_capability();
  if (aotc_is_stopped()) {
    return false;
  }
  if (capability != 0) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, call,
                             "aotc has no cuSPARSELt: on a GPU, write the product with "
                             "nvgpu.mma.sp.sync, or take the CPU device (AOTC_DEVICE=cpu)");
  }
  return capability == 0;
}

UTILITY void mgpuCreateSparseLtEnv(void) {
  begin("mgpuCreateSparseLtEnv");
}

UTILITY void mgpuDestroySparseLtEnv(void) {
}

static void make(const char *call, void *out_matrix, intptr_t rows, intptr_t columns, void *values,
                 int32_t type) {
  aotc_program_matrix m = {.format = FORMAT_DENSE,
                           .type = type,
                           .rows = rows,
                           .columns = columns,
                           .count = rows * columns,
                           .values = values};
  if (begin(call)) {
    memcpy(out_matrix, &m, sizeof(m));
  }
}

UTILITY void mgpuCreateCuSparseLtDnMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                       void *values, int32_t type, void *stream) {
  (void)stream;
  make("mgpuCreateCuSparseLtDnMat", out_matrix, rows, columns, values, type);
}

UTILITY void mgpuDestroyCuSparseLtDnMat(void *matrix, void *stream) {
  (void)matrix;
  (void)stream;
}

UTILITY void mgpuCusparseLtCreate2To4SpMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                           void *values, int32_t type, void *stream) {
  const char *call = "mgpuCusparseLtCreate2To4SpMat";
  (void)stream;
  if (columns % 4 != 0) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call, "the columns are no multiple of 4");
  }
  make(call, out_matrix, rows, columns, values, type);
}

UTILITY void mgpuDestroyCuSparseLtSpMat(void *matrix, void *stream) {
  (void)matrix;
  (void)stream;
}

UTILITY void mgpuCuSparseLtSpMMBufferSize(void *out_sizes, int32_t mode_a, int32_t mode_b, void *a,
                                          void *b, void *c, int32_t compute_type, int32_t prune,
                                          void *stream) {
  (void)b;
  (void)c;
  (void)compute_type;
  const char *call = "mgpuCuSparseLtSpMMBufferSize";
  memset(out_sizes, 0, 3 * sizeof(uint64_t));
  if (!begin(call)) {
    return;
  }
  if (mode_a != 0 || mode_b != 0) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, call, "the product is of matrices as they are");
    return;
  }
  mgpuStreamSynchronize(stream);
  if (prune != 0 && !aotc_is_stopped()) {
    aotc_program_prune(a);
  }
}

UTILITY void mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *workspace, void *compressed,
                                void *compression_buffer, void *stream) {
  (void)workspace;
  (void)compressed;
  (void)compression_buffer;
  const char *call = "mgpuCuSparseLtSpMM";
  if (!begin(call)) {
    return;
  }
  mgpuStreamSynchronize(stream);
  if (aotc_is_stopped()) {
    return;
  }
  if (!aotc_program_is_pruned(a)) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call,
                             "four elements of A have more than two that are not zero");
    return;
  }
  aotc_program_spmm(call, 0, 0, a, b, c);
}
