// The functions of mlir_cuda_sparse.h: by cuSPARSE, or by sparse_products.c on the CPU device.
#include <stdlib.h>

#include "cusparse.h"
#include "sparse_matrix.h"
#include "utility.h"

#define BASE_ZERO 0
#define ORDER_ROW 2
#define DEFAULT_ALGORITHM 0

typedef enum where { NOWHERE, ON_CPU, ON_GPU } where;

// The device a call runs on; NOWHERE after a failure.
static where place_of_call(void) {
  if (aotc_is_stopped()) {
    return NOWHERE;
  }
  int32_t capability = aotc_compute_capability();
  if (aotc_is_stopped()) {
    return NOWHERE;
  }
  return capability == 0 ? ON_CPU : ON_GPU;
}

// The device a product of three objects runs on. On the CPU, pending work of the stream is waited
// for first.
static where place_of_product(const char *call, const void *a, const void *b, const void *c,
                              void *stream) {
  where place = place_of_call();
  if (place != NOWHERE && (a == NULL || b == NULL || c == NULL)) {
    aotc_program_sparse_fail(AOTC_INVALID_ARGUMENT, call, "an object is NULL");
    return NOWHERE;
  }
  if (place == ON_CPU) {
    mgpuStreamSynchronize(stream);
    place = aotc_is_stopped() ? NOWHERE : place;
  }
  return place;
}

UTILITY void mgpuCreateSparseEnv(void) {
  if (place_of_call() == ON_GPU &&
      aotc_program_cusparse_begin("mgpuCreateSparseEnv", NULL) != NULL) {
    aotc_program_cusparse_end("mgpuCreateSparseEnv", 0);
  }
}

UTILITY void mgpuDestroySparseEnv(void) {
  aotc_program_cusparse_close();
}

// -------------------------------------------------------------------------------------------------
// Objects

// Allocates a copy of `m`; on a GPU `expression` creates its descriptor.
#define MAKE(call, stream, m, expression)                                                          \
  do {                                                                                             \
    where place = place_of_call();                                                                 \
    if (place == NOWHERE) {                                                                        \
      return NULL;                                                                                 \
    }                                                                                              \
    aotc_program_matrix *made = malloc(sizeof(*made));                                             \
    if (made == NULL) {                                                                            \
      aotc_program_sparse_fail(AOTC_OUT_OF_MEMORY, call, "no host memory for an object");          \
      return NULL;                                                                                 \
    }                                                                                              \
    *made = (m);                                                                                   \
    if (place == ON_GPU) {                                                                         \
      aotc_program_cusparse *lib = aotc_program_cusparse_begin(call, stream);                      \
      int status = lib == NULL ? 1 : (expression);                                                 \
      if (lib != NULL) {                                                                           \
        aotc_program_cusparse_end(call, status);                                                   \
      }                                                                                            \
      if (status != 0) {                                                                           \
        free(made);                                                                                \
        return NULL;                                                                               \
      }                                                                                            \
    }                                                                                              \
    return made;                                                                                   \
  } while (0)

// Evaluates `expression`, a call of cuSPARSE through `lib`.
#define ON_GPU_DO(call, stream, expression)                                                        \
  do {                                                                                             \
    aotc_program_cusparse *lib = aotc_program_cusparse_begin(call, stream);                        \
    if (lib != NULL) {                                                                             \
      aotc_program_cusparse_end(call, expression);                                                 \
    }                                                                                              \
  } while (0)

// Objects are destroyed after a failure as well.
#define DESTROY(call, destroy, object, stream)                                                     \
  do {                                                                                             \
    if ((object) != NULL && (object)->descriptor != NULL) {                                        \
      ON_GPU_DO(call, stream, lib->destroy((object)->descriptor));                                 \
    }                                                                                              \
    free(object);                                                                                  \
  } while (0)

