// The table of a program, which aotc generates for the harness: all information about the module.
// The generated file defines one constant, `aotc_harness_program`, of these types.
#ifndef AOTC_HARNESS_H
#define AOTC_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "aotc_state.h"

#ifdef __cplusplus
extern "C" {
#endif

// Supported ranks: -1 (a scalar) to this. It is NumPy's limit.
#define HARNESS_MAX_RANK 64

typedef struct harness_kernel {
  const char *name;
  const char *built_for; // "sm_80, sm_90a, PTX compute_80"
  bool has_cpu_form;
  const char *why_no_cpu_form; // NULL if it has one
} harness_kernel;

typedef struct harness_program {
  const char *name;    // "matmul"
  const char *version; // aotc's
  int32_t entry_count;
  const aotc_entry *entries;
  int32_t kernel_count;
  const harness_kernel *kernels;
  const aotc_state_type *state; // NULL: the entries have no state
} harness_program;

extern const harness_program aotc_harness_program;

#ifdef __cplusplus
}
#endif

#endif
