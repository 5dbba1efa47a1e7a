// What the files of the calls of entries share: facts about elements, and the check of arguments.
#ifndef AOTC_RT_ENTRY_H
#define AOTC_RT_ENTRY_H

#include "aotc_entry.h"
#include "state.h"

// An argument of a call: the memory that it reaches, and what became of it.
typedef struct aotc_rt_piece {
  uintptr_t start; // of its elements
  uint64_t bytes;  // 0: it has none, or is a scalar
  // What its memory shares with other arguments' is kept with one of them.
  int32_t leader;
  // Of a leader: the buffer that the entry works on, if that is not the caller's memory.
  bool is_staged;
  bool is_alone;
  aotc_memory_kind kind;
  bool is_read, is_written;
  uintptr_t group_start, group_end;
  struct aotc_rt_staging_buffer *buffer;
  uintptr_t shift; // from the caller's addresses to the buffer's
} aotc_rt_piece;

uint32_t aotc_rt_element_bytes(aotc_dtype dtype);
size_t aotc_rt_value_bytes(const aotc_value *value); // of the scalar, or of the descriptor

// Checks every argument and says what memory it reaches; false, with the failure recorded.
// Descriptors that were made by aotc_entry_describe cannot differ from the type.
bool aotc_rt_entry_check(const aotc_entry *entry, void **values, bool are_described,
                         aotc_rt_piece *out_pieces);

// Checks the sizes of every argument, without their memory. `given` is as in
// aotc_entry_size_results.
bool aotc_rt_entry_check_sizes(const aotc_entry *entry, const void *const *given);

// Whether a memref of these sizes, which may be AOTC_DYNAMIC, has no more bytes than memory can.
bool aotc_rt_fits_memory(const aotc_value *value, const int64_t *sizes);

// Ends a call: what the caller is told does not stop what this thread does next.
aotc_status aotc_rt_entry_tell(aotc_rt_thread *thread);

// Records a failure of argument `index`.
__attribute__((format(printf, 4, 5))) aotc_status aotc_rt_fail_argument(aotc_status status,
                                                                        const aotc_entry *entry,
                                                                        int32_t index,
                                                                        const char *format, ...);

#endif // AOTC_RT_ENTRY_H
