// The table of a program: what aotc generates beside the harness, and all that the harness knows
// of the module. The generated file holds one constant, `aotc_harness_program`, made of these
// types.
#ifndef AOTC_HARNESS_H
#define AOTC_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_state.h"

#ifdef __cplusplus
extern "C" {
#endif

// The ranks that the harness takes: -1 (a scalar) to this. It is NumPy's limit.
#define HARNESS_MAX_RANK 64

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
  const aotc_entry *entries;
  int32_t kernel_count;
  const harness_kernel *kernels;
  const aotc_state_type *state; // NULL: entries take none
} harness_program;

extern const harness_program aotc_harness_program;

#ifdef __cplusplus
}
#endif

#endif