static aotc_program_matrix dense(intptr_t rows, intptr_t columns, void *values, int32_t type) {
  return (aotc_program_matrix){.format = FORMAT_DENSE,
                               .type = type,
                               .rows = rows,
                               .columns = columns,
                               .count = rows * columns,
                               .values = values};
}

UTILITY void *mgpuCreateDnVec(intptr_t size, void *values, int32_t type, void *stream) {
  MAKE("mgpuCreateDnVec", stream, dense(size, 1, values, type),
       lib->CreateDnVec(&made->descriptor, size, values, type));
}

UTILITY void mgpuDestroyDnVec(void *vector, void *stream) {
  aotc_program_matrix *m = vector;
  DESTROY("mgpuDestroyDnVec", DestroyDnVec, m, stream);
}

UTILITY void *mgpuCreateDnMat(intptr_t rows, intptr_t columns, void *values, int32_t type,
                              void *stream) {
  MAKE("mgpuCreateDnMat", stream, dense(rows, columns, values, type),
       lib->CreateDnMat(&made->descriptor, rows, columns, columns, values, type, ORDER_ROW));
}

UTILITY void mgpuDestroyDnMat(void *matrix, void *stream) {
  aotc_program_matrix *m = matrix;
  DESTROY("mgpuDestroyDnMat", DestroyDnMat, m, stream);
}

UTILITY void *mgpuCreateCoo(intptr_t rows, intptr_t columns, intptr_t count, void *row_indices,
                            void *column_indices, void *values, int32_t index_type, int32_t type,
                            void *stream) {
  aotc_program_matrix m = {.format = FORMAT_COO,
                           .position_type = index_type,
                           .index_type = index_type,
                           .type = type,
                           .rows = rows,
                           .columns = columns,
                           .count = count,
                           .positions = row_indices,
                           .indices = column_indices,
                           .values = values};
  MAKE("mgpuCreateCoo", stream, m,
       lib->CreateCoo(&made->descriptor, rows, columns, count, row_indices, column_indices, values,
                      index_type, BASE_ZERO, type));
}

UTILITY void *mgpuCreateCooAoS(intptr_t rows, intptr_t columns, intptr_t count, void *indices,
                               void *values, int32_t index_type, int32_t type, void *stream) {
  (void)stream;
  if (place_of_call() == ON_GPU) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, "mgpuCreateCooAoS",
                             "cuSPARSE has no pairs of indices: take two arrays (gpu.create_coo)");
  }
  aotc_program_matrix m = {.format = FORMAT_COO_AOS,
                           .index_type = index_type,
                           .type = type,
                           .rows = rows,
                           .columns = columns,
                           .count = count,
                           .indices = indices,
                           .values = values};
  MAKE("mgpuCreateCooAoS", stream, m, 1);
}

static aotc_program_matrix compressed(aotc_program_format format, intptr_t rows, intptr_t columns,
                                      intptr_t count, void *positions, void *indices, void *values,
                                      int32_t position_type, int32_t index_type, int32_t type) {
  return (aotc_program_matrix){.format = format,
                               .position_type = position_type,
                               .index_type = index_type,
                               .type = type,
                               .rows = rows,
                               .columns = columns,
                               .count = count,
                               .block_rows = 1,
                               .block_columns = 1,
                               .positions = positions,
                               .indices = indices,
                               .values = values};
}

UTILITY void *mgpuCreateCsr(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                            void *column_indices, void *values, int32_t position_type,
                            int32_t index_type, int32_t type, void *stream) {
  aotc_program_matrix m = compressed(FORMAT_CSR, rows, columns, count, positions, column_indices,
                                     values, position_type, index_type, type);
  MAKE("mgpuCreateCsr", stream, m,
       lib->CreateCsr(&made->descriptor, rows, columns, count, positions, column_indices, values,
                      position_type, index_type, BASE_ZERO, type));
}

