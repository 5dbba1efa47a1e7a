// Entries written in C, described like in generated tables, for tests of calls.
#ifndef AOTC_TEST_ENTRIES_H
#define AOTC_TEST_ENTRIES_H

#include <stdint.h>

#include "aotc_entry.h"
#include "fake_driver.h"

#define ENTRIES_MAX 24

// A memref descriptor of rank 1.
typedef struct vector {
  void *allocated, *aligned;
  int64_t offset, size, stride;
} vector;

// What the last entry observed.
typedef struct entries_seen {
  int calls;
  float *pointers[ENTRIES_MAX];
  fake_kind kinds[ENTRIES_MAX];
} entries_seen;
extern _Thread_local entries_seen the_seen;

// Registers and loads a module with the kernel "add", built for sm_90, which the entries launch.
// Sets AOTC_DEVICE to `device`, unless that is NULL.
void entries_load(const char *device);
void *entries_module(void);

// add(A, B, C): C[i] = A[i] + B[i] for all i but the last; memref<4xf32>, on the GPU.
extern const aotc_entry entry_add;
// The same with dynamic shapes, strides and offsets: memref<?xf32, strided<[?], offset: ?>>.
extern const aotc_entry entry_strided;
// add, but A is in managed memory: memref<4xf32>, and its host code adds 1 to A[0] first.
extern const aotc_entry entry_managed;
// add, but A is only used by host code.
extern const aotc_entry entry_host;

// The number of calls of a driver function since call number `since`.
int entries_count_calls(const fake_driver *driver, int since, const char *symbol);

// Four floats in memory of a kind: 1, 2, 3, 4 times `first`.
float *entries_make(aotc_memory_kind kind, float first);

vector vector_at(void *pointer);
// Calls an entry of three memrefs.
aotc_status entries_call(const aotc_entry *entry, vector a, vector b, vector c);

// Checks what add() wrote: 1, 2, 3 times `first`; and `last`, which it leaves as it was.
void entries_check_sum(const float *c, float first, float last);

#endif // AOTC_TEST_ENTRIES_H
