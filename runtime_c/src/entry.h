// Shared by the files for entry calls: properties of elements, and checking arguments.
#ifndef AOTC_RT_ENTRY_H
#define AOTC_RT_ENTRY_H

#include "aotc_entry.h"
#include "state.h"

// An argument of a call: the memory it accesses and how that is passed.
typedef struct aotc_rt_piece {
  uintptr_t start; // of its elements
  uint64_t bytes;  // 0 if it has no elements, or is a scalar
  // Arguments with overlapping memory form a group; the index of the argument that represents it.
  int32_t leader;
  // Of a leader: the buffer passed to the entry, if it is not the caller's memory.
  bool is_staged;
  bool is_alone;
  aotc_memory_kind kind;
  bool is_read, is_written;
  uintptr_t group_start, group_end;
  struct aotc_rt_staging_buffer *buffer;
  uintptr_t shift; // from the caller's addresses to those in the buffer
} aotc_rt_piece;

uint32_t aotc_rt_element_bytes(aotc_dtype dtype);
size_t aotc_rt_value_bytes(const aotc_value *value); // size of the scalar or the descriptor

// Checks every argument and determines the memory it accesses; false, with the failure recorded.
// Descriptors made by aotc_entry_describe are known to match the type.
bool aotc_rt_entry_check(const aotc_entry *entry, void **values, bool are_described,
                         aotc_rt_piece *out_pieces);

// Checks the sizes of every argument, ignoring their memory. `given` is as in
// aotc_entry_size_results.
bool aotc_rt_entry_check_sizes(const aotc_entry *entry, const void *const *given);

// Whether the size in bytes of a memref of these sizes, which may be AOTC_DYNAMIC, is addressable.
bool aotc_rt_fits_memory(const aotc_value *value, const int64_t *sizes);

// Ends a call: returns its failure to the caller, and lets the thread's next calls proceed.
aotc_status aotc_rt_entry_tell(aotc_rt_thread *thread);

// Records a failure of argument `index`.
__attribute__((format(printf, 4, 5))) aotc_status aotc_rt_fail_argument(aotc_status status,
                                                                        const aotc_entry *entry,
                                                                        int32_t index,
                                                                        const char *format, ...);

#endif // AOTC_RT_ENTRY_H
