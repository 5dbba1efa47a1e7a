// MLIR's runner utilities, for a program's own `main`, with upstream's names, signatures and output
// (LLVM 22: libmlir_c_runner_utils, libmlir_runner_utils and libmlir_float16_utils; for sparse
// tensors, the files).
//
// `vector.print` lowers to the printing functions, `memref.copy` to memrefCopy; the others are
// called by name:
//
//   func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
//
// They are in libmlir_runner_utils.a, beside libmlir_cuda_runtime, and linked into programs that
// use them.
//
// Printing functions write to stdout, in order with the C library's printf, verifying functions to
// stderr. Once this thread has failed (aotc_is_stopped) they do nothing, because the values to
// print or copy were not computed. Their memory must be host or managed memory.
#ifndef MLIR_RUNNER_UTILS_H
#define MLIR_RUNNER_UTILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// -------------------------------------------------------------------------------------------------
// Values

// Numbers in the formats "%ld", "%lu" and "%g". printF16 and printBF16 take the value's 16 bits;
// the upper bits, where MLIR leaves anything, are ignored.
AOTC_API void printI64(int64_t value);
AOTC_API void printU64(uint64_t value);
AOTC_API void printF16(uint32_t bits);
AOTC_API void printBF16(uint32_t bits);
AOTC_API void printF32(float value);
AOTC_API void printF64(double value);
AOTC_API void printString(const char *text);
AOTC_API void printCString(const char *text);
AOTC_API void printOpen(void);    // "( "
AOTC_API void printClose(void);   // " )"
AOTC_API void printComma(void);   // ", "
AOTC_API void printNewline(void); // "\n"

// -------------------------------------------------------------------------------------------------
// Memrefs

// An unranked memref in MLIR's layout. `descriptor` is that of a memref of rank `rank`.
typedef struct mlir_unranked_memref {
  int64_t rank;
  void *descriptor;
} mlir_unranked_memref;

