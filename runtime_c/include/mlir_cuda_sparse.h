// What the sparse operations of the gpu dialect lower to (gpu.create_csr, gpu.spmv, ...), under
// upstream's names and with upstream's signatures.
//
// On a GPU they are cuSPARSE's functions. The library is opened by the first call, never linked:
// the file that the environment variable AOTC_CUSPARSE names, else libcusparse.so.12 or .11, where
// the dynamic linker finds it. On the CPU device they are computed here, when the work that was
// enqueued on the stream is done. Failures are the thread's (aotc_error_message); once it has
// failed, these functions do nothing, and return NULL or 0. NULL as an object is such a failure's,
// and is ignored.
//
// Values are of the types that cudaDataType_t numbers: f16 (2), bf16 (14), f32 (0), f64 (1),
// complex f32 (4) and f64 (5), i8 (3), and i32 (10) of results. Indices are 16-bit without sign
// (1), 32-bit (2) or 64-bit (3), from zero. Dense matrices are row-major. Memory is the device's;
// it is not copied, and outlives the object. A mode is 0 for a matrix as it is, 1 for its
// transpose, 2 for its conjugate transpose. Products are added to what the result holds, and
// rounded once: on the CPU device sums are of f64.
#ifndef MLIR_CUDA_SPARSE_H
#define MLIR_CUDA_SPARSE_H

#include <stdint.h>

#include "mlir_cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opens the library, and closes its handle. Other functions open it, too, where they come first.
AOTC_API void mgpuCreateSparseEnv(void);
AOTC_API void mgpuDestroySparseEnv(void);

// -------------------------------------------------------------------------------------------------
// Objects

AOTC_API void *mgpuCreateDnVec(intptr_t size, void *values, int32_t type, void *stream);
AOTC_API void mgpuDestroyDnVec(void *vector, void *stream);
AOTC_API void *mgpuCreateDnMat(intptr_t rows, intptr_t columns, void *values, int32_t type,
                               void *stream);
AOTC_API void mgpuDestroyDnMat(void *matrix, void *stream);

AOTC_API void *mgpuCreateCoo(intptr_t rows, intptr_t columns, intptr_t count, void *row_indices,
                             void *column_indices, void *values, int32_t index_type, int32_t type,
                             void *stream);
// Pairs of a row and a column. cuSPARSE has no such format any more: on a GPU a failure.
AOTC_API void *mgpuCreateCooAoS(intptr_t rows, intptr_t columns, intptr_t count, void *indices,
                                void *values, int32_t index_type, int32_t type, void *stream);
AOTC_API void *mgpuCreateCsr(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                             void *column_indices, void *values, int32_t position_type,
                             int32_t index_type, int32_t type, void *stream);
AOTC_API void *mgpuCreateCsc(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                             void *row_indices, void *values, int32_t position_type,
                             int32_t index_type, int32_t type, void *stream);
// `rows`, `columns` and `count` are of blocks; a block is row-major.
AOTC_API void *mgpuCreateBsr(intptr_t rows, intptr_t columns, intptr_t count, intptr_t block_rows,
                             intptr_t block_columns, void *positions, void *column_indices,
                             void *values, int32_t position_type, int32_t index_type, int32_t type,
                             void *stream);
AOTC_API void mgpuDestroySpMat(void *matrix, void *stream);

// Rows, columns and the number of elements, each an int64_t of the host.
AOTC_API void mgpuSpMatGetSize(void *matrix, void *out_rows, void *out_columns, void *out_count,
                               void *stream);
AOTC_API void mgpuSetCsrPointers(void *matrix, void *positions, void *column_indices, void *values,
                                 void *stream);

// -------------------------------------------------------------------------------------------------
// Products: each with the size in bytes of the buffer that it works in

// y += op(A) x
AOTC_API intptr_t mgpuSpMVBufferSize(int32_t mode, void *a, void *x, void *y, int32_t compute_type,
                                     void *stream);
AOTC_API void mgpuSpMV(int32_t mode, void *a, void *x, void *y, int32_t compute_type, void *buffer,
                       void *stream);

// C += op(A) op(B), of a sparse A
AOTC_API intptr_t mgpuSpMMBufferSize(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                                     int32_t compute_type, void *stream);
AOTC_API void mgpuSpMM(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                       int32_t compute_type, void *buffer, void *stream);

// C += op(A) op(B), where the sparse C has elements
AOTC_API intptr_t mgpuSDDMMBufferSize(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                                      int32_t compute_type, void *stream);
AOTC_API void mgpuSDDMM(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                        int32_t compute_type, void *buffer, void *stream);

// C = A B, all of them CSR. The first two are called twice: with a size of 0 they tell the size of
// the buffer that they want in the second call. Behind them mgpuSpMatGetSize tells how many
// elements C has, and mgpuSetCsrPointers where they go, which mgpuSpGEMMCopy then writes.
AOTC_API void *mgpuSpGEMMCreateDescr(void *stream);
AOTC_API void mgpuSpGEMMDestroyDescr(void *descriptor, void *stream);
AOTC_API intptr_t mgpuSpGEMMWorkEstimation(void *descriptor, int32_t mode_a, int32_t mode_b,
                                           void *a, void *b, void *c, int32_t compute_type,
                                           intptr_t size, void *buffer, void *stream);
AOTC_API intptr_t mgpuSpGEMMCompute(void *descriptor, int32_t mode_a, int32_t mode_b, void *a,
                                    void *b, void *c, int32_t compute_type, intptr_t size,
                                    void *buffer, void *stream);
AOTC_API void mgpuSpGEMMCopy(void *descriptor, int32_t mode_a, int32_t mode_b, void *a, void *b,
                             void *c, int32_t compute_type, void *stream);

// -------------------------------------------------------------------------------------------------
// Matrices of which two of four elements in a row are zero (upstream: cuSPARSELt)
//
// They are computed on the CPU device alone; on a GPU these functions fail.

AOTC_API void mgpuCreateSparseLtEnv(void);
AOTC_API void mgpuDestroySparseLtEnv(void);
// The objects are made in memory of the caller's, 11032 and 44104 bytes.
AOTC_API void mgpuCreateCuSparseLtDnMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                        void *values, int32_t type, void *stream);
AOTC_API void mgpuDestroyCuSparseLtDnMat(void *matrix, void *stream);
AOTC_API void mgpuCusparseLtCreate2To4SpMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                            void *values, int32_t type, void *stream);
AOTC_API void mgpuDestroyCuSparseLtSpMat(void *matrix, void *stream);
// Writes three sizes, each 0 here. `prune` is 0 for a matrix that has its zeros: an element too
// many is a failure of the product. With 1 or 2, of four elements the two that are smallest become
// zero.
AOTC_API void mgpuCuSparseLtSpMMBufferSize(void *out_sizes, int32_t mode_a, int32_t mode_b, void *a,
                                           void *b, void *c, int32_t compute_type, int32_t prune,
                                           void *stream);
AOTC_API void mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *workspace, void *compressed,
                                 void *compression_buffer, void *stream);

#ifdef __cplusplus
}
#endif

#endif // MLIR_CUDA_SPARSE_H
