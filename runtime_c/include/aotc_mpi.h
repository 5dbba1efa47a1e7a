// What the mpi dialect lowers to: MPI's functions, of the library that the program's launcher has.
//
// The library is opened by the first call, never linked: any MPI that has the standard ABI of
// MPI 5.0 (libmpi_abi.so.1), whose handles and constants the standard fixes. It is looked for
//
//   in the file that the environment variable AOTC_MPI names,
//   in ../lib and ../lib64 of the folder of the launcher: the parent process, else PATH's mpirun,
//   and where the dynamic linker looks.
//
// The first call initializes MPI, unless the program did; then the program's end finalizes it, if
// no thread's failure stopped it. A failed program ends without that, and its launcher ends the
// other processes.
//
// Functions return MPI's status, 0 for success. With `is_checked`, another status is the thread's
// failure, whose message names the call, the rank and MPI's own words; once the thread has failed,
// they do nothing, and return 0. Communicators and requests are MPI's handles, as integers. Buffers
// are the host's or managed, and contiguous; another is a failure.
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

// The class of a status: what MPI's constants compare with.
AOTC_API int32_t aotc_mpi_error_class(int32_t status);

// Failures are the thread's; the result is then 0, or MPI_COMM_NULL.
AOTC_API int32_t aotc_mpi_comm_rank(int64_t comm);
AOTC_API int32_t aotc_mpi_comm_size(int64_t comm);
AOTC_API int64_t aotc_mpi_comm_split(int64_t comm, int32_t color, int32_t key);

// Fails unless the program runs in `expected` processes, a positive number.
AOTC_API void aotc_mpi_check_processes(int64_t expected);

// For each type of elements that MPI computes with: SUFFIX, and MPI's handle of it.
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

// And for each that it sends: f16 and bf16 are its 16-bit integers then.
#define AOTC_MPI_TYPES(X)                                                                          \
  AOTC_MPI_REDUCED_TYPES(X)                                                                        \
  X(f16, 0x248)                                                                                    \
  X(bf16, 0x248)

// isend and irecv return the request; their failures are the thread's. `op` is the number that the
// dialect has for a reduction.
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