// Prints a memref<*xT>: its address, shape, strides and elements:
//
//   Unranked Memref base@ = 0x55d5 rank = 2 offset = 0 sizes = [2, 3] strides = [3, 1] data =
//   [[1,   2,   3],
//    [4,   5,   6]]
//
// i8 is printed as a character, index as unsigned, complex numbers as (1,2). A dimension of size 0
// is [], where upstream prints what follows it in memory.
AOTC_API void _mlir_ciface_printMemrefI8(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefI16(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefI32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefI64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefF16(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefBF16(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefF32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefF64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefC32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefC64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefInd(const mlir_unranked_memref *memref);

// The same, for declarations without llvm.emit_c_interface.
AOTC_API void printMemrefI32(int64_t rank, void *descriptor);
AOTC_API void printMemrefI64(int64_t rank, void *descriptor);
AOTC_API void printMemrefF32(int64_t rank, void *descriptor);
AOTC_API void printMemrefF64(int64_t rank, void *descriptor);
AOTC_API void printMemrefC32(int64_t rank, void *descriptor);
AOTC_API void printMemrefC64(int64_t rank, void *descriptor);
AOTC_API void printMemrefInd(int64_t rank, void *descriptor);

// Prints the address, shape and strides only.
AOTC_API void _mlir_ciface_printMemrefShapeI8(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeI32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeI64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeF32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeF64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeC32(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeC64(const mlir_unranked_memref *memref);
AOTC_API void _mlir_ciface_printMemrefShapeInd(const mlir_unranked_memref *memref);

// Memrefs of the rank in the name; `descriptor` is theirs. The output begins with "Memref".
AOTC_API void _mlir_ciface_printMemref0dF32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dF32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref2dF32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref3dF32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref4dF32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dI8(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dI32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dI64(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dF64(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dC32(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dC64(const void *descriptor);
AOTC_API void _mlir_ciface_printMemref1dInd(const void *descriptor);

// A memref<?x?xvector<4x4xf32>>.
AOTC_API void _mlir_ciface_printMemrefVector4x4xf32(const void *descriptor);

// The number of elements that differ: f32 by more than 1e-6 of the expected value, f64 by more than
// 1e-12 (NaN and infinity always differ), others if they are not equal (f16 and bf16 by their
// bits). The first ten are printed to stderr. -1 if shapes, strides or offsets differ, or once this
// thread has failed.
AOTC_API int64_t _mlir_ciface_verifyMemRefI8(const mlir_unranked_memref *actual,
                                             const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefI16(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefI32(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefI64(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefF16(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefBF16(const mlir_unranked_memref *actual,
                                               const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefF32(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefF64(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefC32(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefC64(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t _mlir_ciface_verifyMemRefInd(const mlir_unranked_memref *actual,
                                              const mlir_unranked_memref *expected);
AOTC_API int64_t verifyMemRefI32(int64_t rank, void *actual, void *expected);
AOTC_API int64_t verifyMemRefF32(int64_t rank, void *actual, void *expected);
AOTC_API int64_t verifyMemRefF64(int64_t rank, void *actual, void *expected);
AOTC_API int64_t verifyMemRefC32(int64_t rank, void *actual, void *expected);
AOTC_API int64_t verifyMemRefC64(int64_t rank, void *actual, void *expected);
AOTC_API int64_t verifyMemRefInd(int64_t rank, void *actual, void *expected);

// Copies between memrefs of one shape and any strides; they do not overlap.
AOTC_API void memrefCopy(int64_t element_bytes, const mlir_unranked_memref *from,
                         const mlir_unranked_memref *to);

// Sorts the first `count` elements of a memref<?xT>, the smallest first.
AOTC_API void _mlir_ciface_stdSortI64(uint64_t count, void *descriptor);
AOTC_API void _mlir_ciface_stdSortF32(uint64_t count, void *descriptor);
AOTC_API void _mlir_ciface_stdSortF64(uint64_t count, void *descriptor);

// -------------------------------------------------------------------------------------------------
// Memory: what finalize-memref-to-llvm{use-generic-functions} calls

AOTC_API void *mlirAlloc(uint64_t bytes);
AOTC_API void *mlirAlignedAlloc(uint64_t alignment, uint64_t bytes);
AOTC_API void mlirFree(void *pointer);
AOTC_API void mlirAlignedFree(void *pointer);

// -------------------------------------------------------------------------------------------------
// Time

// Seconds since 1970, with a resolution of a microsecond.
AOTC_API double rtclock(void);
// Nanoseconds since some fixed time.
AOTC_API int64_t _mlir_ciface_nanoTime(void);
// Prints "1.500000 GFLOPS" to stderr, for 1.5e9 operations per second.
AOTC_API void printFlops(double flops);

// -------------------------------------------------------------------------------------------------
// Random numbers: those of C++'s std::mt19937, and of libstdc++'s distributions over it

// Makes a generator, which rtdrand frees. NULL, with the failure recorded, if there is no memory;
// the other functions take NULL as a generator that returns 0.
AOTC_API void *rtsrand(uint64_t seed);
// A number from 0 to `most`, inclusive.
AOTC_API uint64_t rtrand(void *generator, uint64_t most);
AOTC_API void rtdrand(void *generator);
// Fills a memref<?xindex> with a random permutation of 0, 1, ...
AOTC_API void _mlir_ciface_shuffle(void *descriptor, void *generator);

// -------------------------------------------------------------------------------------------------
// Sparse tensors in files: what sparse_tensor.new and sparse_tensor.out call
//
// The formats are MatrixMarket's coordinate format (.mtx), and FROSTT's (.tns) with two lines
// before the elements: the rank and the number of elements, and the sizes. Coordinates in files
// begin at 1. A file that cannot be read is this thread's failure (AOTC_INVALID_ARGUMENT), whose
// message has the line; the tensor then has no elements. For a symmetric matrix, only the elements
// in the file are read. A matrix of one column can also be read from a file of rank 1.

// The value of the environment variable TENSOR0, TENSOR1, ...; "", and a failure, if it is not set.
AOTC_API const char *getTensorFilename(uint64_t number);

// Makes a reader, which delSparseTensorReader frees. `sizes` is the descriptor of a memref<?xindex>
// with the tensor's sizes, 0 for those that are taken from the file; `type` is that of its values.
AOTC_API void *_mlir_ciface_createCheckedSparseTensorReader(const char *name, void *sizes,
                                                            uint32_t type);
// Makes *out_descriptor a memref<?xindex> of the sizes, whose memory is the reader's.
AOTC_API void _mlir_ciface_getSparseTensorReaderDimSizes(void *out_descriptor, void *reader);
// The number of elements.
AOTC_API uint64_t getSparseTensorReaderNSE(void *reader);
AOTC_API void delSparseTensorReader(void *reader);

// Reads the elements: their coordinates by levels into a memref of index (0) or of integers of 8 to
// 64 bits, and their values. `levels` is a memref<?xindex> that maps dimensions to levels. Returns
// whether the elements are sorted.
typedef bool mlir_sparse_read(void *reader, void *levels, void *dimensions, void *coordinates,
                              void *values);
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0F64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8F64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16F64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32F64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64F64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0F32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8F32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16F32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32F32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64F32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0F16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8F16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16F16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32F16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64F16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0BF16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8BF16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16BF16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32BF16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64BF16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0I64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8I64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16I64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32I64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64I64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0I32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8I32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16I32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32I32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64I32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0I16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8I16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16I16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32I16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64I16;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0I8;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8I8;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16I8;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32I8;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64I8;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0C64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8C64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16C64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32C64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64C64;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers0C32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers8C32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers16C32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers32C32;
AOTC_API mlir_sparse_read _mlir_ciface_getSparseTensorReaderReadToBuffers64C32;

// Makes a writer to a new file, or to stdout for an empty name; delSparseTensorWriter closes the
// file.
AOTC_API void *createSparseTensorWriter(const char *name);
AOTC_API void _mlir_ciface_outSparseTensorWriterMetaData(void *writer, uint64_t rank,
                                                         uint64_t count, void *sizes);
// Writes the next element. `coordinates` is a memref<?xindex>, `value` a memref of rank 0.
typedef void mlir_sparse_write(void *writer, uint64_t rank, void *coordinates, void *value);
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextF64;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextF32;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextF16;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextBF16;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextI64;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextI32;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextI16;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextI8;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextC64;
AOTC_API mlir_sparse_write _mlir_ciface_outSparseTensorWriterNextC32;
AOTC_API void delSparseTensorWriter(void *writer);

#ifdef __cplusplus
}
#endif

#endif // MLIR_RUNNER_UTILS_H
