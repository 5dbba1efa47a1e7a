// The MPI library, loaded on first use: its functions, and the failures of calls.
#ifndef AOTC_PROGRAM_MPI_LIBRARY_H
#define AOTC_PROGRAM_MPI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

// -------------------------------------------------------------------------------------------------
// The standard ABI of MPI 5.0, chapter 20

#define WORLD 0x101
#define COMM_NULL 0x100
#define REQUEST_NULL 0x180
#define ERRORS_RETURN 0x143
#define ERROR_CHARACTERS 512
#define IN_PLACE ((void *)1)
#define STATUS_IGNORE NULL

typedef void *handle;
typedef int64_t count;

#define FUNCTIONS(X)                                                                               \
  X(Initialized, (int *))                                                                          \
  X(Finalized, (int *))                                                                            \
  X(Init, (int *, char ***))                                                                       \
  X(Finalize, (void))                                                                              \
  X(Abort, (handle, int))                                                                          \
  X(Comm_set_errhandler, (handle, handle))                                                         \
  X(Comm_rank, (handle, int *))                                                                    \
  X(Comm_size, (handle, int *))                                                                    \
  X(Comm_split, (handle, int, int, handle *))                                                      \
  X(Error_class, (int, int *))                                                                     \
  X(Error_string, (int, char *, int *))                                                            \
  X(Barrier, (handle))                                                                             \
  X(Wait, (handle *, void *))                                                                      \
  X(Type_create_hvector_c, (count, count, count, handle, handle *))                                \
  X(Type_commit, (handle *))                                                                       \
  X(Type_free, (handle *))                                                                         \
  X(Send_c, (const void *, count, handle, int, int, handle))                                       \
  X(Recv_c, (void *, count, handle, int, int, handle, void *))                                     \
  X(Isend_c, (const void *, count, handle, int, int, handle, handle *))                            \
  X(Irecv_c, (void *, count, handle, int, int, handle, handle *))                                  \
  X(Allgather_c, (const void *, count, handle, void *, count, handle, handle))                     \
  X(Allreduce_c, (const void *, void *, count, handle, handle, handle))                            \
  X(Reduce_scatter_block_c, (const void *, void *, count, handle, handle, handle))

#define MEMBER(name, parameters) int(*name) parameters;
extern struct aotc_program_mpi_functions {
  FUNCTIONS(MEMBER)
} aotc_program_mpi;

static inline handle handle_of(int64_t value) {
  return (handle)(intptr_t)value; // NOLINT: the standard defines handles this way
}

// Whether a call may proceed: no failure is recorded on this thread and MPI is initialized.
bool aotc_program_mpi_begin(const char *call);

// Records a failure. The second function records one if the status is not 0, and returns the
// status.
void aotc_program_mpi_fail(const char *call, const char *what);
int32_t aotc_program_mpi_end(const char *call, int status, bool is_checked);

#endif // AOTC_PROGRAM_MPI_LIBRARY_H
