// The functions that the sparse operations of the gpu dialect lower to (gpu.create_csr, gpu.spmv,
// ...), with upstream's names and signatures.
//
// On a GPU they call cuSPARSE. The library is opened by the first call, and never linked: it is the
// file that the environment variable AOTC_CUSPARSE names, else libcusparse.so.12 or .11 where the
// dynamic linker finds it. On the CPU device the runtime computes them, after the work that was
// enqueued on the stream. Failures are the thread's (aotc_error_message). Once it has failed, these
// functions do nothing, and return NULL or 0. A NULL object comes from such a failure, and is
// ignored.
//
// Values have types of cudaDataType_t: f16 (2), bf16 (14), f32 (0), f64 (1), complex f32 (4) and
// f64 (5), i8 (3), and i32 (10) for results. Indices are unsigned 16-bit (1), 32-bit (2) or 64-bit
// (3), from zero. Dense matrices are row-major. Memory is the device's; it is not copied, and must
// outlive the object. A mode is 0 for a matrix as it is, 1 for its transpose, 2 for its conjugate
// transpose. Products are added to the result, and rounded once: on the CPU device sums are in f64.
#ifndef MLIR_CUDA_SPARSE_H
#define MLIR_CUDA_SPARSE_H

#include <stdint.h>

#include "mlir_cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opens the library, and closes its handle. Other functions open it as well if they are called
// first.
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
// Pairs of a row and a column. cuSPARSE no longer has this format: on a GPU it is a failure.
AOTC_API void *mgpuCreateCooAoS(intptr_t rows, intptr_t columns, intptr_t count, void *indices,
                                void *values, int32_t index_type, int32_t type, void *stream);
AOTC_API void *mgpuCreateCsr(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                             void *column_indices, void *values, int32_t position_type,
                             int32_t index_type, int32_t type, void *stream);
AOTC_API void *mgpuCreateCsc(intptr_t rows, intptr_t columns, intptr_t count, void *positions,
                             void *row_indices, void *values, int32_t position_type,
                             int32_t index_type, int32_t type, void *stream);
// `rows`, `columns` and `count` are in blocks; a block is row-major.
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
// Products, each with a function for the bytes of the buffer that it works in

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

// C += op(A) op(B), only for the elements that the sparse C has
AOTC_API intptr_t mgpuSDDMMBufferSize(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                                      int32_t compute_type, void *stream);
AOTC_API void mgpuSDDMM(int32_t mode_a, int32_t mode_b, void *a, void *b, void *c,
                        int32_t compute_type, void *buffer, void *stream);

// C = A B, all of them CSR. The first two functions are called twice: with a size of 0 they return
// the size of the buffer for the second call. Afterwards mgpuSpMatGetSize returns the number of
// elements of C, mgpuSetCsrPointers sets their arrays, and mgpuSpGEMMCopy writes them.
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
// 2:4 structured sparse matrices (upstream: cuSPARSELt)
//
// They are only computed on the CPU device; on a GPU these functions fail.

AOTC_API void mgpuCreateSparseLtEnv(void);
AOTC_API void mgpuDestroySparseLtEnv(void);
// The objects are made in the caller's memory, of 11032 and 44104 bytes.
AOTC_API void mgpuCreateCuSparseLtDnMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                        void *values, int32_t type, void *stream);
AOTC_API void mgpuDestroyCuSparseLtDnMat(void *matrix, void *stream);
AOTC_API void mgpuCusparseLtCreate2To4SpMat(void *out_matrix, intptr_t rows, intptr_t columns,
                                            void *values, int32_t type, void *stream);
AOTC_API void mgpuDestroyCuSparseLtSpMat(void *matrix, void *stream);
// Writes three sizes, which are 0 here. `prune` is 0 for a matrix that is 2:4 sparse already: if
// four elements have more than two nonzeros, the product fails. With 1 or 2, the two smallest of
// four elements become zero.
AOTC_API void mgpuCuSparseLtSpMMBufferSize(void *out_sizes, int32_t mode_a, int32_t mode_b, void *a,
                                           void *b, void *c, int32_t compute_type, int32_t prune,
                                           void *stream);
AOTC_API void mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *workspace, void *compressed,
                                 void *compression_buffer, void *stream);

#ifdef __cplusplus
}
#endif

#endif // MLIR_CUDA_SPARSE_H
