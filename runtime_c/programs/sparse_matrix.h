// The sparse and dense matrices of mlir_cuda_sparse.h, and their products on the CPU device.
#ifndef AOTC_PROGRAM_SPARSE_MATRIX_H
#define AOTC_PROGRAM_SPARSE_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir_cuda_sparse.h"

// cudaDataType_t
enum {
  TYPE_F32 = 0,
  TYPE_F64 = 1,
  TYPE_F16 = 2,
  TYPE_I8 = 3,
  TYPE_C32 = 4,
  TYPE_C64 = 5,
  TYPE_I32 = 10,
  TYPE_BF16 = 14,
};

// cusparseIndexType_t
enum { INDEX_U16 = 1, INDEX_I32 = 2, INDEX_I64 = 3 };

typedef enum aotc_program_format {
  FORMAT_DENSE,
  FORMAT_COO,     // `positions` are the rows
  FORMAT_COO_AOS, // `indices` are pairs
  FORMAT_CSR,
  FORMAT_CSC,
  FORMAT_BSR, // sizes and count are in elements
} aotc_program_format;

typedef struct aotc_program_matrix {
  aotc_program_format format;
  int32_t position_type, index_type, type;
  int64_t rows, columns, count;
  int64_t block_rows, block_columns; // 1 except for BSR
  void *positions, *indices, *values;
  void *descriptor; // cuSPARSE's; NULL on the CPU device
} aotc_program_matrix;

// The result of a product of two CSR matrices before it is copied into C.
typedef struct aotc_program_product {
  int64_t *positions, *indices;
  double (*values)[2];
  void *descriptor; // cuSPARSE's; NULL on the CPU device
} aotc_program_product;

// C += op(A) op(B) for a sparse A; a vector is a matrix with one column. Failures are recorded for
// `call`, and then nothing is written.
void aotc_program_spmm(const char *call, int32_t mode_a, int32_t mode_b,
                       const aotc_program_matrix *a, const aotc_program_matrix *b,
                       const aotc_program_matrix *c);

// C += op(A) op(B) at the stored elements of the sparse C.
void aotc_program_sddmm(const char *call, int32_t mode_a, int32_t mode_b,
                        const aotc_program_matrix *a, const aotc_program_matrix *b,
                        const aotc_program_matrix *c);

// Computes A B and sets the element count of `c`; the second function copies the result into the
// arrays of `c`.
void aotc_program_spgemm(const char *call, const aotc_program_matrix *a,
                         const aotc_program_matrix *b, aotc_program_matrix *c,
                         aotc_program_product *product);
void aotc_program_spgemm_copy(const char *call, const aotc_program_product *product,
                              const aotc_program_matrix *c);
void aotc_program_product_empty(aotc_program_product *product);

// Prunes a dense matrix to 2:4 sparsity: sets the smallest elements of each group of four in a row
// to zero until two are left. The second function checks for 2:4 sparsity.
void aotc_program_prune(const aotc_program_matrix *a);
bool aotc_program_is_pruned(const aotc_program_matrix *a);

void aotc_program_sparse_fail(aotc_status status, const char *call, const char *why);

#endif // AOTC_PROGRAM_SPARSE_MATRIX_H
