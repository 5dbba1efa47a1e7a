// The table of a program: what aotc generates beside the harness, and all that the harness knows
// of the module. The generated file holds one constant, `aotc_harness_program`, made of these
// types.
#ifndef AOTC_HARNESS_H
#define AOTC_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum harness_dtype {
  HARNESS_BOOL, // i1: one byte, 0 or 1
  HARNESS_I8,
  HARNESS_I16,
  HARNESS_I32,
  HARNESS_I64, // index too
  HARNESS_U8,
  HARNESS_U16,
  HARNESS_U32,
  HARNESS_U64,
  HARNESS_F16,
  HARNESS_BF16,
  HARNESS_F32,
  HARNESS_F64,
  HARNESS_C64,  // complex<f32>
  HARNESS_C128, // complex<f64>
} harness_dtype;

// A dimension, a stride or an offset that is known only when the program runs.
#define HARNESS_DYNAMIC INT64_MIN

// The ranks that the harness takes: -1 (a scalar) to this. It is NumPy's limit.
#define HARNESS_MAX_RANK 64

// An argument or a result of an entry.
typedef struct harness_value {
  const char *name; // "A", "result0"
  const char *type; // the MLIR type, for messages: "memref<128x64xf32>"
  harness_dtype dtype;
  int32_t rank;            // -1: a scalar; 0: a memref of rank 0
  const int64_t *shape;    // rank values, HARNESS_DYNAMIC where '?'
  const int64_t *strides;  // rank values in elements; NULL: row-major and contiguous.
                           // HARNESS_DYNAMIC: the stride that packs the dimension
  int64_t offset;          // in elements; HARNESS_DYNAMIC: 0 is passed
  bool is_read;            // arguments: the entry reads the buffer
  bool is_written;         // arguments: the entry writes the buffer
  aotc_memory_kind memory; // arguments: where the buffer must be when the device is CUDA;
                           // owned results: where it is, HOST meaning that free() frees it
  bool is_owned;           // memref results: the caller frees the allocated pointer
  int32_t aliases;         // memref results: the index of the argument that it is, or -1
} harness_value;

typedef struct harness_entry {
  const char *name;
  int32_t argument_count, result_count;
  const harness_value *arguments, *results;
  // values[i] is the address of scalar argument i, or of its memref descriptor; then one for each
  // result, likewise, which the call writes. A descriptor is MLIR's: {void *allocated, *aligned;
  // int64_t offset, sizes[rank], strides[rank]}.
  void (*call)(void **values);
  bool touches_memory_on_host; // then the caller's stream must synchronize inside the entry
} harness_entry;

typedef struct harness_kernel {
  const char *name;
  const char *built_for; // "sm_80, sm_90a, PTX compute_80"
  bool has_cpu_form;
  const char *why_no_cpu_form; // NULL when it has one
} harness_kernel;

typedef struct harness_program {
  const char *name;    // "matmul"
  const char *version; // aotc's
  int32_t entry_count;
  const harness_entry *entries;
  int32_t kernel_count;
  const harness_kernel *kernels;
} harness_program;

extern const harness_program aotc_harness_program;

#ifdef __cplusplus
}
#endif

#endif