UTILITY void *mgpuCreateCsc(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                            void *row_indices, void *values, int32_t position_type,
                            int32_t index_type, int32_t type, void *stream) {
  aotc_program_matrix m = compressed(FORMAT_CSC, rows, columns, count, positions, row_indices,
                                     values, position_type, index_type, type);
  MAKE("mgpuCreateCsc", stream, m,
       lib->CreateCsc(&made->descriptor, rows, columns, count, positions, row_indices, values,
                      position_type, index_type, BASE_ZERO, type));
}

UTILITY void *mgpuCreateBsr(intptr_t rows, intptr_t columns, intptr_t count, intptr_t block_rows,
                            intptr_t block_columns, void *positions, void *column_indices,
                            void *values, int32_t position_type, int32_t index_type, int32_t type,
                            void *stream) {
  aotc_program_matrix m = compressed(FORMAT_BSR, rows * block_rows, columns * block_columns,
                                     count * block_rows * block_columns, positions, column_indices,
                                     values, position_type, index_type, type);
  m.block_rows = block_rows;
  m.block_columns = block_columns;
  MAKE("mgpuCreateBsr", stream, m,
       lib->CreateBsr(&made->descriptor, rows, columns, count, block_rows, block_columns, positions,
                      column_indices, values, position_type, index_type, BASE_ZERO, type,
                      ORDER_ROW));
}

UTILITY void mgpuDestroySpMat(void *matrix, void *stream) {
  aotc_program_matrix *m = matrix;
  DESTROY("mgpuDestroySpMat", DestroySpMat, m, stream);
}

UTILITY void mgpuSpMatGetSize(void *matrix, void *out_rows, void *out_columns, void *out_count,
                              void *stream) {
  int64_t sizes[3] = {0, 0, 0};
  const aotc_program_matrix *m = matrix;
  switch (place_of_product("mgpuSpMatGetSize", m, m, m, stream)) {
  case ON_CPU:
    sizes[0] = m->rows;
    sizes[1] = m->columns;
    sizes[2] = m->count;
    break;
  case ON_GPU:
    ON_GPU_DO("mgpuSpMatGetSize", stream,
              lib->SpMatGetSize(m->descriptor, &sizes[0], &sizes[1], &sizes[2]));
    break;
  case NOWHERE:
    break;
  }
  *(int64_t *)out_rows = sizes[0];
  *(int64_t *)out_columns = sizes[1];
  *(int64_t *)out_count = sizes[2];
}

UTILITY void mgpuSetCsrPointers(void *matrix, void *positions, void *column_indices, void *values,
                                void *stream) {
  aotc_program_matrix *m = matrix;
  where place = place_of_product("mgpuSetCsrPointers", m, m, m, stream);
  if (place == NOWHERE) {
    return;
  }
  m->positions = positions;
  m->indices = column_indices;
  m->values = values;
  if (place == ON_GPU) {
    ON_GPU_DO("mgpuSetCsrPointers", stream,
              lib->CsrSetPointers(m->descriptor, positions, column_indices, values));
  }
}

// -------------------------------------------------------------------------------------------------
// Products

// The constants 1 and 0 in the type that a product computes in.
typedef union scalar {
  uint16_t bits;
  int32_t i32;
  float f32[2];
  double f64[2];
} scalar;

static scalar one_of(int32_t type) {
  scalar one = {.f64 = {0, 0}};
  switch (type) {
  case TYPE_F16:
    one.bits = 0x3c00;
    break;
  case TYPE_BF16:
    one.bits = 0x3f80;
    break;
  case TYPE_I32:
    one.i32 = 1;
    break;
  case TYPE_F32:
  case TYPE_C32:
    one.f32[0] = 1;
    break;
  default:
    one.f64[0] = 1;
    break;
  }
  return one;
}

static void *descriptor_of(const void *matrix) {
  return ((const aotc_program_matrix *)matrix)->descriptor;
}

