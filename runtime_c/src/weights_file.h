// Files of weights that are mapped: what weights_file.c does for weights.c.
#ifndef AOTC_RT_WEIGHTS_FILE_H
#define AOTC_RT_WEIGHTS_FILE_H

#include <sys/types.h>

#include "mlir_cuda_runtime.h"
#include "state.h"

// A weight of a file, for all programs and libraries that have this runtime: its data in the file,
// and their copies.
typedef struct aotc_rt_shared_weight {
  aotc_constant constant;
  int64_t users; // under the lock
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

// Whether the weights lie one behind the other in the file, in the order of its table; sets
// *out_largest to the bytes of the largest.
bool aotc_rt_weights_file_is_ordered(const aotc_rt_weights_file *file, uint64_t *out_largest);

// The weight that has the byte `at` of such a file; false if there is none.
bool aotc_rt_weights_file_find(const aotc_rt_weights_file *file, uint64_t at, uint64_t *out_start,
                               uint64_t *out_bytes);

// Opens the file of a program's or library's weights, or finds it, and sets their `shared`. NULL,
// with the failure recorded.
aotc_rt_weights_file *aotc_rt_weights_open_locked(const aotc_weights *weights);

// Gives up what a call of aotc_rt_weights_open_locked gave. True for the last one: the file is to
// be freed then, without the lock.
bool aotc_rt_weights_close_locked(aotc_rt_weights_file *file, const aotc_weights *weights);
void aotc_rt_weights_file_free(aotc_rt_weights_file *file);

#endif // AOTC_RT_WEIGHTS_FILE_H
