// Mapped weights files, used by weights.c.
#ifndef AOTC_RT_WEIGHTS_FILE_H
#define AOTC_RT_WEIGHTS_FILE_H

#include <sys/types.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

// A weight in a file, shared by all programs and libraries that use this runtime: its data, and its
// copies on devices.
typedef struct aotc_rt_shared_weight {
  aotc_constant constant;
  int64_t users; // protected by the lock
} aotc_rt_shared_weight;

typedef struct aotc_rt_weights_file {
  struct aotc_rt_weights_file *next;
  dev_t device;
  ino_t number;
  const char *data;
  size_t bytes;
  uint32_t count;
  aotc_rt_shared_weight *weights; // `count` of them, in the file's order
  int64_t users;
} aotc_rt_weights_file;

// Whether the weights are in the file in the order of its table and without overlap; sets
// *out_largest to the size of the largest.
bool aotc_rt_weights_file_is_ordered(const aotc_rt_weights_file *file, uint64_t *out_largest);

// Finds the weight that contains byte `at` of such a file; false if there is none.
bool aotc_rt_weights_file_find(const aotc_rt_weights_file *file, uint64_t at, uint64_t *out_start,
                               uint64_t *out_bytes);

// Opens a weights file of a program or library, or finds it if it is open, and sets the weights'
// `shared`. NULL, with the failure recorded.
aotc_rt_weights_file *aotc_rt_weights_open_locked(const aotc_weights *weights);

// Releases a reference from aotc_rt_weights_open_locked. True if it was the last one: then the file
// must be freed, without the lock.
bool aotc_rt_weights_close_locked(aotc_rt_weights_file *file, const aotc_weights *weights);
void aotc_rt_weights_file_free(aotc_rt_weights_file *file);

#endif // AOTC_RT_WEIGHTS_FILE_H
