// cuSPARSE, loaded on first use.
#ifndef AOTC_PROGRAM_CUSPARSE_H
#define AOTC_PROGRAM_CUSPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(name, parameters) of every function used; all of them return a status. Objects are pointers.
#define CUSPARSE_FUNCTIONS(X)                                                                      \
  X(Create, (void **))                                                                             \
  X(Destroy, (void *))                                                                             \
  X(SetStream, (void *, void *))                                                                   \
  X(CreateDnVec, (void **, int64_t, void *, int))                                                  \
  X(DestroyDnVec, (void *))                                                                        \
  X(CreateDnMat, (void **, int64_t, int64_t, int64_t, void *, int, int))                           \
  X(DestroyDnMat, (void *))                                                                        \
  X(CreateCoo, (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int))        \
  X(CreateCsr, (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int, int))   \
  X(CreateCsc, (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int, int))   \
  X(CreateBsr, (void **, int64_t, int64_t, int64_t, int64_t, int64_t, void *, void *, void *, int, \
                int, int, int, int))                                                               \
  X(DestroySpMat, (void *))                                                                        \
  X(SpMatGetSize, (void *, int64_t *, int64_t *, int64_t *))                                       \
  X(CsrSetPointers, (void *, void *, void *, void *))                                              \
  X(SpMV_bufferSize,                                                                               \
    (void *, int, const void *, void *, void *, const void *, void *, int, int, size_t *))         \
  X(SpMV, (void *, int, const void *, void *, void *, const void *, void *, int, int, void *))     \
  X(SpMM_bufferSize,                                                                               \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, size_t *))    \
  X(SpMM,                                                                                          \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *))      \
  X(SDDMM_bufferSize,                                                                              \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, size_t *))    \
  X(SDDMM,                                                                                         \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *))      \
  X(SpGEMM_createDescr, (void **))                                                                 \
  X(SpGEMM_destroyDescr, (void *))                                                                 \
  X(SpGEMM_workEstimation, (void *, int, int, const void *, void *, void *, const void *, void *,  \
                            int, int, void *, size_t *, void *))                                   \
  X(SpGEMM_compute, (void *, int, int, const void *, void *, void *, const void *, void *, int,    \
                     int, void *, size_t *, void *))                                               \
  X(SpGEMM_copy,                                                                                   \
    (void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *))

#define CUSPARSE_MEMBER(name, parameters) int(*name) parameters;
typedef struct aotc_program_cusparse {
  CUSPARSE_FUNCTIONS(CUSPARSE_MEMBER)
  void *handle;
} aotc_program_cusparse;

// Returns the library, with a handle that works on `stream` and with CUDA's context current.
// Returns NULL, with a failure recorded for `call`, where cuSPARSE is missing. Other threads are
// locked out until aotc_program_cusparse_end, which records a failure for a status other than 0.
aotc_program_cusparse *aotc_program_cusparse_begin(const char *call, void *stream);
void aotc_program_cusparse_end(const char *call, int status);

// Closes the handle, if there is one.
void aotc_program_cusparse_close(void);

#endif // AOTC_PROGRAM_CUSPARSE_H
