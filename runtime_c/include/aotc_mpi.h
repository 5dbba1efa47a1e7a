// The functions that the mpi dialect lowers to. They call the MPI of the program's launcher.
//
// MPI's library is opened by the first call, and never linked. It may be any MPI with the standard
// ABI of MPI 5.0 (libmpi_abi.so.1), which fixes the handles and constants. It is searched
//
//   in the file that the environment variable AOTC_MPI names,
//   in ../lib and ../lib64 of the folder of the launcher: the parent process, else PATH's mpirun,
//   and where the dynamic linker searches.
//
// The first call initializes MPI, unless the program has done so. In that case the end of the
// program finalizes it, if no thread has failed. A program that has failed ends without finalizing
// it, and its launcher ends the other processes.
//
// Functions return MPI's status, 0 for success. With `is_checked`, any other status is the thread's
// failure, whose message has the call, the rank and MPI's own message. Once the thread has failed,
// they do nothing and return 0. Communicators and requests are MPI's handles, as integers. Buffers
// must be host or managed memory, and contiguous; any other buffer is a failure.
#ifndef AOTC_MPI_H
#define AOTC_MPI_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir_runner_utils.h"

#ifdef __cplusplus
extern "C" {
#endif

AOTC_API int32_t aotc_mpi_init(bool is_checked);
AOTC_API int32_t aotc_mpi_finalize(bool is_checked);
AOTC_API int32_t aotc_mpi_barrier(int64_t comm, bool is_checked);
AOTC_API int32_t aotc_mpi_wait(int64_t request, bool is_checked);

// The error class of a status, which can be compared with MPI's constants.
AOTC_API int32_t aotc_mpi_error_class(int32_t status);

// A failure is the thread's; the result is then 0, or MPI_COMM_NULL.
AOTC_API int32_t aotc_mpi_comm_rank(int64_t comm);
AOTC_API int32_t aotc_mpi_comm_size(int64_t comm);
AOTC_API int64_t aotc_mpi_comm_split(int64_t comm, int32_t color, int32_t key);

// Fails unless the program runs in `expected` processes, a positive number.
AOTC_API void aotc_mpi_check_processes(int64_t expected);

// X(SUFFIX, handle) for each element type of MPI's reductions; `handle` is MPI's handle of it.
#define AOTC_MPI_REDUCED_TYPES(X)                                                                  \
  X(f32, 0x210)                                                                                    \
  X(f64, 0x214)                                                                                    \
  X(c32, 0x212)                                                                                    \
  X(c64, 0x216)                                                                                    \
  X(i8, 0x240)                                                                                     \
  X(i16, 0x248)                                                                                    \
  X(i32, 0x250)                                                                                    \
  X(i64, 0x258)                                                                                    \
  X(index, 0x258)

// The same for each element type that can be sent. f16 and bf16 are sent as 16-bit integers.
#define AOTC_MPI_TYPES(X)                                                                          \
  AOTC_MPI_REDUCED_TYPES(X)                                                                        \
  X(f16, 0x248)                                                                                    \
  X(bf16, 0x248)

// isend and irecv return the request; a failure is the thread's. `op` is the dialect's number of a
// reduction.
#define AOTC_MPI_DECLARE(type, handle)                                                             \
  AOTC_API int32_t _mlir_ciface_aotc_mpi_send_##type(const mlir_unranked_memref *buffer,           \
                                                     int32_t tag, int32_t peer, int64_t comm,      \
                                                     bool is_checked);                             \
  AOTC_API int32_t _mlir_ciface_aotc_mpi_recv_##type(const mlir_unranked_memref *buffer,           \
                                                     int32_t tag, int32_t peer, int64_t comm,      \
                                                     bool is_checked);                             \
  AOTC_API int64_t _mlir_ciface_aotc_mpi_isend_##type(const mlir_unranked_memref *buffer,          \
                                                      int32_t tag, int32_t peer, int64_t comm);    \
  AOTC_API int64_t _mlir_ciface_aotc_mpi_irecv_##type(const mlir_unranked_memref *buffer,          \
                                                      int32_t tag, int32_t peer, int64_t comm);    \
  AOTC_API int32_t _mlir_ciface_aotc_mpi_allgather_##type(const mlir_unranked_memref *from,        \
                                                          const mlir_unranked_memref *to,          \
                                                          int64_t comm, bool is_checked);

#define AOTC_MPI_DECLARE_REDUCTIONS(type, handle)                                                  \
  AOTC_API int32_t _mlir_ciface_aotc_mpi_allreduce_##type(                                         \
      const mlir_unranked_memref *from, const mlir_unranked_memref *to, int32_t op, int64_t comm,  \
      bool is_checked);                                                                            \
  AOTC_API int32_t _mlir_ciface_aotc_mpi_reduce_scatter_block_##type(                              \
      const mlir_unranked_memref *from, const mlir_unranked_memref *to, int32_t op, int64_t comm,  \
      bool is_checked);

AOTC_MPI_TYPES(AOTC_MPI_DECLARE)
AOTC_MPI_REDUCED_TYPES(AOTC_MPI_DECLARE_REDUCTIONS)

#ifdef __cplusplus
}
#endif

#endif // AOTC_MPI_H