UTILITY intptr_t mgpuSpMVBufferSize(int32_t mode, void *a, void *x, void *y, int32_t compute_type,
                                    void *stream) {
  const char *call = "mgpuSpMVBufferSize";
  scalar one = one_of(compute_type);
  size_t size = 0;
  if (place_of_product(call, a, x, y, stream) == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpMV_bufferSize(lib->handle, mode, &one, descriptor_of(a), descriptor_of(x),
                                   &one, descriptor_of(y), compute_type, DEFAULT_ALGORITHM, &size));
  }
  return (intptr_t)size;
}

UTILITY void mgpuSpMV(int32_t mode, void *a, void *x, void *y, int32_t compute_type, void *buffer,
                      void *stream) {
  const char *call = "mgpuSpMV";
  scalar one = one_of(compute_type);
  where place = place_of_product(call, a, x, y, stream);
  if (place == ON_CPU) {
    aotc_program_spmm(call, mode, 0, a, x, y);
  } else if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpMV(lib->handle, mode, &one, descriptor_of(a), descriptor_of(x), &one,
                        descriptor_of(y), compute_type, DEFAULT_ALGORITHM, buffer));
  }
}

UTILITY intptr_t mgpuSpMMBufferSize(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                                    int32_t compute_type, void *stream) {
  const char *call = "mgpuSpMMBufferSize";
  scalar one = one_of(compute_type);
  size_t size = 0;
  if (place_of_product(call, a, b, c, stream) == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpMM_bufferSize(lib->handle, mode_a, mode_b, &one, descriptor_of(a),
                                   descriptor_of(b), &one, descriptor_of(c), compute_type,
                                   DEFAULT_ALGORITHM, &size));
  }
  return (intptr_t)size;
}

UTILITY void mgpuSpMM(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                      int32_t compute_type, void *buffer, void *stream) {
  const char *call = "mgpuSpMM";
  scalar one = one_of(compute_type);
  where place = place_of_product(call, a, b, c, stream);
  if (place == ON_CPU) {
    aotc_program_spmm(call, mode_a, mode_b, a, b, c);
  } else if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpMM(lib->handle, mode_a, mode_b, &one, descriptor_of(a), descriptor_of(b), &one,
                        descriptor_of(c), compute_type, DEFAULT_ALGORITHM, buffer));
  }
}

UTILITY intptr_t mgpuSDDMMBufferSize(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                                     int32_t compute_type, void *stream) {
  const char *call = "mgpuSDDMMBufferSize";
  scalar one = one_of(compute_type);
  size_t size = 0;
  if (place_of_product(call, a, b, c, stream) == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SDDMM_bufferSize(lib->handle, mode_a, mode_b, &one, descriptor_of(a),
                                    descriptor_of(b), &one, descriptor_of(c), compute_type,
                                    DEFAULT_ALGORITHM, &size));
  }
  return (intptr_t)size;
}

UTILITY void mgpuSDDMM(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                       int32_t compute_type, void *buffer, void *stream) {
  const char *call = "mgpuSDDMM";
  scalar one = one_of(compute_type);
  where place = place_of_product(call, a, b, c, stream);
  if (place == ON_CPU) {
    aotc_program_sddmm(call, mode_a, mode_b, a, b, c);
  } else if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SDDMM(lib->handle, mode_a, mode_b, &one, descriptor_of(a), descriptor_of(b),
                         &one, descriptor_of(c), compute_type, DEFAULT_ALGORITHM, buffer));
  }
}

// -------------------------------------------------------------------------------------------------
// The product of two sparse matrices

UTILITY void *mgpuSpGEMMCreateDescr(void *stream) {
  const char *call = "mgpuSpGEMMCreateDescr";
  where place = place_of_call();
  aotc_program_product *made = place == NOWHERE ? NULL : calloc(1, sizeof(*made));
  if (made == NULL && place != NOWHERE) {
    aotc_program_sparse_fail(AOTC_OUT_OF_MEMORY, call, "no host memory for an object");
  }
  if (made != NULL && place == ON_GPU) {
    ON_GPU_DO(call, stream, lib->SpGEMM_createDescr(&made->descriptor));
    if (made->descriptor == NULL) {
      free(made);
      return NULL;
    }
  }
  return made;
}

