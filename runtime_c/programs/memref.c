// Decoding of memref descriptors.
#include "memref.h"

#include <inttypes.h>

// MLIR's layout; the sizes and the strides follow the offset.
typedef struct descriptor {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[];
} descriptor;

aotc_program_memref aotc_program_memref_of(int64_t rank, const void *address) {
  const descriptor *d = address;
  return (aotc_program_memref){
      .rank = rank,
      .data = d->aligned,
      .offset = d->offset,
      .sizes = d->sizes_and_strides,
      .strides = d->sizes_and_strides + rank,
  };
}

static void write_list(FILE *out, const char *name, const int64_t *values, int64_t count) {
  fprintf(out, " %s = [", name);
  for (int64_t i = 0; i < count; ++i) {
    fprintf(out, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
  }
  fputc(']', out);
}

void aotc_program_write_shape(FILE *out, const aotc_program_memref *memref) {
  // C++ streams print a null pointer as 0.
  uintptr_t base = (uintptr_t)memref->data;
  fprintf(out, "base@ = %s%" PRIxPTR " rank = %" PRId64 " offset = %" PRId64, base != 0 ? "0x" : "",
          base, memref->rank, memref->offset);
  write_list(out, "sizes", memref->sizes, memref->rank);
  write_list(out, "strides", memref->strides, memref->rank);
}