UTILITY void mgpuSpGEMMDestroyDescr(void *descriptor, void *stream) {
  aotc_program_product *product = descriptor;
  if (product == NULL) {
    return;
  }
  aotc_program_product_empty(product);
  DESTROY("mgpuSpGEMMDestroyDescr", SpGEMM_destroyDescr, product, stream);
}

// The device the product runs on. Operands cannot be transposed, as with cuSPARSE.
static where place_of_gemm(const char *call, int32_t mode_a, int32_t mode_b, const void *a,
                           const void *b, const void *c, const void *descriptor, void *stream) {
  where place = place_of_product(call, a, b, c, stream);
  if (place != NOWHERE && (mode_a != 0 || mode_b != 0 || descriptor == NULL)) {
    aotc_program_sparse_fail(AOTC_UNSUPPORTED, call,
                             "it is of matrices as they are, and needs a descriptor");
    return NOWHERE;
  }
  return place;
}

UTILITY intptr_t mgpuSpGEMMWorkEstimation(void *descriptor, int32_t mode_a, int32_t mode_b, void *a,
                                          void *b, void *c, int32_t compute_type, intptr_t size,
                                          void *buffer, void *stream) {
  const char *call = "mgpuSpGEMMWorkEstimation";
  aotc_program_product *product = descriptor;
  scalar one = one_of(compute_type), zero = {.f64 = {0, 0}};
  size_t bytes = size <= 0 ? 0 : (size_t)size;
  where place = place_of_gemm(call, mode_a, mode_b, a, b, c, descriptor, stream);
  if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpGEMM_workEstimation(lib->handle, 0, 0, &one, descriptor_of(a),
                                         descriptor_of(b), &zero, descriptor_of(c), compute_type,
                                         DEFAULT_ALGORITHM, product->descriptor, &bytes,
                                         size <= 0 ? NULL : buffer));
  }
  return place == ON_GPU ? (intptr_t)bytes : 0;
}

UTILITY intptr_t mgpuSpGEMMCompute(void *descriptor, int32_t mode_a, int32_t mode_b, void *a,
                                   void *b, void *c, int32_t compute_type, intptr_t size,
                                   void *buffer, void *stream) {
  const char *call = "mgpuSpGEMMCompute";
  aotc_program_product *product = descriptor;
  scalar one = one_of(compute_type), zero = {.f64 = {0, 0}};
  size_t bytes = size <= 0 ? 0 : (size_t)size;
  where place = place_of_gemm(call, mode_a, mode_b, a, b, c, descriptor, stream);
  if (place == ON_CPU) {
    aotc_program_spgemm(call, a, b, c, product);
  }
  if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpGEMM_compute(lib->handle, 0, 0, &one, descriptor_of(a), descriptor_of(b),
                                  &zero, descriptor_of(c), compute_type, DEFAULT_ALGORITHM,
                                  product->descriptor, &bytes, size <= 0 ? NULL : buffer));
  }
  return place == ON_GPU ? (intptr_t)bytes : 0;
}

UTILITY void mgpuSpGEMMCopy(void *descriptor, int32_t mode_a, int32_t mode_b, void *a, void *b,
                            void *c, int32_t compute_type, void *stream) {
  const char *call = "mgpuSpGEMMCopy";
  aotc_program_product *product = descriptor;
  scalar one = one_of(compute_type), zero = {.f64 = {0, 0}};
  where place = place_of_gemm(call, mode_a, mode_b, a, b, c, descriptor, stream);
  if (place == ON_CPU) {
    aotc_program_spgemm_copy(call, product, c);
  } else if (place == ON_GPU) {
    ON_GPU_DO(call, stream,
              lib->SpGEMM_copy(lib->handle, 0, 0, &one, descriptor_of(a), descriptor_of(b), &zero,
                               descriptor_of(c), compute_type, DEFAULT_ALGORITHM,
                               product->descriptor));
  }
}
